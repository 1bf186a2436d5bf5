//! What everything that an external server sends is held to, from the bytes of a stream to what a caller is shown.

use super::frame::ServerMessage;
use super::measure::{AnswerCaps, Measure};
use super::sse::SseEvents;
use super::sse_transport::endpoint_in;
use super::token;
use crate::visible::has_tricks;
use crate::{answer, definition};
use egress::header::HeaderMap;
use egress::{GuardedResponse, Url};
use redact::{Scrubber, SecretText};
use serde_json::Value;

const MOST: usize = 4_096;
const CAPS: AnswerCaps = AnswerCaps { nodes: 300, depth: 16 };
/// A secret of the tenant, which the server knows and may echo.
const SECRET: &str = "correct-horse-battery";

/// Whatever a stream holds: it is the same events however it is cut, each within its bounds, and none of them shows a
/// caller what it must not.
pub fn stream(bytes: &[u8]) {
    let (events, ended) = events_of(bytes, bytes.len().max(1));
    for piece in [1, 2, 7] {
        assert_eq!(events_of(bytes, piece), (events.clone(), ended), "cut into pieces of {piece}");
    }
    for event in &events {
        assert!(event.len() <= MOST && !event.is_empty(), "{} bytes", event.len());
        message(event);
    }
    message(bytes);
    endpoint(bytes);
    token(bytes);
}

/// Wherever a stream says that messages go, it is within the origin that is configured.
fn endpoint(bytes: &[u8]) {
    let Ok(configured) = Url::parse("https://wiki.example:8443/a/sse") else { return };
    if let Ok(endpoint) = endpoint_in(&configured, bytes) {
        assert_eq!(endpoint.origin(), configured.origin(), "{endpoint}");
        assert!(endpoint.username().is_empty() && endpoint.password().is_none(), "{endpoint}");
    }
}

/// Whatever an authorization server answers, a token is one that a header can hold.
fn token(bytes: &[u8]) {
    let answer = GuardedResponse { status: 200, headers: HeaderMap::new(), body: bytes.to_vec(), cut: false };
    if let Ok((token, _)) = token::read(&answer) {
        assert!(!token.expose().is_empty() && token.expose().bytes().all(|byte| byte.is_ascii_graphic()));
    }
}

/// The events, and whether one was too long.
fn events_of(bytes: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut events = SseEvents::of_at_most(MOST);
    let overlong = bytes.chunks(piece).any(|piece| events.take(piece).is_err());
    (std::iter::from_fn(|| events.next()).collect(), overlong)
}

fn message(text: &[u8]) {
    if Measure::whole(CAPS, text).is_err() {
        return;
    }
    if let Ok(value) = serde_json::from_slice::<Value>(text) {
        let (nodes, depth) = size(&value);
        assert!(nodes <= CAPS.nodes && depth <= CAPS.depth, "{nodes} values, {depth} deep");
    }
    let Ok(ServerMessage::Answer(answer)) = ServerMessage::read(text) else { return };
    let Ok(result) = answer.into_outcome() else { return };
    if let Some(tools) = result.get("tools").and_then(Value::as_array) {
        definitions(tools);
    }
    let scrubber = Scrubber::new([SecretText::new(SECRET)]);
    let Ok(called) = super::read_result(result) else { return };
    match answer::outcome("wiki", called, &scrubber) {
        Ok(output) => {
            assert!(output.tainting, "words of somebody outside");
            assert!(!format!("{output:?}").contains(SECRET), "{output:?}");
        }
        Err(failure) => {
            assert!(!failure.message.contains(SECRET), "{failure}");
            assert!(failure.message.chars().count() < 8_500 && !has_tricks(&failure.message), "{failure}");
        }
    }
}

fn definitions(tools: &[Value]) {
    let listed = definition::read(tools);
    assert!(listed.len() <= tools.len());
    for one in &listed {
        let again: Value = serde_json::from_str(&one.canonical).unwrap_or_default();
        assert_eq!(definition::pinned(&again), again, "what is pinned is pinned again as the same");
        let Ok(usable) = &one.tool else { continue };
        assert!(!has_tricks(&usable.title) && !has_tricks(&usable.description), "{usable:?}");
        assert!(!has_tricks(&usable.wire), "{usable:?}");
        assert!(serde_json::from_str::<Value>(&usable.wire).is_ok_and(|wire| wire.is_object()), "{usable:?}");
    }
}

/// How many values there are, and how deep they nest.
fn size(value: &Value) -> (usize, usize) {
    let inside: Vec<(usize, usize)> = match value {
        Value::Array(items) => items.iter().map(size).collect(),
        Value::Object(members) => members.values().map(size).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return (1, 0),
    };
    let nodes = inside.iter().map(|(nodes, _)| nodes).sum::<usize>();
    (1 + nodes, 1 + inside.iter().map(|(_, depth)| *depth).max().unwrap_or(0))
}
