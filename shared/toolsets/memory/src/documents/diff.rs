//! The difference of two versions as people and models read it: unified and bounded.

use similar::TextDiff;
use std::fmt::Write as _;
use std::time::Duration;

/// How much of a difference is shown.
#[derive(Debug, Clone, Copy)]
pub(in crate::documents) struct DiffBounds {
    bytes: usize,
    /// The longest line that is shown whole.
    chars: usize,
}

/// What is kept with a version.
pub(in crate::documents) const KEPT: DiffBounds = DiffBounds { bytes: 16 * 1024, chars: 400 };
/// What is told with a conflict.
pub(in crate::documents) const TOLD: DiffBounds = DiffBounds { bytes: 4 * 1024, chars: 400 };
/// What is shown to whoever decides: all of it, for any two documents there can be. Nobody signs for what was cut off.
pub(in crate::documents) const WHOLE: DiffBounds = DiffBounds { bytes: usize::MAX, chars: usize::MAX };
/// How long the search for the smallest difference may take; after that a larger one is shown.
const PATIENCE: Duration = Duration::from_millis(50);

/// The difference between two texts; empty if they are the same.
pub(in crate::documents) fn unified(before: &str, after: &str, shown: DiffBounds) -> String {
    if before == after {
        return String::new();
    }
    let mut config = TextDiff::configure();
    config.timeout(PATIENCE);
    // Texts are kept without a line feed at their end; a marker for that on every difference would tell nobody anything.
    let (before, after) = (ended(before), ended(after));
    let whole = config.diff_lines(&before, &after).unified_diff().context_radius(3).to_string();
    bounded(&whole, shown)
}

fn ended(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("{text}\n") }
}

/// Whole lines up to the bound, and how many were left out.
fn bounded(text: &str, shown: DiffBounds) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let cut: String = line.chars().take(shown.chars).collect();
        if out.len() + cut.len() > shown.bytes {
            // Writing to a string cannot fail.
            writeln!(out, "… and {} more lines", lines.count() + 1).unwrap_or_default();
            return out;
        }
        out.push_str(&cut);
        out.push_str(if cut.len() < line.len() { "…\n" } else { "\n" });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_unified_and_applies_again() {
        let (before, after) = ("a\nb\nc", "a\nB\nc\nd");
        let diff = unified(before, after, KEPT);
        assert_eq!(diff, "@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n");
        assert_eq!(crate::documents::PatchChange::Diff(diff).apply(before).unwrap(), after);
        assert_eq!(unified("a", "a", TOLD), "");
        assert_eq!(unified("", "a\nb", TOLD), "@@ -0,0 +1,2 @@\n+a\n+b\n");
    }

    #[test]
    fn a_long_difference_is_cut_at_a_line_and_the_rest_is_counted() {
        let after = (0..5_000).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n");
        let diff = unified("", &after, TOLD);
        assert!(diff.len() < TOLD.bytes + 64 && diff.ends_with("more lines\n"), "{}", diff.len());
        assert!(unified("", &"é".repeat(50_000), TOLD).len() < 1_000);
        let long = "x".repeat(90_000);
        assert!(unified("", &format!("{long}\nend"), WHOLE).ends_with("+end\n"), "whoever decides sees all of it");
        assert!(unified("", &long, WHOLE).contains(&long));
    }
}
