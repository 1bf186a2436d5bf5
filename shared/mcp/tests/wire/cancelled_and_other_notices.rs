//! Section 6: messages without an answer.

use crate::support::{error, headers, refused};
use mcp::{Id, Incoming, Notification, decode};
use serde_json::{Value, json};

fn noted(version: Option<&str>, body: &Value) -> Notification {
    let pairs: Vec<_> = version.iter().map(|version| ("MCP-Protocol-Version", *version)).collect();
    match decode(&headers(&pairs), body.to_string().as_bytes()) {
        Ok(Incoming::Notification(notification)) => notification,
        other => panic!("expected a notification, got {other:?}"),
    }
}

fn cancel(id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "bored" } })
}

#[test]
fn a_legacy_cancellation_names_its_request() {
    let wanted = Notification::Cancelled { request_id: Id::Text("4".into()) };
    assert_eq!(noted(None, &cancel(json!("4"))), wanted);
    assert_eq!(noted(Some("2025-06-18"), &cancel(json!("4"))), wanted);
    let number = Notification::Cancelled { request_id: Id::read(json!(4)).unwrap() };
    assert_eq!(noted(None, &cancel(json!(4))), number);
}

#[test]
fn a_modern_cancellation_is_taken_and_dropped() {
    assert_eq!(noted(Some("2026-07-28"), &cancel(json!(4))), Notification::Other);
}

#[test]
fn a_cancellation_that_names_nothing_changes_nothing() {
    for odd in [json!(null), json!(1.5), json!({})] {
        assert_eq!(noted(None, &cancel(odd)), Notification::Other);
    }
    let bare = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": [] });
    assert_eq!(noted(None, &bare), Notification::Other);
}

#[test]
fn whatever_has_no_id_is_a_notification() {
    for method in ["notifications/initialized", "notifications/unheard_of", "tools/call", "initialize", ""] {
        for version in [None, Some("2025-03-26"), Some("2025-11-25"), Some("2026-07-28")] {
            let body = json!({ "jsonrpc": "2.0", "method": method, "params": { "name": "k8s_get" } });
            assert_eq!(noted(version, &body), Notification::Other);
        }
    }
}

#[test]
fn a_notification_of_an_unknown_version_is_told_ours() {
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let mut wanted = error(None, -32022, "unsupported_version", "Unsupported protocol version");
    wanted["error"]["data"]["supported"] = json!(["2026-07-28"]);
    wanted["error"]["data"]["requested"] = json!("2027-01-01");
    assert_eq!(refused(&[("MCP-Protocol-Version", "2027-01-01")], body.as_bytes()), (400, wanted));

    let twice = [("MCP-Protocol-Version", "2026-07-28"), ("MCP-Protocol-Version", "2026-07-28")];
    let why = "MCP-Protocol-Version header was sent more than once";
    assert_eq!(refused(&twice, body.as_bytes()), (400, error(None, -32020, "header_mismatch", why)));
}
