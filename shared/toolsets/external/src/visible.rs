//! Characters that play tricks on whoever reads them: written out, so that model and person read the same text.

use domain::text;

/// Whether a character plays tricks. Line ends of either kind are honest in texts that others wrote.
fn is_tricky(c: char) -> bool {
    c != '\r' && text::is_tricky(c)
}

/// Whether a text holds any such character.
pub(crate) fn has_tricks(text: &str) -> bool {
    text.chars().any(is_tricky)
}

/// The text with each of them written out by its number.
pub(crate) fn visible(text: &str) -> String {
    text::written_out(text, is_tricky)
}

/// The first so many characters, and a sign where more followed.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_plays_tricks_is_written_out_and_the_rest_is_left_alone() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{1b}[2J"), "a\\u{202e}b\\u{200b}c\\u{001b}[2J");
        assert_eq!(visible("hidden\u{e0041}\u{e0042}\u{fe0f}"), "hidden\\u{e0041}\\u{e0042}\\u{fe0f}");
        assert_eq!(visible("plain\n\ttext ä 漢 🙂"), "plain\n\ttext ä 漢 🙂");
    }

    #[test]
    fn a_cut_is_between_characters_and_shows() {
        assert_eq!(cut("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
