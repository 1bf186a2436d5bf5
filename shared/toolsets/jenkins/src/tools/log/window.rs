//! A window of a console: cut into lines, masked in their order, searched, and kept from its end.

use redact::Redactor;
use target::grep::Grep;
use target::reply::{cut_text, printable, size_of};

/// The longest line that is shown whole.
const MOST_LINE: usize = 2 * 1024;

/// One line and where it begins in the whole console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConsoleLine {
    pub(super) at: u64,
    pub(super) text: String,
}

/// The lines that are shown.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogWindow {
    pub(super) lines: Vec<ConsoleLine>,
    /// How many more were wanted and had no room.
    pub(super) no_room: usize,
}

/// The lines of a window that begin at `begin` or later. What is before that, and the piece of a line at the very
/// start, only tells whether a secret goes over into the window.
pub(super) fn masked(bytes: &[u8], start: u64, begin: u64) -> Vec<ConsoleLine> {
    let mut redactor = Redactor::default();
    let mut lines = Vec::new();
    let mut at = start;
    for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
        let here = at;
        at += u64::try_from(piece.len()).unwrap_or_default();
        let text = String::from_utf8_lossy(piece);
        let mut text = redactor.line(&printable(text.trim_end_matches(['\n', '\r']))).into_owned();
        let whole = here > start || start == 0;
        if !whole || here < begin {
            continue;
        }
        if text.len() > MOST_LINE {
            cut_text(&mut text, MOST_LINE);
        }
        lines.push(ConsoleLine { at: here, text });
    }
    lines
}

/// The newest lines that are wanted: at most so many, and as far as they fit.
pub(super) fn newest(lines: Vec<ConsoleLine>, grep: Option<&Grep>, tail: usize, room: usize) -> LogWindow {
    let wanted = |line: &ConsoleLine| grep.is_none_or(|grep| grep.wants(&line.text));
    let mut lines: Vec<ConsoleLine> = lines.into_iter().rev().filter(wanted).take(tail).collect();
    let mut used = 0;
    let fit = lines.iter().take_while(|line| {
        used += size_of(&line.text);
        used <= room
    });
    let fit = fit.count();
    let no_room = lines.len() - fit;
    lines.truncate(fit);
    lines.reverse();
    LogWindow { lines, no_room }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[ConsoleLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn lines_know_where_they_begin_and_pieces_are_left_out() {
        let whole = masked("one\ntwo é\r\nthree".as_bytes(), 0, 0);
        assert_eq!(texts(&whole), ["one", "two é", "three"]);
        assert_eq!(whole.iter().map(|line| line.at).collect::<Vec<_>>(), [0, 4, 12]);
        let part = masked(b"ne\ntwo\nthree\n", 101, 104);
        assert_eq!(part, [ConsoleLine { at: 104, text: "two".into() }, ConsoleLine { at: 108, text: "three".into() }]);
    }

    #[test]
    fn a_key_that_began_before_the_window_is_still_a_key() {
        let text = "x\n-----BEGIN PRIVATE KEY-----\nMIIEowAA\nMIIEowBB\n-----END PRIVATE KEY-----\nafter\n";
        let begin = u64::try_from(text.find("MIIEowBB").unwrap()).unwrap() + 10;
        let lines = masked(text.as_bytes(), 10, begin);
        assert!(lines.iter().all(|line| !line.text.contains("MIIE")), "{lines:?}");
        assert_eq!(texts(&lines).last(), Some(&"after"));
    }

    #[test]
    fn the_newest_that_fit_are_kept_and_a_search_sees_only_masks() {
        let log = "a 1\nb 2\ntoken: abcdefgh12345\na 3\n";
        let lines = masked(log.as_bytes(), 0, 0);
        let grep = |text: &str| Grep::try_from(text.to_owned()).unwrap();
        let kept = newest(lines.clone(), Some(&grep("^a")), 10, 1_000);
        assert_eq!((texts(&kept.lines), kept.no_room), (vec!["a 1", "a 3"], 0));
        assert_eq!(newest(lines.clone(), Some(&grep("abcdefgh")), 10, 1_000).lines, []);
        let kept = newest(lines, None, 3, 8);
        assert_eq!((texts(&kept.lines), kept.no_room), (vec!["a 3"], 2));
    }
}
