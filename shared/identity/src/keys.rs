//! The keys of one issuer: each with the one algorithm it may verify, whatever a token's header says.

use crate::config::Algorithm;
use crate::refused::TokenRefused;
use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey};
use jsonwebtoken::DecodingKey;
use std::fmt;
use std::sync::Arc;

/// An RSA modulus shorter than this is too weak, a longer one only costs time.
const RSA_MODULUS_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
/// An honest exponent is 3 or 65537.
const MOST_EXPONENT_BYTES: usize = 8;

/// Names a key by everything it is: algorithm, key id and material. A replaced key has another one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 32]);

/// One key. Its algorithm was settled when the key was read.
pub(crate) struct VerifyingKey {
    kid: Option<String>,
    algorithm: Algorithm,
    material: DecodingKey,
    fingerprint: Fingerprint,
}

impl VerifyingKey {
    /// A shared secret.
    pub(crate) fn hs256(secret: &[u8]) -> VerifyingKey {
        VerifyingKey::new(None, Algorithm::Hs256, DecodingKey::from_secret(secret), &[secret])
    }

    /// An RSA key by its numbers, big-endian.
    pub(crate) fn rs256(kid: Option<String>, modulus: &[u8], exponent: &[u8]) -> Option<VerifyingKey> {
        let (n, e) = (without_zeros(modulus), without_zeros(exponent));
        if !RSA_MODULUS_BYTES.contains(&n.len()) || e.is_empty() || e.len() > MOST_EXPONENT_BYTES {
            return None;
        }
        Some(VerifyingKey::new(kid, Algorithm::Rs256, DecodingKey::from_rsa_raw_components(n, e), &[n, e]))
    }

    /// A point on P-256, uncompressed.
    pub(crate) fn es256(kid: Option<String>, point: &[u8]) -> Option<VerifyingKey> {
        ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok()?;
        let uncompressed = point.len() == 65 && point.first() == Some(&4);
        uncompressed.then(|| VerifyingKey::new(kid, Algorithm::Es256, DecodingKey::from_ec_der(point), &[point]))
    }

    /// An Ed25519 public key.
    pub(crate) fn ed25519(kid: Option<String>, point: &[u8]) -> Option<VerifyingKey> {
        ParsedPublicKey::new(&ED25519, point).ok()?;
        (point.len() == 32).then(|| VerifyingKey::new(kid, Algorithm::EdDsa, DecodingKey::from_ed_der(point), &[point]))
    }

    fn new(kid: Option<String>, algorithm: Algorithm, material: DecodingKey, parts: &[&[u8]]) -> VerifyingKey {
        let mut context = digest::Context::new(&SHA256);
        let name = kid.as_deref().unwrap_or_default().as_bytes();
        for part in [algorithm.as_str().as_bytes(), name].iter().chain(parts) {
            context.update(&part.len().to_be_bytes());
            context.update(part);
        }
        let mut print = [0; 32];
        print.copy_from_slice(context.finish().as_ref());
        VerifyingKey { kid, algorithm, material, fingerprint: Fingerprint(print) }
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether this key made the signature. The algorithm is the key's own.
    pub(crate) fn verify(&self, message: &str, signature: &str) -> Result<(), TokenRefused> {
        let algorithm = match self.algorithm {
            Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
            Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
            Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
            Algorithm::Hs256 => jsonwebtoken::Algorithm::HS256,
        };
        match jsonwebtoken::crypto::verify(signature, message.as_bytes(), &self.material, algorithm) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(TokenRefused::BadSignature),
        }
    }
}

/// Says which key, never what it is made of.
impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("kid", &self.kid).field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// The keys of an issuer at one time.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<Arc<VerifyingKey>>);

impl KeySet {
    pub(crate) fn new(keys: Vec<VerifyingKey>) -> KeySet {
        KeySet(keys.into_iter().map(Arc::new).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The key for a token. Without a key id there must be no choice; with one, the algorithm must fit that very key.
    pub(crate) fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<&Arc<VerifyingKey>, TokenRefused> {
        let Some(kid) = kid else {
            return match self.0.as_slice() {
                [only] if only.algorithm == algorithm => Ok(only),
                [_] => Err(TokenRefused::WrongAlgorithm),
                [] | [_, _, ..] => Err(TokenRefused::UnknownKey),
            };
        };
        let mut named = self.0.iter().filter(|key| key.kid.as_deref() == Some(kid)).peekable();
        if named.peek().is_none() {
            return Err(TokenRefused::UnknownKey);
        }
        named.find(|key| key.algorithm == algorithm).ok_or(TokenRefused::WrongAlgorithm)
    }

    /// Whether the set still has exactly this key.
    pub(crate) fn holds(&self, fingerprint: Fingerprint) -> bool {
        self.0.iter().any(|key| key.fingerprint == fingerprint)
    }
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rsa(kid: &str, seed: u8) -> VerifyingKey {
        VerifyingKey::rs256(Some(kid.into()), &[seed; 256], &[1, 0, 1]).unwrap()
    }

    #[test]
    fn a_key_is_found_by_its_name_and_only_for_its_algorithm() {
        let keys = KeySet::new(vec![rsa("a", 1), rsa("b", 2)]);

        assert_eq!(keys.find(Some("b"), Algorithm::Rs256).unwrap().kid.as_deref(), Some("b"));
        assert_eq!(keys.find(Some("b"), Algorithm::Es256).err(), Some(TokenRefused::WrongAlgorithm));
        assert_eq!(keys.find(Some("c"), Algorithm::Rs256).err(), Some(TokenRefused::UnknownKey));
        assert_eq!(keys.find(Some(""), Algorithm::Rs256).err(), Some(TokenRefused::UnknownKey));
    }

    #[test]
    fn a_token_without_a_key_id_leaves_no_choice() {
        let one = KeySet::new(vec![rsa("a", 1)]);
        let two = KeySet::new(vec![rsa("a", 1), rsa("b", 2)]);

        assert!(one.find(None, Algorithm::Rs256).is_ok());
        assert_eq!(one.find(None, Algorithm::EdDsa).err(), Some(TokenRefused::WrongAlgorithm));
        assert_eq!(two.find(None, Algorithm::Rs256).err(), Some(TokenRefused::UnknownKey));
        assert_eq!(KeySet::default().find(None, Algorithm::Rs256).err(), Some(TokenRefused::UnknownKey));
    }

    #[test]
    fn a_replaced_key_of_the_same_name_is_another_key() {
        let old = rsa("a", 1).fingerprint();
        assert!(KeySet::new(vec![rsa("a", 1)]).holds(old));
        assert!(!KeySet::new(vec![rsa("a", 2)]).holds(old));
        assert!(!KeySet::new(vec![rsa("b", 1)]).holds(old));
    }

    #[test]
    fn weak_and_broken_keys_are_none() {
        assert!(VerifyingKey::rs256(None, &[1; 255], &[1, 0, 1]).is_none());
        assert!(VerifyingKey::rs256(None, &[[0; 128], [1; 128]].concat(), &[1, 0, 1]).is_none());
        assert!(VerifyingKey::rs256(None, &[1; 1025], &[1, 0, 1]).is_none());
        assert!(VerifyingKey::rs256(None, &[1; 256], &[0]).is_none());
        assert!(VerifyingKey::rs256(None, &[1; 256], &[1; 9]).is_none());
        assert!(VerifyingKey::es256(None, &[4; 65]).is_none(), "a point off the curve");
        assert!(VerifyingKey::es256(None, &[4; 33]).is_none());
        assert!(VerifyingKey::ed25519(None, &[1; 31]).is_none());
    }

    #[test]
    fn a_key_does_not_print_what_it_is_made_of() {
        let shown = format!("{:?}", VerifyingKey::hs256(b"a secret of thirty-two bytes...."));
        assert_eq!(shown, "Key { kid: None, algorithm: Hs256, .. }");
    }
}
