//! Deleting: a tombstone takes the document's place.
//!
//! Tombstone and versions are purged after a while, also if a new document takes the place meanwhile.

use super::write::{WriteCheck, purged_after};
use super::{AT_ONCE, DocumentStore, TRIES};
use crate::commit::{Score, SideWrite};
use crate::document::{DocOp, DocScope, Document, Removal};
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{Commit, Committed, IndexName, IndexUpdate, RecordKey, StoreError, StreamName, Topic};
use std::time::Duration;

/// How a deletion or redaction ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` removed something"]
pub enum RemovalOutcome {
    /// It is done.
    Done {
        /// What stands at the path now: a tombstone, or a document of which only earlier versions were redacted.
        last: Box<Document>,
        /// The versions asked for that have no text now, lowest first; none for a deletion.
        redacted: Vec<u64>,
    },
    /// Something else stands there than was named; this is it.
    Conflict(Box<Document>),
    /// There is no such document or version.
    Absent,
}

impl DocumentStore {
    /// Deletes a document: a tombstone takes its place, and lists no longer show it.
    pub async fn delete(
        &self,
        scope: &DocScope,
        path: &str,
        version: u64,
        removal: &Removal,
        entry: &AuditEntry,
    ) -> Result<RemovalOutcome, StoreError> {
        let mut tries = TRIES;
        loop {
            let standing = self.standing(scope, path).await?;
            let Some(document) = standing.document.as_ref().filter(|found| !found.deleted) else {
                return Ok(RemovalOutcome::Absent);
            };
            tries -= 1;
            if document.version != version || tries == 0 {
                return Ok(RemovalOutcome::Conflict(Box::new(document.clone())));
            }
            let last = document.tombstone(DocOp::Delete, removal, standing.now);
            let mut beside = vec![moved(scope, document, removal.keep)?];
            let unnumbered = self.unnumbered(scope, path).await?;
            for older in unnumbered.iter().filter(|older| older.version < document.version) {
                beside.push(moved(scope, older, removal.keep)?);
            }
            if !unnumbered.is_empty() {
                beside.push(SideWrite::ForgetStream(StreamName::versions(scope, path)));
            }
            let commit = self.changing(scope, &last, beside, &standing, removal.keep)?;
            if self.settled(commit, entry).await? {
                return Ok(RemovalOutcome::Done { last: Box::new(last), redacted: Vec::new() });
            }
        }
    }

    /// Deletes everything a session kept.
    pub async fn remove_session(&self, id: domain::SessionId) -> Result<(), StoreError> {
        let scope = DocScope::Session(id);
        let indexes = [
            IndexName::documents(&scope),
            IndexName::document_sizes(&scope),
            IndexName::document_changes(&scope),
            IndexName::deleted_documents(&scope),
        ];
        let mut keys: Vec<String> = indexes.iter().map(|index| self.0.space.index(index)).collect();
        let paths: Vec<String> = self.changes(&scope, 0).await?.into_iter().map(|change| change.path).collect();
        for some in paths.chunks(AT_ONCE) {
            let found = self.documents(some.iter().map(|path| RecordKey::document(&scope, path))).await?;
            for (path, found) in some.iter().zip(found) {
                let record = |key: RecordKey| self.0.space.record(&key);
                keys.push(record(RecordKey::document(&scope, path)));
                keys.push(record(RecordKey::document_head(&scope, path)));
                keys.push(self.0.space.stream(&StreamName::versions(&scope, path)));
                let earlier = 1..found.map_or(1, |found| found.version);
                keys.extend(earlier.map(|number| record(RecordKey::document_version(&scope, path, number))));
            }
        }
        self.0.run(&[Op::Forget { keys }]).await.map(|_| ())
    }

    /// The change after which `last` stands at its path. If that buries a document, it also leaves the lists, and all of
    /// its versions get an end.
    pub(super) fn changing(
        &self,
        scope: &DocScope,
        last: &Document,
        mut beside: Vec<SideWrite>,
        standing: &WriteCheck,
        keep: Option<Duration>,
    ) -> Result<Commit, StoreError> {
        let path = &last.path;
        let place =
            |index: IndexName, rank| IndexUpdate { index: index.forgotten_after(keep), member: path.clone(), rank };
        let mut index = vec![place(IndexName::document_changes(scope), Score::Last)];
        if last.deleted && standing.document.as_ref().is_some_and(|found| !found.deleted) {
            index.extend([
                place(IndexName::documents(scope), Score::Out),
                place(IndexName::document_sizes(scope), Score::Out),
                place(IndexName::deleted_documents(scope), Score::At(standing.now.millis())),
            ]);
            let end = |number| SideWrite::End(RecordKey::document_version(scope, path, number), purged_after(keep));
            beside.extend((1..last.version).map(end));
            beside.push(SideWrite::Forget(RecordKey::document_head(scope, path)));
        }
        index.extend(standing.clearing(scope, keep));
        Ok(Commit {
            expires: if last.deleted { Some(purged_after(keep)) } else { keep },
            index,
            beside,
            wake: Some(Topic::Document),
            ..Commit::write(RecordKey::document(scope, path), standing.record, last.to_bytes()?)
        })
    }

    /// Makes the change, unless somebody made another first.
    pub(super) async fn settled(&self, commit: Commit, entry: &AuditEntry) -> Result<bool, StoreError> {
        let append = vec![self.0.audit().write_out(entry)?];
        Ok(matches!(self.0.commit(Commit { append, ..commit }).await?, Committed::Done(..)))
    }
}

/// Keeps what stood at its path under its number.
pub(super) fn moved(scope: &DocScope, version: &Document, keep: Option<Duration>) -> Result<SideWrite, StoreError> {
    let key = RecordKey::document_version(scope, &version.path, version.version);
    Ok(SideWrite::Write(key, version.to_bytes()?, keep))
}
