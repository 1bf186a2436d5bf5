//! What a tool costs the model that reads it: o200k_base tokens of `{name, description, inputSchema}`.
//!
//! The tokenizer costs a second and tens of megabytes for as long as the process lives. So the figures of our own tools
//! are kept in `tokens.tsv`, keyed by the digest of the very text they count; a text that is not in the table (a tool from
//! outside, a runbook) is estimated. Tests hold the table and the estimate to the tokenizer. Only a command that prints
//! figures loads it.

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

/// Counts with the tokenizer itself, which stays loaded: for commands and tests, never for a service.
pub fn measure(text: &str) -> u32 {
    u32::try_from(tiktoken_rs::o200k_base_singleton().count_ordinary(text)).unwrap_or(u32::MAX)
}

/// The tokens of a text: the kept figure, else estimated.
pub fn count(text: &str) -> u32 {
    known(text).unwrap_or_else(|| u32::try_from(domain::tokens::estimate(text)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// How far the estimate may be off, in percent of what the tokenizer counts.
    const OFF: u64 = 15;

    #[test]
    fn the_estimate_is_close_to_the_tokenizer() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (file, most) in [
            ("shared/catalog/src/tokens/samples/pods.json", OFF),
            ("shared/catalog/src/tokens/samples/events.json", OFF),
            ("shared/catalog/src/tokens/samples/deployment.yaml", OFF),
            ("shared/catalog/src/tokens/samples/service.log", OFF),
            ("shared/catalog/src/tokens/samples/languages.txt", OFF),
            ("shared/catalog/src/tokens/samples/certificate.txt", OFF),
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

    /// Encoded bytes of several kinds, none of which the estimate was fitted to.
    #[test]
    fn the_estimate_of_encoded_bytes_is_close_to_the_tokenizer() {
        let random: Vec<u8> =
            (0..200).flat_map(|n: u32| sha256_hex(&n.to_le_bytes()).into_bytes()).collect::<Vec<u8>>();
        let random: Vec<u8> =
            random.chunks(2).map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap()).collect();
        let token = format!(
            "eyJhbGciOiJSUzI1NiJ9.{}.{}",
            base64(&random[..180]).trim_end_matches('='),
            base64(&random[..256]).trim_end_matches('=')
        );
        let lines: String = base64(&random)
            .as_bytes()
            .chunks(76)
            .map(|line| format!("{}\n", std::str::from_utf8(line).unwrap()))
            .collect();
        for (what, text) in [
            ("one long line", base64(&random)),
            ("lines", lines),
            ("a token", token),
            (
                "a Secret",
                format!(
                    "apiVersion: v1\nkind: Secret\ndata:\n  tls.key: {}\n  tls.crt: {}\n",
                    base64(&random[..900]),
                    base64(&random[900..2500])
                ),
            ),
            ("a text", base64(include_bytes!("tokens.rs"))),
            ("JSON", base64(include_bytes!("tokens/samples/pods.json"))),
        ] {
            let (real, estimate) = (u64::from(measure(&text)), domain::tokens::estimate(&text));
            let off = real.abs_diff(estimate) * 100 / real;
            assert!(off <= OFF, "{what}: {real} tokens, estimated {estimate}, {off} % off");
        }
    }

    fn base64(bytes: &[u8]) -> String {
        const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let group = |three: &[u8]| {
            let bits = three.iter().chain([0, 0].iter()).take(3).fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let letter = |n: usize| match n <= three.len() {
                true => char::from(LETTERS[(bits >> (18 - 6 * n) & 63) as usize]),
                false => '=',
            };
            (0..4).map(letter).collect::<String>()
        };
        bytes.chunks(3).map(group).collect()
    }
}
