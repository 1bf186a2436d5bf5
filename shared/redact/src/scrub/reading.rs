//! A text with one kind of escapes undone, and where its bytes came from.
//!
//! The places are not kept: a text is gone through a second time when something was found in it, which is seldom.

use std::ops::Range;

/// A way to write a byte or letter as something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// `%2F`, in addresses.
    Percent,
    /// `\/`, `\n`, `\u002f`, in JSON.
    Json,
}

/// Every way.
pub(super) const ESCAPES: [Escape; 2] = [Escape::Percent, Escape::Json];

/// What one escape stands for, and how many bytes it takes in the text.
struct UnescapedChar {
    bytes: [u8; 4],
    count: usize,
    took: usize,
}

/// A text with one kind of escapes undone.
pub(super) struct UnescapedText<'a> {
    text: &'a [u8],
    escape: Escape,
    bytes: Vec<u8>,
}

impl<'a> UnescapedText<'a> {
    /// Reads a text. `None`: it has no such escapes.
    pub(super) fn of(text: &'a [u8], escape: Escape) -> Option<UnescapedText<'a>> {
        let first = text.iter().position(|byte| *byte == escape.sign())?;
        let mut bytes = Vec::with_capacity(text.len());
        bytes.extend_from_slice(&text[..first]);
        let (mut at, mut any) = (first, false);
        while at < text.len() {
            match escape.undo(&text[at..]) {
                Some(UnescapedChar { bytes: meant, count, took }) => {
                    bytes.extend_from_slice(&meant[..count]);
                    (at, any) = (at + took, true);
                }
                None => {
                    bytes.push(text[at]);
                    at += 1;
                }
            }
        }
        any.then_some(UnescapedText { text, escape, bytes })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where spans of the reading stand in the text. They are sorted and apart; an escape belongs to a span as a whole.
    pub(super) fn locate(&self, spans: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut located = Vec::with_capacity(spans.len());
        let (mut at, mut read, mut start) = (0, 0, 0);
        for span in spans {
            while read < span.end {
                let (count, took) = match self.escape.undo(&self.text[at..]) {
                    Some(undone) => (undone.count, undone.took),
                    None => (1, 1),
                };
                if read <= span.start {
                    start = at;
                }
                (at, read) = (at + took, read + count);
            }
            located.push(start..at);
        }
        located
    }
}

impl Escape {
    fn sign(self) -> u8 {
        match self {
            Escape::Percent => b'%',
            Escape::Json => b'\\',
        }
    }

    /// What the escape at the beginning of the text stands for, if there is one.
    fn undo(self, text: &[u8]) -> Option<UnescapedChar> {
        if text.first() != Some(&self.sign()) {
            return None;
        }
        match self {
            Escape::Percent => {
                let byte = u8::try_from(hex(text.get(1..3)?)?).ok()?;
                Some(UnescapedChar { bytes: [byte, 0, 0, 0], count: 1, took: 3 })
            }
            Escape::Json => {
                let byte = match text.get(1)? {
                    b'"' => b'"',
                    b'\\' => b'\\',
                    b'/' => b'/',
                    b'b' => 0x08,
                    b'f' => 0x0c,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'u' => return undo_unicode(text),
                    _ => return None,
                };
                Some(UnescapedChar { bytes: [byte, 0, 0, 0], count: 1, took: 2 })
            }
        }
    }
}

/// `\u00e9`, or the two of them that make one letter.
fn undo_unicode(text: &[u8]) -> Option<UnescapedChar> {
    let unit = |at: usize| {
        let part = text.get(at..at + 6)?;
        part.starts_with(b"\\u").then(|| hex(&part[2..]))?
    };
    let first = unit(0)?;
    let (letter, took) = match char::from_u32(first) {
        Some(letter) => (letter, 6),
        None => {
            let pair = [u16::try_from(first).ok()?, u16::try_from(unit(6)?).ok()?];
            (char::decode_utf16(pair).next()?.ok()?, 12)
        }
    };
    let mut bytes = [0; 4];
    let count = letter.encode_utf8(&mut bytes).len();
    Some(UnescapedChar { bytes, count, took })
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}
