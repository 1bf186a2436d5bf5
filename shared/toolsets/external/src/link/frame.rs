//! Single messages: what is added to those that leave, and what those that arrive are.

use super::exchange::LinkExchange;
use super::fault::LinkFault;
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where a server finds its parameters.
const PARAMS: &str = "quartermaster/params";
/// The revision of the modern era.
pub(crate) const MODERN: &str = "2026-07-28";
/// What a server says when its tools are others now.
pub(crate) const LIST_CHANGED: &str = "notifications/tools/list_changed";
/// What a server says of how far a call is.
pub(crate) const PROGRESS: &str = "notifications/progress";

/// A message that a server sent.
#[derive(Debug)]
pub(crate) enum ServerMessage {
    /// The answer to a request.
    Answer(AnswerFrame),
    /// A request to us.
    Request { id: Value, method: String },
    /// Something it wants us to know.
    Notice { method: String, params: Value },
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct AnswerFrame(Value);

impl ServerMessage {
    /// Reads a message that was measured before.
    pub(crate) fn read(text: &[u8]) -> Result<ServerMessage, LinkFault> {
        let mut message: Value =
            serde_json::from_slice(text).map_err(|_| LinkFault::NotMcp("an answer is not JSON"))?;
        if message.get("jsonrpc") != Some(&json!("2.0")) {
            return Err(LinkFault::NotMcp("an answer is not JSON-RPC"));
        }
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => Ok(ServerMessage::Request { id: id.clone(), method }),
            (Some(method), None) => {
                let params = message.get_mut("params").map(Value::take).unwrap_or_default();
                Ok(ServerMessage::Notice { method, params })
            }
            (None, _) if message.get("result").is_some() != message.get("error").is_some() => {
                Ok(ServerMessage::Answer(AnswerFrame(message)))
            }
            (None, _) => Err(LinkFault::NotMcp("an answer is neither a result nor an error")),
        }
    }
}

impl AnswerFrame {
    /// Whether it answers the request of this id. Some servers write numbers as texts.
    pub(crate) fn is_to(&self, id: &Value) -> bool {
        let written = id.to_string();
        self.0.get("id").is_some_and(|said| said == id || said.as_str() == Some(&written))
    }

    /// Whether it is an error of a request whose id the server could not read.
    pub(crate) fn is_nameless_error(&self) -> bool {
        self.0.get("error").is_some() && self.0.get("id").is_none_or(Value::is_null)
    }

    /// The id it names.
    pub(crate) fn id(&self) -> Option<&Value> {
        self.0.get("id")
    }

    /// The result, or the error as a fault.
    pub(crate) fn outcome(&self) -> Result<&Value, LinkFault> {
        if let Some(result) = self.0.get("result") {
            return Ok(result);
        }
        let error = self.0.get("error").unwrap_or(&Value::Null);
        let code = error.get("code").and_then(Value::as_i64).ok_or(LinkFault::NotMcp("an error has no code"))?;
        let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        Err(LinkFault::Error { code, message })
    }

    /// Whether it lists the modern revision, as a result or as an error of the question for the versions does.
    pub(crate) fn speaks_modern(&self) -> bool {
        let versions = self.0.pointer("/result/supportedVersions").or_else(|| self.0.pointer("/error/data/supported"));
        versions.and_then(Value::as_array).is_some_and(|all| all.iter().any(|version| version == MODERN))
    }

    /// The result, out of it.
    pub(crate) fn into_outcome(mut self) -> Result<Value, LinkFault> {
        self.outcome()?;
        Ok(self.0.get_mut("result").map(Value::take).unwrap_or_default())
    }

    /// As the client library reads it, under the id it gave the request.
    pub(crate) fn typed(mut self, id: &RequestId) -> Result<ServerJsonRpcMessage, LinkFault> {
        self.0["id"] = id.clone().into_json_value();
        serde_json::from_value(self.0).map_err(|_| LinkFault::NotMcp("an answer has not the form it must have"))
    }
}

/// Tells the client library that a request is over; the answer went round it.
pub(crate) fn over(id: &RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::response(ServerResult::empty(()), id.clone())
}

/// Tells the client library that the server does not know a method.
pub(crate) fn unknown_method(id: &RequestId) -> ServerJsonRpcMessage {
    let error = rmcp::model::ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "not known there", None);
    ServerJsonRpcMessage::error(error, Some(id.clone()))
}

/// A message as it is sent, the parameters put in if it is a request.
pub(crate) fn outgoing(message: &ClientJsonRpcMessage, params: &BTreeMap<String, String>) -> Result<Value, LinkFault> {
    // What we were given to send cannot be written: no fault of the server, but nobody else can be told.
    let mut frame = serde_json::to_value(message).map_err(|_| LinkFault::NotMcp("the request cannot be written"))?;
    let asks = frame.get("method").is_some() && frame.get("id").is_some();
    if asks && !params.is_empty() {
        frame["params"]["_meta"][PARAMS] = json!(params);
    }
    for (name, value) in LinkExchange::of(message).into_iter().flat_map(LinkExchange::trace) {
        frame["params"]["_meta"][name.as_str()] = json!(value.to_str().unwrap_or_default());
    }
    Ok(frame)
}

/// The answer to what a server asks of us: nothing is offered, so only a ping gets one.
pub(crate) fn declined(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({ "jsonrpc": "2.0", "id": id, "result": {} }),
        _ => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "not offered" } }),
    }
}

/// Takes a request back.
pub(crate) fn cancelled(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_by_what_they_hold() {
        let read = |text: &str| ServerMessage::read(text.as_bytes());
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(ServerMessage::Request { .. })));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), Ok(ServerMessage::Notice { .. })));
        assert!(matches!(read(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(ServerMessage::Answer(_))));
        for bad in [
            "<html>",
            "[]",
            r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        ] {
            assert!(matches!(read(bad), Err(LinkFault::NotMcp(_))), "{bad}");
        }
    }

    #[test]
    fn an_answer_is_to_the_id_it_names_and_to_no_other() {
        let Ok(ServerMessage::Answer(answer)) = ServerMessage::read(br#"{"jsonrpc":"2.0","id":"7","result":{}}"#)
        else {
            panic!()
        };
        assert!(answer.is_to(&json!(7)));
        assert!(!answer.is_to(&json!(70)));
        let Ok(ServerMessage::Answer(lost)) = ServerMessage::read(br#"{"jsonrpc":"2.0","error":{"code":-32700}}"#)
        else {
            panic!()
        };
        assert!(!lost.is_to(&json!(7)) && lost.is_nameless_error());
    }
}
