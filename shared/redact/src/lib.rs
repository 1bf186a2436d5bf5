//! Secrets in texts, of two kinds that are kept apart.
//!
//! *Looks like a secret*: [`looks`]. The one list of names and shapes for the whole service. It guesses, and it needs to know
//! no value. Writes to memory are refused by it; text that comes from a target (logs, messages of events, answers of a
//! server) is masked by it ([`redact`], [`Redactor`]) before anything the caller can steer looks at it, so a search
//! expression cannot be used to guess a secret.
//!
//! *Is known to be a secret*: [`Scrubber`]. Exact values, in every form in which a server may echo them. It does not guess.
//!
//! Not here: what is masked because of the kind of an object or the place of a value; the cluster's handles do that.

pub mod looks;
mod scrub;
mod secret;

use looks::LineLooker;
pub use scrub::Scrubber;
pub use secret::{KeptSecret, NotAtHand, SecretText};
use std::borrow::Cow;

/// What a line inside a private key is shown as.
const GONE: &str = "[redacted]";

/// The first rule that a line falls under, unless every place it fits is spared. A place is the secret with the name before
/// it.
pub fn first(line: &str, spared: impl Fn(&str, &str) -> bool) -> Option<&'static str> {
    let spans = LineLooker::new().alone(line);
    spans.into_iter().find(|span| !spared(span.rule, &line[span.hit.clone()])).map(|span| span.rule)
}

/// Masks the lines of one text in their order, because a private key goes over several.
#[derive(Debug)]
pub struct Redactor {
    looker: LineLooker,
}

impl Default for Redactor {
    fn default() -> Redactor {
        Redactor { looker: LineLooker::new() }
    }
}

impl Redactor {
    /// The line as it may be shown.
    pub fn line<'a>(&mut self, line: &'a str) -> Cow<'a, str> {
        let spans = self.looker.alone(line);
        if spans.is_empty() {
            return Cow::Borrowed(line);
        }
        Cow::Owned(replaced(line, &spans))
    }

    /// The same, with how many characters of it are masked.
    pub fn line_and_count(&mut self, line: &str) -> (String, usize) {
        let spans = self.looker.alone(line);
        let masked = spans.iter().map(|span| line[span.secret.clone()].chars().count()).sum();
        (replaced(line, &spans), masked)
    }
}

/// The text with what stands for each secret in its place.
fn replaced(text: &str, spans: &[looks::SecretSpan]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans {
        let secret = &text[span.secret.clone()];
        out.push_str(&text[from..span.secret.start]);
        // The first line of a key names it; the others need no name.
        match span.rule == "private key" && !secret.contains("-----BEGIN") {
            true => out.push_str(GONE),
            false => out.push_str(&format!("[redacted: {}]", span.rule)),
        }
        from = span.secret.end;
    }
    out.push_str(&text[from..]);
    out
}

/// Masks a whole text.
pub fn redact(text: &str) -> String {
    replaced(text, &looks::find(text))
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
            ("password = correcthorsebattery", "password = [redacted: password-like assignment]"),
            (
                "level=info token: abcdefgh12345 user=bob",
                "level=info token: [redacted: password-like assignment] user=bob",
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
    fn lines_are_masked_in_their_order_and_counted() {
        let mut redactor = Redactor::default();
        assert_eq!(redactor.line("nothing to see"), "nothing to see");
        assert_eq!(redactor.line("password = hünter22"), "password = [redacted: password-like assignment]");
        let counted = redactor.line_and_count("password = hünter22");
        assert_eq!(counted, ("password = [redacted: password-like assignment]".to_owned(), 8), "characters, not bytes");
        redactor.line("-----BEGIN PRIVATE KEY-----");
        assert_eq!(redactor.line("MIIEow"), "[redacted]", "the line before began a key");
    }

    #[test]
    fn the_first_rule_is_told_unless_its_place_is_spared() {
        let line = "password = hunter22 key AKIAIOSFODNN7EXAMPLE";
        assert_eq!(first("nothing to see", |_, _| false), None);
        assert_eq!(first(line, |_, _| false), Some("password-like assignment"));
        assert_eq!(first(line, |rule, _| rule == "password-like assignment"), Some("cloud access key"));
        assert_eq!(first(line, |_, place| place.starts_with("password")), Some("cloud access key"), "with its name");
        assert_eq!(first(line, |_, _| true), None);
    }

    #[test]
    fn a_message_is_one_short_line() {
        assert_eq!(message("a\nb\u{1b}[2J"), "a b [2J");
        assert_eq!(message(&"é".repeat(600)).chars().count(), 501);
    }
}
