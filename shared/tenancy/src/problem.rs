//! A mistake in a file: where it stands, its stable code, a sentence and a way out.

use serde::Serialize;
use std::fmt;

/// So many problems are told; a file with more is not being edited by a person.
const MOST_PROBLEMS: usize = 100;
/// So much of somebody's text is repeated in a sentence.
const MOST_SHOWN: usize = 64;

/// One mistake in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The file as the reader knows it.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
    /// The stable name of the kind of mistake.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}: {}", self.file, self.line, self.column, self.code, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n    hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
}

impl Position {
    /// Where a text begins.
    pub const START: Position = Position { line: 1, column: 1 };

    /// Where the text after `before` goes on.
    pub fn after(before: &str) -> Position {
        let line = before.bytes().filter(|byte| *byte == b'\n').count();
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count());
        Position { line: count(line + 1), column: count(column + 1) }
    }
}

/// A count that fits its field; texts are far too short to reach the other end.
pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Collects the problems of one file.
#[derive(Debug)]
pub struct ProblemReport {
    file: String,
    problems: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl ProblemReport {
    /// An empty one; `file` is how problems name the file.
    pub fn of(file: &str) -> ProblemReport {
        ProblemReport { file: file.to_owned(), problems: Vec::new(), warnings: Vec::new() }
    }

    /// Notes a problem, unless there are too many already.
    pub fn add(&mut self, at: Position, code: &'static str, message: impl Into<String>, hint: Option<String>) {
        if !self.is_full() {
            let (file, message) = (self.file.clone(), message.into());
            self.problems.push(Problem { file, line: at.line, column: at.column, code, message, hint });
        }
    }

    /// Notes something that is allowed and that somebody should look at, unless there is too much of it already.
    pub fn warn(&mut self, at: Position, code: &'static str, message: impl Into<String>, hint: Option<String>) {
        if self.warnings.len() < MOST_PROBLEMS {
            let (file, message) = (self.file.clone(), message.into());
            self.warnings.push(Problem { file, line: at.line, column: at.column, code, message, hint });
        }
    }

    /// What was warned of so far, in the order of the file.
    pub(crate) fn take_warnings(&mut self) -> Vec<Problem> {
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.sort_by_key(|problem| (problem.line, problem.column));
        warnings
    }

    /// Whether looking further is pointless.
    pub fn is_full(&self) -> bool {
        self.problems.len() >= MOST_PROBLEMS
    }

    /// How many problems are noted.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Every problem in the order of the file.
    pub fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| (problem.line, problem.column));
        self.problems
    }

    /// The value, if nothing was wrong; else every problem in the order of the file.
    pub fn judge<T>(self, value: Option<T>) -> Result<T, Vec<Problem>> {
        match value {
            Some(value) if self.problems.is_empty() => Ok(value),
            Some(_) | None => Err(self.into_problems()),
        }
    }
}

/// Somebody's text as it may stand in a sentence: cut, and without anything a terminal would obey.
pub fn shown(text: &str) -> String {
    let (cut, more) = match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    };
    format!("`{}{more}`", escaped(cut))
}

/// A sentence without anything a terminal would obey.
pub(crate) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, letter| {
        match letter {
            '\'' | '"' => out.push(letter),
            // Some of them count as printable.
            hidden if domain::text::is_invisible(hidden) => out.extend(hidden.escape_unicode()),
            _ => out.extend(letter.escape_debug()),
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        assert_eq!(Position::after(""), Position::START);
        assert_eq!(Position::after("tenant: ä"), Position { line: 1, column: 10 });
        assert_eq!(Position::after("a\nbc\n"), Position { line: 3, column: 1 });
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_escaped() {
        assert_eq!(shown("a\u{1b}[31m\u{202e}\n"), r"`a\u{1b}[31m\u{202e}\n`");
        assert_eq!(shown("a\u{3164}\u{fe0f}\u{115f}"), r"`a\u{3164}\u{fe0f}\u{115f}`");
        assert_eq!(shown(&"x".repeat(65)), format!("`{}…`", "x".repeat(64)));
    }

    #[test]
    fn problems_come_in_the_order_of_the_file() {
        let mut report = ProblemReport::of("a.yaml");
        report.add(Position { line: 9, column: 1 }, "late", "late", None);
        report.add(Position { line: 2, column: 7 }, "early", "early", Some("look up".to_owned()));

        let told: Vec<_> = report.judge(Some(())).unwrap_err().iter().map(Problem::to_string).collect();

        assert_eq!(told, ["a.yaml:2:7: early: early\n    hint: look up", "a.yaml:9:1: late: late"]);
    }

    #[test]
    fn a_report_is_bounded() {
        let mut report = ProblemReport::of("a.yaml");
        for _ in 0..1000 {
            report.add(Position::START, "again", "again", None);
        }
        assert_eq!(report.judge(Some(())).unwrap_err().len(), MOST_PROBLEMS);
    }
}
