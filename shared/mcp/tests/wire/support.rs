//! What the tests say often.

use mcp::{Incoming, ProtocolHeaders, Refusal, RequestEnvelope, decode};
use serde_json::{Value, json};

/// Headers from pairs of name and value, as a server would see them.
pub(crate) fn headers<'a>(pairs: &[(&'a str, &'a str)]) -> ProtocolHeaders<'a> {
    ProtocolHeaders::read(pairs.iter().map(|(name, value)| (*name, value.as_bytes())))
}

/// The `_meta` of a modern request.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "agent-host", "version": "1.4.0" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

/// A request that was taken.
#[track_caller]
pub(crate) fn taken(pairs: &[(&str, &str)], body: &Value) -> RequestEnvelope {
    match decode(&headers(pairs), body.to_string().as_bytes()) {
        Ok(Incoming::Request(request)) => *request,
        other => panic!("expected a request, got {other:?}"),
    }
}

/// Status and body of a refusal.
#[track_caller]
pub(crate) fn refused(pairs: &[(&str, &str)], body: &[u8]) -> (u16, Value) {
    match decode(&headers(pairs), body) {
        Err(refusal) => told(&refusal),
        Ok(taken) => panic!("expected a refusal, got {taken:?}"),
    }
}

/// Status and body of a refusal.
pub(crate) fn told(refusal: &Refusal) -> (u16, Value) {
    (refusal.status, domain::json::read(&refusal.body(None)).expect("a JSON body"))
}

/// The body of an error.
pub(crate) fn error(id: Option<Value>, code: i32, name: &str, message: &str) -> Value {
    let data = json!({ "code": name, "retryable": false });
    let mut body = json!({ "jsonrpc": "2.0", "error": { "code": code, "message": message, "data": data } });
    if let Some(id) = id {
        body["id"] = id;
    }
    body
}
