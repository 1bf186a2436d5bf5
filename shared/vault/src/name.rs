//! What a secret may be called.

/// Whether a text can name a secret: 1 to 253 of letters, digits, `-`, `_` and `.`, the first no dot. So it is no path, and
/// none of the hidden files of a mounted Kubernetes secret.
pub fn is_secret_name(text: &str) -> bool {
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    (1..=253).contains(&text.len())
        && text.bytes().all(|b| letter(b) || b == b'.')
        && text.bytes().next().is_some_and(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_plain_word() {
        for good in ["a", "A-b_c.d", "_x", "-x", "0", "tls.crt", &"x".repeat(253)] {
            assert!(is_secret_name(good), "{good}");
        }
        for bad in ["", ".", "..", "..data", ".x", "a/b", "../a", "/a", "a b", "é", "a\n", "a\0", "~", &"x".repeat(254)]
        {
            assert!(!is_secret_name(bad), "{bad:?}");
        }
    }
}
