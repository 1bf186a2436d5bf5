//! How much JSON a text holds, told while it arrives: nothing is built, so nothing can be blown up.
//!
//! It does not say whether the text is JSON; the parser does that afterwards, and only with what has passed here. Where
//! the two could read a text differently, this one counts more.

/// What one answer may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AnswerCaps {
    /// Most values: scalars, lists and objects. The names of members do not count.
    pub(crate) nodes: usize,
    /// How deep they may nest.
    pub(crate) depth: usize,
}

/// A text in the course of being counted.
#[derive(Debug)]
pub(crate) struct Measure {
    caps: AnswerCaps,
    nodes: usize,
    depth: usize,
    place: ScanPosition,
}

/// Where in the text the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanPosition {
    Between,
    /// Behind a text, which may turn out to be a name.
    BehindText,
    Text,
    Escaped,
    /// In a number or a word.
    Word,
}

/// It holds more than it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuch;

impl Measure {
    pub(crate) fn new(caps: AnswerCaps) -> Measure {
        Measure { caps, nodes: 0, depth: 0, place: ScanPosition::Between }
    }

    /// Counts what a whole text holds.
    pub(crate) fn whole(caps: AnswerCaps, text: &[u8]) -> Result<(), TooMuch> {
        Measure::new(caps).take(text)
    }

    /// Counts the next piece.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), TooMuch> {
        piece.iter().try_for_each(|&byte| self.byte(byte))
    }

    fn byte(&mut self, byte: u8) -> Result<(), TooMuch> {
        match (self.place, byte) {
            (ScanPosition::Text, b'\\') => self.place = ScanPosition::Escaped,
            (ScanPosition::Text, b'"') => self.place = ScanPosition::BehindText,
            (ScanPosition::Text, _) => {}
            (ScanPosition::Escaped, _) => self.place = ScanPosition::Text,
            (ScanPosition::BehindText, b':') => {
                // It was a name. Only a text that was counted can be taken back, so colons alone win nothing.
                self.nodes -= 1;
                self.place = ScanPosition::Between;
            }
            (ScanPosition::BehindText, b' ' | b'\t' | b'\r' | b'\n') => {}
            (ScanPosition::Between | ScanPosition::BehindText | ScanPosition::Word, b'"') => {
                self.place = ScanPosition::Text;
                self.node()?;
            }
            (ScanPosition::Between | ScanPosition::BehindText | ScanPosition::Word, b'{' | b'[') => {
                self.place = ScanPosition::Between;
                self.depth += 1;
                self.node()?;
            }
            (ScanPosition::Between | ScanPosition::BehindText | ScanPosition::Word, b'}' | b']') => {
                self.place = ScanPosition::Between;
                self.depth = self.depth.saturating_sub(1);
            }
            (
                ScanPosition::Between | ScanPosition::BehindText | ScanPosition::Word,
                b' ' | b'\t' | b'\r' | b'\n' | b',' | b':',
            ) => {
                self.place = ScanPosition::Between;
            }
            (ScanPosition::Between | ScanPosition::BehindText, _) => {
                self.place = ScanPosition::Word;
                self.node()?;
            }
            (ScanPosition::Word, _) => {}
        }
        Ok(())
    }

    fn node(&mut self) -> Result<(), TooMuch> {
        self.nodes += 1;
        if self.nodes > self.caps.nodes || self.depth > self.caps.depth { Err(TooMuch) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn counted(text: &str) -> (usize, usize) {
        let mut deepest = 0;
        let mut measure = Measure::new(AnswerCaps { nodes: usize::MAX, depth: usize::MAX });
        for byte in text.bytes() {
            measure.take(&[byte]).unwrap();
            deepest = deepest.max(measure.depth);
        }
        (measure.nodes, deepest)
    }

    fn real(value: &Value) -> (usize, usize) {
        let inside: Vec<_> = match value {
            Value::Array(items) => items.iter().map(real).collect(),
            Value::Object(members) => members.values().map(real).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return (1, 0),
        };
        (1 + inside.iter().map(|(n, _)| n).sum::<usize>(), 1 + inside.iter().map(|(_, d)| *d).max().unwrap_or(0))
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
            "[\\\\\"{}\\[\\],: ]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[\\\\\"a:{]{0,4}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_counts_what_the_parser_would_build(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            prop_assert_eq!(counted(&text), real(&value));
        }

        #[test]
        fn whatever_the_text_it_does_not_panic(text in prop::collection::vec(any::<u8>(), 0..200)) {
            Measure::whole(AnswerCaps { nodes: 50, depth: 5 }, &text).ok();
        }
    }

    #[test]
    fn the_bounds_are_the_last_that_pass() {
        let caps = AnswerCaps { nodes: 3, depth: 2 };
        for (text, fits) in [
            ("[1,2]", true),
            ("[1,2,3]", false),
            ("[[1]]", true),
            ("[[[]]]", false),
            (r#"{"a":{"b":1}}"#, true),
            (r#"{"a":1,"b":2,"c":3}"#, false),
        ] {
            assert_eq!(Measure::whole(caps, text.as_bytes()).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn ten_million_nodes_end_at_the_bound_and_not_at_the_end() {
        let mut measure = Measure::new(AnswerCaps { nodes: 200_000, depth: 64 });
        let piece = b"[1],".repeat(1024);
        let taken = (0..).take_while(|_| measure.take(&piece).is_ok()).count();
        assert!(taken < 100, "{taken}");
    }
}
