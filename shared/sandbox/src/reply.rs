//! Answers: JSON objects, plain text and streams.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};

use crate::status::ApiStatus;

/// What is sent back.
pub(crate) type ReplyBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// A finished answer.
pub(crate) type SandboxReply = Response<ReplyBody>;

pub(crate) fn body(bytes: impl Into<Bytes>) -> ReplyBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// An object as JSON.
pub(crate) fn object(code: StatusCode, object: &Value) -> SandboxReply {
    with_type(code, "application/json", object.to_string())
}

/// Text or anything else with a content type.
pub(crate) fn with_type(code: StatusCode, content_type: &'static str, bytes: impl Into<Bytes>) -> SandboxReply {
    let mut reply = Response::new(body(bytes));
    *reply.status_mut() = code;
    reply.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

/// A refusal.
pub(crate) fn refusal(status: &ApiStatus) -> SandboxReply {
    let mut reply = object(status.code, &status.body());
    if status.code == StatusCode::TOO_MANY_REQUESTS {
        reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
    }
    reply
}

/// Adds warnings that clients show to people.
pub(crate) fn warn(mut reply: SandboxReply, warnings: &[String]) -> SandboxReply {
    for warning in warnings {
        let text = format!("299 - {}", json!(warning));
        if let Ok(value) = HeaderValue::from_str(&text) {
            reply.headers_mut().append(header::WARNING, value);
        }
    }
    reply
}
