//! Whatever arrives: no panic, and a refusal is one whole JSON-RPC error.

use mcp::{Incoming, ProtocolHeaders, decode, decode_line, ladder};
use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON of any shape, rich in the words the decoder looks for.
fn value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "2.0",
        "2026-07-28",
        "2025-11-25",
        "tools/call",
        "tools/list",
        "server/discover",
        "ping",
        "initialize",
        "subscriptions/listen",
        "notifications/cancelled",
        "k8s_get",
        "info",
        "",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "jsonrpc",
        "id",
        "method",
        "params",
        "_meta",
        "name",
        "arguments",
        "cursor",
        "notifications",
        "requestId",
        "toolsListChanged",
        "result",
        "properties",
        "type",
        "x-mcp-header",
        "quartermaster/session",
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/logLevel",
    ]);
    leaf.prop_recursive(4, 40, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..8)
                .prop_map(|map| map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// A message whose envelope is mostly sound, so that the later rungs are reached too.
fn message() -> impl Strategy<Value = Value> {
    (value(), value(), value())
        .prop_map(|(id, method, params)| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn header() -> impl Strategy<Value = (String, Vec<u8>)> {
    let name =
        prop::sample::select(vec!["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-a", "Mcp-Param-"]);
    let sensible =
        prop::sample::select(vec!["2026-07-28", "2025-06-18", "tools/call", "tools/list", "=?base64?YQ==?="]);
    let value = prop_oneof![sensible.prop_map(|text| text.as_bytes().to_vec()), any::<Vec<u8>>()];
    (prop_oneof![name.prop_map(str::to_owned), any::<String>()], value)
}

fn hold(headers: &[(String, Vec<u8>)], body: &[u8]) -> Result<(), TestCaseError> {
    let headers = ProtocolHeaders::read(headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
    for decoded in [decode(&headers, body), decode_line(body)] {
        match decoded {
            Ok(Incoming::Request(_) | Incoming::Notification(_) | Incoming::Response(_)) => {}
            Err(refusal) => {
                prop_assert!([200, 400, 404].contains(&refusal.status));
                let told = domain::json::read(&refusal.body(Some("4bf9"))).expect("a JSON body");
                prop_assert_eq!(&told["jsonrpc"], "2.0");
                prop_assert_eq!(told.get("id").is_some(), refusal.id.is_some());
                prop_assert_eq!(&told["error"]["data"]["code"], refusal.error.name());
                prop_assert_eq!(&told["error"]["data"]["trace_id"], "4bf9");
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(
        headers in prop::collection::vec(header(), 0..6),
        body in any::<Vec<u8>>(),
    ) {
        hold(&headers, &body)?;
    }

    #[test]
    fn any_json_is_taken_or_refused(
        headers in prop::collection::vec(header(), 0..6),
        body in prop_oneof![value(), message()],
    ) {
        hold(&headers, body.to_string().as_bytes())?;
    }

    #[test]
    fn any_schema_can_be_compared_with_any_headers(
        schema in value(),
        arguments in value(),
        headers in prop::collection::vec(header(), 0..6),
    ) {
        let headers = ProtocolHeaders::read(headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())));
        let id = mcp::Id::Text("c1".into());
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        if let Err(refusal) = ladder::check_param_headers(&id, &schema, &arguments, &headers) {
            prop_assert_eq!((refusal.status, refusal.error.name()), (400, "header_mismatch"));
        }
    }
}
