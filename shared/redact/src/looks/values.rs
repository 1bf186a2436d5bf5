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
    if is_placeholder(plain) || is_reference(value.trim()) || is_path(plain) {
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

/// How many bytes a reference or a template takes that a text begins with. Without its end it is none.
pub(super) fn reference(text: &str) -> Option<usize> {
    let forms = [("${", "}"), ("$(", ")"), ("$$(", ")"), ("{{", "}}"), ("<", ">")];
    forms.iter().find_map(|(open, close)| {
        let end = text.strip_prefix(open)?.find(close)?;
        Some(open.len() + end + close.len())
    })
}

fn is_reference(value: &str) -> bool {
    reference(value.trim_start_matches(['"', '\''])).is_some()
}

/// Nothing, a reference, a template, a mask.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let word = matches!(lower.as_str(), "" | "true" | "false" | "yes" | "no" | "null" | "nil" | "none" | "undefined")
        || matches!(lower.as_str(), "~" | "\\" | "|" | ">" | "|-" | ">-" | "|+" | ">+");
    let opens = ["[redacted", "(none", "...", "…", "<<"];
    let covered = value.len() >= 3 && value.bytes().all(|b| matches!(b, b'*' | b'x' | b'X' | b'.' | b'-' | b'#'));
    word || covered
        || is_mark(value)
        || opens.iter().any(|open| lower.starts_with(open))
        || WORDS.lookups.iter().any(|lookup| lower.starts_with(*lookup))
        || is_variable(value.trim_start_matches(['"', '\'']))
        || is_reference(value)
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
pub(super) fn is_spoken(value: &str) -> bool {
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
    let is_address = value.contains("://");
    !is_address && (pair || is_random(value) || is_encoded_pair(value) || (setting && value.len() >= 6))
}

fn is_encoded_pair(value: &str) -> bool {
    let text = super::encoded::decode(value.as_bytes()).unwrap_or_default();
    text.split_once(':').is_some_and(|(_, rest)| rest.len() >= 3)
}

/// An address with a part that nobody could guess.
fn is_webhook(value: &str) -> bool {
    let Some((scheme, rest)) = value.split_once("://") else { return false };
    let (_, path) = rest.split_once('/').unwrap_or_default();
    scheme.starts_with("http") && path.split(['/', '?', '&', '=']).any(is_random)
}

/// Whether a run of letters and digits is mixed as no word is.
pub(super) fn is_random(value: &str) -> bool {
    let runs = value.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '=' | '~')));
    let mixed = |run: &str| {
        let kind = |b: u8| (b.is_ascii_digit(), b.is_ascii_lowercase(), b.is_ascii_uppercase());
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
            "$db_pass_1",
            "$password",
            "\"$DB_PASS",
            "%DB_PASS%",
            "{{ .x }}",
            "$$(X)",
            "<pw>",
            "****",
            "xxxx",
            "var.pw",
            "masked:0123456789ab",
        ] {
            assert!(is_placeholder(stands), "{stands}");
        }
        for value in ["hunter2", "$ecret1", "$ecret_Pass", "$ecret_p!ss", "ab$cd", "x", "masked:ab", "Var1"] {
            assert!(!is_placeholder(value), "{value}");
        }
        for value in ["%hunter2", "hunter2%", "$(hunter2", "${hunter2", "{{hunter2}", "<hunter2", "\"$hunter2!"] {
            assert!(!is_placeholder(value), "{value}: without its end it stands for nothing");
        }
    }

    #[test]
    fn a_reference_takes_what_stands_before_its_end() {
        for (text, takes) in [
            ("$(cat pw) x", Some(9)),
            ("{{ .x }} }}", Some(8)),
            ("${X}tail", Some(4)),
            ("$$(X)", Some(5)),
            ("<a b>", Some(5)),
            ("$(cat pw", None),
            ("x $(cat pw)", None),
        ] {
            assert_eq!(reference(text), takes, "{text}");
        }
    }

    #[test]
    fn a_value_is_judged_by_the_class_of_its_name() {
        use NameClass::*;
        use SettingPlace::{Setting, Text};
        let random = "q8Zt3vKp1XyR7mBn5Wc9";
        let uuid = "6f1c7e5a-3b1d-4a57-9d6e-2f5f5f9d8b11";
        for (class, place, secret, ordinary) in [
            (Plain, Setting, vec![], vec![random, "hunter2"]),
            (Strong, Text, vec!["abc", random], vec!["ab", "required", "r.FormValue(x)", "$(X)", "/run/db"]),
            (Strong, Setting, vec!["x", "required"], vec!["", "$(X)", "/run/db"]),
            (Header, Text, vec!["abc123"], vec!["abc12", "missing"]),
            (SecretObject, Text, vec!["q8Zt3v"], vec!["q8Zt3", "web-tls", "required"]),
            (SecretObject, Setting, vec!["x", "web-tls"], vec!["", "$(X)"]),
            (Auth, Text, vec!["admin:ivVhPX8mnA", random], vec!["x1", "basic", "abcdef"]),
            (Auth, Setting, vec!["abcdef"], vec!["abcde", "kerberos"]),
            (Key, Text, vec![random], vec!["a1b2c3d4"]),
            (Key, Setting, vec![random, "a1b2c3d4"], vec!["a1b2c3d", "user-profile"]),
            (
                BareKey,
                Setting,
                vec![random],
                vec![&random[1..], uuid, "4bf92f3577b34da6a3ce929d0e0e4736", "a-long-name-of-words"],
            ),
            (Pin, Text, vec!["4812", "481248124812"], vec!["481", "4812481248124", "main"]),
            (
                Webhook,
                Text,
                vec!["https://x/q8Zt3vKp1XyR7mBn5Wc9"],
                vec!["https://x/ready", "ftp://x/q8Zt3vKp1XyR7mBn5Wc9"],
            ),
            (Loose, Text, vec![random], vec!["s4lty9"]),
            (Loose, Setting, vec![random, "s4lty9"], vec!["s4lty", "theme-dark"]),
        ] {
            for (value, expected) in secret.iter().map(|v| (v, true)).chain(ordinary.iter().map(|v| (v, false))) {
                assert_eq!(is_secret(class, value, place), expected, "{class:?} {place:?} {value}");
            }
        }
    }

    #[test]
    fn a_credential_is_a_pair_or_what_nobody_types() {
        for pair in ["ab:x1y", "admin:ivVhPX8mnA", "Y2k6YWJj", "OmFiYw=="] {
            assert!(is_credential(pair, false), "{pair}");
        }
        for other in ["ab:x1", ":x1y", "system:admin", "file:/x1y", "https://ab:x1y", "Y2k6YWI=", "abcdef"] {
            assert!(!is_credential(other, false), "{other}");
        }
    }

    #[test]
    fn a_path_is_told_from_a_password_that_begins_like_one() {
        for path in ["/", "~", "/run/secrets/db", "./a/pw.txt", "~/.ssh/id", "../a/b", r"C:\keys\db.txt"] {
            assert!(is_path(path), "{path}");
        }
        let long = format!("/run/{}", "a".repeat(41));
        for other in ["/hunter2", "run/secrets/db", "/run/q8Zt3vKp1XyR7mBn5Wc9", &long, "hunter2"] {
            assert!(!is_path(other), "{other}");
        }
    }

    #[test]
    fn code_that_gets_a_value_is_told_from_one() {
        for code in ["r.FormValue(x)", "map[string]string", "CancellationToken", "user.pass_word", "std::env::var(x)"] {
            assert!(is_code(code), "{code}");
        }
        for other in ["hunter", "hunter.", ".", "hunt3r.two", "ab:cd", "(x)", "accessToken", "hunt3r(x)"] {
            assert!(!is_code(other), "{other}");
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
        for mixed in ["1+1+1+1+1+1+1+1+", "a+a+a+a+a+a+a+a+", "A+A+A+A+A+A+A+A+"] {
            assert!(is_random(mixed) && !is_random(&mixed[1..]), "{mixed}: from 16 letters on");
        }
        for words in ["user-profile-v2", "PROFILE_V2", "userProfile1234", "shop/cart:v1@x y"] {
            assert!(is_wordy(words), "{words}");
        }
        for other in ["", "abcdef12345", "aBCDEf", "a!b", &"a".repeat(25)] {
            assert!(!is_wordy(other), "{other}");
        }
    }
}
