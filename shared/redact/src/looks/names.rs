//! What a name says about its value: the one list of words for variables, fields, flags, headers and parameters.
//!
//! A name is read as words (`dbPassword`, `DB_PASSWORD` and `db-password` are the same two), so that `monkey`, `author`
//! and `tokenizer` are no secrets. Its last word decides, unless that only says where the secret is kept.

use super::words::WORDS;

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameClass {
    /// Nothing about secrets.
    Plain,
    /// A password, a token, a key for something: its value is secret.
    Strong,
    /// `secret` alone: a value, or the name of the object that holds it.
    SecretObject,
    /// `DB_PASS`, `dsn`, `creds`: secret unless the value says otherwise.
    Pass,
    /// `BASIC_AUTH`: a credential, or the name of a scheme.
    Auth,
    /// `LICENSE_KEY`, `PRIMARY_KEY`: depends on the word before and on the value.
    Key,
    /// `key` alone: nearly always the key of a map.
    BareKey,
    /// A number that people type.
    Pin,
    /// An address that whoever has it may call.
    Webhook,
    /// A header whose whole line is the credential.
    Header,
    /// A secret word with something behind it that nobody has listed, or a word that is seldom a secret.
    Loose,
}

/// The most letters of a name that are read.
const LONGEST: usize = 128;

/// What a name says, by its words.
pub(crate) fn class(name: &str) -> NameClass {
    let words = words(name);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    while words.last().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
        words.pop();
    }
    let Some((last, before)) = words.split_last() else { return NameClass::Plain };
    let previous = before.last().copied().unwrap_or_default();
    match *last {
        "url" | "uri" | "address" => {
            return if before.iter().any(|word| matches!(*word, "webhook" | "hook")) {
                NameClass::Webhook
            } else {
                NameClass::Plain
            };
        }
        "id" | "ids" => {
            return match previous {
                "secret" => NameClass::Strong,
                "session" => NameClass::Loose,
                "key" if before.contains(&"access") => NameClass::Loose,
                _ => NameClass::Plain,
            };
        }
        last if WORDS.pointers.contains(last) => return NameClass::Plain,
        _ => {}
    }
    by_last_word(last, previous, before).unwrap_or_else(|| by_word_within(&words))
}

/// What the last word says with the one before it, if it says anything.
fn by_last_word(last: &str, previous: &str, before: &[&str]) -> Option<NameClass> {
    let singular = last.strip_suffix('s').unwrap_or(last);
    if is_strong(last) || is_strong(singular) {
        return Some(NameClass::Strong);
    }
    Some(match last {
        "authorization" | "cookie" | "cookies" => NameClass::Header,
        "secret" | "secrets" if WORDS.secret_values.contains(previous) => NameClass::Strong,
        "secret" | "secrets" => NameClass::SecretObject,
        "key" | "keys" if WORDS.secret_keys.contains(previous) || is_strong(previous) => NameClass::Strong,
        "key" | "keys" if before.is_empty() => NameClass::BareKey,
        "key" | "keys" if WORDS.plain_keys.contains(previous) => NameClass::Plain,
        "key" | "keys" => NameClass::Key,
        "cred" | "creds" | "dsn" | "otp" | "totp" | "psk" | "pw" | "bindpw" | "sessid" => NameClass::Pass,
        "string" if previous == "connection" => NameClass::Strong,
        "pat" if !before.is_empty() => NameClass::Pass,
        "auth" | "auths" | "basicauth" => NameClass::Auth,
        "pin" | "pins" => NameClass::Pin,
        "webhook" | "hook" => NameClass::Webhook,
        "bearer" | "jwt" | "license" | "mnemonic" | "salt" | "sas" | "seed" | "sig" | "signature" => NameClass::Loose,
        word if is_pass(word) => NameClass::Pass,
        word if word.ends_with("secret") => NameClass::Strong,
        _ => return None,
    })
}

/// A secret word with others behind it: secret if those are listed, and doubtful if not.
fn by_word_within(words: &[&str]) -> NameClass {
    let is_secret = |word: &&str| is_strong(word) || *word == "secret" || is_pass(word);
    match words.iter().rposition(is_secret) {
        Some(at) if words[at + 1..].iter().all(|word| WORDS.tails.contains(word)) => NameClass::Strong,
        Some(_) => NameClass::Loose,
        None if words.ends_with(&["key", "data"]) || words.ends_with(&["private", "key", "pem"]) => NameClass::Strong,
        None if words.ends_with(&["key", "base64"]) => NameClass::Key,
        None => NameClass::Plain,
    }
}

/// Whether this is the variable in which a shell keeps where it is.
pub(super) fn is_directory(name: &str, value: &str) -> bool {
    matches!(name, "PWD" | "OLDPWD") && value.starts_with('/')
}

/// Whether a name says that its value is secret, whatever the value.
pub fn is_secret_name(name: &str) -> bool {
    match class(name) {
        NameClass::Strong | NameClass::SecretObject | NameClass::Pass | NameClass::Header => true,
        NameClass::Plain
        | NameClass::Auth
        | NameClass::Key
        | NameClass::BareKey
        | NameClass::Pin
        | NameClass::Webhook
        | NameClass::Loose => false,
    }
}

/// Whether a name only says where or what a secret is: `secretName`, `tokenTtl`.
pub fn is_pointer_name(name: &str) -> bool {
    words(name).last().is_some_and(|last| WORDS.pointers.contains(last.as_str()))
}

fn is_strong(word: &str) -> bool {
    WORDS.strong.iter().any(|strong| word.ends_with(*strong)) || word == "credentials"
}

/// `pass`, `dbpass`, `keystorepass`, `dbpwd`; not `bypass`.
fn is_pass(word: &str) -> bool {
    const OTHERS: [&str; 10] = [
        "bypass",
        "compass",
        "encompass",
        "multipass",
        "oldpwd",
        "onepass",
        "overpass",
        "surpass",
        "trespass",
        "underpass",
    ];
    (word.ends_with("pass") || word.ends_with("pwd")) && !OTHERS.contains(&word)
}

/// The words of a name, in lower case and without the digits behind them.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().take(LONGEST).collect();
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for (n, &letter) in letters.iter().enumerate() {
        let before = n.checked_sub(1).and_then(|n| letters.get(n));
        let behind = letters.get(n + 1);
        let humps = letter.is_ascii_uppercase()
            && (before.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
                || before.is_some_and(char::is_ascii_uppercase) && behind.is_some_and(char::is_ascii_lowercase));
        if !letter.is_ascii_alphanumeric() || humps {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_ascii_alphanumeric() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.push(word);
    let bare = |word: String| match word.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "" => word,
        "b" | "base" => word,
        stem => stem.to_owned(),
    };
    words.into_iter().filter(|word| !word.is_empty()).map(bare).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_words() {
        for name in ["dbPassword", "DB_PASSWORD", "db-password", "db.password", "DBPassword", "dbPassword2"] {
            assert_eq!(words(name), ["db", "password"], "{name}");
        }
        assert_eq!(words("APIKey"), ["api", "key"]);
        assert_eq!(words("key_b64"), ["key", "b64"]);
    }

    #[test]
    fn the_last_word_decides() {
        for (name, says) in [
            ("DB_PASSWORD", NameClass::Strong),
            ("PGPASSWORD", NameClass::Strong),
            ("DB_PASS", NameClass::Pass),
            ("keystorePass", NameClass::Pass),
            ("dbpass", NameClass::Pass),
            ("DB_PASS_OLD", NameClass::Strong),
            ("pass_rate", NameClass::Loose),
            ("MYSQL_PWD", NameClass::Pass),
            ("OLDPWD", NameClass::Plain),
            ("GITHUB_PAT", NameClass::Pass),
            ("pat", NameClass::Plain),
            ("appsecret", NameClass::Strong),
            ("sshkey", NameClass::Strong),
            ("STRIPE_KEY", NameClass::Key),
            ("STRIPE_KEY_BASE64", NameClass::Key),
            ("STRIPE_KEY_2", NameClass::Key),
            ("connection_string", NameClass::Strong),
            ("format_string", NameClass::Plain),
            ("session_id", NameClass::Loose),
            ("SLACK_WEBHOOK", NameClass::Webhook),
            ("MASTER_KEY", NameClass::Strong),
            ("JWT_KEY", NameClass::Strong),
            ("REDIS_AUTH", NameClass::Auth),
            ("card_pin", NameClass::Pin),
            ("DATABASE_DSN", NameClass::Pass),
            ("SLACK_WEBHOOK_URL", NameClass::Webhook),
            ("client-key-data", NameClass::Strong),
            ("AWS_SECRET_ACCESS_KEY", NameClass::Strong),
            ("SECRET_KEY_BASE", NameClass::Strong),
            ("secret_id", NameClass::Strong),
            ("clientSecret", NameClass::Strong),
            ("secret", NameClass::SecretObject),
            ("Cookie", NameClass::Header),
            ("PASSWORD_FILE", NameClass::Plain),
            ("secretName", NameClass::Plain),
            ("TOKEN_TTL", NameClass::Plain),
            ("credentialsId", NameClass::Plain),
            ("key_id", NameClass::Plain),
            ("primary_key", NameClass::Plain),
            ("topologyKey", NameClass::Plain),
            ("key", NameClass::BareKey),
            ("monkey", NameClass::Plain),
            ("keyboard", NameClass::Plain),
            ("author", NameClass::Plain),
            ("bypass", NameClass::Plain),
            ("compass", NameClass::Plain),
            ("tokenizer", NameClass::Plain),
            ("passthrough", NameClass::Plain),
            ("", NameClass::Plain),
            ("42", NameClass::Plain),
        ] {
            assert_eq!(class(name), says, "{name}");
        }
    }

    #[test]
    fn a_name_says_that_its_value_is_secret_or_only_where_it_is() {
        for name in ["DB_PASSWORD", "DB_PASS", "secret", "Cookie"] {
            assert!(is_secret_name(name) && !is_pointer_name(name), "{name}");
        }
        for name in ["secretName", "tokenTtl", "PASSWORD_FILE"] {
            assert!(!is_secret_name(name) && is_pointer_name(name), "{name}");
        }
        for name in ["", "replicas", "REDIS_AUTH", "STRIPE_KEY", "key", "card_pin", "SLACK_WEBHOOK", "salt"] {
            assert!(!is_secret_name(name) && !is_pointer_name(name), "{name}");
        }
    }
}
