//! JSON-RPC errors: what they say, whom they answer, and the status they come with.
//!
//! Kept as a value until the very end, because only the gateway knows the trace id each of them carries.

use crate::codes::{CodeTransport, MessageFault, Rpc, travel};
use crate::encode;
use crate::era::Era;
use crate::id::Id;
use crate::json::ObjectWriter;
use bytes::Bytes;
use domain::{Code, Failure};
use serde_json::Value;

const INTERNAL: i32 = -32603;

/// One JSON-RPC error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name}: {message}")]
pub struct WireError {
    rpc: Rpc,
    name: &'static str,
    message: String,
    retryable: bool,
    retry_after_ms: Option<u64>,
    more: Vec<(&'static str, Value)>,
}

impl WireError {
    /// A fault with its sentence.
    pub fn new(fault: MessageFault, message: impl Into<String>) -> WireError {
        WireError {
            rpc: fault.rpc(),
            name: fault.as_str(),
            message: message.into(),
            retryable: fault.retryable(),
            retry_after_ms: None,
            more: Vec::new(),
        }
    }

    /// A failed call that only the host or an operator can do something about.
    pub(crate) fn of(failure: &Failure, rpc: Rpc) -> WireError {
        let mut more = Vec::new();
        if rpc.code == INTERNAL {
            let told = failure.details.as_ref().and_then(|details| details.get("reason")).and_then(Value::as_str);
            more.push(("reason", told.unwrap_or(failure.code.as_str()).into()));
        }
        if let Some(next) = &failure.next {
            more.push(("next", next.as_str().into()));
        }
        if !failure.did_you_mean.is_empty() {
            more.push(("did_you_mean", failure.did_you_mean.clone().into()));
        }
        match &failure.details {
            // Told above already.
            Some(Value::Object(only)) if rpc.code == INTERNAL && only.keys().eq(["reason"]) => {}
            Some(details) => more.push(("details", details.clone())),
            None => {}
        }
        WireError {
            rpc,
            name: failure.code.as_str(),
            message: failure.message.clone(),
            retryable: failure.code.retryable(),
            retry_after_ms: failure.retry_after_ms,
            more,
        }
    }

    /// Adds a fact to `data`.
    #[must_use]
    pub fn with(mut self, key: &'static str, fact: impl Into<Value>) -> WireError {
        self.more.push((key, fact.into()));
        self
    }

    /// Adds when to try again.
    #[must_use]
    pub fn retry_after_ms(mut self, millis: u64) -> WireError {
        self.retry_after_ms = Some(millis);
        self
    }

    /// The code in the error object.
    pub fn rpc_code(&self) -> i32 {
        self.rpc.code
    }

    /// The stable name, for logs and counters.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The HTTP status in an era.
    pub fn status(&self, era: Era) -> u16 {
        match era {
            Era::Legacy(_) => self.rpc.legacy,
            Era::Modern => self.rpc.modern,
        }
    }

    /// The error object.
    pub(crate) fn push(&self, out: &mut Vec<u8>, trace_id: Option<&str>) {
        let data = ObjectWriter::new()
            .text("code", self.name)
            .raw("retryable", self.retryable.to_string())
            .maybe(self.retry_after_ms, |data, millis| data.raw("retry_after_ms", millis.to_string()));
        let data = self.more.iter().fold(data, |data, (key, fact)| data.value(key, fact));
        let data = data.maybe(trace_id, |data, id| data.text("trace_id", id)).end();
        let error = ObjectWriter::new().raw("code", self.rpc.code.to_string()).text("message", &self.message);
        out.extend_from_slice(&error.raw("data", data).end());
    }
}

/// A message that was not taken: the status, and the error that says why.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("refused with status {status}: {error}")]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// Whom the error answers; `None` leaves the member out, since the schemas do not admit null.
    pub id: Option<Id>,
    /// Why.
    pub error: Box<WireError>,
}

impl Refusal {
    /// Refuses a message of an era.
    pub fn new(era: Era, id: Option<Id>, error: WireError) -> Refusal {
        Refusal { status: error.status(era), id, error: Box::new(error) }
    }

    /// Refuses bytes whose era is not known yet; the faults found that early have one status in both.
    pub(crate) fn early(id: Option<Id>, error: WireError) -> Refusal {
        Refusal::new(Era::Modern, id, error)
    }

    /// Refuses a request before there is a call whose result could tell: no token, no session, no store.
    pub fn before_call(era: Era, id: Option<Id>, failure: &Failure) -> Refusal {
        let rpc = match travel(failure.code) {
            CodeTransport::Rpc(rpc) => rpc,
            CodeTransport::ToolError if failure.code == Code::RateLimited => MessageFault::TooManyRequests.rpc(),
            CodeTransport::ToolError => Rpc { code: INTERNAL, legacy: 200, modern: 200 },
        };
        Refusal::new(era, id, WireError::of(failure, rpc))
    }

    /// Refuses an answer to a question nobody asked.
    pub fn unexpected_response() -> Refusal {
        Refusal::early(
            None,
            WireError::new(MessageFault::InvalidRequest, "A response was posted, but no request is open"),
        )
    }

    /// The whole body, with the trace id if there is one.
    pub fn body(&self, trace_id: Option<&str>) -> Bytes {
        encode::error(self.id.as_ref(), &self.error, trace_id)
    }

    /// Status and body.
    pub fn reply(&self, trace_id: Option<&str>) -> FinishedReply {
        FinishedReply { status: self.status, body: self.body(trace_id) }
    }
}

/// A finished answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedReply {
    /// The HTTP status.
    pub status: u16,
    /// One JSON-RPC message.
    pub body: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Code;
    use serde_json::json;

    fn told(refusal: &Refusal) -> (u16, Value) {
        (refusal.status, domain::json::read(&refusal.body(Some("4bf9"))).unwrap())
    }

    #[test]
    fn a_request_without_a_readable_id_is_refused_without_one() {
        let failure = Failure::new(Code::Unauthenticated, "A bearer token is needed");
        let data = json!({ "code": "unauthenticated", "retryable": false, "trace_id": "4bf9" });
        let error = json!({ "code": 1001, "message": "A bearer token is needed", "data": data });
        let wanted = (401, json!({ "jsonrpc": "2.0", "error": error }));
        assert_eq!(told(&Refusal::before_call(Era::Modern, None, &failure)), wanted);
    }

    #[test]
    fn what_is_usually_a_tool_error_is_an_error_of_ours_where_there_is_no_call() {
        let failure = Failure::new(Code::StoreFull, "State store full").details(json!({ "used": 1 }));
        let (status, body) = told(&Refusal::before_call(Era::Modern, Some(Id::Text("a".into())), &failure));
        assert_eq!((status, &body["error"]["code"], &body["id"]), (200, &json!(-32603), &json!("a")));
        let data = json!({ "code": "store_full", "retryable": true, "reason": "store_full", "details": { "used": 1 }, "trace_id": "4bf9" });
        assert_eq!(body["error"]["data"], data);
    }

    #[test]
    fn too_many_requests_say_when_to_come_back() {
        let error = WireError::new(MessageFault::TooManyRequests, "Too many requests").retry_after_ms(1500);
        let (status, body) = told(&Refusal::new(Era::Modern, None, error));
        assert_eq!(status, 429);
        let data = json!({ "code": "rate_limited", "retryable": true, "retry_after_ms": 1500, "trace_id": "4bf9" });
        assert_eq!(body["error"], json!({ "code": 1029, "message": "Too many requests", "data": data }));
    }
}
