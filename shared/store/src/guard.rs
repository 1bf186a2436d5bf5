//! What proves that a record was written by this service, and keeps it unreadable for whoever reads the store.
//!
//! The store is not trusted: it may be read, and somebody may write into it behind our back. So what a run will execute,
//! what people answered, what was configured over HTTP and which foreign tools were accepted are sealed before they are
//! written and checked whenever they are read. A seal holds for one tenant, one key and one version, so that a body
//! cannot be moved to another place.
//!
//! A whole record can still be put back as it once was. Against that each process remembers the highest version it has
//! seen of what matters, for as long as the store is the same one ([`crate::StoreEpoch`]): a server that was restarted or
//! replaced may have forgotten the last changes by itself.
//!
//! Not here: how bytes are sealed, and under which key (see the vault). A store that was opened without a cipher, as in
//! tests, writes and reads everything in clear.

mod seen;

use crate::{RecordKey, RecordVersion, Store, StoreEpoch, StoreError, StoredRecord};
use domain::Tenant;
use seen::SeenVersions;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many records that are not authentic are remembered.
const MOST_FINDINGS: usize = 1_000;

/// Where a sealed record belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordPlace<'a> {
    /// Whose it is.
    pub tenant: &'a Tenant,
    /// The name of its key within the tenant.
    pub name: &'a str,
    /// Its version; 0 for what has no version of its own.
    pub version: u64,
}

/// What was sealed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedBody {
    /// The bytes.
    pub body: Vec<u8>,
    /// Whether they were sealed under the current key.
    pub current: bool,
}

/// Seals the bodies of records and opens them again.
pub trait RecordCipher: Send + Sync {
    /// Seals a body, given in parts, for one place. `None`: the system gave no randomness.
    fn seal(&self, place: &RecordPlace<'_>, body: &[&[u8]]) -> Option<Vec<u8>>;

    /// Opens what was sealed for this place. `None`: it was not, or not under a key of this service.
    fn open(&self, place: &RecordPlace<'_>, sealed: &[u8]) -> Option<OpenedBody>;

    /// Whether these bytes claim to be sealed. What does not was written before records were sealed, or by somebody else.
    fn is_sealed(&self, body: &[u8]) -> bool;
}

/// A record that this service did not write as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnauthenticRecord {
    /// Whose it is.
    pub tenant: Tenant,
    /// The name of its key within the tenant.
    pub name: String,
    /// The version under which it stands.
    pub version: u64,
    /// What is wrong with it.
    pub why: &'static str,
}

const FORGED: &str = "its seal does not fit";
const PLAIN: &str = "it is not sealed";
const ROLLED_BACK: &str = "it is older than what this process has seen";
const GONE: &str = "it was deleted, which this service never does";

/// How the records of one store are guarded.
pub(crate) struct RecordGuard {
    cipher: Option<Arc<dyn RecordCipher>>,
    seen: Mutex<SeenVersions>,
    findings: Mutex<BTreeMap<(Tenant, String), Finding>>,
}

struct Finding {
    record: UnauthenticRecord,
    /// Whether it is in the audit log, as far as this process knows.
    recorded: bool,
    /// Whether the record was written anew since.
    mended: bool,
}

impl RecordGuard {
    pub(crate) fn new(cipher: Option<Arc<dyn RecordCipher>>) -> RecordGuard {
        RecordGuard { cipher, seen: Mutex::default(), findings: Mutex::default() }
    }

    /// Seals a body that will stand under this key as this version.
    pub(crate) fn seal(
        &self,
        tenant: &Tenant,
        key: &RecordKey,
        version: RecordVersion,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, StoreError> {
        let Some(cipher) = self.cipher.as_ref().filter(|_| key.is_sealed()) else { return Ok(body) };
        let (clear, body) = body.split_at(key.clear_bytes().min(body.len()));
        let sealed = cipher.seal(&place(tenant, key, version), &[body]);
        let sealed = sealed.ok_or_else(|| StoreError::unavailable("the system gave no randomness"))?;
        Ok([clear, &sealed].concat())
    }

    /// Seals bytes that are no record, given in parts, for this place.
    pub(crate) fn seal_at(&self, place: &RecordPlace<'_>, body: &[&[u8]]) -> Result<Vec<u8>, StoreError> {
        let Some(cipher) = &self.cipher else { return Ok(body.concat()) };
        cipher.seal(place, body).ok_or_else(|| StoreError::unavailable("the system gave no randomness"))
    }

    /// Opens what was sealed for this place.
    pub(crate) fn open_at(&self, place: &RecordPlace<'_>, sealed: Vec<u8>) -> Option<Vec<u8>> {
        match &self.cipher {
            Some(cipher) => cipher.open(place, &sealed).map(|opened| opened.body),
            None => Some(sealed),
        }
    }

    /// The highest version of a record that was seen.
    fn floor(&self, tenant: &Tenant, key: &RecordKey, epoch: StoreEpoch) -> u64 {
        if self.cipher.is_none() || !key.is_remembered() {
            return 0;
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).floor(tenant, key, epoch)
    }

    /// Whether a record must be there, because it was and is never deleted.
    fn expects(&self, tenant: &Tenant, key: &RecordKey, epoch: StoreEpoch) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        key.is_kept_for_good() && seen.is_recent(tenant, key, epoch)
    }

    /// Takes note of the version that this process has just written.
    pub(crate) fn wrote(&self, tenant: &Tenant, key: &RecordKey, version: RecordVersion, epoch: StoreEpoch) {
        if self.cipher.is_some() && key.is_remembered() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).wrote(tenant, key, version.number(), epoch);
        }
        self.absolve(tenant, key);
    }

    fn read(&self, tenant: &Tenant, key: &RecordKey, version: RecordVersion, epoch: StoreEpoch) {
        if key.is_remembered() {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).read(tenant, key, version.number(), epoch);
        }
        self.absolve(tenant, key);
    }

    /// Remembers a record that is not authentic, tells of it once, and makes the error of it.
    fn refuse(&self, tenant: &Tenant, key: &RecordKey, version: RecordVersion, why: &'static str) -> StoreError {
        let (name, number) = (key.name().to_owned(), version.number());
        let record = UnauthenticRecord { tenant: tenant.clone(), name, version: number, why };
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (tenant.clone(), record.name.clone());
        let repeated = findings.get(&place).is_some_and(|before| before.record == record);
        if !repeated && (findings.len() < MOST_FINDINGS || findings.contains_key(&place)) {
            let name = record.name.as_str();
            tracing::error!(%tenant, record = name, version = number, why, "a record of the store is not authentic and is not used");
            findings.insert(place, Finding { record, recorded: false, mended: false });
        }
        StoreError::NotAuthentic { why, version }
    }

    /// A record is as it should be again. What is not in the audit log yet is kept until it is.
    fn absolve(&self, tenant: &Tenant, key: &RecordKey) {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        if findings.is_empty() {
            return;
        }
        let place = (tenant.clone(), key.name().to_owned());
        if let Some(finding) = findings.get_mut(&place) {
            finding.mended = true;
            if finding.recorded {
                findings.remove(&place);
            }
        }
    }

    /// How many records are not authentic, as far as they were read.
    pub(crate) fn findings(&self) -> usize {
        let findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        findings.values().filter(|finding| !finding.mended).count()
    }

    /// Those that were not asked for yet.
    pub(crate) fn take_new(&self) -> Vec<UnauthenticRecord> {
        let mut findings = self.findings.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fresh = Vec::new();
        for finding in findings.values_mut().filter(|finding| !finding.recorded) {
            finding.recorded = true;
            fresh.push(finding.record.clone());
        }
        findings.retain(|_, finding| !finding.mended);
        fresh
    }
}

fn place<'a>(tenant: &'a Tenant, key: &'a RecordKey, version: RecordVersion) -> RecordPlace<'a> {
    // What is written beside another record has no version of its own.
    let version = if key.has_version() { version.number() } else { 0 };
    RecordPlace { tenant, name: key.name(), version }
}

/// How one record is going to be read. Made before the store is asked: what others write meanwhile must not make the
/// answer look old.
pub(crate) struct GuardedRead {
    store: Store,
    tenant: Tenant,
    key: RecordKey,
    floor: u64,
}

/// A record, and whether this service wrote it as it stands.
pub(crate) struct ReadRecord {
    pub(crate) record: StoredRecord,
    /// Whether it was sealed, or the store seals nothing.
    pub(crate) authentic: bool,
    /// Whether it is sealed under the current key.
    pub(crate) current: bool,
}

impl GuardedRead {
    pub(crate) fn new(store: &Store, tenant: &Tenant, key: RecordKey) -> GuardedRead {
        let floor = store.guard().floor(tenant, &key, store.epoch());
        GuardedRead { store: store.clone(), tenant: tenant.clone(), key, floor }
    }

    /// Opens what the store answered, or refuses it.
    pub(crate) fn open(&self, record: Option<StoredRecord>) -> Result<Option<StoredRecord>, StoreError> {
        let Some(read) = self.look(record)? else { return Ok(None) };
        if read.authentic {
            return Ok(Some(read.record));
        }
        Err(self.refuse_unsealed(read.record.version))
    }

    /// Refuses a record because nobody has sealed it.
    pub(crate) fn refuse_unsealed(&self, version: RecordVersion) -> StoreError {
        self.store.guard().refuse(&self.tenant, &self.key, version, PLAIN)
    }

    /// Opens what the store answered. What was never sealed is handed out as such; what was sealed for another place, or
    /// by somebody else, or is older than what was seen, is refused.
    pub(crate) fn look(&self, record: Option<StoredRecord>) -> Result<Option<ReadRecord>, StoreError> {
        let guard = self.store.guard();
        let Some(cipher) = guard.cipher.as_ref().filter(|_| self.key.is_sealed()) else {
            return Ok(record.map(|record| ReadRecord { record, authentic: true, current: true }));
        };
        let (tenant, key) = (&self.tenant, &self.key);
        let Some(record) = record else {
            if self.floor > 0 && guard.expects(tenant, key, self.store.epoch()) {
                return Err(guard.refuse(tenant, key, RecordVersion::NONE, GONE));
            }
            return Ok(None);
        };
        let version = record.version;
        let (clear, sealed) = record.body.split_at(key.clear_bytes().min(record.body.len()));
        if !cipher.is_sealed(sealed) {
            return Ok(Some(ReadRecord { record, authentic: false, current: false }));
        }
        let Some(opened) = cipher.open(&place(tenant, key, version), sealed) else {
            return Err(guard.refuse(tenant, key, version, FORGED));
        };
        let epoch = self.store.epoch();
        if version.number() < self.floor && guard.floor(tenant, key, epoch) >= self.floor {
            return Err(guard.refuse(tenant, key, version, ROLLED_BACK));
        }
        guard.read(tenant, key, version, epoch);
        let record = StoredRecord { version, body: [clear, &opened.body].concat() };
        Ok(Some(ReadRecord { record, authentic: true, current: opened.current }))
    }
}
