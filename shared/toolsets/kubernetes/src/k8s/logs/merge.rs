//! Lines of several containers as one text: masked, searched, in the order of time, the newest kept.

use crate::k8s::grep::Grep;
use crate::k8s::reply::{cut_text, printable};
use redact::Redactor;

/// The most lines in one answer.
const MOST_LINES: usize = 2_000;
/// The longest line that is shown whole.
const MOST_LINE: usize = 4 * 1024;

/// One line and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodLogLine {
    pub(super) at: String,
    pub(super) text: String,
}

/// The merged text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MergedLog {
    pub(super) text: String,
    /// How many lines of each stream are shown.
    pub(super) shown: Vec<usize>,
    /// How many wanted lines are not.
    pub(super) cut: usize,
    /// The time of the oldest line that was looked at and shown; what is older has not been shown.
    pub(super) oldest: Option<String>,
}

/// The lines of one container as the kubelet gives them, `2025-11-16T08:00:00.123456789Z text`, masked in their order.
pub(super) fn masked(lines: &[String]) -> Vec<PodLogLine> {
    let mut redactor = Redactor::default();
    let mut out: Vec<PodLogLine> = Vec::with_capacity(lines.len());
    for line in lines {
        let (at, text) = line.split_once(' ').unwrap_or((line, ""));
        // A line without a time belongs to the one before it.
        let (at, text) = match at.len() >= 20 && at.as_bytes().get(10) == Some(&b'T') {
            true => (stamp(at), text),
            false => (out.last().map(|line| line.at.clone()).unwrap_or_default(), line.as_str()),
        };
        // Colours go first: they could stand right before a word that gives a secret away.
        let mut text = redactor.line(&printable(text)).into_owned();
        if text.len() > MOST_LINE {
            cut_text(&mut text, MOST_LINE);
        }
        out.push(PodLogLine { at, text });
    }
    out
}

/// A time whose text sorts like the time: the fraction always has nine digits.
fn stamp(at: &str) -> String {
    let body = at.strip_suffix('Z').unwrap_or(at);
    let (whole, fraction) = body.split_once('.').unwrap_or((body, ""));
    format!("{whole}.{fraction:0<9}Z")
}

/// Merges streams and keeps the newest lines that fit.
pub(super) fn newest(
    streams: Vec<Vec<PodLogLine>>,
    labels: &[Option<String>],
    grep: Option<&Grep>,
    room: usize,
) -> MergedLog {
    let mut shown = vec![0; streams.len()];
    let first = streams.iter().filter_map(|lines| lines.first()).map(|line| line.at.clone()).min();
    let mut all: Vec<(usize, PodLogLine)> = streams
        .into_iter()
        .enumerate()
        .flat_map(|(n, lines)| lines.into_iter().map(move |line| (n, line)))
        .filter(|(_, line)| grep.is_none_or(|grep| grep.wants(&line.text)))
        .collect();
    // Stable, so that lines of one container and one time stay in their order.
    all.sort_by(|(_, a), (_, b)| a.at.cmp(&b.at));
    let (mut used, mut from) = (0, all.len());
    while from > 0 && all.len() - from < MOST_LINES {
        let (n, line) = &all[from - 1];
        let label = labels.get(*n).and_then(Option::as_deref).map_or(0, |label| label.len() + 2);
        // What JSON makes of a line is longer than the line.
        used += serde_json::to_string(&line.text).map_or(line.text.len(), |text| text.len()) + label;
        if used > room {
            break;
        }
        from -= 1;
    }
    // A cursor leads to what is older than a time, so lines of one time are cut together, unless that were all of them.
    if from > 0 {
        let border = all[from - 1].1.at.clone();
        let together = all[from..].iter().take_while(|(_, line)| line.at == border).count();
        if from + together < all.len() {
            from += together;
        }
    }
    let kept = &all[from..];
    let oldest = match from {
        0 => first,
        _ => kept.first().map(|(_, line)| line.at.clone()),
    };
    let mut text = String::new();
    for (n, line) in kept {
        if let Some(count) = shown.get_mut(*n) {
            *count += 1;
        }
        if let Some(label) = labels.get(*n).and_then(Option::as_deref) {
            text.push_str(label);
            text.push_str(": ");
        }
        text.push_str(&line.text);
        text.push('\n');
    }
    MergedLog { text, shown, cut: from, oldest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<PodLogLine> {
        masked(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn streams_are_merged_by_time() {
        let a = lines(&["2025-11-16T08:00:00.1Z a1", "2025-11-16T08:00:02Z a2"]);
        let b = lines(&["2025-11-16T08:00:00.15Z b1", "2025-11-16T08:00:03.000000001Z b2"]);
        let merged = newest(vec![a, b], &[Some("p/a".into()), Some("p/b".into())], None, 10_000);
        assert_eq!(merged.text, "p/a: a1\np/b: b1\np/a: a2\np/b: b2\n");
        assert_eq!((merged.shown, merged.cut), (vec![2, 2], 0));
        assert_eq!(merged.oldest.as_deref(), Some("2025-11-16T08:00:00.100000000Z"));
    }

    #[test]
    fn a_search_sees_only_what_is_masked() {
        let text = ["2025-11-16T08:00:00Z password=hunter2hunter2", "2025-11-16T08:00:01Z fine"];
        let grep = |text: &str| Grep::try_from(text.to_owned()).unwrap();
        let found = |expression: &str| newest(vec![lines(&text)], &[None], Some(&grep(expression)), 10_000).text;
        assert_eq!(found("hunter"), "", "an expression cannot guess a secret");
        assert_eq!(found("password"), "password=[redacted: password-like assignment]\n");
        assert_eq!(found("^fine$"), "fine\n");
    }

    #[test]
    fn a_key_over_several_lines_goes_whole_although_each_has_a_time() {
        let text = lines(&[
            "2025-11-16T08:00:00Z -----BEGIN PRIVATE KEY-----",
            "2025-11-16T08:00:00Z MIIEowIBAAKCAQEA",
            "2025-11-16T08:00:00Z -----END PRIVATE KEY-----",
            "2025-11-16T08:00:01Z after",
        ]);
        let shown: Vec<&str> = text.iter().map(|l| l.text.as_str()).collect();
        assert_eq!(shown, ["[redacted: private key]", "[redacted]", "[redacted]", "after"]);
    }

    #[test]
    fn colours_hide_no_secret() {
        let text = lines(&["2025-11-16T08:00:00Z \u{1b}[31mpass\u{1b}[0mword=hunter2hunter2"]);
        assert_eq!(text[0].text, "password=[redacted: password-like assignment]");
    }

    #[test]
    fn the_newest_lines_are_kept_and_the_rest_is_counted() {
        let many: Vec<String> =
            (0..500).map(|n| format!("2025-11-16T08:{:02}:{:02}Z line {n:03}", n / 60, n % 60)).collect();
        let merged = newest(vec![masked(&many)], &[None], None, 1_000);
        assert!(merged.text.ends_with("line 499\n") && merged.text.len() < 1_000);
        assert_eq!(merged.cut + merged.shown[0], 500);
        let first = merged.text.lines().next().unwrap().to_owned();
        let oldest = masked(&many).into_iter().find(|l| l.text == first).unwrap().at;
        assert_eq!(merged.oldest, Some(oldest));
    }

    #[test]
    fn lines_of_one_time_are_not_torn_apart() {
        let mut text: Vec<String> = (0..50).map(|n| format!("2025-11-16T08:00:00Z old {n:02}")).collect();
        text.extend((0..5).map(|n| format!("2025-11-16T08:00:01Z new {n}")));
        let merged = newest(vec![masked(&text)], &[None], None, 200);
        assert_eq!(merged.text, "new 0\nnew 1\nnew 2\nnew 3\nnew 4\n");
        assert_eq!((merged.cut, merged.oldest.as_deref()), (50, Some("2025-11-16T08:00:01.000000000Z")));
    }

    #[test]
    fn endless_lines_and_colours_do_no_harm() {
        let line = format!("2025-11-16T08:00:00Z \u{1b}[31m{}", "é".repeat(10_000));
        let shown = &masked(&[line])[0].text;
        assert!(shown.len() < MOST_LINE + 40 && shown.starts_with('é'));
        assert_eq!(
            masked(&["no time at all".to_owned()])[0],
            PodLogLine { at: String::new(), text: "no time at all".to_owned() }
        );
    }
}
