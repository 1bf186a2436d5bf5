//! What stands for a masked value, and the digest of what was judged.
//!
//! A value has a tag: an HMAC under the tenant's key, the same from call to call, which nobody is shown. Its mark is the tag
//! under a permutation with the random key of the call. So within a call marks are equal where values are, between calls
//! they have nothing to do with each other, and who holds the key of the call gets from the mark back to the tag.

use domain::KeyedDigest;
use domain::json::{canonical, hex};
use redact::looks::is_mark;
use serde_json::Value;

/// What is shown where nothing is to be told apart.
pub(super) const BLANK: &str = "masked";
/// The length of a mark: the word, a colon and twelve digits.
const LENGTH: usize = BLANK.len() + 13;

/// The tenant's key for tags.
#[derive(Clone)]
pub(super) struct TenantKey(pub(super) [u8; 32]);

impl TenantKey {
    /// The tag of some bytes: 48 bits.
    pub(super) fn of(&self, bytes: &[u8]) -> u64 {
        number(&KeyedDigest::new(&self.0).part(b"tag").part(bytes).finish()[..6])
    }
}

/// The key of one call.
#[derive(Clone)]
pub(super) struct CallKey([u8; 32]);

impl CallKey {
    /// A new one, if the system has random bytes to give.
    pub(super) fn random() -> Option<CallKey> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).ok().map(|()| CallKey(key))
    }

    /// The mark for a tag.
    pub(super) fn mark(&self, tag: u64) -> String {
        let (mut left, mut right) = halves(tag);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        format!("{BLANK}:{:012x}", (left << HALF) + right)
    }

    /// The tag behind a mark.
    fn tag(&self, mark: &str) -> Option<u64> {
        let hex = mark.strip_prefix(BLANK)?.strip_prefix(':').filter(|_| is_mark(mark))?;
        let (mut left, mut right) = halves(u64::from_str_radix(hex, 16).ok()?);
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        Some((left << HALF) + right)
    }

    fn round(&self, round: u8, half: u64) -> u64 {
        let digest = KeyedDigest::new(&self.0).part(b"mark").part(&[round]).part(&half.to_be_bytes());
        number(&digest.finish()[..3])
    }
}

/// Rounds of the permutation, and the bits of each half it works on.
const ROUNDS: u8 = 6;
const HALF: u32 = 24;

fn halves(number: u64) -> (u64, u64) {
    ((number >> HALF) & 0xff_ffff, number & 0xff_ffff)
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| (number << 8) + u64::from(*byte))
}

/// Makes the digest of what was judged: the same from call to call, also where values were masked, and under a key, so that
/// nobody can try values against it. It is compared and never shown.
#[derive(Clone)]
pub struct JudgedDigest {
    tenant: TenantKey,
    call: Option<CallKey>,
    place: Option<[u8; 32]>,
}

impl JudgedDigest {
    pub(super) fn new(tenant: TenantKey, call: Option<CallKey>, place: Option<[u8; 32]>) -> JudgedDigest {
        JudgedDigest { tenant, call, place }
    }

    /// One with a fixed key, for tests of others.
    #[cfg(test)]
    pub(crate) fn fixed() -> JudgedDigest {
        JudgedDigest { tenant: TenantKey([0; 32]), call: None, place: None }
    }

    /// The digest of a value, as hex.
    pub fn of(&self, judged: &Value) -> String {
        let mut plain = judged.clone();
        each_text(&mut plain, &|text: &str| replace_marks(text, |mark| self.tagged(mark)));
        let place = self.place.as_ref().map_or(&[][..], |place| &place[..]);
        hex(&KeyedDigest::new(&self.tenant.0).part(b"judged").part(place).part(canonical(&plain).as_bytes()).finish())
    }

    /// What stands for a mark in what is digested. A mark that is none of this call's is itself.
    fn tagged(&self, mark: &str) -> String {
        let tag = self.call.as_ref().and_then(|call| call.tag(mark));
        tag.map_or_else(|| mark.to_owned(), |tag| format!("tag:{tag:012x}"))
    }
}

impl std::fmt::Debug for JudgedDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JudgedDigest(..)")
    }
}

/// The text with every mark in it replaced.
pub(super) fn replace_marks(text: &str, with: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("masked:") {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let mark = tail.get(..LENGTH).filter(|mark| is_mark(mark));
        let taken = mark.map_or(BLANK.len(), str::len);
        match mark {
            Some(mark) => out.push_str(&with(mark)),
            None => out.push_str(BLANK),
        }
        rest = &tail[taken..];
    }
    out + rest
}

/// Changes every text in a value.
pub(super) fn each_text(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => {
            if text.contains(BLANK) {
                *text = change(text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_text(field, change)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mark_leads_back_to_its_tag_and_only_in_its_own_call() {
        let (tenant, one, other) = (TenantKey([1; 32]), CallKey([2; 32]), CallKey([3; 32]));
        for value in ["", "a", "hunter2", "a longer value with more in it"] {
            let tag = tenant.of(value.as_bytes());
            let mark = one.mark(tag);
            assert!(is_mark(&mark) && mark.len() == LENGTH, "{mark}");
            assert_eq!(one.tag(&mark), Some(tag));
            assert_ne!(other.mark(tag), mark);
            assert_ne!(other.tag(&mark), Some(tag));
        }
    }

    #[test]
    fn every_byte_counts_in_a_tag() {
        assert_eq!(number(&[1, 2, 3]), 0x01_02_03);
    }

    #[test]
    fn a_digest_is_the_same_in_every_call_and_another_for_another_value() {
        let digest = |call: u8, value: &[u8]| {
            let (tenant, call) = (TenantKey([1; 32]), CallKey([call; 32]));
            let mark = call.mark(tenant.of(value));
            let judged = json!({ "k": mark, "text": [format!("--password={mark} and masked: nothing")] });
            JudgedDigest::new(tenant, Some(call), None).of(&judged)
        };
        assert_eq!(digest(2, b"hunter2"), digest(3, b"hunter2"));
        assert_ne!(digest(2, b"hunter2"), digest(2, b"hunter3"));
        let at = |place: Option<[u8; 32]>| JudgedDigest::new(TenantKey([1; 32]), None, place).of(&json!("the same"));
        assert!(
            at(Some([1; 32])) == at(Some([1; 32]))
                && at(Some([1; 32])) != at(Some([2; 32]))
                && at(None) != at(Some([1; 32]))
        );
    }
}
