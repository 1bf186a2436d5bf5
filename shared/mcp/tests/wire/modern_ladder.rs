//! Sections 2 and 3 of the contract: which requests are modern, and each rung with its exact answer.

use crate::support::{error, headers, meta, refused, taken, told};
use mcp::{Era, Id, MODERN, Request, decode, ladder};
use serde_json::{Value, json};

const V: (&str, &str) = ("MCP-Protocol-Version", MODERN);
const LIST: (&str, &str) = ("Mcp-Method", "tools/list");
const CALL: (&str, &str) = ("Mcp-Method", "tools/call");
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

fn list(meta: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": { "_meta": meta } })
}

fn call(name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": name, "_meta": meta() } })
}

fn with(key: &str, value: Value) -> Value {
    let mut meta = meta();
    meta[key] = value;
    meta
}

fn without(key: &str) -> Value {
    let mut meta = meta();
    meta.as_object_mut().expect("an object").remove(key);
    meta
}

#[track_caller]
fn mismatched(pairs: &[(&str, &str)], body: &Value, why: &str) {
    let wanted = error(Some(json!(9)), -32020, "header_mismatch", why);
    assert_eq!(refused(pairs, body.to_string().as_bytes()), (400, wanted), "{pairs:?} {body}");
}

fn unsupported(id: Option<Value>, requested: &str) -> Value {
    let mut body = error(id, -32022, "unsupported_version", "Unsupported protocol version");
    body["error"]["data"]["supported"] = json!([MODERN]);
    body["error"]["data"]["requested"] = json!(requested);
    body
}

#[test]
fn a_request_that_passes_every_rung_is_taken() {
    assert_eq!(taken(&[V, LIST], &list(&meta())).era, Era::Modern);
    // An unneeded name, and a session of another era, are nobody's business.
    taken(&[V, LIST, ("Mcp-Name", "x"), ("Mcp-Session-Id", "ses_x")], &list(&meta()));
    // Who the client is need not be told.
    assert_eq!(taken(&[V, LIST], &list(&without("io.modelcontextprotocol/clientInfo"))).meta.client, None);
}

#[test]
fn rung_2_a_header_sent_twice_is_refused_even_if_both_say_the_same() {
    let why = |name: &str| format!("{name} header was sent more than once");
    mismatched(&[V, V, LIST], &list(&meta()), &why("MCP-Protocol-Version"));
    mismatched(&[V, LIST, LIST], &list(&meta()), &why("Mcp-Method"));
    mismatched(&[V, CALL, ("Mcp-Name", "a"), ("mcp-name", "a")], &call("a"), &why("Mcp-Name"));
    // Without a version in `_meta` too: two legacy versions are not one.
    let bare = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    let old = ("MCP-Protocol-Version", "2025-06-18");
    mismatched(&[old, old], &bare, &why("MCP-Protocol-Version"));
}

#[test]
fn rung_3_missing_meta_is_named_together_with_what_we_serve() {
    let both = format!("{VERSION} and {CAPABILITIES}");
    for (params, missing, keys) in [
        (json!({}), &both, json!([VERSION, CAPABILITIES])),
        (json!([]), &both, json!([VERSION, CAPABILITIES])),
        (json!({ "_meta": "x" }), &both, json!([VERSION, CAPABILITIES])),
        (json!({ "_meta": {} }), &both, json!([VERSION, CAPABILITIES])),
        (json!({ "_meta": without(VERSION) }), &VERSION.to_owned(), json!([VERSION])),
        (json!({ "_meta": without(CAPABILITIES) }), &CAPABILITIES.to_owned(), json!([CAPABILITIES])),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "server/discover", "params": params });
        let why = format!(
            "params._meta lacks {missing}; \
             served versions: 2026-07-28, or 2025-03-26, 2025-06-18, 2025-11-25 by initialize"
        );
        let mut wanted = error(Some(json!(9)), -32602, "invalid_envelope", &why);
        wanted["error"]["data"]["missing"] = keys;
        wanted["error"]["data"]["supported"] = json!([MODERN]);
        // Any version that is not a legacy one leads here, our own included.
        for version in [MODERN, "2024-11-05", "2027-01-01", ""] {
            let pairs = [("MCP-Protocol-Version", version), ("Mcp-Method", "server/discover")];
            if version == MODERN || params["_meta"].get(VERSION).is_none() {
                assert_eq!(refused(&pairs, body.to_string().as_bytes()), (400, wanted.clone()), "{version} {body}");
            }
        }
    }
    let odd = error(Some(json!(9)), -32602, "invalid_envelope", &format!("{CAPABILITIES} must be an object"));
    let body = list(&with(CAPABILITIES, json!([]))).to_string();
    assert_eq!(refused(&[V, LIST], body.as_bytes()), (400, odd));
}

#[test]
fn rung_4a_the_version_header_says_what_meta_says() {
    let differs = "MCP-Protocol-Version header does not match the version in params._meta";
    mismatched(&[LIST], &list(&meta()), "MCP-Protocol-Version header is missing");
    mismatched(&[("MCP-Protocol-Version", "2025-11-25"), LIST], &list(&meta()), differs);
    mismatched(&[("MCP-Protocol-Version", "2026-07-29"), LIST], &list(&meta()), differs);
    mismatched(&[V, LIST], &list(&with(VERSION, json!("v999.0.0"))), differs);
    for odd in [json!(5), json!(null), json!([MODERN])] {
        mismatched(&[V, LIST], &list(&with(VERSION, odd)), differs);
    }
}

#[test]
fn rung_4b_the_method_header_says_what_the_body_says() {
    mismatched(&[V], &list(&meta()), "Mcp-Method header is missing");
    for other in ["prompts/list", "TOOLS/LIST", "", "tools/list, tools/list"] {
        mismatched(&[V, ("Mcp-Method", other)], &list(&meta()), "Mcp-Method header does not match method");
    }
    taken(&[V, ("MCP-METHOD", "  tools/list\t")], &list(&meta()));
}

#[test]
fn rung_4c_the_name_header_says_what_the_body_says() {
    mismatched(&[V, CALL], &call("k8s_get"), "Mcp-Name header is missing");
    for other in ["wrong", "K8S_GET", "", "=?base64?azhzX2dldA?=", "=?base64?azhzX2dldB==?=", "=?base64?/w==?="] {
        mismatched(&[V, CALL, ("Mcp-Name", other)], &call("k8s_get"), "Mcp-Name header does not match params.name");
    }
    for same in ["k8s_get", "  k8s_get  ", "=?base64?azhzX2dldA==?="] {
        taken(&[V, CALL, ("Mcp-Name", same)], &call("k8s_get"));
    }
    let named = |method: &str, params: Value| {
        let mut body = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params });
        body["params"]["_meta"] = meta();
        body
    };
    for (method, params, key) in [
        ("tools/call", json!({}), "name"),
        ("tools/call", json!({ "name": 7 }), "name"),
        ("prompts/get", json!({ "name": "p" }), "name"),
        ("resources/read", json!({ "uri": "test://a" }), "uri"),
        ("tasks/get", json!({ "taskId": "run_1" }), "taskId"),
        ("tasks/cancel", json!({ "taskId": "run_1" }), "taskId"),
    ] {
        let why = format!("Mcp-Name header does not match params.{key}");
        mismatched(&[V, ("Mcp-Method", method), ("Mcp-Name", "7")], &named(method, params), &why);
    }
}

#[test]
fn rung_5_a_version_we_do_not_serve_is_answered_with_the_one_we_do() {
    for version in ["2027-01-01", "v999.0.0", "2025-11-25", ""] {
        let body = list(&with(VERSION, json!(version))).to_string();
        let pairs = [("MCP-Protocol-Version", version), LIST];
        assert_eq!(refused(&pairs, body.as_bytes()), (400, unsupported(Some(json!(9)), version)));
    }
}

#[test]
fn rung_6_unknown_and_removed_methods_are_not_found() {
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "resources/list",
        "completion/complete",
        "Tools/list",
        "unknown/method",
        "",
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": { "_meta": meta() } }).to_string();
        let wanted = error(Some(json!(9)), -32601, "method_not_found", &format!("Method not found: {method}"));
        assert_eq!(refused(&[V, ("Mcp-Method", method)], body.as_bytes()), (404, wanted));
    }
}

#[test]
fn an_endless_method_name_is_not_echoed_whole() {
    let method = "\u{e9}".repeat(5_000);
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": { "_meta": meta() } }).to_string();
    let (status, told) = refused(&[V, ("Mcp-Method", &method)], body.as_bytes());
    assert_eq!((status, told["error"]["message"].as_str().unwrap().chars().count()), (404, 18 + 80));
}

#[test]
fn rung_8_a_missing_capability_is_named_as_an_object() {
    let (status, body) = told(&ladder::missing_capability(Id::Text("9".into()), "sampling"));
    let why = "The client did not declare the capability sampling";
    let mut wanted = error(Some(json!("9")), -32021, "missing_client_capability", why);
    wanted["error"]["data"]["requiredCapabilities"] = json!({ "sampling": {} });
    assert_eq!((status, body), (400, wanted));
}

#[test]
fn rung_9_a_log_level_is_one_of_eight() {
    let key = "io.modelcontextprotocol/logLevel";
    let levels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    for level in levels {
        taken(&[V, LIST], &list(&with(key, json!(level))));
    }
    let why = format!("{key} must be one of {}", levels.join(", "));
    for level in [json!("Info"), json!("trace"), json!(""), json!(3), json!(null)] {
        let body = list(&with(key, level)).to_string();
        let wanted = error(Some(json!(9)), -32602, "invalid_envelope", &why);
        assert_eq!(refused(&[V, LIST], body.as_bytes()), (400, wanted));
    }
}

#[test]
fn the_first_failing_rung_answers() {
    let unknown =
        |meta: &Value| json!({ "jsonrpc": "2.0", "id": 9, "method": "nope", "params": { "_meta": meta } }).to_string();
    let odd = with(VERSION, json!("2027-01-01"));
    let code = |pairs: &[(&str, &str)], body: &str| refused(pairs, body.as_bytes()).1["error"]["code"].clone();
    let future = ("MCP-Protocol-Version", "2027-01-01");
    let nope = ("Mcp-Method", "nope");
    assert_eq!(code(&[V, V], &unknown(&json!({}))), -32020, "2 before 3");
    assert_eq!(code(&[], &unknown(&without(CAPABILITIES))), -32602, "3 before 4");
    assert_eq!(code(&[future], &unknown(&odd)), -32020, "4 before 5");
    assert_eq!(code(&[future, nope], &unknown(&odd)), -32022, "5 before 6");
    let mut bad = meta();
    bad["io.modelcontextprotocol/logLevel"] = json!("loud");
    assert_eq!(code(&[V, nope], &unknown(&bad)), -32601, "6 before 9");
}

#[test]
fn parameters_of_the_wrong_shape_are_refused_with_400() {
    let listen = ("Mcp-Method", "subscriptions/listen");
    for (method, params, why) in [
        (listen, json!({}), "params.notifications must be an object"),
        (listen, json!({ "notifications": [] }), "params.notifications must be an object"),
        (
            listen,
            json!({ "notifications": { "toolsListChanged": 1 } }),
            "params.notifications.toolsListChanged must be a boolean",
        ),
        (LIST, json!({ "cursor": 2 }), "params.cursor must be a string"),
    ] {
        let mut body = json!({ "jsonrpc": "2.0", "id": 9, "method": method.1, "params": params });
        body["params"]["_meta"] = meta();
        let wanted = error(Some(json!(9)), -32602, "invalid_params", why);
        assert_eq!(refused(&[V, method], body.to_string().as_bytes()), (400, wanted));
    }
}

#[test]
fn a_version_in_meta_makes_any_request_modern_and_nothing_else_does() {
    let legacy = ["2025-03-26", "2025-06-18", "2025-11-25"];
    let bare = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    for version in legacy {
        let era = taken(&[("MCP-Protocol-Version", version), ("Mcp-Method", "nonsense")], &bare).era;
        assert!(matches!(era, Era::Legacy(_)) && era.as_str() == version);
    }
    assert_eq!(taken(&[("Mcp-Session-Id", "ses_x")], &bare).era.as_str(), "2025-03-26");
    // `initialize` included: with the version in `_meta` it is a removed method.
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "initialize", "params": { "_meta": meta() } }).to_string();
    assert_eq!(refused(&[V, ("Mcp-Method", "initialize")], body.as_bytes()).0, 404);
}

#[test]
fn an_empty_cursor_is_a_cursor() {
    let mut body = list(&meta());
    body["params"]["cursor"] = json!("");
    assert_eq!(taken(&[V, LIST], &body).request, Request::ToolsList { cursor: Some(String::new()) });
}

#[test]
fn refusals_carry_the_trace_id_they_are_given() {
    let refusal = decode(&headers(&[V]), list(&meta()).to_string().as_bytes()).unwrap_err();
    let body = refusal.reply(Some("4bf9")).body;
    insta::assert_snapshot!(str::from_utf8(&body).unwrap(), @r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32020,"message":"Mcp-Method header is missing","data":{"code":"header_mismatch","retryable":false,"trace_id":"4bf9"}}}"#);
}
