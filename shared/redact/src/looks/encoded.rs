//! What base64 hides: a text inside it that holds a secret makes the whole of it one.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use std::ops::Range;

/// Shorter runs hold nothing that the names and looks around them do not give away.
const SHORTEST: usize = 24;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
const URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);

/// The text that this encodes, if it is one.
pub(super) fn decode(encoded: &[u8]) -> Option<String> {
    let engine = if encoded.iter().any(|b| matches!(b, b'-' | b'_')) { &URL } else { &PLAIN };
    String::from_utf8(engine.decode(encoded).ok()?).ok()
}

/// The runs of a line that could be base64.
pub(super) fn runs(line: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = line.as_bytes();
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'-' | b'_');
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let from = at + bytes[at..].iter().position(|b| letter(*b))?;
            let mut to = from + bytes[from..].iter().take_while(|b| letter(**b)).count();
            to += bytes[to..].iter().take(2).take_while(|b| **b == b'=').count();
            at = to;
            if to - from >= SHORTEST {
                return Some(from..to);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_their_padding_and_only_text_is_decoded() {
        let line = "a: aGVsbG8gd29ybGQsIGhlbGxvIQ== b short";
        let run = runs(line).next().unwrap();
        assert_eq!(&line[run.clone()], "aGVsbG8gd29ybGQsIGhlbGxvIQ==");
        assert_eq!(decode(&line.as_bytes()[run]).as_deref(), Some("hello world, hello!"));
        assert_eq!(decode(b"/////w=="), None);
        assert_eq!(runs("no long run here, none at all").count(), 0);
    }
}
