//! The documents of one tenant, by scope and path.
//!
//! What stands at a path is one record, whole: a document, or the tombstone of one. When it changes, what stood there is
//! kept beside it under its number, so that no text is stored twice and a version can be redacted where it lies. The
//! number of a version is written in it; the version of the record counts redactions as well.
//!
//! Each change also gives the path the highest rank of the scope's changes. Whoever keeps something derived from the
//! documents asks for what is above the rank it has seen, and misses nothing, whoever wrote it.
//!
//! Not here: who may write where, and what a path or a text may look like.

mod forget;
mod redact;
mod write;

pub use forget::RemovalOutcome;
pub use write::{PrefixLimit, QuotaExceeded, ScopeLimits, WriteOutcome, WritePrecondition};

use crate::document::{DocScope, Document, DocumentHead};
use crate::ops::Op;
use crate::{IndexName, RecordKey, StoreError, StoredRecord, StreamName, TenantStore};
use std::time::Duration;

/// How many heads are read in one round trip.
const HEADS_AT_ONCE: usize = 512;
/// How many documents are read in one round trip where nobody said; each may hold a hundred kilobytes.
const AT_ONCE: usize = 64;
/// How long the versions of a deleted document stay.
const PURGED_AFTER: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The mark of what changed before changes were kept; every real one is a moment's milliseconds.
const BEFORE_ALL: u64 = 1;
/// How often a change is folded again after somebody else changed the record, but not what the change depends on.
const TRIES: usize = 16;

/// A path that changed, and where it stands among the changes of its scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// The document's path. Whether it is still there tells [`DocumentStore::get`].
    pub path: String,
    /// The rank to ask beyond.
    pub mark: u64,
}

/// The documents of one tenant.
#[derive(Debug, Clone)]
pub struct DocumentStore(TenantStore);

impl DocumentStore {
    pub(crate) fn new(shelf: TenantStore) -> DocumentStore {
        DocumentStore(shelf)
    }

    /// Reads a document.
    pub async fn get(&self, scope: &DocScope, path: &str) -> Result<Option<Document>, StoreError> {
        Ok(self.last(scope, path).await?.filter(|found| !found.deleted))
    }

    /// Reads documents in one round trip, in the order asked for.
    pub async fn get_many(&self, scope: &DocScope, paths: &[String]) -> Result<Vec<Option<Document>>, StoreError> {
        let keys = paths.iter().map(|path| RecordKey::document(scope, path));
        let found = self.documents(keys).await?;
        Ok(found.into_iter().map(|found| found.filter(|found| !found.deleted)).collect())
    }

    /// Reads what stands at a path: a document, or the tombstone of one.
    pub async fn last(&self, scope: &DocScope, path: &str) -> Result<Option<Document>, StoreError> {
        read(self.0.get(&RecordKey::document(scope, path)).await?)
    }

    /// The documents of a scope whose path begins with `prefix`, by path, without their text.
    pub async fn heads(&self, scope: &DocScope, prefix: &str) -> Result<Vec<DocumentHead>, StoreError> {
        let members = self.0.range(&IndexName::documents(scope), 0, u64::MAX, usize::MAX).await?;
        let mut paths: Vec<String> = members.into_iter().map(|(path, _)| path).collect();
        paths.retain(|path| path.starts_with(prefix));
        paths.sort_unstable();
        let (mut heads, mut without) = (Vec::with_capacity(paths.len()), Vec::new());
        for some in paths.chunks(HEADS_AT_ONCE) {
            let records = self.records(some.iter().map(|path| RecordKey::document_head(scope, path))).await?;
            for (path, record) in some.iter().zip(records) {
                match record {
                    Some(record) => heads.push(DocumentHead::from_bytes(&record.body)?),
                    None => without.push(path.clone()),
                }
            }
        }
        // Written by a build that kept no heads, or ended since the index was read.
        for some in without.chunks(AT_ONCE) {
            heads.extend(self.get_many(scope, some).await?.iter().flatten().map(DocumentHead::from));
        }
        heads.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(heads)
    }

    /// The paths of a scope that changed since `after`, in the order of their last change; zero gives all there are,
    /// and those whose document is gone by now.
    pub async fn changes(&self, scope: &DocScope, after: u64) -> Result<Vec<PathChange>, StoreError> {
        let range = |index: IndexName, from| Op::Range {
            index: self.0.space.index(&index),
            from,
            to: u64::MAX,
            limit: usize::MAX,
        };
        let mut ops = vec![range(IndexName::document_changes(scope), after.saturating_add(1))];
        if after == 0 {
            ops.push(range(IndexName::documents(scope), 0));
        }
        let mut answers = self.0.run(&ops).await?;
        let marked = answers.members()?;
        let mut changes = Vec::with_capacity(marked.len());
        if after == 0 {
            // Written by a build that kept no changes.
            let known: std::collections::HashSet<&str> = marked.iter().map(|(path, _)| path.as_str()).collect();
            let unmarked = answers.members()?.into_iter().filter(|(path, _)| !known.contains(path.as_str()));
            changes.extend(unmarked.map(|(path, _)| PathChange { path, mark: BEFORE_ALL }));
        }
        changes.extend(marked.into_iter().map(|(path, mark)| PathChange { path, mark }));
        Ok(changes)
    }

    /// The versions of a document before number `before`, newest first, tombstones among them.
    pub async fn history(
        &self,
        scope: &DocScope,
        path: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        let Some(last) = self.last(scope, path).await? else { return Ok(Vec::new()) };
        let below = before.unwrap_or(u64::MAX).min(last.version);
        let mut versions = Vec::new();
        if before.is_none_or(|before| last.version < before) {
            versions.push(last);
        }
        versions.truncate(limit);
        let wanted: Vec<u64> = (1..below).rev().take(limit - versions.len()).collect();
        if wanted.is_empty() {
            return Ok(versions);
        }
        versions.extend(self.numbered(scope, path, &wanted).await?);
        Ok(versions)
    }

    /// One version of a document.
    pub async fn version(&self, scope: &DocScope, path: &str, number: u64) -> Result<Option<Document>, StoreError> {
        let keys = [RecordKey::document(scope, path), RecordKey::document_version(scope, path, number)];
        let mut found = self.documents(keys.into_iter()).await?.into_iter().flatten();
        if let Some(found) = found.find(|found| found.version == number) {
            return Ok(Some(found));
        }
        Ok(self.unnumbered(scope, path).await?.into_iter().find(|found| found.version == number))
    }

    /// Earlier versions by number, in the order asked for, as far as there are any.
    async fn numbered(&self, scope: &DocScope, path: &str, wanted: &[u64]) -> Result<Vec<Document>, StoreError> {
        let mut found = Vec::with_capacity(wanted.len());
        for some in wanted.chunks(AT_ONCE) {
            let keys = some.iter().map(|number| RecordKey::document_version(scope, path, *number));
            found.extend(self.documents(keys).await?.into_iter().flatten());
        }
        if found.len() < wanted.len() {
            let have: Vec<u64> = found.iter().map(|found| found.version).collect();
            let missing = |older: &Document| wanted.contains(&older.version) && !have.contains(&older.version);
            found.extend(self.unnumbered(scope, path).await?.into_iter().filter(missing));
            found.sort_by_key(|found| std::cmp::Reverse(found.version));
        }
        Ok(found)
    }

    /// The versions kept by a build that did not keep each as a record.
    async fn unnumbered(&self, scope: &DocScope, path: &str) -> Result<Vec<Document>, StoreError> {
        let entries = self.0.read(&StreamName::versions(scope, path), None, usize::MAX).await?;
        entries.into_iter().map(|(_, body)| Document::from_bytes(&body)).collect()
    }

    async fn documents(&self, keys: impl Iterator<Item = RecordKey>) -> Result<Vec<Option<Document>>, StoreError> {
        self.records(keys).await?.into_iter().map(read).collect()
    }

    async fn records(&self, keys: impl Iterator<Item = RecordKey>) -> Result<Vec<Option<StoredRecord>>, StoreError> {
        let ops: Vec<Op> = keys.map(|key| Op::Get { key: self.0.space.record(&key) }).collect();
        if ops.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.0.run(&ops).await?;
        ops.iter().map(|_| answers.record()).collect()
    }
}

fn read(record: Option<StoredRecord>) -> Result<Option<Document>, StoreError> {
    record.map(|record| Document::from_bytes(&record.body)).transpose()
}
