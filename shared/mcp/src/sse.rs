//! Server-sent events: one JSON text on one `data:` line, LF line ends, no event ids. [`EventReader`] reads what others
//! write: any line end, any number of `data:` lines, other fields and comments between them.

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

/// What stands before the data in its line.
const FIELD: &[u8] = b"data: ";

/// An event that is longer than its reader takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub struct EventTooLong(pub usize);

/// Reads events from a stream, piece by piece as it comes. What has no data, such as a comment, is no event.
#[derive(Debug)]
pub struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
    cap: usize,
}

impl EventReader {
    /// A reader of events whose data has at most `cap` bytes.
    pub fn new(cap: usize) -> EventReader {
        EventReader { line: Vec::new(), data: Vec::new(), has_data: false, after_cr: false, cap }
    }

    /// Takes the next piece, and returns the data of each event that it completes.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<Vec<u8>>, EventTooLong> {
        let mut events = Vec::new();
        for byte in piece {
            // A line ends with LF, CR or both, and both may come in two pieces.
            let second_half = std::mem::replace(&mut self.after_cr, *byte == b'\r') && *byte == b'\n';
            match byte {
                b'\n' if second_half => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ if self.line.len() > self.cap + FIELD.len() => return Err(EventTooLong(self.cap)),
                _ => self.line.push(*byte),
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Result<Option<Vec<u8>>, EventTooLong> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return Ok(std::mem::take(&mut self.has_data).then_some(data));
        }
        let Some(rest) = line.strip_prefix(b"data") else { return Ok(None) };
        let value = match rest {
            [] => rest,
            [b':', b' ', value @ ..] | [b':', value @ ..] => value,
            [..] => return Ok(None), // another field that begins alike
        };
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        if self.data.len() > self.cap { Err(EventTooLong(self.cap)) } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(reader: &mut EventReader, text: &str) -> Vec<String> {
        let read = reader.push(text.as_bytes()).unwrap();
        read.into_iter().map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn events_are_read_whatever_stands_around_their_data() {
        let mut reader = EventReader::new(100);
        let text = ": ka\n\nretry: 1000\n\nevent: message\ndata: {\"a\":1}\n\ndata:x\r\ndata\r\ndata:  y\r\n\r\nid: 7\rdata: z\r\rdatum: no\n\n";
        assert_eq!(events(&mut reader, text), ["{\"a\":1}", "x\n\n y", "z"]);
    }

    #[test]
    fn an_endless_event_is_not_collected() {
        let mut reader = EventReader::new(10);
        assert_eq!(reader.push(b"data: 0123456789012"), Err(EventTooLong(10)));
        let mut reader = EventReader::new(10);
        assert_eq!(reader.push(b"data: 012345\ndata: 678901\n"), Err(EventTooLong(10)));
        let mut reader = EventReader::new(10);
        assert_eq!(events(&mut reader, "data: 0123456789\n\n"), ["0123456789"]);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_a_stream_is_cut(
            messages in proptest::collection::vec("[ -~]{0,40}", 0..5),
            cuts in proptest::collection::vec(1_usize..9, 1..40),
        ) {
            let stream: Vec<u8> = messages.iter().flat_map(|text| message(text.as_bytes())).collect();
            let (mut reader, mut read, mut rest) = (EventReader::new(100), Vec::new(), stream.as_slice());
            for cut in cuts.iter().cycle() {
                let (piece, later) = rest.split_at((*cut).min(rest.len()));
                read.extend(reader.push(piece).unwrap());
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            let wanted: Vec<Vec<u8>> = messages.iter().map(|text| text.clone().into_bytes()).collect();
            prop_assert_eq!(read, wanted);
        }
    }

    #[test]
    fn a_message_is_one_event_whatever_blanks_its_json_has() {
        assert_eq!(message(br#"{"a":1}"#), "event: message\ndata: {\"a\":1}\n\n");
        assert_eq!(message(b"{\r\n\"a\":\"\\n\"\n}"), "event: message\ndata: {  \"a\":\"\\n\" }\n\n");
    }
}
