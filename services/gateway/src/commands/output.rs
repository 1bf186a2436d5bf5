//! The one place that prints.
//!
//! Answers of the service hold text that an agent, a person or an external server chose. So everything is made safe
//! here, whichever command prints it: escape sequences, control characters, direction marks and invisible characters
//! reach the terminal as their numbers.

use domain::text;
use serde::Serialize;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// The most that is kept of what one command prints.
const CAPTURED: usize = 64 * 1024;

/// Whether the standard output carries a protocol, so that nothing else may be written there.
static RESERVED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Where what is printed on this thread goes instead.
    static CAPTURE: RefCell<Option<CapturedText>> = const { RefCell::new(None) };
}

/// What a command printed, answer and diagnostics together, as they would stand in a terminal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CapturedText {
    /// The text, cut at a bound.
    pub(crate) text: String,
    /// How many bytes were left out.
    pub(crate) left_out: usize,
}

/// The beginning of a text, cut at a character.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

impl CapturedText {
    fn push(&mut self, text: &str) {
        let room = CAPTURED.saturating_sub(self.text.len());
        let kept = if self.left_out > 0 { "" } else { beginning(text, room) };
        self.text.push_str(kept);
        self.left_out += text.len() - kept.len();
    }
}

/// Runs a command on this thread and returns what it printed besides its result. A command is awaited on the thread that
/// started it, so that is where it prints.
pub(crate) fn capture<T>(command: impl FnOnce() -> T) -> (T, CapturedText) {
    let before = CAPTURE.replace(Some(CapturedText::default()));
    let result = command();
    (result, CAPTURE.replace(before).unwrap_or_default())
}

/// From now on the standard output belongs to a protocol: what is printed and not captured goes to the standard error.
pub(crate) fn reserve_stdout() {
    RESERVED.store(true, Ordering::Relaxed);
}

/// Takes a text if it is captured on this thread.
fn captured(text: &str) -> bool {
    CAPTURE.with_borrow_mut(|capture| capture.as_mut().map(|capture| capture.push(text)).is_some())
}

/// Prints an answer for people.
pub(crate) fn print(text: &str) {
    write(&text::visible(text));
}

/// Prints an answer for programs.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    write(&json_text(value)?);
    Ok(())
}

/// Prints lines of JSON as they are, because their bytes are hashed. A terminal gets them escaped, and so does a capture:
/// nobody hashes what stands there.
pub(crate) fn print_exact(lines: &str) {
    let shown = std::io::stdout().is_terminal() || CAPTURE.with_borrow(Option::is_some);
    match shown {
        true => write(&text::visible_json(lines)),
        false => write(lines),
    }
}

/// Prints something besides the answer, on the standard error.
pub(crate) fn say(text: &str) {
    let text = text::visible(text);
    if !captured(&text) {
        std::io::stderr().lock().write_all(text.as_bytes()).ok();
    }
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
    if captured(text) {
        return;
    }
    match RESERVED.load(Ordering::Relaxed) {
        true => std::io::stderr().lock().write_all(text.as_bytes()).ok(),
        false => std::io::stdout().lock().write_all(text.as_bytes()).ok(),
    };
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
    fn a_capture_holds_answers_and_diagnostics_in_their_order() {
        let (answer, printed) = capture(|| {
            print("one\u{1b}\n");
            say("two\n");
            print_exact("{\"a\":\"\u{202e}\"}\n");
            let (_, inner) = capture(|| print("inner"));
            print_json(&json!({ "inner": inner.text })).unwrap();
            7
        });
        assert_eq!(answer, 7);
        let text = "one\\u{001b}\ntwo\n{\"a\":\"\\u202e\"}\n{\n  \"inner\": \"inner\"\n}\n";
        assert_eq!(printed, CapturedText { text: text.to_owned(), left_out: 0 });
    }

    #[test]
    fn a_capture_is_bounded_and_tells_what_it_left_out() {
        let (_, printed) = capture(|| {
            print(&"\u{e4}".repeat(CAPTURED));
            print("more");
        });
        assert_eq!((printed.text.len(), printed.left_out), (CAPTURED, CAPTURED + 4));
        assert!(printed.text.chars().all(|c| c == '\u{e4}'));
    }

    #[test]
    fn a_text_in_a_line_cannot_end_the_line() {
        assert_eq!(one_line("no\n  approved   by me\t\u{1b}"), "no\\u{000a}  approved   by me\\u{0009}\\u{001b}");
        assert_eq!(one_line("plain ä 漢"), "plain ä 漢");
    }
}
