//! What a tool costs the model that reads it: o200k_base tokens of `{name, description, inputSchema}`.
//!
//! The tokenizer costs a second and tens of megabytes, so the figures of our own tools are kept in `tokens.tsv`, keyed
//! by the digest of the very text they count. A text that is not in the table (a tool from outside) is counted by the
//! tokenizer, which is loaded then and not before. A test holds the table to the tokenizer. A process that somebody waits
//! for at its start cannot wait for a tokenizer, and estimates instead ([`estimate_unknown`]).

use domain::json::sha256_hex;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static ESTIMATE: AtomicBool = AtomicBool::new(false);

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

/// From now on this process estimates texts that are not in the table; the estimate is about 15 % off at most.
pub fn estimate_unknown() {
    ESTIMATE.store(true, Ordering::Relaxed);
}

/// The tokens of a text: the kept figure, else measured or estimated.
pub fn count(text: &str) -> u32 {
    known(text).unwrap_or_else(|| match ESTIMATE.load(Ordering::Relaxed) {
        true => u32::try_from(domain::tokens::estimate(text)).unwrap_or(u32::MAX),
        false => measure(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// How far the estimate may be off, in percent of what the tokenizer counts.
    const OFF: u64 = 15;
    /// The same for encoded bytes, whose pieces look like words and cost more.
    const OFF_ENCODED: u64 = 35;

    #[test]
    fn the_estimate_is_close_to_the_tokenizer() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (file, most) in [
            ("shared/catalog/src/tokens/samples/pods.json", OFF),
            ("shared/catalog/src/tokens/samples/events.json", OFF),
            ("shared/catalog/src/tokens/samples/deployment.yaml", OFF),
            ("shared/catalog/src/tokens/samples/service.log", OFF),
            ("shared/catalog/src/tokens/samples/languages.txt", OFF),
            ("shared/catalog/src/tokens/samples/certificate.txt", OFF_ENCODED),
            ("shared/toolsets/kubernetes/src/k8s/snapshots/kubernetes__k8s__tests__wire.snap", OFF),
            ("shared/toolsets/kubernetes/src/argo/snapshots/kubernetes__argo__tests__wire.snap", OFF),
            ("shared/toolsets/jenkins/src/tools/snapshots/jenkins__tools__tests__wire.snap", OFF),
            ("shared/policy/src/decide/snapshots/policy__decide__tests__matrix.snap", OFF),
            ("docs/tenant.schema.json", OFF),
            ("docs/API.md", OFF),
            ("docs/toolsets/k8s.md", OFF),
            ("README.md", OFF),
            ("shared/catalog/src/catalog.rs", OFF),
            ("Cargo.lock", OFF),
        ] {
            let text = std::fs::read_to_string(root.join(file)).unwrap();
            let (real, estimate) = (u64::from(measure(&text)), domain::tokens::estimate(&text));
            assert!(real > 100, "{file} is too short to say anything");
            let off = real.abs_diff(estimate) * 100 / real;
            assert!(off <= most, "{file}: {real} tokens, estimated {estimate}, {off} % off");
        }
    }
}
