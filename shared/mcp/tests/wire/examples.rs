//! Section 12: the example frames, read as the contract says.

use crate::support::{meta, taken};
use mcp::{ClientInfo, Era, Id, ProgressToken, Request};
use serde_json::{Value, json};

const V: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");
const SESSION: (&str, &str) = ("Mcp-Session-Id", "ses_7Qm2VtX9cK4hT1bN8rLwEa");
const LEGACY: [(&str, &str); 2] = [SESSION, ("MCP-Protocol-Version", "2025-11-25")];

fn call(name: &str, arguments: &Value) -> Request {
    Request::ToolsCall { name: name.into(), arguments: arguments.as_object().expect("an object").clone() }
}

#[test]
fn legacy_open_list_and_call() {
    let open = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "agent-host", "version": "1.4.0" } } });
    let client = ClientInfo { name: "agent-host".into(), version: "1.4.0".into() };
    let opened = taken(&[], &open);
    assert_eq!(opened.request, Request::Initialize { requested: "2025-11-25".into(), client });
    assert_eq!(opened.id, Id::read(json!(0)).unwrap());

    let listed = taken(&LEGACY, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert_eq!((listed.era.as_str(), listed.request), ("2025-11-25", Request::ToolsList { cursor: None }));

    let arguments = json!({ "toolset": "k8s", "include_write_tools": true });
    let loaded = taken(
        &LEGACY,
        &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "load_toolset", "arguments": arguments } }),
    );
    assert_eq!(loaded.request, call("load_toolset", &arguments));

    let arguments = json!({ "run_id": "run_4hW0sJq8yZ2uP6eRk3TnXd", "wait_ms": 50_000 });
    let awaited = taken(
        &LEGACY,
        &json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call",
        "params": { "name": "await_run", "arguments": arguments, "_meta": { "progressToken": "w4" } } }),
    );
    assert_eq!(awaited.request, call("await_run", &arguments));
    assert_eq!(awaited.meta.progress_token, Some(ProgressToken(Id::Text("w4".into()))));
}

#[test]
fn modern_discover_list_call_and_listen() {
    let discover = json!({ "jsonrpc": "2.0", "id": "d1", "method": "server/discover", "params": { "_meta": meta() } });
    let discovered = taken(&[V, ("Mcp-Method", "server/discover")], &discover);
    assert_eq!((discovered.era, discovered.request), (Era::Modern, Request::Discover));
    assert_eq!(discovered.meta.client, Some(ClientInfo { name: "agent-host".into(), version: "1.4.0".into() }));
    assert_eq!(discovered.meta.client_capabilities, Some(json!({})));

    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta() } });
    let listed = taken(&[V, ("Mcp-Method", "tools/list")], &list);
    assert_eq!(listed.request, Request::ToolsList { cursor: None });

    let mut told = meta();
    told["quartermaster/session"] = json!("ses_Kd83nVb5QyR0wXa7TzLm1c");
    let arguments = json!({ "release": "web", "namespace": "shop" });
    let get = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "helm_get", "arguments": arguments, "_meta": told } });
    let got = taken(&[V, ("Mcp-Method", "tools/call"), ("Mcp-Name", "helm_get")], &get);
    assert_eq!(got.request, call("helm_get", &arguments));
    assert_eq!(got.meta.session.as_deref(), Some("ses_Kd83nVb5QyR0wXa7TzLm1c"));

    let listen = json!({ "jsonrpc": "2.0", "id": "L1", "method": "subscriptions/listen", "params": {
        "_meta": meta(), "notifications": { "toolsListChanged": true, "promptsListChanged": true } } });
    let heard = taken(&[V, ("Mcp-Method", "subscriptions/listen")], &listen);
    assert_eq!((heard.request, heard.id), (Request::Listen { tools_list_changed: true }, Id::Text("L1".into())));
}
