//! Server-sent events: one JSON text on one `data:` line, LF line ends, no event ids.

use bytes::Bytes;

/// Keeps a quiet connection open through proxies.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b": ka\n\n");

/// Opens a legacy `GET` stream: when to come back after a lost connection.
pub const RETRY: Bytes = Bytes::from_static(b"retry: 1000\n\n");

/// Frames one JSON-RPC message.
pub fn message(json: &[u8]) -> Bytes {
    const HEAD: &[u8] = b"event: message\ndata: ";
    let mut frame = Vec::with_capacity(HEAD.len() + json.len() + 2);
    frame.extend_from_slice(HEAD);
    frame.extend_from_slice(json);
    // A line break would end the frame early. In JSON it can only be a blank between tokens, so it may become one.
    for byte in &mut frame[HEAD.len()..] {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    frame.extend_from_slice(b"\n\n");
    frame.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_event_whatever_blanks_its_json_has() {
        assert_eq!(message(br#"{"a":1}"#), "event: message\ndata: {\"a\":1}\n\n");
        assert_eq!(message(b"{\r\n\"a\":\"\\n\"\n}"), "event: message\ndata: {  \"a\":\"\\n\" }\n\n");
    }
}
