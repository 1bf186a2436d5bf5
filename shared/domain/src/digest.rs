//! Keyed digests (HMAC with SHA-256): whoever reads one cannot guess what it stands for, and nobody without the key can
//! make one up.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A keyed digest in the making.
#[derive(Clone)]
pub struct KeyedDigest(Hmac<Sha256>);

impl KeyedDigest {
    /// A digest of nothing yet, under this key.
    pub fn new(key: &[u8]) -> KeyedDigest {
        // HMAC takes keys of every length, so the error cannot happen; an empty key would only be a weak one.
        KeyedDigest(Hmac::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default())))
    }

    /// Adds bytes as they are.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> KeyedDigest {
        self.0.update(bytes);
        self
    }

    /// Adds a part with its length, so that bytes cannot wander from one part to the next.
    #[must_use]
    pub fn part(self, part: &[u8]) -> KeyedDigest {
        self.bytes(&(part.len() as u64).to_be_bytes()).bytes(part)
    }

    /// The whole digest.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into_bytes().into()
    }

    /// The first half of the digest, which is enough where nobody has years to guess.
    pub fn half(self) -> [u8; 16] {
        let whole = self.finish();
        let mut half = [0; 16];
        half.copy_from_slice(&whole[..16]);
        half
    }

    /// Whether the digest begins with these bytes; compared in constant time.
    pub fn begins_with(self, bytes: &[u8]) -> bool {
        self.0.verify_truncated_left(bytes).is_ok()
    }
}

/// What was digested does not print.
impl std::fmt::Debug for KeyedDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedDigest(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::hex;

    #[test]
    fn it_is_plain_hmac_sha256() {
        // RFC 4231, test cases 1, 2 and 6.
        let cases: [(&[u8], &[u8], &str); 3] = [
            (&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ];
        for (key, bytes, digest) in cases {
            assert_eq!(hex(&KeyedDigest::new(key).bytes(bytes).finish()), digest);
        }
    }

    #[test]
    fn bytes_do_not_wander_between_parts() {
        let of = |parts: &[&[u8]]| parts.iter().fold(KeyedDigest::new(b"key"), |digest, part| digest.part(part));
        assert_ne!(of(&[b"ab", b"c"]).finish(), of(&[b"a", b"bc"]).finish());
        let half = of(&[b"ab"]).half();
        assert_eq!(half, of(&[b"ab"]).finish()[..16]);
        assert!(of(&[b"ab"]).begins_with(&half) && !of(&[b"ac"]).begins_with(&half));
        assert!(!of(&[b"ab"]).begins_with(&[]), "nothing proves nothing");
    }
}
