//! Small questions about text that every part of the service asks the same way.

/// Whether a text is a DNS-1123 label: a tenant, a namespace, a cluster, a server.
pub fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len()) && is_part(text)
}

/// Whether a text is a DNS-1123 subdomain: labels of any length with dots between, at most 253 bytes.
pub fn is_subdomain(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let letter = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(letter)
        && bytes.last().is_some_and(letter)
        && bytes.iter().all(|b| letter(b) || *b == b'-')
}

/// An error and its causes, in one line.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Whether a character takes no room of its own, or bends the direction or the lines of its neighbours.
///
/// Two of them have honest uses that only their neighbours show: joiners in some scripts, and [variation
/// selectors](is_variation_selector) in emoji.
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
        || is_variation_selector(c)
}

/// Whether a character chooses how the one before it is drawn, such as U+FE0F in many emoji.
pub const fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether a character plays tricks on whoever reads it: an invisible one, or a control besides line end and tab.
pub fn is_tricky(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_invisible(c)
}

/// A text that cannot play tricks on whoever reads it: each tricky character is written out by its number.
pub fn visible(text: &str) -> String {
    written_out(text, is_tricky)
}

/// A JSON text that cannot play tricks either. Tricky characters stand only inside its strings, where `\uXXXX` means the
/// same, so the value stays as it was.
pub fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match is_tricky(c) {
            true => out.push_str(&json_escape(c)),
            false => out.push(c),
        }
    }
    out
}

/// A character as `\uXXXX`; one beyond U+FFFF takes two of them.
pub fn json_escape(c: char) -> String {
    let mut units = [0; 2];
    c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// The text with the characters that are `hidden` written out by their number.
pub fn written_out(text: &str, hidden: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match hidden(c) {
            true => out.push_str(&format!("\\u{{{:04x}}}", u32::from(c))),
            false => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_short_and_has_no_dash_at_its_ends() {
        for good in ["a", "0", "a-b", "a--b", &"a".repeat(63)] {
            assert!(is_label(good) && is_subdomain(good), "{good}");
        }
        for bad in ["", "-", "-a", "a-", "A", "a_b", "ä", "a b", "a\n", "a/b", &"a".repeat(254)] {
            assert!(!is_label(bad) && !is_subdomain(bad), "{bad}");
        }
        assert!(is_subdomain("a.b-c.d") && !is_label("a.b-c.d"));
        for bad in [".a", "a.", "a..b", "a.-b"] {
            assert!(!is_subdomain(bad), "{bad}");
        }
    }

    #[test]
    fn tricky_characters_are_written_out_and_the_rest_is_left_alone() {
        assert_eq!(visible("a\u{202e}b\u{200b}c\u{1b}[2J\u{0}"), "a\\u{202e}b\\u{200b}c\\u{001b}[2J\\u{0000}");
        assert_eq!(visible("hidden\u{e0041}\u{e0042}\u{fe0f}"), "hidden\\u{e0041}\\u{e0042}\\u{fe0f}");
        assert_eq!(visible("plain\n\ttext ä 漢 🙂"), "plain\n\ttext ä 漢 🙂");
    }

    #[test]
    fn json_is_escaped_and_keeps_its_value() {
        let hostile = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{200b}\u{e0041}\u{7}\r\n\t\"ä🙂";
        let value = serde_json::json!({ hostile: [hostile] });
        let text = visible_json(&serde_json::to_string_pretty(&value).unwrap());
        assert!(!text.chars().any(is_tricky), "{text}");
        assert!(text.contains("\\u009b\\u202e\\u200b\\udb40\\udc41\\u0007"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    /// What any of the lists held that this one replaced: of previews, external servers, memory, Jenkins and logs.
    #[test]
    fn whatever_was_hidden_anywhere_is_shown_everywhere() {
        let ranges = [
            ('\u{ad}', '\u{ad}'),
            ('\u{34f}', '\u{34f}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{115f}', '\u{1160}'),
            ('\u{17b4}', '\u{17b5}'),
            ('\u{180b}', '\u{180f}'),
            ('\u{200b}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2060}', '\u{206f}'),
            ('\u{3164}', '\u{3164}'),
            ('\u{fe00}', '\u{fe0f}'),
            ('\u{feff}', '\u{feff}'),
            ('\u{ffa0}', '\u{ffa0}'),
            ('\u{fff9}', '\u{fffb}'),
            ('\u{1bca0}', '\u{1bca3}'),
            ('\u{1d173}', '\u{1d17a}'),
            ('\u{e0000}', '\u{e0fff}'),
            ('\u{0}', '\u{8}'),
            ('\u{b}', '\u{1f}'),
            ('\u{7f}', '\u{9f}'),
        ];
        for c in ranges.into_iter().flat_map(|(from, to)| from..=to) {
            assert_eq!(visible(&c.to_string()), format!("\\u{{{:04x}}}", u32::from(c)));
        }
    }
}
