//! One form for equal texts, so that equal texts have equal digests.

use std::borrow::Cow;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Composed characters (NFC), line feeds alone, and nothing blank at the end.
pub fn normalise(text: &str) -> String {
    composed(text).trim_end().to_owned()
}

/// The same for a piece of a text, whose end may well be blank.
pub(in crate::documents) fn composed(text: &str) -> Cow<'_, str> {
    let lines: Cow<'_, str> = match text.contains('\r') {
        true => text.replace("\r\n", "\n").replace('\r', "\n").into(),
        false => text.into(),
    };
    match is_nfc(&lines) {
        true => lines,
        false => lines.nfc().collect::<String>().into(),
    }
}

/// The title a text gives itself: its first heading.
pub(in crate::documents) fn heading(text: &str) -> Option<String> {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "))?.trim();
    (!heading.is_empty()).then(|| heading.chars().take(240).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_form() {
        let one = normalise("caf\u{e9}\nb");
        for other in ["cafe\u{301}\r\nb\r\n", "caf\u{e9}\rb", "caf\u{e9}\nb \t\n\n"] {
            assert_eq!(normalise(other), one, "{other:?}");
        }
        assert_eq!(normalise("  a\n\n  b"), "  a\n\n  b", "what stands before the end is left alone");
        assert_eq!(normalise(&normalise("e\u{301} \r\n")), normalise("e\u{301} \r\n"));
    }

    #[test]
    fn a_heading_is_a_title() {
        assert_eq!(heading("intro\n#  Failover \nx"), Some("Failover".to_owned()));
        assert_eq!(heading("## Lower\n#\n# "), None);
    }
}
