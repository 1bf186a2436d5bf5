//! Characters that play tricks on whoever reads them: written out, so that model and person read the same text.

/// Whether a character is invisible, turns the direction of reading, or controls a terminal.
pub(crate) fn is_tricky(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2028}' | '\u{2029}'
            | '\u{3164}' | '\u{ffa0}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a text holds any such character.
pub(crate) fn has_tricks(text: &str) -> bool {
    text.chars().any(is_tricky)
}

/// The text with each of them written out by its number.
pub(crate) fn visible(text: &str) -> String {
    if !has_tricks(text) {
        return text.to_owned();
    }
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_tricky(c) {
            out.push_str(&format!("\\u{{{:04x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
        out
    })
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
