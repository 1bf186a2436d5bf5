//! Writing a document: one look, one commit.
//!
//! The commit moves what stood at the path to its number, writes document, head, places in the indexes and audit entry,
//! and wakes whoever watches.

use super::{DocumentStore, PURGED_AFTER, TRIES, read};
use crate::commit::{Score, SideWrite};
use crate::document::{DocScope, Document, DocumentHead, Draft};
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{Commit, Committed, IndexName, IndexUpdate, RecordKey, RecordVersion, StoreError, StoredRecord, Topic};
use domain::Moment;
use std::time::Duration;

/// How many purged documents a change clears up after.
const CLEARED_AT_ONCE: usize = 16;

/// How much a scope may hold, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeLimits {
    /// Documents.
    pub documents: u64,
    /// Bytes of content over all documents.
    pub bytes: u64,
    /// How long a document is kept after its last change; `None` for good. Sessions give their longest life.
    pub keep: Option<Duration>,
    /// A part of the scope that has limits of its own.
    pub part: Option<PrefixLimit>,
}

/// How much of a scope may stand below one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixLimit {
    /// What the paths of this part begin with.
    pub prefix: String,
    /// Documents.
    pub documents: u64,
    /// Bytes of content over all of them.
    pub bytes: u64,
}

/// What is to stand at a path for a write to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritePrecondition {
    /// No document; the tombstone of one will do.
    Absent,
    /// This version of a document.
    Version(u64),
}

/// Where there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// In the scope.
    Scope,
    /// In the part of the scope that has limits of its own.
    Part,
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
pub enum WriteOutcome {
    /// Written, as this.
    Done(Document),
    /// Something else stands there than was named; this is it, if it is a document.
    Conflict(Option<Document>),
    /// No further document may be kept there.
    TooMany(QuotaExceeded),
    /// No more bytes may be kept there.
    TooLarge(QuotaExceeded),
}

/// What a change has to know before it is made.
pub(super) struct WriteCheck {
    pub(super) record: RecordVersion,
    pub(super) document: Option<Document>,
    pub(super) sizes: Vec<(String, u64)>,
    /// Paths that were deleted, the longest gone first.
    deleted: Vec<(String, u64)>,
    pub(super) now: Moment,
}

impl DocumentStore {
    /// Writes a document.
    ///
    /// The quota is read first and the document is written then: two writers of different paths can together overshoot
    /// it by what they write at that moment. Closing that gap would make every write of a scope contend with every
    /// other, which costs more than a quota that is out by one document.
    pub async fn put(
        &self,
        scope: &DocScope,
        draft: Draft,
        base: WritePrecondition,
        limits: &ScopeLimits,
        entry: &AuditEntry,
    ) -> Result<WriteOutcome, StoreError> {
        let mut live = None;
        for _ in 0..TRIES {
            let standing = self.standing(scope, &draft.path).await?;
            if !base.fits(standing.document.as_ref()) {
                return Ok(WriteOutcome::Conflict(standing.document.filter(|found| !found.deleted)));
            }
            if let Some(over) = over(&standing.sizes, &draft, limits) {
                return Ok(over);
            }
            let version = standing.document.as_ref().map_or(1, |found| found.version.saturating_add(1));
            let document = Document::from_draft(draft.clone(), version, standing.now);
            let commit = self.writing(scope, &document, &standing, limits.keep, entry)?;
            match self.0.commit(commit).await? {
                Committed::Done(..) => return Ok(WriteOutcome::Done(document)),
                Committed::Conflict(version, body) => {
                    let found = read(
                        Some(StoredRecord { version, body }).filter(|found| found.version != RecordVersion::NONE),
                    )?;
                    // A redaction of an earlier version moves the record and leaves the document as it is.
                    let fits = base.fits(found.as_ref());
                    live = found.filter(|found| !found.deleted);
                    if !fits {
                        break;
                    }
                }
                Committed::Late(_) | Committed::NoRoom(_) => break,
            }
        }
        Ok(WriteOutcome::Conflict(live))
    }

    pub(super) async fn standing(&self, scope: &DocScope, path: &str) -> Result<WriteCheck, StoreError> {
        let space = &self.0.space;
        let range = |index: IndexName, limit| Op::Range { index: space.index(&index), from: 0, to: u64::MAX, limit };
        let ops = [
            Op::Get { key: space.record(&RecordKey::document(scope, path)) },
            range(IndexName::document_sizes(scope), usize::MAX),
            range(IndexName::deleted_documents(scope), CLEARED_AT_ONCE),
            Op::Now,
        ];
        let mut answers = self.0.run(&ops).await?;
        let record = answers.record()?;
        Ok(WriteCheck {
            record: record.as_ref().map_or(RecordVersion::NONE, |record| record.version),
            document: read(record)?,
            sizes: answers.members()?,
            deleted: answers.members()?,
            now: answers.now()?,
        })
    }

    fn writing(
        &self,
        scope: &DocScope,
        document: &Document,
        standing: &WriteCheck,
        keep: Option<Duration>,
        entry: &AuditEntry,
    ) -> Result<Commit, StoreError> {
        let path = &document.path;
        let mut beside = vec![SideWrite::Write(
            RecordKey::document_head(scope, path),
            DocumentHead::from(document).to_bytes()?,
            keep,
        )];
        if let Some(before) = &standing.document {
            // A tombstone goes the way of what it closed.
            let keep = if before.deleted { Some(purged_after(keep)) } else { keep };
            let key = RecordKey::document_version(scope, path, before.version);
            beside.push(SideWrite::Write(key, before.to_bytes()?, keep));
        }
        let place =
            |index: IndexName, rank| IndexUpdate { index: index.forgotten_after(keep), member: path.clone(), rank };
        let mut index = vec![
            place(IndexName::documents(scope), Score::At(standing.now.millis())),
            place(IndexName::document_sizes(scope), Score::At(document.content.len() as u64)),
            place(IndexName::document_changes(scope), Score::Last),
            place(IndexName::deleted_documents(scope), Score::Out),
        ];
        index.extend(standing.clearing(scope, keep));
        Ok(Commit {
            expires: keep,
            append: vec![self.0.audit().write_out(entry)?],
            index,
            beside,
            wake: Some(Topic::Document),
            ..Commit::write(RecordKey::document(scope, path), standing.record, document.to_bytes()?)
        })
    }
}

impl WritePrecondition {
    fn fits(self, found: Option<&Document>) -> bool {
        let live = found.filter(|found| !found.deleted).map(|found| found.version);
        match self {
            WritePrecondition::Absent => live.is_none(),
            WritePrecondition::Version(version) => live == Some(version),
        }
    }
}

impl WriteCheck {
    /// Takes documents whose versions are purged out of what is told about the scope, a while after that.
    pub(super) fn clearing(&self, scope: &DocScope, keep: Option<Duration>) -> Vec<IndexUpdate> {
        let purged = purged_after(keep);
        let ago = |span: Duration| self.now.millis().saturating_sub(crate::ops::millis(span));
        let (cleared, purged) = (ago(purged + purged / 16), ago(purged));
        let gone = self.deleted.iter().filter(|(_, since)| *since <= cleared);
        // Should one come back meanwhile, its new rank is above and it stays.
        let take_out =
            |index: IndexName, path: &String| IndexUpdate { index, member: path.clone(), rank: Score::OutUpTo(purged) };
        gone.flat_map(|(path, _)| {
            [take_out(IndexName::document_changes(scope), path), take_out(IndexName::deleted_documents(scope), path)]
        })
        .collect()
    }
}

/// How long the versions of a deleted document stay, where documents are kept that long.
pub(super) fn purged_after(keep: Option<Duration>) -> Duration {
    keep.map_or(PURGED_AFTER, |keep| keep.min(PURGED_AFTER))
}

/// Whether there would be too much with this draft.
fn over(sizes: &[(String, u64)], draft: &Draft, limits: &ScopeLimits) -> Option<WriteOutcome> {
    let with = |prefix: &str| {
        let others = sizes.iter().filter(|(path, _)| *path != draft.path && path.starts_with(prefix));
        let own = (1_u64, draft.content.len() as u64);
        others.fold(own, |(count, bytes), (_, more)| (count + 1, bytes.saturating_add(*more)))
    };
    let within = |(count, bytes): (u64, u64), documents: u64, most: u64, room: QuotaExceeded| {
        if count > documents {
            Some(WriteOutcome::TooMany(room))
        } else if bytes > most {
            Some(WriteOutcome::TooLarge(room))
        } else {
            None
        }
    };
    let part = limits.part.as_ref().filter(|part| draft.path.starts_with(&part.prefix));
    within(with(""), limits.documents, limits.bytes, QuotaExceeded::Scope)
        .or_else(|| part.and_then(|part| within(with(&part.prefix), part.documents, part.bytes, QuotaExceeded::Part)))
}
