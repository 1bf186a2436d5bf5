//! The documents of one tenant, by scope and path: the current version as a record, all versions as a stream.
//!
//! A write is one commit: record, version, place in the indexes, audit entry, wake-up.
//! Not here: who may write where, and what a path or a text may look like (see the memory tools).

use crate::document::{DocScope, Document, Draft, Head};
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{Commit, Committed, Index, Placing, RecordKey, Shelf, StoreError, Stream, Topic, Version};
use std::time::Duration;

/// How many records are read in one round trip; each may hold a hundred kilobytes.
const AT_ONCE: usize = 64;

/// How much a scope may hold, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Documents.
    pub documents: u64,
    /// Bytes of content over all documents.
    pub bytes: u64,
    /// How long a document is kept after its last change; `None` for good. Sessions give their longest life.
    pub keep: Option<Duration>,
}

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
pub enum Put {
    /// Written, as this.
    Done(Document),
    /// The document has another version than was named; this is it, if there is one.
    Conflict(Option<Document>),
    /// The scope may hold no further document.
    TooMany,
    /// The scope may hold no more bytes.
    TooLarge,
}

/// The documents of one tenant.
#[derive(Debug, Clone)]
pub struct Memory(Shelf);

impl Memory {
    pub(crate) fn new(shelf: Shelf) -> Memory {
        Memory(shelf)
    }

    /// Reads a document.
    pub async fn get(&self, scope: &DocScope, path: &str) -> Result<Option<Document>, StoreError> {
        let record = self.0.get(&RecordKey::document(scope, path)).await?;
        record.map(|record| Document::from_bytes(&record.body)).transpose()
    }

    /// The documents of a scope whose path begins with `prefix`, by path, without their text.
    pub async fn list(&self, scope: &DocScope, prefix: &str) -> Result<Vec<Head>, StoreError> {
        Ok(self.all(scope, prefix).await?.into_iter().map(Head::from).collect())
    }

    /// The documents of a scope whose path begins with `prefix`, by path, whole.
    pub async fn all(&self, scope: &DocScope, prefix: &str) -> Result<Vec<Document>, StoreError> {
        let members = self.0.range(&Index::documents(scope), 0, u64::MAX, usize::MAX).await?;
        let mut paths: Vec<String> = members.into_iter().map(|(path, _)| path).collect();
        paths.retain(|path| path.starts_with(prefix));
        paths.sort_unstable();
        let mut documents = Vec::with_capacity(paths.len());
        for some in paths.chunks(AT_ONCE) {
            let get = |path: &String| Op::Get { key: self.0.space.record(&RecordKey::document(scope, path)) };
            let ops: Vec<Op> = some.iter().map(get).collect();
            let mut answers = self.0.run(&ops).await?;
            for _ in some {
                // A document may have ended since the index was read.
                if let Some(record) = answers.record()? {
                    documents.push(Document::from_bytes(&record.body)?);
                }
            }
        }
        Ok(documents)
    }

    /// The versions of a document, newest first.
    pub async fn history(&self, scope: &DocScope, path: &str, limit: usize) -> Result<Vec<Document>, StoreError> {
        let entries = self.0.read_back(&Stream::versions(scope, path), None, limit).await?;
        entries.into_iter().map(|(_, body)| Document::from_bytes(&body)).collect()
    }

    /// Writes a document, which must have the version `expect` ([`Version::NONE`]: must not exist).
    ///
    /// The quota is read first and the document is written then: two writers of different paths can together overshoot
    /// it by what they write at that moment. Closing that gap would make every write of a scope contend with every
    /// other, which costs more than a quota that is out by one document.
    pub async fn put(
        &self,
        scope: &DocScope,
        draft: Draft,
        expect: Version,
        limits: Limits,
        entry: &AuditEntry,
    ) -> Result<Put, StoreError> {
        let key = RecordKey::document(scope, &draft.path);
        let sizes = Index::document_sizes(scope).forgotten_after(limits.keep);
        let mut answers = self
            .0
            .run(&[
                Op::Get { key: self.0.space.record(&key) },
                Op::Range { index: self.0.space.index(&sizes), from: 0, to: u64::MAX, limit: usize::MAX },
                Op::Now,
            ])
            .await?;
        let (found, members, now) = (answers.record()?, answers.members()?, answers.now()?);
        if found.as_ref().map_or(Version::NONE, |record| record.version) != expect {
            let found = found.map(|record| Document::from_bytes(&record.body)).transpose()?;
            return Ok(Put::Conflict(found));
        }
        let size = draft.content.len() as u64;
        if let Some(over) = over(&members, &draft.path, size, limits) {
            return Ok(over);
        }
        let document = Document::from_draft(draft, expect.next(), now);
        let (body, path) = (document.to_bytes()?, document.path.clone());
        let placing = |index, rank| Placing { index, member: path.clone(), rank: Some(rank) };
        let commit = Commit {
            expires: limits.keep,
            append: vec![
                (Stream::versions(scope, &path).forgotten_after(limits.keep), body.clone()),
                self.0.audit().write_out(entry)?,
            ],
            index: vec![
                placing(Index::documents(scope).forgotten_after(limits.keep), now.millis()),
                placing(sizes, size),
            ],
            wake: Some(Topic::Document),
            ..Commit::write(key, expect, body)
        };
        match self.0.commit(commit).await? {
            Committed::Done(..) => Ok(Put::Done(document)),
            Committed::Conflict(Version::NONE, _) | Committed::Late(_) => Ok(Put::Conflict(None)),
            Committed::Conflict(_, body) => Ok(Put::Conflict(Some(Document::from_bytes(&body)?))),
        }
    }

    /// Deletes everything a session kept.
    pub async fn remove_session(&self, id: domain::SessionId) -> Result<(), StoreError> {
        let scope = DocScope::Session(id);
        let (documents, sizes) = (Index::documents(&scope), Index::document_sizes(&scope));
        let members = self.0.range(&documents, 0, u64::MAX, usize::MAX).await?;
        let space = &self.0.space;
        let mut keys = vec![space.index(&documents), space.index(&sizes)];
        for (path, _) in members {
            keys.push(space.record(&RecordKey::document(&scope, &path)));
            keys.push(space.stream(&Stream::versions(&scope, &path)));
        }
        self.0.run(&[Op::Forget { keys }]).await.map(|_| ())
    }
}

/// Whether the scope would hold too much with `size` bytes at `path`.
fn over(members: &[(String, u64)], path: &str, size: u64, limits: Limits) -> Option<Put> {
    let others = members.iter().filter(|(member, _)| member != path);
    let (count, bytes) =
        others.fold((1_u64, size), |(count, bytes), (_, more)| (count + 1, bytes.saturating_add(*more)));
    if count > limits.documents {
        Some(Put::TooMany)
    } else if bytes > limits.bytes {
        Some(Put::TooLarge)
    } else {
        None
    }
}
