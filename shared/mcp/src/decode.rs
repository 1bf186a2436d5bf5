//! Bytes to a request: the envelope, the era, the header checks of that era, then method and parameters.
//!
//! Not here: `Host`, token, rate, size, `Accept` (rungs 0a to 0e, the gateway's), and the two rungs that need the
//! called tool (7 and 8, offered by [`ladder`] for whoever has found it).

use crate::codes::MessageFault;
use crate::envelope::{self, Message, RawMessage};
use crate::era::{self, Era, MODERN};
use crate::headers::ProtocolHeaders;
use crate::id::Id;
use crate::ladder;
use crate::meta::{self, Meta};
use crate::refusal::{Refusal, WireError};
use crate::request::{Method, Request};
use serde_json::{Map, Value};

/// One message from a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// Wants an answer.
    Request(Box<RequestEnvelope>),
    /// Wants none: 202 and an empty body.
    Notification(Notification),
    /// An answer to a request of ours, legacy only: 202 with a session, else
    /// [`Refusal::unexpected_response`].
    Response(Id),
}

/// A request that passed every check its bytes and headers allow.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestEnvelope {
    /// The rules it is answered by.
    pub era: Era,
    /// The client's id, echoed in the answer.
    pub id: Id,
    /// What is asked.
    pub request: Request,
    /// What came along in `_meta`.
    pub meta: Meta,
}

/// A message without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// The client gave up a request of its own.
    Cancelled {
        /// Which one.
        request_id: Id,
    },
    /// Changes nothing.
    Other,
}

/// Reads what was posted.
pub fn decode(headers: &ProtocolHeaders<'_>, body: &[u8]) -> Result<Incoming, Refusal> {
    match envelope::open(body)? {
        Message::Request(id, raw) => request(Some(headers), id, raw),
        Message::Notification(raw) => notification(headers, raw).map(Incoming::Notification),
        Message::Response(id) => match era::of_request(Some(headers), false) {
            Era::Legacy(_) => Ok(Incoming::Response(id)),
            Era::Modern => Err(Refusal::unexpected_response()),
        },
    }
}

/// Reads a request. Without headers (on stdio) the rungs that compare them are left out.
pub(crate) fn request(headers: Option<&ProtocolHeaders<'_>>, id: Id, raw: RawMessage) -> Result<Incoming, Refusal> {
    let era = era::of_request(headers, meta::names_a_version(raw.params.as_ref()));
    match checked(headers, era, raw) {
        Ok((request, meta)) => Ok(Incoming::Request(Box::new(RequestEnvelope { era, id, request, meta }))),
        Err(error) => Err(Refusal::new(era, Some(id), error)),
    }
}

fn checked(headers: Option<&ProtocolHeaders<'_>>, era: Era, raw: RawMessage) -> Result<(Request, Meta), WireError> {
    if era == Era::Modern {
        ladder::climb(headers, &raw.method, raw.params.as_ref())?;
    }
    let method = Method::find(era, &raw.method).ok_or_else(|| {
        let asked: String = raw.method.chars().take(80).collect();
        WireError::new(MessageFault::MethodNotFound, format!("Method not found: {asked}"))
    })?;
    let mut params = object(raw.params)?;
    let meta = Meta::take(era, &mut params)?;
    Ok((Request::read(method, params)?, meta))
}

fn object(params: Option<Value>) -> Result<Map<String, Value>, WireError> {
    match params {
        Some(Value::Object(params)) => Ok(params),
        // Some clients write what they do not have as null; there is nothing to misread in it.
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err(WireError::new(MessageFault::InvalidParams, "params must be an object"))
        }
    }
}

fn notification(headers: &ProtocolHeaders<'_>, raw: RawMessage) -> Result<Notification, Refusal> {
    if era::of_stream(headers).is_some() {
        return Ok(cancelled(raw).unwrap_or(Notification::Other));
    }
    match headers.version.as_slice() {
        // In the modern era the disconnect is the cancellation; the message is taken and dropped.
        [MODERN] => Ok(Notification::Other),
        [version] => Err(Refusal::early(None, ladder::unsupported(version))),
        [] | [_, _, ..] => Err(Refusal::early(None, ladder::sent_twice("MCP-Protocol-Version"))),
    }
}

/// The cancellation in a message, if it is one and names a request.
pub(crate) fn cancelled(raw: RawMessage) -> Option<Notification> {
    if raw.method != "notifications/cancelled" {
        return None;
    }
    let mut params = object(raw.params).ok()?;
    Some(Notification::Cancelled { request_id: Id::read(params.remove("requestId")?)? })
}
