//! A unified difference, applied strictly.
//!
//! Context and removed lines must match exactly. A hunk whose place is not where its header says is still applied if
//! there is exactly one other place it fits, behind the hunk before it. Texts are kept without a line feed at their end,
//! so the marker for a missing one is read and means nothing.

use domain::Failure;
use serde_json::json;

/// More than a difference of the largest size anybody writes by hand.
const MOST_HUNKS: usize = 200;

/// One hunk.
#[derive(Debug, PartialEq, Eq)]
struct Hunk<'a> {
    /// The line it begins at, counted from nothing.
    at: usize,
    /// The lines that must be there.
    old: Vec<&'a str>,
    /// The lines that will be there.
    new: Vec<&'a str>,
}

/// The text with the difference applied.
pub(super) fn apply(content: &str, diff: &str) -> Result<String, Failure> {
    let hunks = parse(diff)?;
    let lines: Vec<&str> = if content.is_empty() { Vec::new() } else { content.split('\n').collect() };
    let mut out: Vec<&str> = Vec::with_capacity(lines.len());
    let mut done = 0;
    for (n, hunk) in hunks.iter().enumerate() {
        let at = place(&lines, hunk, done).map_err(|why| mismatch(n + 1, why))?;
        out.extend_from_slice(&lines[done..at]);
        out.extend_from_slice(&hunk.new);
        done = at + hunk.old.len();
    }
    out.extend_from_slice(&lines[done..]);
    Ok(out.join("\n"))
}

/// Where a hunk goes, not before line `from`.
fn place(lines: &[&str], hunk: &Hunk<'_>, from: usize) -> Result<usize, &'static str> {
    let stated = lines.get(hunk.at..).is_some_and(|rest| rest.starts_with(&hunk.old));
    if stated && hunk.at >= from {
        return Ok(hunk.at);
    }
    if hunk.old.is_empty() {
        return Err("it adds lines at a place that is not there");
    }
    let mut places = LineMatches::new(&lines[from..], &hunk.old);
    match (places.next(), places.next()) {
        (Some(only), None) => Ok(from + only),
        (None, _) => Err("its context or removed lines are not in the text"),
        (Some(_), Some(_)) => Err("it is not where its line number says, and fits in more than one place"),
    }
}

/// Every place a run of lines occurs, in linear time whatever the lines are (Knuth, Morris and Pratt).
struct LineMatches<'a> {
    lines: std::iter::Enumerate<std::slice::Iter<'a, &'a str>>,
    wanted: &'a [&'a str],
    fall: Vec<usize>,
    matched: usize,
}

impl<'a> LineMatches<'a> {
    fn new(lines: &'a [&'a str], wanted: &'a [&'a str]) -> LineMatches<'a> {
        let mut fall = vec![0; wanted.len()];
        let mut matched = 0;
        for n in 1..wanted.len() {
            while matched > 0 && wanted[n] != wanted[matched] {
                matched = fall[matched - 1];
            }
            matched += usize::from(wanted[n] == wanted[matched]);
            fall[n] = matched;
        }
        LineMatches { lines: lines.iter().enumerate(), wanted, fall, matched: 0 }
    }
}

impl Iterator for LineMatches<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        for (n, line) in self.lines.by_ref() {
            while self.matched > 0 && self.wanted[self.matched] != *line {
                self.matched = self.fall[self.matched - 1];
            }
            self.matched += usize::from(self.wanted[self.matched] == *line);
            if self.matched == self.wanted.len() {
                self.matched = self.fall[self.matched - 1];
                return Some(n + 1 - self.wanted.len());
            }
        }
        None
    }
}

fn parse(diff: &str) -> Result<Vec<Hunk<'_>>, Failure> {
    let mut lines = diff.trim_end_matches('\n').split('\n').peekable();
    // Names of files and what version control adds say nothing about one document.
    while lines.next_if(|line| !line.starts_with("@@")).is_some() {}
    let mut hunks = Vec::new();
    while let Some(header) = lines.next() {
        let number = hunks.len() + 1;
        let bad = |why| mismatch(number, why);
        if header.starts_with("--- ") || header.starts_with("diff ") {
            return Err(bad("a difference is for one document, and a second one begins here"));
        }
        let (at, old_count, new_count) = numbers(header).ok_or_else(|| bad("a line before it belongs to no hunk"))?;
        let mut hunk = Hunk { at, old: Vec::new(), new: Vec::new() };
        while hunk.old.len() < old_count || hunk.new.len() < new_count {
            let line = lines.next().ok_or_else(|| bad("it ends before the number of lines in its header"))?;
            match line.split_at_checked(1) {
                Some((" ", text)) => {
                    hunk.old.push(text);
                    hunk.new.push(text);
                }
                Some(("-", text)) => hunk.old.push(text),
                Some(("+", text)) => hunk.new.push(text),
                Some(("\\", _)) => {}
                // An editor took the blank off an empty line of context.
                None if line.is_empty() => {
                    hunk.old.push(line);
                    hunk.new.push(line);
                }
                Some(_) | None => return Err(bad("a line of it begins with neither blank, - nor +")),
            }
        }
        if hunk.old.len() != old_count || hunk.new.len() != new_count {
            return Err(bad("it has more lines than its header says"));
        }
        while lines.next_if(|line| line.starts_with('\\')).is_some() {}
        hunks.push(hunk);
        if hunks.len() > MOST_HUNKS {
            return Err(bad("there are too many hunks"));
        }
    }
    match hunks.is_empty() {
        true => Err(mismatch(1, "there is no hunk")),
        false => Ok(hunks),
    }
}

/// `@@ -from,count +from,count @@`: where it begins, and how many lines it has on either side.
fn numbers(header: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = header.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (from, count) = text.split_once(',').unwrap_or((text, "1"));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        Some((digits(from)?, digits(count)?))
    };
    let ((from, count), (_, new_count)) = (range(old)?, range(new)?);
    // With nothing old, the number names the line after which something is added.
    let at = if count == 0 { from } else { from.checked_sub(1)? };
    Some((at, count, new_count))
}

fn mismatch(hunk: usize, why: &str) -> Failure {
    Failure::new(crate::codes::DIFF_MISMATCH, format!("hunk {hunk} does not apply: {why}"))
        .next("read the document again and make the difference from what it says now, or use edits")
        .details(json!({ "hunk": hunk }))
}

#[cfg(test)]
mod tests;
