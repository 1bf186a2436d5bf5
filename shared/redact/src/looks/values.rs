//! Whether a value under a name is a secret, or only stands for one.

use super::names::NameClass;
use super::words::WORDS;

/// Where a name and its value stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingPlace {
    /// In free text: a log, a script, a document. Words may be only words.
    Text,
    /// As a setting: a variable, a parameter, a key of a ConfigMap. When in doubt it is secret.
    Setting,
}

/// Whether a value under a name of this class is secret.
pub(super) fn is_secret(class: NameClass, value: &str, place: SettingPlace) -> bool {
    let plain = value.trim().trim_end_matches([',', ';', ')', '}', ']']);
    if is_placeholder(plain) || is_path(plain) {
        return false;
    }
    let setting = place == SettingPlace::Setting;
    let spoken = !setting && is_spoken(plain);
    match class {
        NameClass::Plain => false,
        NameClass::Strong | NameClass::Pass => (setting || plain.len() >= 3) && !spoken,
        NameClass::Header => plain.len() >= 6 && !spoken,
        NameClass::SecretObject => setting || (plain.len() >= 6 && !spoken && !is_wordy(plain)),
        NameClass::Auth => !is_spoken(plain) && is_credential(plain, setting),
        NameClass::Key => is_random(plain) || (setting && plain.len() >= 8 && !is_wordy(plain)),
        NameClass::BareKey => plain.len() >= 20 && is_random(plain) && !is_hex(plain),
        NameClass::Pin => (4..=12).contains(&plain.len()) && plain.bytes().all(|b| b.is_ascii_digit()),
        NameClass::Webhook => is_webhook(plain),
        NameClass::Loose => is_random(plain) || (setting && plain.len() >= 6 && !is_wordy(plain)),
    }
}

/// Whether a text is a mark that stands for a masked value: `masked`, or with what tells marks of one answer apart. Nothing
/// less than the whole form counts.
pub fn is_mark(text: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    match text.strip_prefix("masked") {
        Some("") => true,
        Some(rest) => rest.strip_prefix(':').is_some_and(|hex| hex.len() == 12 && hex.bytes().all(digit)),
        None => false,
    }
}

/// Nothing, a reference, a template, a mask.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let word = matches!(lower.as_str(), "" | "true" | "false" | "yes" | "no" | "null" | "nil" | "none" | "undefined")
        || matches!(lower.as_str(), "~" | "\\" | "|" | ">" | "|-" | ">-" | "|+" | ">+");
    let opens = ["${", "$(", "{{", "<", "[redacted", "(none", "...", "…", "$$(", "\"$", "'$"];
    let covered = value.len() >= 3 && value.bytes().all(|b| matches!(b, b'*' | b'x' | b'X' | b'.' | b'-' | b'#'));
    word || covered
        || is_mark(value)
        || opens.iter().any(|open| lower.starts_with(open))
        || WORDS.lookups.iter().any(|lookup| lower.starts_with(*lookup))
        || is_variable(value)
        || value.starts_with('%') && value.ends_with('%')
}

/// `$DB_PASSWORD`, `$http_authorization`: a name behind the sign and nothing else. `$ecret1` is none.
fn is_variable(value: &str) -> bool {
    let Some(name) = value.strip_prefix('$') else { return false };
    let upper = name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
    let lower = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    let says = matches!(name, "password" | "passwd" | "pass" | "token" | "secret" | "key" | "auth");
    !name.is_empty() && (upper || says || (lower && name.contains('_')))
}

/// A file: `/run/secrets/db`, `./pw.txt`, `~/.ssh/id`.
fn is_path(value: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| value.starts_with(root));
    let windows = value.get(1..3) == Some(":\\");
    let named = |part: &str| part.len() <= 40 && !is_random(part);
    // One part behind the root could as well be a password that begins so.
    let deep = value.split('/').filter(|part| !part.is_empty()).count() >= 2;
    windows || matches!(value, "/" | "~") || (rooted && deep && value.split('/').skip(1).all(named))
}

/// Words that speak about a value, or code that gets one.
pub(super) fn is_spoken_of(value: &str) -> bool {
    is_spoken(value)
}

fn is_spoken(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let word = lower.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    WORDS.spoken.contains(word) || is_code(value)
}

/// A call or a path of names: `r.FormValue("x")`, `map[string]string`, `CancellationToken`.
fn is_code(value: &str) -> bool {
    let head_ends = value.find(['(', '[', '<']).unwrap_or(value.len());
    let (head, rest) = value.split_at(head_ends);
    let name =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_') && part.len() <= 32;
    let names = head.trim_start_matches('&').split(['.', ':']).filter(|part| !part.is_empty());
    let call = !rest.is_empty() && !head.is_empty() && names.clone().all(name);
    let path = rest.is_empty() && head.contains('.') && names.clone().count() >= 2 && names.clone().all(name);
    let humps = head.bytes().filter(u8::is_ascii_uppercase).count();
    let type_name = rest.is_empty() && head.ends_with("Token") && humps >= 2 && name(head);
    call || path || type_name
}

/// `user:password`, or something nobody would type as the name of a scheme.
fn is_credential(value: &str, setting: bool) -> bool {
    let pair = value.split_once(':').is_some_and(|(user, rest)| {
        (1..=64).contains(&user.len()) && rest.len() >= 3 && !rest.starts_with('/') && !is_wordy(rest)
    });
    let plain_address = value.contains("://");
    !plain_address && (pair || is_random(value) || is_encoded_pair(value) || (setting && value.len() >= 6))
}

fn is_encoded_pair(value: &str) -> bool {
    super::encoded::decode(value.as_bytes()).is_some_and(|text| {
        text.split_once(':').is_some_and(|(user, rest)| !user.is_empty() && rest.len() >= 3)
            && !text.contains(char::is_control)
    })
}

/// An address with a part that nobody could guess.
fn is_webhook(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let (_, path) = rest.split_once('/').unwrap_or_default();
    scheme.starts_with("http") && path.split(['/', '?', '&', '=']).any(|part| part.len() >= 16 && is_random(part))
}

/// Whether a run of letters and digits is mixed as no word is.
pub(super) fn is_random(value: &str) -> bool {
    let runs = value.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '=' | '~')));
    let mixed = |run: &str| {
        let kind = |b: u8| match b {
            b'0'..=b'9' => 0,
            b'a'..=b'z' => 1,
            b'A'..=b'Z' => 2,
            _ => 3,
        };
        let bytes = run.as_bytes();
        let turns = bytes.windows(2).filter(|pair| kind(pair[0]) != kind(pair[1])).count();
        run.len() >= 16 && turns * 5 >= run.len()
    };
    runs.clone().any(mixed) || (value.len() >= 20 && runs.filter(|run| run.len() >= 3 && has_both(run)).count() >= 3)
}

fn has_both(run: &str) -> bool {
    run.bytes().any(|b| b.is_ascii_digit()) && run.bytes().any(|b| b.is_ascii_alphabetic())
}

fn is_hex(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// A name that people gave: words and small numbers with marks between them.
pub(super) fn is_wordy(value: &str) -> bool {
    let word = |part: &str| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = part.len() - letters.len();
        letters.len() <= 24
            && digits <= 4
            && (letters.bytes().all(|b| b.is_ascii_lowercase())
                || letters.bytes().all(|b| b.is_ascii_uppercase())
                || letters.bytes().skip(1).filter(u8::is_ascii_uppercase).count() <= 2
                    && letters.bytes().all(|b| b.is_ascii_alphabetic()))
    };
    !value.is_empty() && value.split(['-', '_', '.', '/', ':', '@', ' ']).all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_value_is_told_from_one() {
        for stands in [
            "",
            "null",
            "$(X)",
            "${X}",
            "$DB_PASS",
            "{{ .x }}",
            "<pw>",
            "****",
            "xxxx",
            "var.pw",
            "masked:0123456789ab",
        ] {
            assert!(is_placeholder(stands), "{stands}");
        }
        for value in ["hunter2", "$ecret1", "ab$cd", "x", "masked:ab", "Var1"] {
            assert!(!is_placeholder(value), "{value}");
        }
    }

    #[test]
    fn random_text_is_told_from_names() {
        for random in
            ["q8Zt3vKp1XyR7mBn5Wc9", "4bf92f3577b34da6a3ce929d0e0e4736", "6f1c7e5a-3b1d-4a57-9d6e-2f5f5f9d8b11"]
        {
            assert!(is_random(random) && !is_wordy(random), "{random}");
        }
        for plain in ["kubernetes.io/hostname", "user-profile-v2", "order_id", "checkout-6d4cf56db6-x7k2p", "Theme"] {
            assert!(!is_random(plain), "{plain}");
        }
    }
}
