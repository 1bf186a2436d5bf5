//! Names that say "secret", and the looks of secrets in free text.

use super::Masker;
use regex::{Captures, Regex};
use std::sync::LazyLock;

/// Parts of names that say that a value is secret.
const PARTS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "signingkey",
    "encryptionkey",
    "connectionstring",
    "dockerconfig",
];
/// Endings of names that only say where a secret is.
const POINTERS: [&str; 8] = ["name", "ref", "file", "path", "namespace", "enabled", "ttl", "expiration"];
/// Fields that hold a secret wherever they stand.
const FIELDS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "bearertoken",
    "authtoken",
    "accesstoken",
    "refreshtoken",
    "clientsecret",
    "apikey",
    "secretkey",
    "secretaccesskey",
    "privatekey",
    "clientkeydata",
    "dockerconfigjson",
];

/// Whether a name (of a variable, a header, a key, a flag) says that its value is secret.
pub(super) fn looks_secret(name: &str) -> bool {
    let plain = plain(name);
    PARTS.iter().any(|part| plain.contains(part)) && !points(&plain)
        || matches!(plain.as_str(), "pwd" | "pgpass" | "dsn")
}

/// Whether a name only says where a secret is.
pub(super) fn is_pointer(name: &str) -> bool {
    points(&plain(name))
}

fn points(plain: &str) -> bool {
    POINTERS.iter().any(|end| plain.ends_with(end))
}

/// Whether a field of any object holds a secret.
pub(super) fn is_secret_field(name: &str) -> bool {
    FIELDS.contains(&plain(name).as_str())
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether a text is one of our marks, which stands for itself. Nothing less than the whole form counts.
pub(super) fn is_mark(text: &str) -> bool {
    let Some((bytes, hex)) = text.strip_prefix("masked:").and_then(|rest| rest.split_once(':')) else { return false };
    let digits = |text: &str| !text.is_empty() && text.len() <= 10 && text.bytes().all(|b| b.is_ascii_digit());
    digits(bytes) && hex.len() == 12 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// Whether a text is, or holds, a Secret as YAML.
pub(super) fn holds_secret_manifest(text: &str) -> bool {
    static KIND: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"(?m)^\s*(-\s+)?["']?kind["']?\s*:\s*["']?Secret(List)?["']?\s*,?\s*$"#).ok());
    text.contains("Secret") && KIND.as_ref().is_none_or(|kind| kind.is_match(text))
}

/// The looks of a secret. The group `s` is masked, the rest stays.
const LOOKS: [&str; 8] = [
    r"(?P<s>-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z))",
    r"\b(?P<s>(?:AKIA|ASIA)[0-9A-Z]{16})\b",
    r"\b(?P<s>gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{20,}|AIza[0-9A-Za-z_-]{35})",
    r"\b(?P<s>eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})",
    r"(?i)\b(?:bearer|basic)\s+(?P<s>[A-Za-z0-9+/=._~-]{12,})",
    r"(?i)\b[a-z][a-z0-9+.-]*://(?P<s>[^\s/:@'\x22]*:[^\s/@'\x22]+)@",
    r"(?i)(?:^|\s)--?(?P<flag>[a-z0-9_-]*(?:password|passwd|passphrase|secret|token|api-?key|access-?key)[a-z0-9_-]*)[= ](?P<s>[^\s'\x22]+)",
    r#"(?i)\b[a-z0-9_.-]*(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|token)["']?\s*[:=]\s*["']?(?P<s>[^\s"'<>{}$,;&]{6,})"#,
];

static PATTERNS: LazyLock<Option<Vec<Regex>>> =
    LazyLock::new(|| LOOKS.iter().map(|look| Regex::new(look).ok()).collect());

/// Masks what looks like a secret in a text.
pub(super) fn text(masker: &Masker, text: &str) -> String {
    // Without the patterns nothing can be told apart, so nothing is shown. A test builds them.
    let Some(patterns) = &*PATTERNS else { return masker.mark(text.as_bytes()) };
    let mut masked = text.to_owned();
    for pattern in patterns {
        if !pattern.is_match(&masked) {
            continue;
        }
        masked = pattern.replace_all(&masked, |found: &Captures<'_>| replaced(masker, found)).into_owned();
    }
    masked
}

fn replaced(masker: &Masker, found: &Captures<'_>) -> String {
    let (Some(whole), Some(secret)) = (found.get(0), found.name("s")) else { return String::new() };
    // `--tls-secret-name=db` only says where a secret is.
    let points = found.name("flag").is_some_and(|flag| !looks_secret(flag.as_str()));
    if points || is_mark(secret.as_str()) {
        return whole.as_str().to_owned();
    }
    let (before, after) = (secret.start() - whole.start(), secret.end() - whole.start());
    let (head, tail) = (&whole.as_str()[..before], &whole.as_str()[after..]);
    format!("{head}{}{tail}", masker.mark(secret.as_str().as_bytes()))
}
