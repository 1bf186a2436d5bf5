//! What is never shown. Everything a handle returns passes here first: by the kind of the returned object, however it
//! was asked for; by place; by pattern.
//!
//! A masked value reads `masked:<12 hex>`. Equal values have equal marks within one handle, that is within one call, so
//! they can be compared without being seen; every handle has a random key of its own, so marks of two calls say nothing
//! about each other. What must be the same from call to call, a fingerprint, is made of digests that nobody is shown.
//!
//! Whether what a caller brings equals what the cluster holds is told only to those who may write: see `compare`. What a
//! caller brings is shown to whoever decides as it is: see `brought`.
//!
//! Reading order: `Masker`, `marks` (what stands for a value), `walk` (objects), `compare`, `brought`, `noise` (what is
//! left out).
//! Names and looks of secrets are [`redact::looks`]; the values that are known are `known`; what a chart is given
//! in their place is `stand_ins`.

mod brought;
mod compare;
mod known;
mod marks;
mod noise;
mod stand_ins;
mod walk;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
pub use brought::{BroughtTexts, HiddenText, hide_all};
pub use compare::{ObjectPair, without_marks};
use domain::{KeyedDigest, Tenant};
pub use known::KnownSecrets;
pub use marks::JudgedDigest;
use marks::{CallKey, TenantKey};
use redact::looks;
use serde_json::Value;
pub use stand_ins::StandIns;
use std::ops::Range;

/// How much of an object is given. Masked it is either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskDetail {
    /// Without bookkeeping: managed fields, last-applied configuration, default tolerations, token volumes, our marker.
    Clean,
    /// All of it.
    Full,
}

/// Masks what one call is shown.
#[derive(Clone)]
pub(in crate::client) struct Masker {
    /// For what is the same from call to call, and shown to nobody.
    tenant: TenantKey,
    /// For the marks of this call. `None`: there are no random bytes, so marks tell nothing apart.
    call: Option<CallKey>,
    /// Kinds besides Secret, in lower case.
    kinds: Vec<String>,
}

impl Masker {
    /// A masker with a key of this tenant's own.
    pub(in crate::client) fn new(key: &[u8; 32], tenant: &Tenant, kinds: &[String]) -> Masker {
        let own = KeyedDigest::new(key).part(b"cluster mask").part(tenant.as_str().as_bytes()).finish();
        let kinds = kinds.iter().map(|kind| kind.to_ascii_lowercase()).collect();
        Masker { tenant: TenantKey(own), call: CallKey::random(), kinds }
    }

    /// The same for another call, whose marks say nothing about those of this one.
    pub(in crate::client) fn for_call(&self) -> Masker {
        Masker { call: CallKey::random(), ..self.clone() }
    }

    /// Whether marks of two values differ.
    fn tells_apart(&self) -> bool {
        self.call.is_some()
    }

    /// The digest of what is judged at a place; the same from call to call.
    pub(in crate::client) fn digest(&self, place: Option<[u8; 32]>) -> JudgedDigest {
        JudgedDigest::new(self.tenant.clone(), self.call.clone(), place)
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
        let mut out = String::with_capacity(text.len());
        let mut from = 0;
        // A private key is one value, however many lines it has.
        for span in joined(text, looks::find(text)) {
            out.push_str(&text[from..span.start]);
            out.push_str(&self.mark(text[span.clone()].as_bytes()));
            from = span.end;
        }
        out.push_str(&text[from..]);
        out
    }

    /// The mark for some bytes.
    fn mark(&self, bytes: &[u8]) -> String {
        match &self.call {
            Some(call) => call.mark(self.tenant.of(bytes)),
            None => marks::BLANK.to_owned(),
        }
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

/// The secrets of a text, with only blanks between two of them taken as one.
fn joined(text: &str, spans: Vec<looks::SecretSpan>) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if text[last.end..span.secret.start].trim().is_empty() && span.rule == "private key" => {
                last.end = span.secret.end;
            }
            Some(_) | None => out.push(span.secret),
        }
    }
    out
}

#[cfg(test)]
mod tests;
