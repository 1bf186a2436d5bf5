//! A log is not a note: it is long, it says the same again and again, and it may hold anything.

use regex::RegexSet;
use std::sync::LazyLock;

/// More lines than this are a dump, whatever else is said.
const MOST_LINES: usize = 30;
/// Fewer lines than this are a quotation, even if they are most of the text.
const FEW_LINES: usize = 6;

static LINES: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        // A moment to the second at the very beginning, as machines write it; people write 10:42 and a bullet.
        r"^\s*[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d",
        r"^\s*[\[(]?\d\d:\d\d:\d\d[.,]\d{3}",
        r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ",
        r"^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+",
        r#"^\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d"#,
        r"(?i)^\s*(time|ts|timestamp|level|lvl)=\S+ .*\b(level|lvl|msg|message)=",
        r#"(?i)^\s*\{.*"(ts|time|timestamp|@timestamp|level|severity)"\s*:.*"(msg|message|log|event)"\s*:"#,
        r#"(?i)^\s*\{.*"(msg|message|log|event)"\s*:.*"(ts|time|timestamp|@timestamp|level|severity)"\s*:"#,
        r"^\s*(TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\s*[:\[|-]?\s+\S+.*\d",
        r"^\s+at [\w$.<>]+\([^)]*\)$",
        r#"^\s+File "[^"]+", line \d+"#,
        r"^\s*\[\s*\d+\.\d{6}\] ",
    ])
    .ok()
});

/// The first line of a log that is more than a quotation, if the text holds one; `None` outside if that cannot be judged.
pub(super) fn is_dump(text: &str) -> Option<Option<usize>> {
    let patterns = LINES.as_ref()?;
    let (mut first, mut like, mut all) = (None, 0, 0);
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        all += 1;
        if patterns.is_match(line) {
            like += 1;
            first.get_or_insert(n + 1);
        }
    }
    let dump = like > MOST_LINES || (like >= FEW_LINES && like * 2 > all);
    Some(first.filter(|_| dump))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [&str; 10] = [
        "2025-11-16T08:00:00.123Z INFO checkout: request done",
        "[2025-11-16 08:00:00] production.ERROR: nothing",
        "Nov 16 08:00:00 node1 kubelet[812]: eviction",
        "I1116 08:00:00.000123       1 controller.go:42] sync",
        r#"10.0.0.1 - - [16/Nov/2025:08:00:00 +0000] "GET / HTTP/1.1" 200 12"#,
        "time=2025-11-16 level=info msg=\"started\"",
        r#"{"level":"info","ts":1763280000,"msg":"started"}"#,
        "ERROR [pool-1] request 17 failed",
        "    at com.example.Checkout.pay(Checkout.java:42)",
        "[   12.345678] Out of memory: Killed process 812",
    ];

    #[test]
    fn every_kind_of_log_is_known() {
        for line in KINDS {
            let dump = [line; 7].join("\n");
            assert_eq!(is_dump(&format!("# Notes\n\n{dump}")), Some(Some(3)), "{line}");
            assert_eq!(is_dump(&[line; 3].join("\n")), Some(None), "a few lines are a quotation");
        }
        let much = format!("{}\n{}", "some words of explanation\n".repeat(200), [KINDS[0]; 31].join("\n"));
        assert_eq!(is_dump(&much), Some(Some(202)));
    }

    #[test]
    fn a_timeline_written_by_people_is_no_log() {
        let timeline = "- 08:02 paged\n- 08:05 looked at the lag\n2025-11-16 08:10 UTC: failed over\n".repeat(20);
        assert_eq!(is_dump(&timeline), Some(None));
        let steps = "1. Run `kubectl get pods`.\n2. Look at ERROR lines.\n".repeat(40);
        assert_eq!(is_dump(&steps), Some(None));
    }
}
