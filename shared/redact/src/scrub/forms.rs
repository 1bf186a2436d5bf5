//! The forms in which a value may stand in a text whose escapes are undone.

use super::HEAD;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::ops::Range;

/// One form: the bytes that are certain, and whether more of the value hides in the letters beside them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SecretForm {
    bytes: Vec<u8>,
    /// Base64 letters that hold bits of the value and of what stands beside it.
    shared: SharedForms,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SharedForms {
    before: bool,
    behind: bool,
    /// Whether padding may follow.
    padded: bool,
}

/// Every form of a value.
pub(super) fn of(value: &str) -> Vec<SecretForm> {
    let plain = |text: &str| SecretForm {
        bytes: text.as_bytes().to_vec(),
        shared: SharedForms { before: false, behind: false, padded: false },
    };
    let mut forms = vec![plain(value)];
    if value.contains(' ') {
        // Forms of web pages write a blank so.
        forms.push(plain(&value.replace(' ', "+")));
    }
    for offset in 0..3 {
        forms.push(inside_base64(value, offset, |bytes| STANDARD_NO_PAD.encode(bytes)));
        forms.push(inside_base64(value, offset, |bytes| URL_SAFE_NO_PAD.encode(bytes)));
    }
    forms
}

/// The value inside base64 when so many bytes of a group of three stand before it.
fn inside_base64(value: &str, offset: usize, encode: impl Fn(&[u8]) -> String) -> SecretForm {
    let mut bytes = vec![0; offset];
    bytes.extend_from_slice(value.as_bytes());
    let letters = encode(&bytes);
    // A letter holds six bits: one byte before the value fills one letter and a part of the next, two fill two.
    let from = if offset == 0 { 0 } else { offset + 1 };
    let behind = !bytes.len().is_multiple_of(3);
    let to = letters.len() - usize::from(behind);
    SecretForm {
        bytes: letters.as_bytes()[from..to].to_vec(),
        shared: SharedForms { before: offset != 0, behind, padded: true },
    }
}

impl SecretForm {
    /// What is searched for.
    pub(super) fn head(&self) -> &[u8] {
        &self.bytes[..self.bytes.len().min(HEAD)]
    }

    /// Where a form that begins at `start` ends, if it is certain up to `certain`.
    pub(super) fn follow(&self, text: &[u8], start: usize, certain: usize) -> usize {
        let mut end = certain;
        while end < text.len() && self.bytes.get(end - start) == Some(&text[end]) {
            end += 1;
        }
        end
    }

    /// The span with the letters at its edges that hold bits of the value too, and with padding.
    pub(super) fn with_edges(&self, text: &[u8], span: Range<usize>) -> Range<usize> {
        let Range { mut start, mut end } = span;
        if self.shared.before && text[..start].last().copied().is_some_and(is_letter) {
            start -= 1;
        }
        if self.shared.behind && text.get(end).copied().is_some_and(is_letter) {
            end += 1;
        }
        if self.shared.padded {
            end += text[end..].iter().take(2).take_while(|byte| **byte == b'=').count();
        }
        start..end
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
