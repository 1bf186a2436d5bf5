//! The end of section 9: the same messages without headers.

use crate::support::{error, meta, told};
use mcp::{Era, Id, Incoming, Notification, Request, decode_line};
use serde_json::{Value, json};

fn line(body: &Value) -> Result<Incoming, (u16, Value)> {
    decode_line(format!("{body}\r\n").as_bytes()).map_err(|refusal| told(&refusal))
}

fn list(meta: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": { "_meta": meta } })
}

#[test]
fn the_era_is_told_by_meta_alone_and_no_header_is_missed() {
    let mut call = list(meta());
    call["method"] = json!("tools/call");
    call["params"]["name"] = json!("k8s_get");
    let Ok(Incoming::Request(modern)) = line(&call) else { panic!("a modern call") };
    assert_eq!((modern.era, matches!(modern.request, Request::ToolsCall { .. })), (Era::Modern, true));

    let Ok(Incoming::Request(legacy)) = line(&list(json!({}))) else { panic!("a legacy list") };
    assert!(matches!(legacy.era, Era::Legacy(_)));
}

#[test]
fn the_rungs_about_the_body_hold_without_headers() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let mut future = meta();
    future[version] = json!("2027-01-01");
    assert_eq!(line(&list(future)).unwrap_err().1["error"]["code"], -32022);

    let mut odd = meta();
    odd[version] = json!(7);
    let wanted = error(Some(json!(9)), -32602, "invalid_envelope", &format!("{version} must be a string"));
    assert_eq!(line(&list(odd)).unwrap_err().1, wanted);

    let lacking = json!({ version: "2026-07-28" });
    assert_eq!(line(&list(lacking)).unwrap_err().1["error"]["data"]["code"], "invalid_envelope");

    let mut ping = list(meta());
    ping["method"] = json!("ping");
    assert_eq!(line(&ping).unwrap_err().1["error"]["code"], -32601);
    assert_eq!(decode_line(b"{").map_err(|refusal| told(&refusal).1["error"]["code"].clone()), Err(json!(-32700)));
}

#[test]
fn a_cancellation_counts_in_both_eras() {
    for meta in [json!({}), meta()] {
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": "4", "_meta": meta } });
        let wanted = Notification::Cancelled { request_id: Id::Text("4".into()) };
        assert_eq!(line(&body), Ok(Incoming::Notification(wanted)));
    }
    let other = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(line(&other), Ok(Incoming::Notification(Notification::Other)));
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    assert_eq!(line(&response), Ok(Incoming::Response(Id::read(json!(1)).unwrap())));
}
