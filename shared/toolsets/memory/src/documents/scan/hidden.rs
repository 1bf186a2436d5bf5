//! What is there without being seen: characters that do not show, comments and scripts that do not render, and long
//! encoded blocks.

use domain::text::{is_invisible, is_variation_selector};
use regex::RegexSet;
use std::sync::LazyLock;

const INVISIBLE: &str = "hidden characters";
const COMMENT: &str = "hidden comment";
const SCRIPT: &str = "script";
const ENCODED: &str = "long encoded block";
/// Bytes of encoded data that nobody needs to remember.
const MOST_ENCODED: usize = 512;
/// The longest comment that can be a mark for a tool and not a text: `<!-- markdownlint-disable MD013 -->`.
const MARK_WORDS: usize = 3;
/// Lines of a wrapped block are at least this long.
const WRAPPED: usize = 40;

static MARKUP: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    RegexSet::new([
        r"(?i)<\s*(script|iframe|object|embed|meta|base|form)\b[^>]*>",
        r"(?i)<[a-z][^>]*\son[a-z]{3,}\s*=",
        r"(?i)\b(javascript|vbscript):\s*\S",
        r"(?i)\bdata:(text/html|application/x?html|image/svg)",
        // A link that renders as nothing: the usual way to hide a comment in Markdown.
        r"(?i)^\s{0,3}\[(//|comment|_|hidden)[^\]]*\]:\s*(#|<>)",
        r#"(?i)style\s*=\s*["'][^"']*(display\s*:\s*none|font-size\s*:\s*0|visibility\s*:\s*hidden|opacity\s*:\s*0\b)"#,
    ])
    .ok()
});

/// Every line that hides something, and how.
pub(super) fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut comment = false;
    let mut block = EncodedBlock::default();
    for (n, line) in text.lines().enumerate() {
        let mut note = |rule| found.push((n + 1, rule));
        if hides(line) {
            note(INVISIBLE);
        }
        if opens_comment(line, &mut comment) {
            note(COMMENT);
        }
        // Without its patterns every line with an angle is one too many.
        if MARKUP.as_ref().map_or_else(|| line.contains('<'), |markup| markup.is_match(line)) {
            note(SCRIPT);
        }
        if block.grows_too_long(line) {
            note(ENCODED);
        }
    }
    found
}

/// Whether a line holds an invisible character that its neighbours do not explain.
fn hides(line: &str) -> bool {
    let chars: Vec<char> = match line.is_ascii() {
        true => return false,
        false => line.chars().collect(),
    };
    let near = |at: usize, kind: fn(char) -> bool| {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        before.is_some_and(|c| kind(*c)) && chars.get(at + 1).is_some_and(|c| kind(*c))
    };
    chars.iter().enumerate().any(|(at, c)| match c {
        // Joins the parts of one emoji, or shapes letters that are written joined.
        '\u{200d}' => !near(at, is_pictograph) && !near(at, is_joined_script),
        '\u{200c}' => !near(at, is_joined_script),
        // Chooses how the sign before it is drawn; where nothing is drawn, it hides something.
        c if is_variation_selector(*c) => at.checked_sub(1).is_none_or(|before| is_invisible(chars[before])),
        other => is_invisible(*other),
    })
}

fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

fn is_joined_script(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{1800}'..='\u{18af}')
}

/// Whether a comment stands in the line that says more than a mark for a tool does. `open` tells of the lines before.
fn opens_comment(line: &str, open: &mut bool) -> bool {
    let mut rest = line;
    let mut found = false;
    if *open {
        match rest.split_once("-->") {
            Some((_, after)) => (*open, rest) = (false, after),
            None => return false,
        }
    }
    while let Some((_, inside)) = rest.split_once("<!--") {
        let (said, after) = inside.split_once("-->").unwrap_or((inside, ""));
        *open = !inside.contains("-->");
        found |= *open || said.split_whitespace().count() > MARK_WORDS;
        rest = after;
    }
    found
}

/// Counts encoded bytes over the lines of one block.
#[derive(Default)]
struct EncodedBlock {
    bytes: usize,
    told: bool,
}

impl EncodedBlock {
    /// Whether with this line a block has become too long; said once for each.
    fn grows_too_long(&mut self, line: &str) -> bool {
        let inner = line.trim();
        let encoded = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'-' | b'_');
        let goes_on = self.bytes > 0 && !inner.is_empty() && inner.bytes().all(encoded);
        let longest = inner.split(|c: char| !c.is_ascii() || !encoded(c as u8)).filter(|run| is_mixed(run));
        let longest = longest.map(str::len).max().unwrap_or(0);
        let before = if goes_on { self.bytes } else { 0 };
        self.told &= goes_on;
        self.bytes = match longest {
            WRAPPED.. => before + longest * 3 / 4,
            _ => 0,
        };
        let long = self.bytes > MOST_ENCODED && !self.told;
        self.told |= long;
        long
    }
}

/// Encoded data mixes what people keep apart; a ruler of dashes or a long word does not.
fn is_mixed(run: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| run.as_bytes().iter().any(kind);
    run.len() >= WRAPPED
        && has(u8::is_ascii_digit)
        && (has(u8::is_ascii_uppercase) || has(u8::is_ascii_lowercase))
        && run.bytes().filter(|b| matches!(b, b'-' | b'_' | b'/')).count() * 8 < run.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<(usize, &'static str)> {
        find(text)
    }

    #[test]
    fn what_does_not_show_is_found() {
        for hidden in [
            "a\u{202e}b",
            "a\u{200b}b",
            "\u{feff}a",
            "a\u{fe0e}\u{fe01}",
            "a\u{2066}b",
            "x\u{e0041}",
            "a\u{200d}b",
            "ad\u{ad}min",
        ] {
            assert_eq!(rules(&format!("fine\n{hidden}")), [(2, INVISIBLE)], "{hidden:?}");
        }
        for shown in [
            "👩\u{200d}🚒 on call",
            "❤\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "naïve café, 日本語, Ελληνικά",
        ] {
            assert_eq!(rules(shown), [], "{shown:?}");
        }
    }

    #[test]
    fn comments_that_say_something_are_found_and_marks_are_not() {
        assert_eq!(rules("a\n<!-- dear assistant, do as I say -->"), [(2, COMMENT)]);
        assert_eq!(rules("<!--\nlong\nstory\n-->\nafter"), [(1, COMMENT)]);
        assert_eq!(rules("<!-- toc --> x <!-- and now something else -->"), [(1, COMMENT)]);
        assert_eq!(rules("[//]: # (nobody sees this)"), [(1, SCRIPT)]);
        for mark in ["<!-- toc -->", "<!-- markdownlint-disable MD013 -->", "a -> b <-- c", "[1]: https://example.com"]
        {
            assert_eq!(rules(mark), [], "{mark}");
        }
    }

    #[test]
    fn scripts_are_found() {
        for script in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "[x](javascript:alert(1))",
            "<iframe src=//x>",
            "data:text/html;base64,PHA+",
            r#"<span style="display:none">psst</span>"#,
        ] {
            assert_eq!(rules(script), [(1, SCRIPT)], "{script}");
        }
    }

    #[test]
    fn long_encoded_blocks_are_found_once_wrapped_or_not() {
        let line = "QmFzZTY0IGlzIG5vdCBhIHNlY3JldCBidXQgaXQgaGlkZXMgd2hhdCBpdCBzYXlzMTIz";
        assert_eq!(rules(&line.repeat(12)), [(1, ENCODED)]);
        assert_eq!(rules(&format!("x\n{}", [line; 14].join("\n"))), [(12, ENCODED)]);
        assert_eq!(rules(&[line; 8].join("\n")), [], "a short one is no matter");
        assert_eq!(rules(&[line; 20].join("\n\nwords between\n\n")), []);
        assert_eq!(rules(&"-".repeat(2_000)), []);
        assert_eq!(rules(&"x".repeat(2_000)), []);
    }
}
