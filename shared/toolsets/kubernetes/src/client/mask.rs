//! What is never shown. Everything a handle returns passes here first: by the kind of the returned object, however it
//! was asked for; by place; by pattern.
//!
//! A masked value reads `masked:<bytes>:<12 hex>`, the hex from an HMAC with the tenant's own key: equal values have
//! equal marks within a tenant, so they can be compared without being seen, and mean nothing to another tenant.
//!
//! Reading order: `Masker`, `walk` (objects), `words` (names and texts), `noise` (what is left out).

mod known;
mod noise;
mod walk;
mod words;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::json::hex;
use domain::{KeyedDigest, Tenant};
pub use known::KnownSecrets;
use serde_json::Value;

/// How much of an object is given. Masked it is either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskDetail {
    /// Without bookkeeping: managed fields, last-applied configuration, default tolerations, token volumes, our marker.
    Clean,
    /// All of it.
    Full,
}

/// Masks what one tenant is shown.
#[derive(Clone)]
pub(in crate::client) struct Masker {
    key: [u8; 32],
    /// Kinds besides Secret, in lower case.
    kinds: Vec<String>,
}

impl Masker {
    /// A masker with a key of this tenant's own.
    pub(in crate::client) fn new(key: &[u8; 32], tenant: &Tenant, kinds: &[String]) -> Masker {
        let own = KeyedDigest::new(key).part(b"cluster mask").part(tenant.as_str().as_bytes()).finish();
        Masker { key: own, kinds: kinds.iter().map(|kind| kind.to_ascii_lowercase()).collect() }
    }

    /// Masks an object, or whatever JSON it is, in place.
    pub(in crate::client) fn object(&self, value: &mut Value, detail: MaskDetail) {
        walk::value(self, value, detail);
        match detail {
            MaskDetail::Clean => noise::drop_from(value),
            MaskDetail::Full => {}
        }
    }

    /// Masks everything in it: the contents of a Secret without its frame.
    pub(in crate::client) fn contents(&self, value: &mut Value) {
        walk::contents(self, value);
    }

    /// Masks free text: logs, output, messages.
    pub(in crate::client) fn text(&self, text: &str) -> String {
        words::text(self, text)
    }

    /// The mark for some bytes.
    fn mark(&self, bytes: &[u8]) -> String {
        let digest = KeyedDigest::new(&self.key).part(bytes).finish();
        format!("masked:{}:{}", bytes.len(), hex(&digest[..6]))
    }

    /// The mark for a value under `data`: for what it encodes, so that `data` and `stringData` compare.
    fn mark_encoded(&self, text: &str) -> String {
        match STANDARD.decode(text.trim()) {
            Ok(bytes) => self.mark(&bytes),
            Err(_) => self.mark(text.as_bytes()),
        }
    }

    /// Whether objects of this kind are secrets.
    pub(in crate::client) fn is_secret_kind(&self, kind: &str) -> bool {
        let kind = kind.to_ascii_lowercase();
        kind == "secret" || self.kinds.contains(&kind)
    }
}

#[cfg(test)]
mod tests;
