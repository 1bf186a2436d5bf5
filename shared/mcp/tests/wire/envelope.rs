//! Rungs 1a and 1b: what is no message, in any era.

use crate::support::{error, refused};
use serde_json::{Value, json};

const ERAS: [&[(&str, &str)]; 4] = [
    &[],
    &[("MCP-Protocol-Version", "2025-11-25")],
    &[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")],
    &[("MCP-Protocol-Version", "1999-01-01")],
];

#[track_caller]
fn refused_in_every_era(body: &[u8], wanted: &Value) {
    for headers in ERAS {
        assert_eq!(refused(headers, body), (400, wanted.clone()), "{headers:?} {}", String::from_utf8_lossy(body));
    }
}

#[test]
fn what_is_not_one_json_text_is_a_parse_error_without_id() {
    let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}", "[".repeat(10_000));
    let surrogate = br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#;
    let two = br#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#;
    for body in [b"" as &[u8], b"{", b"\xff", b"nope", deep.as_bytes(), surrogate, two] {
        refused_in_every_era(body, &error(None, -32700, "parse_error", "The body is not one JSON text"));
    }
}

#[test]
fn what_is_json_but_no_message_is_an_invalid_request() {
    let batch = "Batches are not accepted; send one message per request";
    let object = "A message must be a JSON object";
    let twice = "An object names a key twice";
    let id = "id must be a string of at most 256 bytes or an integer";
    let version = "jsonrpc must be \"2.0\"";
    let method = "method must be a string";
    let long = json!({ "jsonrpc": "2.0", "id": "x".repeat(257), "method": "ping" }).to_string();
    for (body, echoed, why) in [
        ("[]", None, batch),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None, batch),
        ("null", None, object),
        ("\"ping\"", None, object),
        ("7", None, object),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None, twice),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":1,"b":2}}}"#,
            None,
            twice,
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, id),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, None, id),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, None, id),
        (r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#, None, id),
        (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None, id),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, None, id),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, None, id),
        (&long, None, id),
        (r#"{"id":1,"method":"ping"}"#, Some(json!(1)), version),
        (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, Some(json!("a")), version),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, Some(json!(1)), version),
        (r#"{"jsonrpc":"1.0","method":"notifications/initialized"}"#, None, version),
        (r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, None, version),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Some(json!(1)), method),
        (r#"{"jsonrpc":"2.0","id":1,"method":null,"result":{}}"#, Some(json!(1)), method),
        (r#"{"jsonrpc":"2.0","id":1}"#, Some(json!(1)), method),
        (r#"{"jsonrpc":"2.0","method":["a"]}"#, None, method),
        (r#"{"jsonrpc":"2.0","result":{}}"#, None, method),
        (r#"{"jsonrpc":"2.0"}"#, None, method),
    ] {
        refused_in_every_era(body.as_bytes(), &error(echoed, -32600, "invalid_request", why));
    }
}

#[test]
fn cve_2026_27896_keys_are_case_sensitive() {
    let missing = error(Some(json!(1)), -32600, "invalid_request", "method must be a string");
    refused_in_every_era(br#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, &missing);
    let version = error(Some(json!(1)), -32600, "invalid_request", "jsonrpc must be \"2.0\"");
    refused_in_every_era(br#"{"JSONRPC":"2.0","id":1,"method":"ping"}"#, &version);

    // A second spelling neither replaces nor doubles the first.
    let body = br#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"nope","METHOD":"ping","Params":[]}"#;
    let (status, told) = refused(&[], body);
    assert_eq!((status, &told["id"]), (200, &json!(1)));
    assert_eq!(told["error"]["message"], "Method not found: nope");

    // Nor is a shouted argument name the called tool's.
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"Name":"k8s_get"}}"#;
    let (status, told) = refused(&[], body);
    assert_eq!((status, &told["error"]["code"]), (200, &json!(-32602)));
}

#[test]
fn ids_of_the_longest_and_strangest_lawful_kind_are_echoed() {
    for id in [json!("x".repeat(256)), json!(""), json!(0), json!(-7), json!(u64::MAX), json!(i64::MIN)] {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "nope" }).to_string();
        let wanted = error(Some(id), -32601, "method_not_found", "Method not found: nope");
        assert_eq!(refused(&[], body.as_bytes()), (200, wanted));
    }
}
