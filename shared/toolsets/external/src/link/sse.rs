//! Server-sent events, as much of them as the protocol uses: the data of each event, bounded, and whether it is a
//! message or the endpoint that a server of the older transport names first.

use std::collections::VecDeque;

/// A stream of events in the course of being read.
#[derive(Debug)]
pub(crate) struct SseEvents {
    most: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    /// An event without a data line is none.
    has_data: bool,
    /// `None`: of another kind; such events are left out.
    kind: Option<SseEventKind>,
    after_cr: bool,
    ready: VecDeque<(SseEventKind, Vec<u8>)>,
}

/// What an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SseEventKind {
    /// A message of the protocol.
    Message,
    /// Where messages are to be sent.
    Endpoint,
}

/// One event is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverlongEvent;

impl SseEvents {
    /// Events of at most that many bytes each.
    pub(crate) fn of_at_most(most: usize) -> SseEvents {
        let (line, data, ready) = (Vec::new(), Vec::new(), VecDeque::new());
        SseEvents { most, line, data, has_data: false, kind: Some(SseEventKind::Message), after_cr: false, ready }
    }

    /// Reads the next piece of the stream.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), OverlongEvent> {
        for &byte in piece {
            let second_of_a_pair = std::mem::take(&mut self.after_cr) && byte == b'\n';
            match byte {
                _ if second_of_a_pair => {}
                b'\n' | b'\r' => {
                    self.after_cr = byte == b'\r';
                    self.end_line();
                }
                _ if self.line.len() + self.data.len() >= self.most => return Err(OverlongEvent),
                _ => self.line.push(byte),
            }
        }
        Ok(())
    }

    /// The data of the next complete message.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.next_of_any_kind()? {
                (SseEventKind::Message, data) => return Some(data),
                (SseEventKind::Endpoint, _) => {}
            }
        }
    }

    /// The next complete event of a kind that is known, and its data.
    pub(crate) fn next_of_any_kind(&mut self) -> Option<(SseEventKind, Vec<u8>)> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let (data, has_data) = (std::mem::take(&mut self.data), std::mem::take(&mut self.has_data));
            if let Some(kind) = self.kind.replace(SseEventKind::Message)
                && has_data
                && !data.is_empty()
            {
                self.ready.push_back((kind, data));
            }
            return;
        }
        let (field, value) = match line.iter().position(|&byte| byte == b':') {
            // Comments keep a connection alive and say nothing.
            Some(0) => return,
            Some(at) => (&line[..at], line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..])),
            None => (&line[..], &[][..]),
        };
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.kind = match value {
                    b"" | b"message" => Some(SseEventKind::Message),
                    b"endpoint" => Some(SseEventKind::Endpoint),
                    _ => None,
                };
            }
            // Streams are not resumed, so ids and pauses mean nothing here.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, piece: usize) -> Vec<String> {
        let mut events = SseEvents::of_at_most(100);
        text.as_bytes().chunks(piece).for_each(|piece| events.take(piece).unwrap());
        std::iter::from_fn(|| events.next()).map(|data| String::from_utf8(data).unwrap()).collect()
    }

    #[test]
    fn events_are_read_however_they_are_cut_and_ended() {
        for text in [
            "event: message\ndata: {\"a\":1}\nid: 7\n\n: ka\n\ndata:two\ndata: lines\nretry: 5\n\n",
            "event: message\r\ndata: {\"a\":1}\r\nid: 7\r\n\r\n: ka\r\n\r\ndata:two\r\ndata: lines\r\n\r\n",
            "event: message\rdata: {\"a\":1}\rid: 7\r\r: ka\r\rdata:two\rdata: lines\r\r",
        ] {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(read(text, piece), ["{\"a\":1}", "two\nlines"], "{text:?} by {piece}");
            }
        }
    }

    #[test]
    fn other_kinds_empty_ones_and_unfinished_ones_are_left_out() {
        let text = "event: endpoint\ndata: /sse\n\ndata:\n\nevent: x\n\ndata: good\n\ndata: unfinished\n";
        assert_eq!(read(text, 1000), ["good"]);
    }

    #[test]
    fn the_endpoint_is_told_from_messages() {
        let mut events = SseEvents::of_at_most(100);
        events.take(b"event: endpoint\ndata: /messages?id=7\n\ndata: good\n\nevent: odd\ndata: x\n\n").unwrap();
        assert_eq!(events.next_of_any_kind(), Some((SseEventKind::Endpoint, b"/messages?id=7".to_vec())));
        assert_eq!(events.next_of_any_kind(), Some((SseEventKind::Message, b"good".to_vec())));
        assert_eq!(events.next_of_any_kind(), None);
    }

    #[test]
    fn an_event_ends_at_its_bound_whether_of_one_line_or_many() {
        assert_eq!(SseEvents::of_at_most(10).take(b"data: 123456789"), Err(OverlongEvent));
        assert_eq!(SseEvents::of_at_most(10).take(b"data: 1\n".repeat(20).as_slice()), Err(OverlongEvent));
        assert_eq!(SseEvents::of_at_most(10).take(b"data: 1\n\n".repeat(20).as_slice()), Ok(()));
    }
}
