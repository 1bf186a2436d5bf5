//! What makes a secret unreadable for whoever reads the store.
//!
//! AES-256-GCM under a key of each tenant, derived from the service's own by HKDF, with a random nonce. Tenant, name and
//! the shape of the blob are authenticated with it, so that a blob that is moved elsewhere does not open.
//!
//! A blob begins with its shape and the id of its key; by the latter it is known which key opens it. The id is derived
//! like a key of its own and says nothing about the others.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use domain::Tenant;
use redact::SecretText;
use std::fmt;

/// The shortest key of the service that is taken.
const SHORTEST_KEY: usize = 32;
/// How blobs look: this byte, the key's id, the nonce, what was sealed and its tag.
const SHAPE: u8 = 1;
pub(crate) const ID_BYTES: usize = 8;
const NONCE_AT: usize = 1 + ID_BYTES;
const BODY_AT: usize = NONCE_AT + NONCE_LEN;
/// Keeps what is derived here apart from what others derive from the same key.
const PURPOSE: &[u8] = b"quartermaster tenant secrets";

/// A key that cannot seal anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// It is too short.
    #[error("a key for secrets has {0} bytes and needs at least {SHORTEST_KEY}")]
    TooShort(usize),
    /// The library refused it.
    #[error("a key for secrets cannot be used")]
    Refused,
}

/// Why nothing was sealed or opened. Why a blob does not open is not told apart: it is not to be learnt from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The system gave no randomness.
    #[error("a secret cannot be sealed")]
    NotSealed,
    /// Another tenant's, of another name, under an unknown key, or damaged.
    #[error("a sealed secret cannot be opened")]
    NotOpened,
}

/// What was sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSecret {
    /// The value.
    pub value: SecretText,
    /// Whether it was sealed under the current key.
    pub current: bool,
}

/// Seals and opens secrets. Does not print.
pub struct Sealer {
    /// The current one first.
    keys: Vec<SealingKey>,
}

pub(crate) struct SealingKey {
    pub(crate) id: [u8; ID_BYTES],
    root: Prk,
}

impl Sealer {
    /// Seals under the current key, and opens what was sealed under it or an older one.
    pub fn new(current: &[u8], older: &[Vec<u8>]) -> Result<Sealer, BadKey> {
        let keys = std::iter::once(current).chain(older.iter().map(Vec::as_slice));
        Ok(Sealer { keys: keys.map(|key| SealingKey::derive(key, PURPOSE)).collect::<Result<_, _>>()? })
    }

    /// Seals a value for one place.
    pub fn seal(&self, tenant: &Tenant, name: &str, value: &SecretText) -> Result<Vec<u8>, SealError> {
        let key = self.keys.first().ok_or(SealError::NotSealed)?;
        let own = key.of(tenant).ok_or(SealError::NotSealed)?;
        let body = value.expose().as_bytes();
        sealed_with(&own, SHAPE, key, &key.place(SHAPE, &named(tenant, name)), &[body]).ok_or(SealError::NotSealed)
    }

    /// Opens what was sealed for this place.
    pub fn open(&self, tenant: &Tenant, name: &str, blob: &[u8]) -> Result<OpenedSecret, SealError> {
        self.try_open(tenant, name, blob).ok_or(SealError::NotOpened)
    }

    fn try_open(&self, tenant: &Tenant, name: &str, blob: &[u8]) -> Option<OpenedSecret> {
        let (id, nonce, body) = parts_of(SHAPE, blob)?;
        let key = self.keys.iter().find(|key| key.id == *id)?;
        let value = opened_with(&key.of(tenant)?, nonce, &key.place(SHAPE, &named(tenant, name)), body)?;
        let value = SecretText::new(std::str::from_utf8(&value).ok()?);
        // An older key that was listed twice is the current one all the same.
        let current = self.keys.first().is_some_and(|first| first.id == key.id);
        Some(OpenedSecret { value, current })
    }
}

fn named<'a>(tenant: &'a Tenant, name: &'a str) -> [&'a [u8]; 2] {
    [tenant.as_str().as_bytes(), name.as_bytes()]
}

/// Seals a body, given in parts, under one key, and puts its shape, the key's id and the nonce before it.
pub(crate) fn sealed_with(
    own: &LessSafeKey,
    shape: u8,
    key: &SealingKey,
    place: &[u8],
    body: &[&[u8]],
) -> Option<Vec<u8>> {
    // 96 random bits, from the stock of this thread: the library's own way to draw them costs as much as the sealing.
    let nonce: [u8; NONCE_LEN] = *store::random_bits().ok()?.first_chunk()?;
    let bytes: usize = body.iter().map(|part| part.len()).sum();
    let mut blob = Vec::with_capacity(BODY_AT + bytes + AES_256_GCM.tag_len());
    blob.push(shape);
    blob.extend_from_slice(&key.id);
    blob.extend_from_slice(&nonce);
    body.iter().for_each(|part| blob.extend_from_slice(part));
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = own.seal_in_place_separate_tag(nonce, Aad::from(place), &mut blob[BODY_AT..]).ok()?;
    blob.extend_from_slice(tag.as_ref());
    Some(blob)
}

/// The id of the key, the nonce and the rest of a blob of this shape.
pub(crate) fn parts_of(shape: u8, blob: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    if blob.len() < BODY_AT || blob[0] != shape {
        return None;
    }
    Some((&blob[1..NONCE_AT], &blob[NONCE_AT..BODY_AT], &blob[BODY_AT..]))
}

/// What was sealed under one key for one place.
pub(crate) fn opened_with(own: &LessSafeKey, nonce: &[u8], place: &[u8], body: &[u8]) -> Option<Vec<u8>> {
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut body = body.to_vec();
    let length = own.open_in_place(nonce, Aad::from(place), &mut body).ok()?.len();
    body.truncate(length);
    Some(body)
}

impl SealingKey {
    pub(crate) fn derive(secret: &[u8], purpose: &[u8]) -> Result<SealingKey, BadKey> {
        if secret.len() < SHORTEST_KEY {
            return Err(BadKey::TooShort(secret.len()));
        }
        let root = Salt::new(HKDF_SHA256, purpose).extract(secret);
        let id = derived(&root, &[b"id"]).ok_or(BadKey::Refused)?;
        Ok(SealingKey { id, root })
    }

    /// The key of one tenant.
    fn of(&self, tenant: &Tenant) -> Option<LessSafeKey> {
        self.own(&[b"tenant", tenant.as_str().as_bytes()])
    }

    /// The key of one purpose.
    pub(crate) fn own(&self, purpose: &[&[u8]]) -> Option<LessSafeKey> {
        let own: [u8; 32] = derived(&self.root, purpose)?;
        UnboundKey::new(&AES_256_GCM, &own).ok().map(LessSafeKey::new)
    }

    /// Where a blob belongs: what is authenticated besides the value. Lengths keep two places from reading alike.
    pub(crate) fn place(&self, shape: u8, parts: &[&[u8]]) -> Vec<u8> {
        let bytes: usize = parts.iter().map(|part| 8 + part.len()).sum();
        let mut place = Vec::with_capacity(1 + ID_BYTES + bytes);
        place.push(shape);
        place.extend_from_slice(&self.id);
        for part in parts {
            place.extend_from_slice(&(part.len() as u64).to_be_bytes());
            place.extend_from_slice(part);
        }
        place
    }
}

/// So many bytes from a key, for one purpose. No part of a purpose is another's beginning: all differ in the first.
fn derived<const N: usize>(root: &Prk, purpose: &[&[u8]]) -> Option<[u8; N]> {
    struct Bytes(usize);
    impl KeyType for Bytes {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut bytes = [0; N];
    root.expand(purpose, Bytes(N)).ok()?.fill(&mut bytes).ok()?;
    Some(bytes)
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({} keys)", self.keys.len())
    }
}

#[cfg(test)]
mod tests;
