//! The configuration of one tenant that was set over HTTP, and its versions.
//!
//! What stands is one record. Every change, a removal as well, makes the next version: the record, a copy of it under
//! its number, the place of that number, the entry in the audit log and the wake-up are one commit. The record is never
//! deleted, so numbers go on after a removal and nobody mistakes a new text for an old one.
//!
//! Not here: what a text may say (see `tenancy`), and when it is in force (see the gateway).

use crate::commit::{Score, SideWrite};
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{
    Commit, Committed, IndexName, IndexUpdate, RecordKey, RecordVersion, StoreError, StoredRecord, TenantStore, Topic,
    WritePrecondition,
};
use domain::{Moment, Principal};
use serde::{Deserialize, Serialize};

/// The largest text that is kept.
const MOST_BYTES: usize = 256 * 1024;
/// So many versions are kept.
const KEPT: u64 = 50;
const UNREADABLE: StoreError = StoreError::Corrupt { what: "a configuration that was set over HTTP" };

/// One version of a tenant's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantText {
    /// Its number, counted from 1.
    pub version: u64,
    /// What was set; `None` if what stood before was removed, and the tenant's file holds again.
    pub text: Option<String>,
    /// What whoever set it had to say.
    pub note: Option<String>,
    /// Who set it.
    pub by: Principal,
    /// When, by the store's clock.
    pub at: Moment,
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` changed something"]
pub enum TextChange {
    /// This version stands now.
    Done(TenantText),
    /// Something else stands than was named; this is it, unless nothing was ever set.
    Conflict(Option<TenantText>),
    /// The text is larger than is kept.
    TooLarge,
}

#[derive(Serialize, Deserialize)]
struct StoredTenantText<T> {
    v: u32,
    cfg: T,
}

/// What one tenant's configuration over HTTP was and is.
#[derive(Debug, Clone)]
pub struct TenantTexts(TenantStore);

impl TenantTexts {
    pub(crate) fn new(shelf: TenantStore) -> TenantTexts {
        TenantTexts(shelf)
    }

    /// The last version, a removal as well; `None` if nothing was ever set.
    pub async fn current(&self) -> Result<Option<TenantText>, StoreError> {
        read(self.0.get(&RecordKey::tenant_text()).await?)
    }

    /// Sets a text in the place of what `base` names. The entry is completed with the version it is about.
    pub async fn put(
        &self,
        base: WritePrecondition,
        text: String,
        note: Option<String>,
        by: &Principal,
        entry: &AuditEntry,
    ) -> Result<TextChange, StoreError> {
        if text.len() > MOST_BYTES {
            return Ok(TextChange::TooLarge);
        }
        self.change(base, Some(text), note, by, entry).await
    }

    /// Removes the text of this version, so that the tenant's file holds again.
    pub async fn remove(
        &self,
        version: u64,
        note: Option<String>,
        by: &Principal,
        entry: &AuditEntry,
    ) -> Result<TextChange, StoreError> {
        self.change(WritePrecondition::Version(version), None, note, by, entry).await
    }

    /// The versions before number `before` that are still kept, newest first, removals among them.
    pub async fn history(&self, before: Option<u64>, limit: usize) -> Result<Vec<TenantText>, StoreError> {
        let below = before.map_or(u64::MAX, |before| before.saturating_sub(1));
        let kept = self.0.range(&IndexName::tenant_text_versions(), 1, below, usize::MAX).await?;
        let newest = kept.into_iter().rev().take(limit);
        let keys: Vec<RecordKey> = newest.map(|(_, number)| RecordKey::tenant_text_version(number)).collect();
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let ops: Vec<Op> = keys.iter().map(|key| Op::Get { key: self.0.space.record(key) }).collect();
        let mut answers = self.0.run(&ops).await?;
        let mut texts = Vec::with_capacity(keys.len());
        for key in &keys {
            match self.0.reading(key).open(answers.record()?).and_then(read) {
                Ok(text) => texts.extend(text),
                // One that is not authentic is told of elsewhere, and must not hide the others.
                Err(StoreError::NotAuthentic { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(texts)
    }

    /// One version, if it is still kept.
    pub async fn version(&self, number: u64) -> Result<Option<TenantText>, StoreError> {
        read(self.0.get(&RecordKey::tenant_text_version(number)).await?)
    }

    async fn change(
        &self,
        base: WritePrecondition,
        text: Option<String>,
        note: Option<String>,
        by: &Principal,
        entry: &AuditEntry,
    ) -> Result<TextChange, StoreError> {
        let (reading, key) =
            (self.0.reading(&RecordKey::tenant_text()), self.0.space.record(&RecordKey::tenant_text()));
        let mut answers = self.0.run(&[Op::Get { key }, Op::Now]).await?;
        let (record, at) = (answers.record()?, answers.now()?);
        let (expect, before) = match reading.open(record) {
            Ok(record) => {
                let expect = record.as_ref().map_or(RecordVersion::NONE, |record| record.version);
                (expect, read(record)?)
            }
            // What is not authentic is nothing, and whoever administers the tenant can write over it. The number goes on
            // above every one that was given out: each change of the record has made at most one version.
            Err(StoreError::NotAuthentic { version, .. }) => (version, None),
            Err(error) => return Err(error),
        };
        if !fits(base, before.as_ref()) {
            return Ok(TextChange::Conflict(before));
        }
        let version = before.map_or(expect.number(), |before| before.version).saturating_add(1);
        let next = TenantText { version, text, note, by: by.clone(), at };
        match self.0.commit(self.writing(&next, expect, entry)?).await? {
            Committed::Done(..) => Ok(TextChange::Done(next)),
            // Every change makes another version, so whoever came first has also changed what `base` named.
            Committed::Conflict(version, body) => {
                let found = Some(StoredRecord { version, body }).filter(|found| found.version != RecordVersion::NONE);
                Ok(TextChange::Conflict(read(found)?))
            }
            Committed::Late(_) | Committed::NoRoom(_) => Err(UNREADABLE),
        }
    }

    fn writing(&self, next: &TenantText, expect: RecordVersion, entry: &AuditEntry) -> Result<Commit, StoreError> {
        let body = next.to_bytes()?;
        let place = |number: u64, rank| IndexUpdate {
            index: IndexName::tenant_text_versions(),
            member: number.to_string(),
            rank,
        };
        let mut index = vec![place(next.version, Score::At(next.version))];
        let mut beside = vec![SideWrite::Write(RecordKey::tenant_text_version(next.version), body.clone(), None)];
        // Each change adds one version, so dropping one keeps the number of them.
        if let Some(oldest) = next.version.checked_sub(KEPT).filter(|oldest| *oldest > 0) {
            index.push(place(oldest, Score::Out));
            beside.push(SideWrite::Forget(RecordKey::tenant_text_version(oldest)));
        }
        let entry = AuditEntry { target: Some(format!("config/{}", next.version)), ..entry.clone() };
        Ok(Commit {
            append: vec![self.0.audit().write_out(&entry)?],
            index,
            beside,
            wake: Some(Topic::Config),
            ..Commit::write(RecordKey::tenant_text(), expect, body)
        })
    }
}

impl TenantText {
    fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(&StoredTenantText { v: 1, cfg: self }).map_err(|_| UNREADABLE)
    }
}

fn read(record: Option<StoredRecord>) -> Result<Option<TenantText>, StoreError> {
    let read = |record: StoredRecord| match serde_json::from_slice(&record.body) {
        Ok(StoredTenantText { v: 1, cfg }) => Ok(cfg),
        Ok(_) | Err(_) => Err(UNREADABLE),
    };
    record.map(read).transpose()
}

/// Whether what stands is what a change was made for.
fn fits(base: WritePrecondition, found: Option<&TenantText>) -> bool {
    let set = found.filter(|found| found.text.is_some()).map(|found| found.version);
    match base {
        WritePrecondition::Absent => set.is_none(),
        WritePrecondition::Version(version) => set == Some(version),
    }
}
