//! The sealed secrets of one tenant. What is sealed, and with what, is not known here.
//!
//! A secret is one record. Setting and forgetting it, its place in the indexes, the entry in the audit log and the wake-up
//! are one commit. A forgotten one leaves a mark of its version for a while, so that a name that is set again does not
//! pass for what it was before.
//!
//! Each change also raises a mark above all that were: whoever keeps a copy asks for the marks and reads what moved.
//! Marks never repeat, because forgetting leaves one of its own behind.
//!
//! Not here: sealing, and who may set what (see the vault and the gateway).

use crate::commit::{Room, Score};
use crate::entry::AuditEntry;
use crate::guard::GuardedRead;
use crate::ops::Op;
use crate::{
    Commit, Committed, IndexName, IndexUpdate, RecordKey, RecordVersion, StoreError, StoredRecord, TenantStore, Topic,
    WritePrecondition,
};
use domain::{Moment, Principal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// So many secrets a tenant may keep.
pub const MOST_SECRETS: u64 = 200;
/// How long the version of a forgotten secret is remembered.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How many secrets are read in one round trip; each may hold 64 KiB.
const AT_ONCE: usize = 64;
/// How often a change for which any version will do is folded again.
const TRIES: usize = 16;
/// Stands among the marks for everything that was forgotten; no secret can be named like that.
const FORGOTTEN: &str = "~";
const UNREADABLE: StoreError = StoreError::Corrupt { what: "a sealed secret" };

/// A secret as it is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedSecret {
    /// What it is called.
    pub name: String,
    /// Counts its changes; sealing it anew is one.
    pub version: u64,
    /// Who set it.
    pub by: Principal,
    /// When, by the store's clock.
    pub at: Moment,
    /// What was sealed.
    pub sealed: Vec<u8>,
}

impl fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SealedSecret { name, version, sealed, .. } = self;
        write!(f, "SealedSecret({name}, version {version}, {} bytes)", sealed.len())
    }
}

/// How setting a secret ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` set something"]
pub enum SecretPut {
    /// This stands now.
    Done(SealedSecret),
    /// Something else stands there than was named; this is its version, if there is a secret.
    Conflict(Option<u64>),
    /// The tenant keeps as many secrets as it may.
    TooMany,
}

/// How forgetting a secret ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "only `Done` forgot something"]
pub enum SecretForgotten {
    /// It is gone; its versions were below this one.
    Done(u64),
    /// Another version stands there: this one.
    Conflict(u64),
    /// There is no such secret.
    Absent,
}

/// What stands before the sealed bytes, on a line of its own.
#[derive(Serialize, Deserialize)]
struct SecretHead {
    v: u8,
    by: Principal,
    at: Moment,
    #[serde(default)]
    gone: bool,
}

/// What a record says: a secret, or the version of one that is gone.
struct SecretRecord {
    record: RecordVersion,
    secret: Option<SealedSecret>,
}

/// The sealed secrets of one tenant.
#[derive(Debug, Clone)]
pub struct SecretStore(TenantStore);

impl SecretStore {
    pub(crate) fn new(shelf: TenantStore) -> SecretStore {
        SecretStore(shelf)
    }

    /// The names of all secrets, each with a mark that is another after every change.
    pub async fn marks(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let marks = self.0.range(&IndexName::tenant_secret_changes(), 0, u64::MAX, usize::MAX).await?;
        Ok(marks.into_iter().filter(|(name, _)| name != FORGOTTEN).collect())
    }

    /// Reads secrets in the order asked for. One that is unreadable does not stand in the way of the others.
    pub async fn get_many(
        &self,
        names: &[String],
    ) -> Result<Vec<Result<Option<SealedSecret>, StoreError>>, StoreError> {
        let mut found = Vec::with_capacity(names.len());
        for some in names.chunks(AT_ONCE) {
            let ops: Vec<Op> = some.iter().map(|name| Op::Get { key: self.key(name) }).collect();
            let readings: Vec<GuardedRead> = some.iter().map(|name| self.reading(name)).collect();
            let mut answers = self.0.run(&ops).await?;
            for (name, reading) in some.iter().zip(readings) {
                let record = reading.open(answers.record()?).and_then(|record| SecretRecord::read(name, record));
                found.push(record.map(|standing| standing.secret));
            }
        }
        Ok(found)
    }

    /// Sets a secret in the place of what `base` names, or of whatever stands there. The entry is completed with what it
    /// is about.
    pub async fn put(
        &self,
        name: &str,
        sealed: Vec<u8>,
        by: &Principal,
        base: Option<WritePrecondition>,
        entry: &AuditEntry,
    ) -> Result<SecretPut, StoreError> {
        let reading = self.reading(name);
        let mut answers = self.0.run(&[Op::Get { key: self.key(name) }, Op::Now]).await?;
        let (record, at) = (answers.record()?, answers.now()?);
        let mut standing = SecretRecord::standing(name, reading.open(record))?;
        let mut secret = SealedSecret { name: name.to_owned(), version: 0, by: by.clone(), at, sealed };
        for _ in 0..TRIES {
            if !standing.fits(base) {
                break;
            }
            let more = standing.secret.is_none().then(|| Room::Members(IndexName::tenant_secrets(), MOST_SECRETS));
            let commit = Commit { rooms: more.into_iter().collect(), ..self.writing(&secret, standing.record, entry)? };
            match self.0.commit(commit).await? {
                Committed::Done(version, _) => {
                    secret.version = version.number();
                    return Ok(SecretPut::Done(secret));
                }
                Committed::Conflict(version, body) => standing = SecretRecord::read(name, there(version, body))?,
                Committed::Late(_) | Committed::NoRoom(_) => return Ok(SecretPut::TooMany),
            }
        }
        Ok(SecretPut::Conflict(standing.version()))
    }

    /// Puts other bytes into a secret of this version and leaves by whom and when it was set. `None`: it has changed.
    pub async fn reseal(
        &self,
        secret: &SealedSecret,
        sealed: Vec<u8>,
        entry: &AuditEntry,
    ) -> Result<Option<SealedSecret>, StoreError> {
        let mut anew = SealedSecret { sealed, ..secret.clone() };
        match self.0.commit(self.writing(&anew, RecordVersion::new(secret.version), entry)?).await? {
            Committed::Done(version, _) => {
                anew.version = version.number();
                Ok(Some(anew))
            }
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(None),
        }
    }

    /// Forgets a secret, of this version or of any.
    pub async fn forget(
        &self,
        name: &str,
        version: Option<u64>,
        entry: &AuditEntry,
    ) -> Result<SecretForgotten, StoreError> {
        let mut standing = SecretRecord::standing(name, self.0.get(&RecordKey::tenant_secret(name)).await)?;
        for _ in 0..TRIES {
            let Some(secret) = &standing.secret else { return Ok(SecretForgotten::Absent) };
            if version.is_some_and(|version| version != secret.version) {
                break;
            }
            match self.0.commit(self.forgetting(secret, standing.record, entry)?).await? {
                Committed::Done(version, _) => return Ok(SecretForgotten::Done(version.number())),
                Committed::Conflict(version, body) => standing = SecretRecord::read(name, there(version, body))?,
                Committed::Late(_) | Committed::NoRoom(_) => return Err(UNREADABLE),
            }
        }
        Ok(standing.version().map_or(SecretForgotten::Absent, SecretForgotten::Conflict))
    }

    fn writing(&self, secret: &SealedSecret, expect: RecordVersion, entry: &AuditEntry) -> Result<Commit, StoreError> {
        let place = |index, rank| IndexUpdate { index, member: secret.name.clone(), rank };
        Ok(Commit {
            append: vec![self.0.audit().write_out(&about(&secret.name, entry))?],
            index: vec![
                place(IndexName::tenant_secrets(), Score::At(secret.at.millis())),
                place(IndexName::tenant_secret_changes(), Score::Last),
            ],
            wake: Some(Topic::Secrets),
            ..Commit::write(RecordKey::tenant_secret(&secret.name), expect, secret.to_bytes(false)?)
        })
    }

    fn forgetting(
        &self,
        secret: &SealedSecret,
        expect: RecordVersion,
        entry: &AuditEntry,
    ) -> Result<Commit, StoreError> {
        let place = |index, member: &str, rank| IndexUpdate { index, member: member.to_owned(), rank };
        let name = secret.name.as_str();
        Ok(Commit {
            expires: Some(REMEMBERED),
            append: vec![self.0.audit().write_out(&about(name, entry))?],
            index: vec![
                place(IndexName::tenant_secrets(), name, Score::Out),
                // Before the name goes, so that it stands above the name's own mark.
                place(IndexName::tenant_secret_changes(), FORGOTTEN, Score::Last),
                place(IndexName::tenant_secret_changes(), name, Score::Out),
            ],
            wake: Some(Topic::Secrets),
            ..Commit::write(RecordKey::tenant_secret(name), expect, secret.to_bytes(true)?)
        })
    }

    fn reading(&self, name: &str) -> GuardedRead {
        self.0.reading(&RecordKey::tenant_secret(name))
    }

    fn key(&self, name: &str) -> String {
        self.0.space.record(&RecordKey::tenant_secret(name))
    }
}

impl SealedSecret {
    fn to_bytes(&self, gone: bool) -> Result<Vec<u8>, StoreError> {
        let head = SecretHead { v: 1, by: self.by.clone(), at: self.at, gone };
        let mut bytes = serde_json::to_vec(&head).map_err(|_| UNREADABLE)?;
        bytes.push(b'\n');
        if !gone {
            bytes.extend_from_slice(&self.sealed);
        }
        Ok(bytes)
    }
}

impl SecretRecord {
    /// What a change is made over. A record that is not authentic is no secret, and whoever sets one writes over it.
    fn standing(name: &str, read: Result<Option<StoredRecord>, StoreError>) -> Result<SecretRecord, StoreError> {
        match read {
            Ok(record) => SecretRecord::read(name, record),
            Err(StoreError::NotAuthentic { version, .. }) => Ok(SecretRecord { record: version, secret: None }),
            Err(error) => Err(error),
        }
    }

    fn read(name: &str, record: Option<StoredRecord>) -> Result<SecretRecord, StoreError> {
        let Some(StoredRecord { version, body }) = record else {
            return Ok(SecretRecord { record: RecordVersion::NONE, secret: None });
        };
        // JSON of one line holds no line break, so the first one ends the head.
        let end = body.iter().position(|byte| *byte == b'\n').ok_or(UNREADABLE)?;
        let head: SecretHead = serde_json::from_slice(&body[..end]).map_err(|_| UNREADABLE)?;
        if head.v != 1 {
            return Err(UNREADABLE);
        }
        let SecretHead { by, at, gone, .. } = head;
        let (number, sealed) = (version.number(), body[end + 1..].to_vec());
        let secret = (!gone).then(|| SealedSecret { name: name.to_owned(), version: number, by, at, sealed });
        Ok(SecretRecord { record: version, secret })
    }

    fn version(&self) -> Option<u64> {
        self.secret.as_ref().map(|secret| secret.version)
    }

    fn fits(&self, base: Option<WritePrecondition>) -> bool {
        match base {
            None => true,
            Some(WritePrecondition::Absent) => self.secret.is_none(),
            Some(WritePrecondition::Version(version)) => self.version() == Some(version),
        }
    }
}

/// What a conflict says stands there.
fn there(version: RecordVersion, body: Vec<u8>) -> Option<StoredRecord> {
    (version != RecordVersion::NONE).then_some(StoredRecord { version, body })
}

fn about(name: &str, entry: &AuditEntry) -> AuditEntry {
    AuditEntry { target: Some(format!("secret/{name}")), ..entry.clone() }
}
