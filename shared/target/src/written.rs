//! Text that a program wrote, as it may be shown: masked, without what a terminal would act on, whole lines, bounded.

use crate::reply::{Omitted, cut_text, printable};
use redact::Redactor;

/// The longest text of one field.
pub const MOST: usize = 8 * 1024;
/// The longest line that is shown whole.
const MOST_LINE: usize = 2 * 1024;

/// Which end is kept where not all of it fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptEnd {
    /// The beginning.
    First,
    /// The end.
    Last,
}

/// The text as it may be shown, and what was left out of it.
pub fn shown(text: &str, keep: KeptEnd) -> (String, Omitted) {
    let mut redactor = Redactor::default();
    // Masked in their order and before any is left out: a key goes over several lines.
    let mut line = |line: &str| {
        let mut line = redactor.line(&printable(line)).into_owned();
        if line.len() > MOST_LINE {
            cut_text(&mut line, MOST_LINE);
        }
        line
    };
    let mut lines: Vec<String> = text.lines().map(&mut line).collect();
    let all = lines.len();
    let (mut used, mut fit) = (0, 0);
    let size = |line: &String| serde_json::to_string(line).map_or(line.len(), |text| text.len());
    let order: Vec<usize> = match keep {
        KeptEnd::First => (0..all).collect(),
        KeptEnd::Last => (0..all).rev().collect(),
    };
    for n in order {
        used += size(&lines[n]);
        if used > MOST {
            break;
        }
        fit += 1;
    }
    let left: Vec<String> = match keep {
        KeptEnd::First => lines.split_off(fit),
        KeptEnd::Last => {
            let kept = lines.split_off(all - fit);
            std::mem::replace(&mut lines, kept)
        }
    };
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let omitted =
        Omitted { items: 0, lines: count(left.len()), bytes: count(left.iter().map(|line| line.len() + 1).sum()) };
    let end = if text.ends_with('\n') && !lines.is_empty() { "\n" } else { "" };
    (format!("{}{end}", lines.join("\n")), omitted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_stays_as_it_is() {
        assert_eq!(shown("a\nb\n", KeptEnd::First), ("a\nb\n".to_owned(), Omitted::default()));
        assert_eq!(shown("", KeptEnd::Last), (String::new(), Omitted::default()));
        assert_eq!(shown("no end", KeptEnd::Last).0, "no end");
    }

    #[test]
    fn secrets_and_colours_go() {
        let (text, _) = shown("\u{1b}[31mpassword=hunter2hunter2\n-----BEGIN PRIVATE KEY-----\nabc\n", KeptEnd::First);
        assert!(!text.contains("hunter2") && !text.contains("abc") && !text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn whole_lines_are_kept_from_the_wanted_end_and_the_rest_is_counted() {
        let long: String = (0..5_000).map(|n| format!("line {n:04}\n")).collect();
        let (first, omitted) = shown(&long, KeptEnd::First);
        assert!(first.starts_with("line 0000\n") && first.len() <= MOST);
        assert_eq!(u64::try_from(first.lines().count()).unwrap() + omitted.lines, 5_000);
        let (last, _) = shown(&long, KeptEnd::Last);
        assert!(last.ends_with("line 4999\n") && last.starts_with("line "));
        assert!(shown(&"x".repeat(100_000), KeptEnd::First).0.len() < MOST_LINE + 40);
    }
}
