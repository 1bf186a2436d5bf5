//! Secrets in free text: the one list of patterns, and the masking of what is shown.
//!
//! Writes to memory are refused by these patterns; text that comes from a target (logs, messages of
//! events, answers of a server) is masked by them before anything the caller can steer looks at it. So a search
//! expression cannot be used to guess a secret. Every pattern runs in linear time, and every line is looked at alone.
//!
//! What is known beforehand is taken out by its value: [`Scrubber`].
//!
//! Not here: what is masked because of the kind of an object or the place of a value; the cluster's handles do that.

mod scrub;
mod secret;

use regex::{Regex, RegexSet};
pub use scrub::Scrubber;
pub use secret::{KeptSecret, NotAtHand, SecretText};
use std::borrow::Cow;
use std::sync::LazyLock;

/// One way a secret looks.
pub struct SecretRule {
    /// What it is called where something is refused or masked by it.
    pub name: &'static str,
    /// How it looks; within one line.
    pub pattern: &'static str,
    /// The last character of what may still be read, such as the `=` behind a key.
    keep: Option<&'static [char]>,
}

/// Every way.
pub const RULES: [SecretRule; 7] = [
    SecretRule { name: "private key", pattern: r"-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----", keep: None },
    SecretRule { name: "cloud access key", pattern: r"\b(AKIA|ASIA)[0-9A-Z]{16}\b", keep: None },
    SecretRule {
        name: "vendor token",
        pattern: r"\b(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{20,}|[sr]k_(live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{20,}|AIza[0-9A-Za-z_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hv[sbr]\.[A-Za-z0-9_-]{20,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|do[opr]_v1_[0-9a-f]{64}|dapi[0-9a-f]{32}|shp(at|ca|pa|ss)_[0-9a-f]{32}|ATATT3[A-Za-z0-9_=-]{20,}|AGE-SECRET-KEY-1[0-9A-Z]{50,}|hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]{16,})",
        keep: None,
    },
    SecretRule {
        name: "JSON web token",
        pattern: r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        keep: None,
    },
    SecretRule {
        name: "authorization header",
        pattern: r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~-]{20,}",
        keep: Some(&[' ', '\t']),
    },
    SecretRule {
        name: "password in an address",
        pattern: r"(?i)\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]{3,}@",
        keep: Some(&['/']),
    },
    SecretRule {
        name: "password-like assignment",
        // The name may have parts before it (`DB_PASSWORD`, `clientSecret`), but none behind: `secretName` names an object.
        pattern: r#"(?i)\b[a-z0-9_.-]*(password|passwd|passphrase|pwd|secret|api[_-]?key|access[_-]?key|account[_-]?key|private[_-]?key|secret[_-]?key|token)\b["']?\s*[:=]\s*["']?[^\s"'<>{}$][^\s"'<>{}]{7,}"#,
        keep: Some(&[':', '=']),
    },
];

/// What a line that cannot be judged, or lies inside a private key, is shown as.
const GONE: &str = "[redacted]";
/// How many lines after the beginning of a private key belong to it at most; a forgotten end must not eat a log.
const KEY_LINES: u8 = 120;

struct SecretPatterns {
    any: RegexSet,
    each: Vec<Regex>,
}

static PATTERNS: LazyLock<Option<SecretPatterns>> = LazyLock::new(|| {
    let any = set()?;
    let each = RULES.iter().map(|rule| Regex::new(rule.pattern).ok()).collect::<Option<Vec<_>>>()?;
    Some(SecretPatterns { any, each })
});

/// All patterns at once, for whoever only wants to know whether one fits. The index is that of [`RULES`].
pub fn set() -> Option<RegexSet> {
    RegexSet::new(RULES.iter().map(|rule| rule.pattern)).ok()
}

/// The first rule that a line falls under, unless every place it fits is spared. `None` outside: the patterns cannot be
/// had, and nothing can be judged.
pub fn first(line: &str, spared: impl Fn(&SecretRule, &str) -> bool) -> Option<Option<&'static str>> {
    let patterns = PATTERNS.as_ref()?;
    let fits = |n: usize| {
        let (rule, pattern) = (RULES.get(n)?, patterns.each.get(n)?);
        pattern.find_iter(line).any(|hit| !spared(rule, hit.as_str())).then_some(rule.name)
    };
    Some(patterns.any.matches(line).into_iter().find_map(fits))
}

/// Masks the lines of one text in their order, because a private key goes over several.
#[derive(Debug, Default)]
pub struct Redactor {
    key_lines: u8,
}

impl Redactor {
    /// The line as it may be shown.
    pub fn line<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        if self.key_lines > 0 {
            let ends = line.contains("-----END ") && line.contains("PRIVATE KEY");
            self.key_lines = if ends { 0 } else { self.key_lines - 1 };
            return Cow::Borrowed(GONE);
        }
        // Without its patterns nothing can be told apart, and what cannot be judged is not shown.
        let Some(patterns) = PATTERNS.as_ref() else { return Cow::Borrowed(GONE) };
        let found = patterns.any.matches(line);
        if !found.matched_any() {
            return Cow::Borrowed(line);
        }
        let opens = line.find("-----BEGIN ").is_some_and(|at| line[at..].contains("PRIVATE KEY"));
        let closes = line.contains("-----END ");
        if opens {
            // A key on one line (with `\n` written out) ends where it began.
            self.key_lines = if closes { 0 } else { KEY_LINES };
            let head = line.split("-----BEGIN ").next().unwrap_or_default();
            return Cow::Owned(format!("{}[redacted: private key]", Redactor::default().line(head)));
        }
        let mut text = line.to_owned();
        for n in found {
            let (Some(rule), Some(pattern)) = (RULES.get(n), patterns.each.get(n)) else { continue };
            text = pattern.replace_all(&text, |hit: &regex::Captures<'_>| mask(rule, &hit[0])).into_owned();
        }
        Cow::Owned(text)
    }
}

/// The match with everything secret gone; the name before an assignment stays, since it says what was there.
fn mask(rule: &SecretRule, hit: &str) -> String {
    let kept = match rule.keep {
        Some(ends) if rule.name == "password in an address" => hit.rfind(ends),
        Some(ends) => hit.find(ends),
        None => None,
    };
    let head = kept.map_or("", |at| &hit[..=at]);
    let tail = if hit.ends_with('@') { "@" } else { "" };
    format!("{head}[redacted: {}]{tail}", rule.name)
}

/// Masks a whole text.
pub fn redact(text: &str) -> String {
    let mut redactor = Redactor::default();
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (body, end) = line.strip_suffix('\n').map_or((line, ""), |body| (body, "\n"));
        out.push_str(&redactor.line(body));
        out.push_str(end);
    }
    out
}

/// A message of a target as it may be passed on: masked, one line, and cut.
pub fn message(text: &str) -> String {
    const MOST: usize = 500;
    let plain: String = redact(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match plain.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &plain[..at]),
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_secret_goes_and_what_names_it_stays() {
        for (text, shown) in [
            ("password = correcthorsebattery", "password =[redacted: password-like assignment]"),
            (
                "level=info token: abcdefgh12345 user=bob",
                "level=info token:[redacted: password-like assignment] user=bob",
            ),
            ("GET https://robot:hunter22@db/x", "GET https://[redacted: password in an address]@db/x"),
            (
                "Authorization: Bearer abcdefghijklmnopqrstuvwxyz",
                "Authorization: Bearer [redacted: authorization header]",
            ),
            ("key AKIAIOSFODNN7EXAMPLE.", "key [redacted: cloud access key]."),
            ("nothing to see, sha256:9f86d081884c7d65", "nothing to see, sha256:9f86d081884c7d65"),
        ] {
            assert_eq!(redact(text), shown);
        }
    }

    #[test]
    fn a_private_key_goes_whole_whether_it_ends_or_not() {
        let key = "before\n-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nabcdef\n-----END RSA PRIVATE KEY-----\nafter";
        assert_eq!(redact(key), "before\n[redacted: private key]\n[redacted]\n[redacted]\n[redacted]\nafter");
        let inline = r"key=-----BEGIN PRIVATE KEY-----\nMIIEow\n-----END PRIVATE KEY-----";
        assert_eq!(redact(&format!("{inline}\nafter")), "key=[redacted: private key]\nafter");
        let endless = format!("-----BEGIN PRIVATE KEY-----\n{}", "x\n".repeat(130));
        assert_eq!(redact(&endless).matches("x\n").count(), 10, "a forgotten end does not eat the log");
    }

    #[test]
    fn a_long_line_of_almost_secrets_is_judged_in_linear_time() {
        let almost = "eyJaaaaaaaa.eyJ ".repeat(50_000);
        assert_eq!(redact(&almost).len(), almost.len());
    }

    #[test]
    fn a_message_is_one_short_line() {
        assert_eq!(message("a\nb\u{1b}[2J"), "a b [2J");
        assert_eq!(message(&"é".repeat(600)).chars().count(), 501);
    }
}
