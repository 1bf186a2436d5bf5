//! A long text in pages of whole lines. It is masked as a whole first, so that no secret is cut in two and missed.

use redact::Redactor;
use target::reply::{cut_text, printable, size_of};

/// The longest line that is shown whole.
const MOST_LINE: usize = 4 * 1024;

/// A text as it may be shown.
pub(crate) struct ShownLines(Vec<String>);

/// One page of it.
pub(crate) struct LinesPage {
    pub(crate) text: String,
    /// The line to go on with.
    pub(crate) next: Option<usize>,
    /// How many lines are left.
    pub(crate) left: usize,
}

impl ShownLines {
    /// Masks what reads like a secret and drops what a terminal would act on.
    pub(crate) fn of(text: &str) -> ShownLines {
        let mut redactor = Redactor::default();
        ShownLines(text.lines().map(|line| cut(redactor.line(&printable(line)).into_owned())).collect())
    }

    /// The same for what a cluster's masker has seen: its marks can be compared, so they stay.
    pub(crate) fn masked(text: &str) -> ShownLines {
        ShownLines(text.lines().map(|line| cut(printable(line))).collect())
    }

    /// As many lines as fit, beginning with this one.
    pub(crate) fn page(&self, from: usize, room: usize) -> LinesPage {
        // The text has quotes of its own.
        let (mut used, mut to) = (2, from.min(self.0.len()));
        let start = to;
        while let Some(line) = self.0.get(to) {
            used += size_of(line);
            // One line always fits, or nobody would get past it.
            if used > room && to > start {
                break;
            }
            to += 1;
        }
        let text: String = self.0[start..to].iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        let left = self.0.len() - to;
        LinesPage { text, next: (left > 0).then_some(to), left }
    }
}

fn cut(mut line: String) -> String {
    if line.len() > MOST_LINE {
        cut_text(&mut line, MOST_LINE);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use target::reply::ROOM;

    #[test]
    fn pages_hold_whole_lines_and_end() {
        let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let (lines, mut whole, mut at) = (ShownLines::of(&text), String::new(), Some(0));
        while let Some(from) = at {
            let page = lines.page(from, ROOM);
            assert!(size_of(&page.text) <= ROOM && !page.text.is_empty());
            whole.push_str(&page.text);
            at = page.next;
        }
        assert_eq!(whole, text);
        assert_eq!(lines.page(99_999, ROOM).text, "");
    }

    #[test]
    fn secrets_colours_and_endless_lines_are_cut_down() {
        let page =
            ShownLines::of(&format!("\u{1b}[31mpassword=hunter2hunter2\n{}\n", "x".repeat(100_000))).page(0, ROOM);
        assert!(!page.text.contains("hunter2") && !page.text.contains('\u{1b}') && page.text.len() < 2 * MOST_LINE);
    }
}
