//! Section 4: what a legacy request may be, and what it is told when it is not.

use crate::support::{error, refused, taken};
use mcp::{ClientInfo, Era, Id, Incoming, LegacyRevision, ProgressToken, Request, decode};
use serde_json::{Map, Value, json};

fn asked(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 9, "method": method, "params": params })
}

#[track_caller]
fn told(method: &str, params: Value, why: &str) {
    let wanted = error(Some(json!(9)), -32602, "invalid_params", why);
    assert_eq!(refused(&[], asked(method, params).to_string().as_bytes()), (200, wanted));
}

#[test]
fn errors_after_a_readable_envelope_are_http_200() {
    for method in ["server/discover", "subscriptions/listen", "prompts/list", "logging/setLevel", "Ping", "", "nope"] {
        let wanted = error(Some(json!(9)), -32601, "method_not_found", &format!("Method not found: {method}"));
        assert_eq!(refused(&[], asked(method, json!({})).to_string().as_bytes()), (200, wanted));
    }
    told("tools/call", json!({}), "params.name must be a string");
    told("tools/call", json!({ "name": 1 }), "params.name must be a string");
    told("tools/call", json!({ "name": "a", "arguments": [] }), "params.arguments must be an object");
    told("tools/call", json!({ "name": "a", "arguments": "{}" }), "params.arguments must be an object");
    told("tools/list", json!({ "cursor": 1 }), "params.cursor must be a string");
    told("tools/list", json!([]), "params must be an object");
    told("tools/list", json!("x"), "params must be an object");
    told("tools/list", json!({ "_meta": [] }), "params._meta must be an object");
}

#[test]
fn initialize_needs_all_three_of_its_parameters() {
    let whole = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "agent-host", "version": "1.4.0" }
    });
    let client = ClientInfo { name: "agent-host".into(), version: "1.4.0".into() };
    let envelope = taken(&[], &asked("initialize", whole.clone()));
    assert_eq!(envelope.request, Request::Initialize { requested: "2025-06-18".into(), client });
    // The header is about the transport; what is asked for stands in the body.
    assert_eq!(envelope.era, Era::Legacy(LegacyRevision::V2025_03_26));

    for (key, odd, why) in [
        ("protocolVersion", json!(1), "params.protocolVersion must be a string"),
        ("capabilities", json!([]), "params.capabilities must be an object"),
        ("clientInfo", json!("me"), "params.clientInfo must be an object"),
    ] {
        for value in [Some(odd), Some(Value::Null), None] {
            let mut params = whole.clone();
            match value {
                Some(value) => params[key] = value,
                None => drop(params.as_object_mut().unwrap().remove(key)),
            }
            told("initialize", params, why);
        }
    }
}

#[test]
fn parameters_may_be_missing_where_nothing_is_needed() {
    for body in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": null }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "cursor": null, "_meta": null } }),
    ] {
        assert_eq!(taken(&[], &body).request, Request::ToolsList { cursor: None });
    }
    assert_eq!(taken(&[], &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).request, Request::Ping);
    let call = Request::ToolsCall { name: "a".into(), arguments: Map::new() };
    assert_eq!(taken(&[], &asked("tools/call", json!({ "name": "a" }))).request, call);
    assert_eq!(taken(&[], &asked("tools/call", json!({ "name": "a", "arguments": null }))).request, call);
}

#[test]
fn meta_is_read_and_what_would_change_the_call_must_be_readable() {
    let meta = json!({
        "progressToken": 7, "quartermaster/session": "ses_x", "quartermaster/hold_ms": 55_000,
        "quartermaster/idempotency_key": "k", "traceparent": "00-a-b-01", "tracestate": "v=1", "baggage": "u=1",
        "io.modelcontextprotocol/clientCapabilities": {}, "unknown": [1],
    });
    let told_meta = taken(&[], &asked("tools/call", json!({ "name": "a", "_meta": meta }))).meta;
    assert_eq!(told_meta.progress_token, Some(ProgressToken(Id::read(json!(7)).unwrap())));
    assert_eq!(told_meta.session.as_deref(), Some("ses_x"));
    assert_eq!(told_meta.hold_ms, Some(55_000));
    assert_eq!(told_meta.idempotency_key.as_deref(), Some("k"));
    assert_eq!(told_meta.traceparent.as_deref(), Some("00-a-b-01"));
    assert_eq!(told_meta.tracestate.as_deref(), Some("v=1"));
    assert_eq!(told_meta.baggage.as_deref(), Some("u=1"));
    assert_eq!((told_meta.client_capabilities, told_meta.client), (None, None));

    let hold = "_meta quartermaster/hold_ms must be an integer from 0 to 55000";
    let key = "_meta quartermaster/idempotency_key must be a string of 1 to 255 characters";
    for (name, odd, why) in [
        ("quartermaster/session", json!(1), "_meta quartermaster/session must be a string"),
        ("quartermaster/hold_ms", json!(55_001), hold),
        ("quartermaster/hold_ms", json!(-1), hold),
        ("quartermaster/hold_ms", json!("1s"), hold),
        ("quartermaster/idempotency_key", json!(""), key),
        ("quartermaster/idempotency_key", json!("x".repeat(256)), key),
        ("quartermaster/idempotency_key", json!(1), key),
    ] {
        told("tools/call", json!({ "name": "a", "_meta": { name: odd } }), why);
    }
    // Neither tracing nor progress is worth failing a call for.
    let odd =
        json!({ "name": "a", "_meta": { "traceparent": 1, "tracestate": [], "baggage": {}, "progressToken": 1.5 } });
    assert_eq!(taken(&[], &asked("tools/call", odd)).meta, mcp::Meta::default());
}

#[test]
fn a_posted_response_is_legacy_only() {
    for body in [
        r#"{"jsonrpc":"2.0","id":"q1","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"q1","error":{"code":1,"message":"no"}}"#,
    ] {
        for pairs in [&[] as &[_], &[("MCP-Protocol-Version", "2025-11-25")]] {
            let taken = decode(&crate::support::headers(pairs), body.as_bytes());
            assert_eq!(taken, Ok(Incoming::Response(Id::Text("q1".into()))));
        }
        for version in ["2026-07-28", "1999-01-01"] {
            let why = "A response was posted, but no request is open";
            let wanted = error(None, -32600, "invalid_request", why);
            assert_eq!(refused(&[("MCP-Protocol-Version", version)], body.as_bytes()), (400, wanted));
        }
    }
}
