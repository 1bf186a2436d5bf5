//! What keeps the records of the store from being read and from being made up.
//!
//! AES-256-GCM under a key of each record, derived from the service's own: so a key seals few bodies, however many runs a
//! tenant has. Tenant, name and version are authenticated with the body. The bytes are laid out like those of a sealed
//! secret, and begin with another shape.

use crate::sealer::{BadKey, ID_BYTES, SealingKey, opened_with, parts_of, sealed_with};
use aws_lc_rs::aead::LessSafeKey;
use domain::Tenant;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use store::{OpenedBody, RecordCipher, RecordPlace};

/// How sealed records begin. No record of ours that is not sealed begins so: those are JSON.
const SHAPE: u8 = 2;
/// Keeps what is derived here apart from what others derive from the same key.
const PURPOSE: &[u8] = b"quartermaster records";
/// How many keys of records are kept at hand. To derive one costs more than to open a session with it, and a session is
/// opened with every call.
const KEPT_KEYS: usize = 1024;

/// Seals and opens the records of the store. Does not print.
pub struct RecordSealer {
    /// The current one first.
    keys: Vec<SealingKey>,
    kept: KeptKeys,
}

/// The keys of the records that were used last: a place for each, by what its name hashes to.
struct KeptKeys {
    hasher: RandomState,
    places: Vec<Mutex<Option<KeptKey>>>,
}

struct KeptKey {
    /// The id of the service's key it was derived from.
    root: [u8; ID_BYTES],
    /// The record it is for.
    tenant: Tenant,
    name: Box<str>,
    key: Arc<LessSafeKey>,
}

impl KeptKeys {
    fn new() -> KeptKeys {
        KeptKeys { hasher: RandomState::new(), places: (0..KEPT_KEYS).map(|_| Mutex::new(None)).collect() }
    }

    /// The key of a record: the one at hand, or a new one that takes its place.
    fn get(&self, root: &SealingKey, place: &RecordPlace<'_>) -> Option<Arc<LessSafeKey>> {
        let RecordPlace { tenant, name, .. } = *place;
        let at = usize::try_from(self.hasher.hash_one((root.id, tenant.as_str(), name)) % KEPT_KEYS as u64).ok()?;
        let mut kept = self.places[at].lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |kept: &&KeptKey| kept.root == root.id && kept.tenant == *tenant && *kept.name == *name;
        if let Some(kept) = kept.as_ref().filter(fits) {
            return Some(Arc::clone(&kept.key));
        }
        let key = Arc::new(root.own(&[b"record", &whose(place)])?);
        *kept = Some(KeptKey { root: root.id, tenant: tenant.clone(), name: name.into(), key: Arc::clone(&key) });
        Some(key)
    }
}

impl RecordSealer {
    /// Seals under the current key, and opens what was sealed under it or an older one.
    pub fn new(current: &[u8], older: &[Vec<u8>]) -> Result<RecordSealer, BadKey> {
        let keys = std::iter::once(current).chain(older.iter().map(Vec::as_slice));
        let keys = keys.map(|key| SealingKey::derive(key, PURPOSE)).collect::<Result<_, _>>()?;
        Ok(RecordSealer { keys, kept: KeptKeys::new() })
    }
}

impl RecordCipher for RecordSealer {
    fn seal(&self, place: &RecordPlace<'_>, body: &[&[u8]]) -> Option<Vec<u8>> {
        let key = self.keys.first()?;
        let own = self.kept.get(key, place)?;
        sealed_with(&own, SHAPE, key, &key.place(SHAPE, &named(place, &place.version.to_be_bytes())), body)
    }

    fn open(&self, place: &RecordPlace<'_>, sealed: &[u8]) -> Option<OpenedBody> {
        let (id, nonce, body) = parts_of(SHAPE, sealed)?;
        let key = self.keys.iter().find(|key| key.id == *id)?;
        let own = self.kept.get(key, place)?;
        let body = opened_with(&own, nonce, &key.place(SHAPE, &named(place, &place.version.to_be_bytes())), body)?;
        // An older key that was listed twice is the current one all the same.
        let current = self.keys.first().is_some_and(|first| first.id == key.id);
        Some(OpenedBody { body, current })
    }

    fn is_sealed(&self, body: &[u8]) -> bool {
        body.first() == Some(&SHAPE)
    }
}

/// Tenant and name as one text; the length in front keeps two pairs from reading alike.
fn whose(place: &RecordPlace<'_>) -> Vec<u8> {
    let tenant = place.tenant.as_str().as_bytes();
    [&(tenant.len() as u64).to_be_bytes(), tenant, place.name.as_bytes()].concat()
}

fn named<'a>(place: &'a RecordPlace<'_>, version: &'a [u8; 8]) -> [&'a [u8]; 3] {
    [place.tenant.as_str().as_bytes(), place.name.as_bytes(), version]
}

impl fmt::Debug for RecordSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecordSealer({} keys)", self.keys.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(current: u8, older: &[u8]) -> RecordSealer {
        RecordSealer::new(&[current; 32], &older.iter().map(|key| vec![*key; 32]).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_record_opens_only_where_and_as_what_it_was_sealed() {
        let (acme, bolt) = (Tenant::parse("acme").unwrap(), Tenant::parse("bolt").unwrap());
        let place = RecordPlace { tenant: &acme, name: "run:run_1", version: 3 };
        let blob = sealer(1, &[]).seal(&place, &[b"body"]).unwrap();
        assert!(sealer(1, &[]).is_sealed(&blob) && !sealer(1, &[]).is_sealed(b"{}") && !sealer(1, &[]).is_sealed(b""));
        assert!(!blob.windows(4).any(|part| part == b"body"));
        let opened = sealer(1, &[]).open(&place, &blob).unwrap();
        assert_eq!(opened, OpenedBody { body: b"body".to_vec(), current: true });
        for other in [
            RecordPlace { tenant: &bolt, ..place },
            RecordPlace { name: "run:run_2", ..place },
            RecordPlace { version: 4, ..place },
        ] {
            assert_eq!(sealer(1, &[]).open(&other, &blob), None, "{other:?}");
        }
        for at in 0..blob.len() {
            let mut bent = blob.clone();
            bent[at] ^= 1;
            assert_eq!(sealer(1, &[]).open(&place, &bent), None, "byte {at}");
        }
        for short in 0..blob.len() {
            assert_eq!(sealer(1, &[]).open(&place, &blob[..short]), None, "{short} bytes");
        }
    }

    #[test]
    fn a_key_at_hand_is_that_of_the_record() {
        let (one, other, acme) = (sealer(1, &[2]), sealer(1, &[]), Tenant::parse("acme").unwrap());
        // More records than there are places, so that some share one.
        let names: Vec<String> = (0..3 * KEPT_KEYS).map(|n| format!("s:{n}")).collect();
        let place = |name| RecordPlace { tenant: &acme, name, version: 1 };
        let blobs: Vec<_> = names.iter().map(|name| one.seal(&place(name), &[name.as_bytes()]).unwrap()).collect();
        for (name, blob) in names.iter().zip(&blobs) {
            assert_eq!(one.open(&place(name), blob).unwrap().body, name.as_bytes());
            assert_eq!(other.open(&place(name), blob).unwrap().body, name.as_bytes(), "a key has one value");
        }
        // The same record under another key of the service.
        let older = sealer(2, &[]).seal(&place("s:1"), &[b"old"]).unwrap();
        assert!(!one.open(&place("s:1"), &older).unwrap().current);
        assert!(one.open(&place("s:1"), &blobs[1]).unwrap().current);
    }

    #[test]
    fn an_older_key_still_opens_and_says_that_it_is_older() {
        let acme = Tenant::parse("acme").unwrap();
        let place = RecordPlace { tenant: &acme, name: "cfg", version: 1 };
        let blob = sealer(1, &[]).seal(&place, &[b"x"]).unwrap();
        assert!(!sealer(2, &[1]).open(&place, &blob).unwrap().current);
        assert!(sealer(1, &[1]).open(&place, &blob).unwrap().current);
        assert_eq!(sealer(2, &[]).open(&place, &blob), None);
        assert_eq!(format!("{:?}", sealer(1, &[2])), "RecordSealer(2 keys)");
        assert!(RecordSealer::new(&[1; 31], &[]).is_err());
    }
}
