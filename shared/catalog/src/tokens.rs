//! What a tool costs the model that reads it: o200k_base tokens of `{name, description, inputSchema}`.
//!
//! The tokenizer costs a second and tens of megabytes, so the figures of our own tools are kept in `tokens.tsv`, keyed
//! by the digest of the very text they count. A text that is not in the table (a tool from outside) is counted by the
//! tokenizer, which is loaded then and not before. A test holds the table to the tokenizer.

use domain::json::sha256_hex;
use std::collections::HashMap;
use std::sync::LazyLock;

static KNOWN: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let row = |line: &'static str| {
        let (digest, rest) = line.split_once('\t')?;
        let (count, _) = rest.split_once('\t')?;
        Some((digest, count.parse().ok()?))
    };
    include_str!("tokens.tsv").lines().filter_map(row).collect()
});

/// The key of a text in the table.
pub fn key(text: &str) -> String {
    let mut digest = sha256_hex(text.as_bytes());
    digest.truncate(16);
    digest
}

/// The kept figure, if the text is one of ours.
pub fn known(text: &str) -> Option<u32> {
    KNOWN.get(key(text).as_str()).copied()
}

/// Counts with the tokenizer itself.
pub fn measure(text: &str) -> u32 {
    u32::try_from(tiktoken_rs::o200k_base_singleton().count_ordinary(text)).unwrap_or(u32::MAX)
}

/// The tokens of a text: the kept figure, else measured.
pub fn count(text: &str) -> u32 {
    known(text).unwrap_or_else(|| measure(text))
}
