//! Passing a message on: what a bridge between stdio and HTTP must know of a line it does not answer itself.
//!
//! Only the envelope is read. Methods and parameters are judged by the service that answers.

use crate::envelope::{self, Message, RawMessage};
use crate::headers::coded;
use crate::id::Id;
use crate::meta::{VERSION, in_meta};
use crate::refusal::Refusal;
use crate::{decode, ladder};
use serde_json::Value;

/// The head of one message.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageHead {
    /// A request.
    Request(RequestHead),
    /// The client gave up this request of its own.
    Cancelled(Id),
    /// Another notification, or an answer to a request of the service.
    Other,
}

/// The head of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestHead {
    /// The client's id.
    pub id: Id,
    /// The method.
    pub method: String,
    /// The version in `_meta`: a request that has one belongs to the modern era.
    pub version: Option<String>,
    /// What the request names, where a header repeats it.
    name: Option<String>,
}

/// Reads the head of one line, or says why it is no message.
pub fn head(line: &[u8]) -> Result<MessageHead, Refusal> {
    match envelope::open(line)? {
        Message::Request(id, RawMessage { method, params }) => {
            let version = in_meta(params.as_ref(), VERSION).map(|version| match version {
                Value::String(text) => text.clone(),
                // No version of ours: the service says which it has.
                other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    other.to_string()
                }
            });
            let named = ladder::named_by(&method).and_then(|key| params.as_ref()?.get(key)?.as_str());
            let name = named.map(str::to_owned);
            Ok(MessageHead::Request(RequestHead { id, method, version, name }))
        }
        Message::Notification(raw) => Ok(match decode::cancelled(raw) {
            Some(decode::Notification::Cancelled { request_id }) => MessageHead::Cancelled(request_id),
            Some(decode::Notification::Other) | None => MessageHead::Other,
        }),
        Message::Response(_) => Ok(MessageHead::Other),
    }
}

impl RequestHead {
    /// The headers that repeat a modern request; none for a legacy one.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let Some(version) = &self.version else { return Vec::new() };
        let header = |name, value: &str| (name, coded(value).into_owned());
        let named = self.name.iter().map(|name| header("mcp-name", name));
        [header("mcp-protocol-version", version), header("mcp-method", &self.method)].into_iter().chain(named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Incoming, ProtocolHeaders, decode};
    use serde_json::json;

    fn modern(method: &str, mut params: Value) -> Vec<u8> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string().into_bytes()
    }

    fn request(line: &[u8]) -> RequestHead {
        match head(line).unwrap() {
            MessageHead::Request(request) => request,
            other @ (MessageHead::Cancelled(_) | MessageHead::Other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_modern_request_passes_the_ladder_with_the_headers_it_is_given() {
        for line in [
            modern("tools/call", json!({ "name": "k8s_get", "arguments": {} })),
            modern("tools/call", json!({ "name": "na\u{ef}ve tool\n", "arguments": {} })),
            modern("tools/list", json!({})),
            modern("server/discover", json!({})),
        ] {
            let headers = request(&line).headers();
            let headers = ProtocolHeaders::read(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
            assert!(matches!(decode(&headers, &line), Ok(Incoming::Request(_))), "{headers:?}");
        }
    }

    #[test]
    fn a_legacy_request_is_given_no_headers() {
        let line = br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}"#;
        let request = request(line);
        assert_eq!((request.headers(), request.version), (Vec::new(), None));
    }

    #[test]
    fn notifications_and_answers_are_told_from_requests_and_rubbish_is_none() {
        let cancel = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#;
        assert_eq!(head(cancel), Ok(MessageHead::Cancelled(Id::Text("a".into()))));
        for other in [
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.as_slice(),
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#,
            br#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            assert_eq!(head(other), Ok(MessageHead::Other));
        }
        for rubbish in [b"".as_slice(), b"hello", b"[]", b"{}", b"\xff", br#"{"jsonrpc":"2.0","id":null,"method":"x"}"#]
        {
            assert!(head(rubbish).is_err(), "{rubbish:?}");
        }
    }
}
