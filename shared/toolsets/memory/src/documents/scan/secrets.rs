//! Secrets: the patterns everybody shares, and long texts that look random.
//!
//! What only names a secret, or stands in its place, is spared: a runbook that says where the password is kept is what
//! memory is for.

use std::collections::HashMap;

/// From this length on a word is asked whether it looks random.
const LONG: usize = 40;
/// Bits per character from which it does. Hex has at most four, so commit ids and digests of images never do.
const RANDOM_BITS: f64 = 4.8;
const RANDOM: &str = "long random text";

/// Every line with a secret, and the rule that says so.
pub(super) fn find(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut certificate = false;
    for (n, line) in text.lines().enumerate() {
        // A certificate is public; its lines are random all the same.
        certificate =
            (certificate || line.contains("-----BEGIN CERTIFICATE")) && !line.contains("-----END CERTIFICATE");
        let by_pattern = redact::first(line, spared);
        let random = || (!certificate && looks_random(line)).then_some(RANDOM);
        if let Some(rule) = by_pattern.or_else(random) {
            found.push((n + 1, rule));
        }
    }
    found
}

/// Whether a match only names a secret or stands in its place.
fn spared(rule: &str, hit: &str) -> bool {
    match rule {
        "password-like assignment" => {
            let (key, value) = hit.split_once([':', '=']).unwrap_or_default();
            stands_for(value.trim_start_matches([' ', '\t', '"', '\'', '=']), key.trim_end_matches(['"', '\'', ' ']))
        }
        "authorization header" => hit.split_whitespace().nth(1).is_some_and(are_words),
        "password in an address" => {
            let password = hit.trim_end_matches('@').rsplit(':').next().unwrap_or_default();
            password.starts_with(OPENERS)
        }
        _ => false,
    }
}

/// What stands in place of a value begins with one of these.
const OPENERS: [char; 11] = ['$', '<', '{', '[', '(', '*', '%', '`', '…', '&', '|'];

/// A placeholder, a reference, a mask, or the name of the object that holds the secret.
fn stands_for(value: &str, key: &str) -> bool {
    const LOOKUPS: [&str; 12] = [
        "masked:",
        "vault:",
        "vault/",
        "secretref",
        "os.environ",
        "process.env",
        "env.",
        "var.",
        "secrets.",
        "data.",
        "ref:",
        "xxxx",
    ];
    let lower = value.to_ascii_lowercase();
    let short = value.trim_end_matches(['`', ')', ']', ',', ';', '.', ':', '*']).len() < 8;
    let names_object = key.to_ascii_lowercase().ends_with("secret") && are_words(value);
    short || value.starts_with(OPENERS) || LOOKUPS.iter().any(|word| lower.starts_with(word)) || names_object
}

/// Lower-case words with dashes, dots or slashes between them: a name that people gave.
fn are_words(text: &str) -> bool {
    let text = text.trim_end_matches(['.', ',', ';', ':', '`', ')']);
    let word = |word: &str| (1..=20).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase());
    text.contains(['-', '/', '.']) && text.split(['-', '/', '.']).all(word)
}

fn looks_random(line: &str) -> bool {
    let mut public_key = false;
    line.split_whitespace().any(|word| {
        // The word behind the name of a kind of key is a public one.
        let spare = std::mem::replace(&mut public_key, is_public_key(word));
        !spare && pieces(word).any(|piece| piece.len() >= LONG && bits(piece) >= RANDOM_BITS)
    })
}

fn is_public_key(word: &str) -> bool {
    word.starts_with("ssh-") || word.starts_with("ecdsa-sha2-") || word.starts_with("sk-ssh-")
}

/// The parts of a word that could be one secret. Addresses and paths come apart at their slashes; base64 has few.
fn pieces(word: &str) -> impl Iterator<Item = &str> {
    let digest = ["sha256-", "sha384-", "sha512-", "SHA256:"].iter().any(|kind| word.contains(kind));
    let path = word.contains("://") || word.matches('/').count() * 12 > word.len();
    let border = move |c: char| match c {
        '+' | '=' | '_' | '-' => false,
        '/' => path,
        _ => !c.is_ascii_alphanumeric(),
    };
    word.split(border).filter(move |_| !digest)
}

/// Shannon's entropy of the characters, in bits each.
#[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
fn bits(text: &str) -> f64 {
    let mut counts: HashMap<u8, usize> = HashMap::new();
    text.bytes().for_each(|b| *counts.entry(b).or_default() += 1);
    let all = text.len() as f64;
    counts.values().map(|count| *count as f64 / all).map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_text_is_told_from_names_and_digests() {
        for random in [
            "q8Zt3vKp1XyR7mBn5Wc9LdF2gHj4SaE6uTi0OeYb",
            "key: q8Zt3vKp1XyR7mBn/5Wc9LdF2gHj4SaE6uTi0OeYb+Q=",
            "https://x.example/hook/q8Zt3vKp1XyR7mBn5Wc9LdF2gHj4SaE6uTi0OeYb",
        ] {
            assert!(looks_random(random), "{random}");
        }
        for plain in [
            "4bf92f3577b34da6a3ce929d0e0e4736a1b2c3d4",
            "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "sha512-q8Zt3vKp1XyR7mBn5Wc9LdF2gHj4SaE6uTi0OeYbq8Zt3vKp1XyR7mBn5Wc9LdF2gHj4SaE6uTi0OeYb",
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGq8Zt3vKp1XyR7mBn5Wc9LdF2gHj4SaE6uTi0OeYb op@host",
            "https://grafana.example.com/d/aB3dEf6Gh/checkout-latency-by-region?orgId=1&from=now-6h&to=now&var-cluster=prod-EU-1",
            "services/gateway/tests/it/K8sRolloutWithCanaryAndAnalysis_test/README2024.md",
            "the-quick-brown-fox-jumps-over-the-lazy-dog-and-runs-away-again-2024",
            "----------------------------------------------------------------------",
        ] {
            assert!(!looks_random(plain), "{plain}");
        }
    }
}
