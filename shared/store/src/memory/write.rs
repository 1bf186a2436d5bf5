//! Writing a document: one look, one commit.
//!
//! The commit moves what stood at the path to its number, writes document, head, places in the indexes and audit entry,
//! and wakes whoever watches.

use super::{Memory, PURGED_AFTER, TRIES, read};
use crate::commit::{Beside, Rank};
use crate::document::{DocScope, Document, Draft, Head};
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{Commit, Committed, Index, Placing, Record, RecordKey, StoreError, Topic, Version};
use domain::Moment;
use std::time::Duration;

/// How many purged documents a change clears up after.
const CLEARED_AT_ONCE: usize = 16;

/// How much a scope may hold, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Documents.
    pub documents: u64,
    /// Bytes of content over all documents.
    pub bytes: u64,
    /// How long a document is kept after its last change; `None` for good. Sessions give their longest life.
    pub keep: Option<Duration>,
    /// A part of the scope that has limits of its own.
    pub part: Option<Part>,
}

/// How much of a scope may stand below one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What the paths of this part begin with.
    pub prefix: String,
    /// Documents.
    pub documents: u64,
    /// Bytes of content over all of them.
    pub bytes: u64,
}

/// What is to stand at a path for a write to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// No document; the tombstone of one will do.
    Absent,
    /// This version of a document.
    Version(u64),
}

/// Where there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// In the scope.
    Scope,
    /// In the part of the scope that has limits of its own.
    Part,
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
pub enum Put {
    /// Written, as this.
    Done(Document),
    /// Something else stands there than was named; this is it, if it is a document.
    Conflict(Option<Document>),
    /// No further document may be kept there.
    TooMany(Room),
    /// No more bytes may be kept there.
    TooLarge(Room),
}

/// What a change has to know before it is made.
pub(super) struct Standing {
    pub(super) record: Version,
    pub(super) document: Option<Document>,
    pub(super) sizes: Vec<(String, u64)>,
    /// Paths that were deleted, the longest gone first.
    deleted: Vec<(String, u64)>,
    pub(super) now: Moment,
}

impl Memory {
    /// Writes a document.
    ///
    /// The quota is read first and the document is written then: two writers of different paths can together overshoot
    /// it by what they write at that moment. Closing that gap would make every write of a scope contend with every
    /// other, which costs more than a quota that is out by one document.
    pub async fn put(
        &self,
        scope: &DocScope,
        draft: Draft,
        base: Base,
        limits: &Limits,
        entry: &AuditEntry,
    ) -> Result<Put, StoreError> {
        let mut live = None;
        for _ in 0..TRIES {
            let standing = self.standing(scope, &draft.path).await?;
            if !base.fits(standing.document.as_ref()) {
                return Ok(Put::Conflict(standing.document.filter(|found| !found.deleted)));
            }
            if let Some(over) = over(&standing.sizes, &draft, limits) {
                return Ok(over);
            }
            let version = standing.document.as_ref().map_or(1, |found| found.version.saturating_add(1));
            let document = Document::from_draft(draft.clone(), version, standing.now);
            let commit = self.writing(scope, &document, &standing, limits.keep, entry)?;
            match self.0.commit(commit).await? {
                Committed::Done(..) => return Ok(Put::Done(document)),
                Committed::Conflict(version, body) => {
                    let found = read(Some(Record { version, body }).filter(|found| found.version != Version::NONE))?;
                    // A redaction of an earlier version moves the record and leaves the document as it is.
                    let fits = base.fits(found.as_ref());
                    live = found.filter(|found| !found.deleted);
                    if !fits {
                        break;
                    }
                }
                Committed::Late(_) => break,
            }
        }
        Ok(Put::Conflict(live))
    }

    pub(super) async fn standing(&self, scope: &DocScope, path: &str) -> Result<Standing, StoreError> {
        let space = &self.0.space;
        let range = |index: Index, limit| Op::Range { index: space.index(&index), from: 0, to: u64::MAX, limit };
        let ops = [
            Op::Get { key: space.record(&RecordKey::document(scope, path)) },
            range(Index::document_sizes(scope), usize::MAX),
            range(Index::deleted_documents(scope), CLEARED_AT_ONCE),
            Op::Now,
        ];
        let mut answers = self.0.run(&ops).await?;
        let record = answers.record()?;
        Ok(Standing {
            record: record.as_ref().map_or(Version::NONE, |record| record.version),
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
        standing: &Standing,
        keep: Option<Duration>,
        entry: &AuditEntry,
    ) -> Result<Commit, StoreError> {
        let path = &document.path;
        let mut beside =
            vec![Beside::Write(RecordKey::document_head(scope, path), Head::from(document).to_bytes()?, keep)];
        if let Some(before) = &standing.document {
            // A tombstone goes the way of what it closed.
            let keep = if before.deleted { Some(purged_after(keep)) } else { keep };
            let key = RecordKey::document_version(scope, path, before.version);
            beside.push(Beside::Write(key, before.to_bytes()?, keep));
        }
        let place = |index: Index, rank| Placing { index: index.forgotten_after(keep), member: path.clone(), rank };
        let mut index = vec![
            place(Index::documents(scope), Rank::At(standing.now.millis())),
            place(Index::document_sizes(scope), Rank::At(document.content.len() as u64)),
            place(Index::document_changes(scope), Rank::Last),
            place(Index::deleted_documents(scope), Rank::Out),
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

impl Base {
    fn fits(self, found: Option<&Document>) -> bool {
        let live = found.filter(|found| !found.deleted).map(|found| found.version);
        match self {
            Base::Absent => live.is_none(),
            Base::Version(version) => live == Some(version),
        }
    }
}

impl Standing {
    /// Takes documents whose versions are purged out of what is told about the scope, a while after that.
    pub(super) fn clearing(&self, scope: &DocScope, keep: Option<Duration>) -> Vec<Placing> {
        let purged = purged_after(keep);
        let ago = |span: Duration| self.now.millis().saturating_sub(crate::ops::millis(span));
        let (cleared, purged) = (ago(purged + purged / 16), ago(purged));
        let gone = self.deleted.iter().filter(|(_, since)| *since <= cleared);
        // Should one come back meanwhile, its new rank is above and it stays.
        let take_out =
            |index: Index, path: &String| Placing { index, member: path.clone(), rank: Rank::OutUpTo(purged) };
        gone.flat_map(|(path, _)| {
            [take_out(Index::document_changes(scope), path), take_out(Index::deleted_documents(scope), path)]
        })
        .collect()
    }
}

/// How long the versions of a deleted document stay, where documents are kept that long.
pub(super) fn purged_after(keep: Option<Duration>) -> Duration {
    keep.map_or(PURGED_AFTER, |keep| keep.min(PURGED_AFTER))
}

/// Whether there would be too much with this draft.
fn over(sizes: &[(String, u64)], draft: &Draft, limits: &Limits) -> Option<Put> {
    let with = |prefix: &str| {
        let others = sizes.iter().filter(|(path, _)| *path != draft.path && path.starts_with(prefix));
        let own = (1_u64, draft.content.len() as u64);
        others.fold(own, |(count, bytes), (_, more)| (count + 1, bytes.saturating_add(*more)))
    };
    let within = |(count, bytes): (u64, u64), documents: u64, most: u64, room: Room| {
        if count > documents {
            Some(Put::TooMany(room))
        } else if bytes > most {
            Some(Put::TooLarge(room))
        } else {
            None
        }
    };
    let part = limits.part.as_ref().filter(|part| draft.path.starts_with(&part.prefix));
    within(with(""), limits.documents, limits.bytes, Room::Scope)
        .or_else(|| part.and_then(|part| within(with(&part.prefix), part.documents, part.bytes, Room::Part)))
}
