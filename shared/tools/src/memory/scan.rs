//! The safety scan of every write: what must not be remembered is refused, naming line and rule, never the text.

use domain::{Code, Failure};
use redact::{self, RULES};
use regex::RegexSet;
use std::sync::LazyLock;

/// The largest document.
pub(super) const MOST_BYTES: usize = 100_000;

static SECRETS: LazyLock<Option<RegexSet>> = LazyLock::new(redact::set);

/// Looks through a text that is to be remembered.
pub(super) fn check(text: &str) -> Result<(), Failure> {
    if text.len() > MOST_BYTES {
        return Err(Failure::new(
            Code::TooLarge,
            format!("the document has {} bytes and {MOST_BYTES} are allowed", text.len()),
        )
        .next("summarise it, or split it over several documents"));
    }
    let Some(secrets) = SECRETS.as_ref() else {
        // Without its rules the scan proves nothing, and what is not proven is not kept.
        return Err(Failure::new(Code::Internal, "the safety scan is not available"));
    };
    for (n, line) in text.lines().enumerate() {
        let found = secrets.matches(line).iter().next().and_then(|n| RULES.get(n)).map(|rule| rule.name);
        let control = line.chars().any(|c| c.is_control() && c != '\t').then_some("control characters");
        match (found, control) {
            (Some(rule), _) => {
                return Err(Failure::new(Code::SecretFound, format!("line {} seems to hold a secret ({rule})", n + 1))
                    .next("remove the value; say where it is kept instead"));
            }
            (None, Some(rule)) => {
                return Err(Failure::new(Code::InvalidArgument, format!("line {} holds {rule}", n + 1))
                    .next("remove them and call again"));
            }
            (None, None) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_refused_by_line_and_rule_and_never_echoed() {
        for (text, rule) in [
            ("-----BEGIN RSA PRIVATE KEY-----", "private key"),
            ("key AKIAIOSFODNN7EXAMPLE", "cloud access key"),
            ("ghp_abcdefghijklmnopqrstuvwxyz0123456789", "vendor token"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk", "JSON web token"),
            ("Authorization: Bearer abcdefghijklmnopqrstuvwxyz", "authorization header"),
            ("redis://robot:hunter22@cache:6379", "password in an address"),
            ("password = correcthorsebattery", "password-like assignment"),
            ("\"api_key\": \"0123456789abcdef\"", "password-like assignment"),
        ] {
            let failure = check(&format!("fine\n{text}")).unwrap_err();
            assert_eq!(failure.message, format!("line 2 seems to hold a secret ({rule})"));
            assert_eq!(failure.code, Code::SecretFound);
        }
    }

    #[test]
    fn ordinary_notes_pass() {
        for text in [
            "The token is in the secret `payments/stripe`; rotate it by the runbook.",
            "password: see vault",
            "image sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "commit 4bf92f3577b34da6a3ce929d0e0e4736a1b2c3d4 fixed it\n\ttabs are fine",
            "api_key = ${API_KEY}",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn control_characters_and_books_are_refused() {
        assert_eq!(check("a\u{1b}[2Jb").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(check("a\0").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(check(&"x".repeat(MOST_BYTES + 1)).unwrap_err().code, Code::TooLarge);
    }
}
