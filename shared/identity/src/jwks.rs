//! A published key set, read leniently as a whole and strictly key by key.
//!
//! A key we cannot use is passed over: issuers publish keys for others beside ours. Symmetric keys are never taken
//! from the network, and a key that comes with its private half is nobody's secret any more.

use crate::config::Algorithm;
use crate::keys::{KeySet, VerifyingKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

/// No issuer publishes more; each one costs a comparison per request.
const MOST_KEYS: usize = 64;

/// Why a document is no key set.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JwksError {
    // Without the parser's own words, which quote the document.
    #[error("not a JSON key set")]
    NotAKeySet,
    #[error("more than {MOST_KEYS} keys")]
    TooMany,
}

#[derive(Deserialize)]
struct JwksDocument {
    keys: Vec<Value>,
}

/// The fields that matter, as RFC 7517 and 7518 name them.
#[derive(Deserialize)]
struct JwkEntry {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
    d: Option<Value>,
}

/// Reads a key set, keeping the keys that fit the issuer's algorithms.
pub(crate) fn parse(document: &[u8], allowed: &[Algorithm]) -> Result<KeySet, JwksError> {
    let document: JwksDocument = serde_json::from_slice(document).map_err(|_| JwksError::NotAKeySet)?;
    if document.keys.len() > MOST_KEYS {
        return Err(JwksError::TooMany);
    }
    let usable = |entry| serde_json::from_value::<JwkEntry>(entry).ok().and_then(|entry| entry.key(allowed));
    Ok(KeySet::new(document.keys.into_iter().filter_map(usable).collect()))
}

impl JwkEntry {
    fn key(self, allowed: &[Algorithm]) -> Option<VerifyingKey> {
        let algorithm = self.algorithm()?;
        let named = self.alg.as_deref().is_none_or(|alg| alg == algorithm.as_str());
        let verifies = self.usage.as_deref().is_none_or(|usage| usage == "sig")
            && self.key_ops.as_ref().is_none_or(|ops| ops.iter().any(|op| op == "verify"));
        if !named || !verifies || !allowed.contains(&algorithm) || self.d.is_some() {
            return None;
        }
        match algorithm {
            Algorithm::Rs256 => VerifyingKey::rs256(self.kid, &bytes(self.n?)?, &bytes(self.e?)?),
            Algorithm::Es256 => {
                let (x, y) = (bytes(self.x?)?, bytes(self.y?)?);
                // Each of its own full length, so that no byte can wander from one to the other.
                let whole = x.len() == 32 && y.len() == 32;
                whole.then(|| [&[4], x.as_slice(), &y].concat()).and_then(|point| VerifyingKey::es256(self.kid, &point))
            }
            Algorithm::EdDsa => VerifyingKey::ed25519(self.kid, &bytes(self.x?)?),
            Algorithm::Hs256 => None,
        }
    }

    /// What the key is, by its own type.
    fn algorithm(&self) -> Option<Algorithm> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", None) => Some(Algorithm::Rs256),
            ("EC", Some("P-256")) => Some(Algorithm::Es256),
            ("OKP", Some("Ed25519")) => Some(Algorithm::EdDsa),
            _ => None,
        }
    }
}

fn bytes(text: String) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests;
