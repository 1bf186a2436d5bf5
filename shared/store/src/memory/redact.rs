//! Redacting: the text of versions is taken away at once and for good.
//!
//! The lines of a version also stand in the diff of the version after it, so that goes too. A document whose present text
//! is redacted is a document no more: a tombstone takes its place, which says who did it and why.

use super::forget::moved;
use super::{AT_ONCE, DocumentStore, RemovalOutcome, TRIES};
use crate::commit::SideWrite;
use crate::document::{DocOp, DocScope, Document, Redaction, Removal};
use crate::entry::AuditEntry;
use crate::{RecordKey, StoreError, StreamName};
use domain::Moment;
use std::collections::BTreeSet;

/// What is to lose its text.
struct RedactTarget<'r> {
    /// This version, or all.
    version: Option<u64>,
    removal: &'r Removal,
    at: Moment,
}

impl DocumentStore {
    /// Takes the text of one version away for good, or of all.
    pub async fn redact(
        &self,
        scope: &DocScope,
        path: &str,
        version: Option<u64>,
        removal: &Removal,
        entry: &AuditEntry,
    ) -> Result<RemovalOutcome, StoreError> {
        let mut tries = TRIES;
        loop {
            let standing = self.standing(scope, path).await?;
            let Some(found) = &standing.document else { return Ok(RemovalOutcome::Absent) };
            tries -= 1;
            if tries == 0 {
                return Ok(RemovalOutcome::Conflict(Box::new(found.clone())));
            }
            let target = RedactTarget { version, removal, at: standing.now };
            let (mut beside, mut redacted) = self.redact_before(scope, found, &target).await?;
            redacted.extend(target.takes(found.version).then_some(found.version));
            if redacted.is_empty() {
                return Ok(RemovalOutcome::Absent);
            }
            let mut last = target.apply(found).unwrap_or_else(|| found.clone());
            if target.takes(found.version) && !found.deleted {
                beside.push(moved(scope, &last, removal.keep)?);
                last =
                    Document { redacted: last.redacted.clone(), ..last.tombstone(DocOp::Redact, removal, target.at) };
            }
            let commit = self.changing(scope, &last, beside, &standing, removal.keep)?;
            if self.settled(commit, entry).await? {
                return Ok(RemovalOutcome::Done { last: Box::new(last), redacted: redacted.into_iter().collect() });
            }
        }
    }

    /// What happens to the versions before the last, and which of them have no text then.
    async fn redact_before(
        &self,
        scope: &DocScope,
        last: &Document,
        target: &RedactTarget<'_>,
    ) -> Result<(Vec<SideWrite>, BTreeSet<u64>), StoreError> {
        let (path, mut beside, mut redacted) = (&last.path, Vec::new(), BTreeSet::new());
        let unnumbered = self.unnumbered(scope, path).await?;
        for older in unnumbered.iter().filter(|older| older.version < last.version) {
            redacted.extend(target.takes(older.version).then_some(older.version));
            beside.push(moved(scope, target.apply(older).as_ref().unwrap_or(older), target.removal.keep)?);
        }
        if !unnumbered.is_empty() {
            beside.push(SideWrite::ForgetStream(StreamName::versions(scope, path)));
        }
        let numbers: Vec<u64> = match target.version {
            Some(number) => (number..=number.saturating_add(1)).filter(|number| *number < last.version).collect(),
            None => (1..last.version).collect(),
        };
        for some in numbers.chunks(AT_ONCE) {
            let keys = some.iter().map(|number| RecordKey::document_version(scope, path, *number));
            for found in self.documents(keys).await?.into_iter().flatten() {
                redacted.extend(target.takes(found.version).then_some(found.version));
                if let Some(changed) = target.apply(&found) {
                    let key = RecordKey::document_version(scope, path, found.version);
                    beside.push(SideWrite::Replace(key, changed.to_bytes()?));
                }
            }
        }
        Ok((beside, redacted))
    }
}

impl RedactTarget<'_> {
    fn takes(&self, version: u64) -> bool {
        self.version.is_none_or(|wanted| wanted == version)
    }

    /// What becomes of a version; `None` if nothing does. Who redacted it first is not forgotten.
    fn apply(&self, version: &Document) -> Option<Document> {
        if self.takes(version.version) {
            let redaction =
                Redaction { by: self.removal.actor.clone(), reason: self.removal.reason.clone(), at: self.at };
            return version.redacted.is_none().then(|| version.clone().redact(redaction));
        }
        let follows = version.version.checked_sub(1).is_some_and(|before| self.takes(before));
        (follows && !version.diff.is_empty()).then(|| Document { diff: String::new(), ..version.clone() })
    }
}
