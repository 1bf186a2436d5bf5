//! The same messages, one per line: no headers to compare, no status, and a cancellation counts in both eras.

use crate::decode::{self, Incoming, Notification};
use crate::envelope::{self, Message};
use crate::refusal::Refusal;

/// Reads one line. The status of a refusal means nothing here; its body is the answer.
pub fn decode_line(line: &[u8]) -> Result<Incoming, Refusal> {
    match envelope::open(line)? {
        Message::Request(id, raw) => decode::request(None, id, raw),
        Message::Notification(raw) => Ok(Incoming::Notification(decode::cancelled(raw).unwrap_or(Notification::Other))),
        Message::Response(id) => Ok(Incoming::Response(id)),
    }
}
