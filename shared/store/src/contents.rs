//! What a call was given and what it gave, as an audit entry keeps it: sealed for its tenant, cut to a size, and with a
//! digest of the whole.
//!
//! The digest is SHA-256(salt ‖ whole text), and the salt is in the sealed part: whoever may read the contents can check
//! them, and whoever reads the store can try no guess. The seal holds for one entry of one tenant.
//!
//! Not here: which secrets are taken out before (see the executor), and who may read (see the gateway).

use crate::entry::EntryRecord;
use crate::guard::RecordPlace;
use crate::{StoreError, TenantStore, random_bits};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use domain::json::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const SALT: usize = 16;
const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// A text to be kept with an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryContents {
    /// The whole text, without secrets.
    pub text: String,
    /// How many bytes of it are kept; none if the tenant wants digests only.
    pub most: usize,
}

/// The contents of an entry, as they are written.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredContents {
    /// How many bytes the whole has.
    bytes: u64,
    digest: String,
    sealed: String,
}

impl StoredContents {
    /// About how many bytes they are written with.
    pub(crate) fn len(&self) -> usize {
        self.digest.len() + self.sealed.len() + 64
    }
}

/// The contents of an entry, opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenedContents {
    /// What was kept of the text.
    pub text: String,
    /// Whether that is all of it.
    pub whole: bool,
    /// What the digest begins with, in hex.
    pub salt: String,
}

impl OpenedContents {
    /// Whether this is what the entry was written with, as far as its digest tells: of what was cut only the whole could be
    /// compared.
    pub fn fit(&self, entry: &[u8]) -> bool {
        let Ok(ContentsEntry { contents, .. }) = serde_json::from_slice(entry) else { return false };
        let bytes = self.text.len() as u64;
        let pair = |at: usize| u8::from_str_radix(self.salt.get(at..at + 2)?, 16).ok();
        let salt: Option<Vec<u8>> = (0..self.salt.len()).step_by(2).map(pair).collect();
        match self.whole {
            true => bytes == contents.bytes && salt.is_some_and(|salt| digest(&salt, &self.text) == contents.digest),
            false => bytes < contents.bytes,
        }
    }
}

/// As much of an entry as tells where its contents belong.
#[derive(Deserialize)]
struct ContentsEntry {
    id: String,
    at: ContentsTime,
    contents: StoredContents,
}

#[derive(Deserialize)]
struct ContentsTime {
    host: u64,
}

/// The name under which contents are sealed: one key for a tenant and a day.
fn key_name(host: u64) -> String {
    format!("audit:{}", host / DAY_MILLIS)
}

/// The entry's own name as a number, which the seal holds for.
fn version_of(id: &str) -> u64 {
    Sha256::digest(id.as_bytes()).iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn digest(salt: &[u8], text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(salt);
    hash.update(text);
    format!("sha256:{}", hex(&hash.finalize()))
}

impl TenantStore {
    /// Seals contents for the entry of which this is the beginning.
    pub(crate) fn seal_contents(
        &self,
        line: &EntryRecord<'_>,
        contents: &EntryContents,
    ) -> Result<StoredContents, StoreError> {
        let salt: [u8; SALT] = random_bits()?;
        let (text, most) = (&contents.text, contents.most.min(contents.text.len()));
        let kept = &text[..(0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)];
        let (name, version) = (key_name(line.host()), version_of(&line.id));
        let place = RecordPlace { tenant: self.tenant(), name: &name, version };
        let sealed = self.store().guard().seal_at(&place, &[&salt, kept.as_bytes()])?;
        let bytes = contents.text.len() as u64;
        Ok(StoredContents { bytes, digest: digest(&salt, &contents.text), sealed: BASE64.encode(sealed) })
    }

    /// Opens the contents of an entry; `None` if it has none, or they were not sealed for it.
    pub fn open_contents(&self, entry: &[u8]) -> Option<OpenedContents> {
        let ContentsEntry { id, at, contents } = serde_json::from_slice(entry).ok()?;
        let (name, version) = (key_name(at.host), version_of(&id));
        let place = RecordPlace { tenant: self.tenant(), name: &name, version };
        let opened = self.store().guard().open_at(&place, BASE64.decode(contents.sealed).ok()?)?;
        let (salt, text) = opened.split_at_checked(SALT)?;
        let text = String::from_utf8(text.to_vec()).ok()?;
        let whole = text.len() as u64 == contents.bytes;
        // What is there as a whole must be what was digested.
        let fits = !whole || digest(salt, &text) == contents.digest;
        fits.then(|| OpenedContents { text, whole, salt: hex(salt) })
    }
}
