//! The one place that prints.
//!
//! Answers of the service hold text that an agent, a person or an external server chose. So everything is made safe
//! here, whichever command prints it: escape sequences, control characters, direction marks and invisible characters
//! reach the terminal as their numbers.

use domain::text;
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Prints an answer for people.
pub(crate) fn print(text: &str) {
    write(&text::visible(text));
}

/// Prints an answer for programs.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    write(&json_text(value)?);
    Ok(())
}

/// Prints lines of JSON as they are, because their bytes are hashed. A terminal gets them escaped: nobody hashes what
/// stands there.
pub(crate) fn print_exact(lines: &str) {
    match std::io::stdout().is_terminal() {
        true => write(&text::visible_json(lines)),
        false => write(lines),
    }
}

/// Prints something besides the answer, on the standard error.
pub(crate) fn say(text: &str) {
    std::io::stderr().lock().write_all(text::visible(text).as_bytes()).ok();
}

/// A value as indented JSON that is safe to print.
pub(crate) fn json_text(value: &impl Serialize) -> serde_json::Result<String> {
    Ok(text::visible_json(&format!("{}\n", serde_json::to_string_pretty(value)?)))
}

/// A text that has to stay in its line: a line end in it would let whoever chose the text write lines of their own.
pub(crate) fn one_line(text: &str) -> String {
    text::written_out(text, |c| c.is_control() || text::is_tricky(c))
}

/// A closed pipe is not an error of ours.
fn write(text: &str) {
    std::io::stdout().lock().write_all(text.as_bytes()).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const HOSTILE: &str = "a\u{1b}[2J\u{7}\r\u{202e}\u{200b}\u{9b}b";

    #[test]
    fn json_for_programs_is_escaped_and_has_the_same_value() {
        let value = json!({ "reason": HOSTILE, HOSTILE: 1 });
        let text = json_text(&value).unwrap();
        assert!(!text.chars().any(text::is_tricky), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn a_text_in_a_line_cannot_end_the_line() {
        assert_eq!(one_line("no\n  approved   by me\t\u{1b}"), "no\\u{000a}  approved   by me\\u{0009}\\u{001b}");
        assert_eq!(one_line("plain ä 漢"), "plain ä 漢");
    }
}
