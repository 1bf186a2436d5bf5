//! The head of an HTTP answer: what it says before its body, and what no body can make good.

use super::fault::LinkFault;
use super::frame;
use super::wire::{SESSION, VERSION};
use egress::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use egress::{SendError, Streaming};
use std::time::Duration;

/// What the body of an answer is.
pub(super) enum BodyKind {
    Json,
    Events,
    /// An error that may explain itself.
    Complaint,
    Nothing,
}

/// Whether the version that the library put into the headers is of the modern era.
pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    headers.get(VERSION).is_some_and(|version| version == frame::MODERN)
}

pub(super) fn body_of(streaming: &Streaming, asked: &HeaderMap) -> Result<BodyKind, LinkFault> {
    judged(streaming, asked)?;
    let kind = streaming.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match (streaming.status, kind.as_str()) {
        (200, "application/json") => Ok(BodyKind::Json),
        (200, "text/event-stream") => Ok(BodyKind::Events),
        (202 | 204, _) => Ok(BodyKind::Nothing),
        (400..=499, _) => Ok(BodyKind::Complaint),
        _ => Err(LinkFault::NotMcp("an answer is neither JSON nor events")),
    }
}

/// Judges the head of an answer: what no body can make good.
pub(super) fn judged(streaming: &Streaming, asked: &HeaderMap) -> Result<(), LinkFault> {
    let packed = |encoding: &HeaderValue| !encoding.as_bytes().eq_ignore_ascii_case(b"identity");
    if streaming.headers.get_all(CONTENT_ENCODING).iter().any(packed) {
        return Err(LinkFault::NotMcp("compressed although not asked for"));
    }
    match streaming.status {
        401 | 403 => Err(LinkFault::Credentials),
        404 if asked.contains_key(SESSION) => Err(LinkFault::Expired),
        429 => Err(LinkFault::Busy(pause(&streaming.headers))),
        500..=599 => Err(LinkFault::Failed(pause(&streaming.headers))),
        200..=299 | 400..=499 => Ok(()),
        300..=399 => Err(LinkFault::NotMcp("it redirects, which is not followed")),
        _ => Err(LinkFault::NotMcp("an answer has an unknown status")),
    }
}

/// The pause that an answer asks for.
pub(super) fn pause(headers: &HeaderMap) -> Option<Duration> {
    headers.get("retry-after")?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

pub(super) fn session_of(headers: &HeaderMap) -> Result<Option<String>, LinkFault> {
    let Some(value) = headers.get(SESSION) else { return Ok(None) };
    match value.to_str() {
        Ok(id) if (1..=1024).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic()) => Ok(Some(id.to_owned())),
        Ok(_) | Err(_) => Err(LinkFault::NotMcp("a session id is longer or stranger than it may be")),
    }
}

/// Why nothing came, or not all of it.
pub(super) fn broken(error: SendError) -> LinkFault {
    match &error {
        SendError::TooLong { .. } => LinkFault::TooLarge("more bytes than it may"),
        SendError::Refused(_) => LinkFault::Refused,
        SendError::NoAnswer(_) if error.nothing_was_sent() => LinkFault::Refused,
        SendError::NoAnswer(_) => LinkFault::Broken,
    }
}
