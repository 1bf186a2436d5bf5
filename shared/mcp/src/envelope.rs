//! The JSON-RPC envelope: rungs 1a and 1b of the ladder, the same in both eras.
//!
//! Keys are compared with case and unknown ones are ignored, so `"Method"` is no `method`. A body is one message;
//! batches are refused in every revision, because one body must not become many calls.

use crate::codes::MessageFault;
use crate::id::Id;
use crate::refusal::{Refusal, WireError};
use domain::json::{self, JsonError};
use serde_json::{Map, Value};

/// A method and what came with it, not yet looked at.
#[derive(Debug)]
pub(crate) struct RawMessage {
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
}

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    Request(Id, RawMessage),
    Notification(RawMessage),
    Response(Id),
}

/// Reads one message from bytes.
pub(crate) fn open(body: &[u8]) -> Result<Message, Refusal> {
    let mut object = match json::read(body) {
        Ok(Value::Object(object)) => object,
        Ok(Value::Array(_)) => return Err(invalid(None, "Batches are not accepted; send one message per request")),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            return Err(invalid(None, "A message must be a JSON object"));
        }
        Err(JsonError::Malformed(_)) => {
            return Err(Refusal::early(
                None,
                WireError::new(MessageFault::ParseError, "The body is not one JSON text"),
            ));
        }
        Err(JsonError::DuplicateKey(_)) => return Err(invalid(None, "An object names a key twice")),
    };
    let id = match object.remove("id").map(Id::read) {
        Some(None) => return Err(invalid(None, "id must be a string of at most 256 bytes or an integer")),
        Some(Some(id)) => Some(id),
        None => None,
    };
    let answers = !object.contains_key("method") && (object.contains_key("result") || object.contains_key("error"));
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        // The id of a response names a request of ours: echoing it would answer somebody else's.
        return Err(invalid(id.filter(|_| !answers), "jsonrpc must be \"2.0\""));
    }
    message(id, answers, object)
}

fn message(id: Option<Id>, answers: bool, mut object: Map<String, Value>) -> Result<Message, Refusal> {
    let params = object.remove("params");
    match (id, object.remove("method")) {
        (Some(id), Some(Value::String(method))) => Ok(Message::Request(id, RawMessage { method, params })),
        (None, Some(Value::String(method))) => Ok(Message::Notification(RawMessage { method, params })),
        (Some(id), None) if answers => Ok(Message::Response(id)),
        (id, _) => Err(invalid(id, "method must be a string")),
    }
}

fn invalid(id: Option<Id>, why: &str) -> Refusal {
    Refusal::early(id, WireError::new(MessageFault::InvalidRequest, why))
}
