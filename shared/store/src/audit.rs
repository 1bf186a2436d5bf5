//! The audit log of one tenant: opened before the act, closed after it.
//!
//! Opening is part of [`TenantStore::begin`](crate::TenantStore::begin), which gives the [`OpenAuditEntry`]. A change carries its entry in
//! its own commit. What is here: closing, noting what stands alone, and reading.
//! Not here: the chain of links over the entries, which is made by the sealer.

use crate::entry::{AuditEntry, CloseFacts, EntryEnd, EntryRecord, Phase};
use crate::ops::EntryStep;
use crate::place::entries_of;
use crate::{EntryPlace, StoreError, StreamName, TenantStore, random_bits};
use domain::{AuditId, CallId, Moment, SessionId, ToolName};
use serde_json::Value;
use std::sync::atomic::Ordering;

/// Items that are read at once: each may hold many entries.
const ITEMS: usize = 64;

/// Proof that the entry of a call is open. Whoever acts asks to see it; closing uses it up.
#[derive(Debug)]
#[must_use = "an entry that is opened has to be closed"]
pub struct OpenAuditEntry {
    pub(crate) call: CallId,
    pub(crate) session: Option<SessionId>,
    pub(crate) tool: ToolName,
    pub(crate) trace: Option<String>,
}

impl OpenAuditEntry {
    /// The call it was opened for.
    pub fn call(&self) -> CallId {
        self.call
    }
}

/// One entry as it stands in the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedEntry {
    /// Its place, which is also its store time.
    pub id: EntryPlace,
    /// The entry, with the store's time filled in.
    pub entry: Value,
}

/// The audit log of one tenant.
#[derive(Debug, Clone)]
pub struct AuditStore(TenantStore);

impl AuditStore {
    pub(crate) fn new(shelf: TenantStore) -> AuditStore {
        AuditStore(shelf)
    }

    /// Closes a call whose answer need not wait for the audit log: a read. Waits only when the queue is full.
    pub async fn close(&self, receipt: OpenAuditEntry, facts: &CloseFacts) -> Result<(), StoreError> {
        let step = self.closing(receipt, facts)?;
        self.0.store().writer().queue(self.0.tenant(), &self.0.space, step).await
    }

    /// Closes a call and waits until that is written.
    pub async fn close_now(&self, receipt: OpenAuditEntry, facts: &CloseFacts) -> Result<(), StoreError> {
        let step = self.closing(receipt, facts)?;
        let entered = self.0.store().writer().enter(self.0.tenant(), &self.0.space, step, Vec::new()).await?;
        entered.place().map(|_| ())
    }

    /// Writes an entry that stands alone, such as a refusal or an administrator's doing.
    pub async fn note(&self, entry: &AuditEntry) -> Result<EntryPlace, StoreError> {
        let step = EntryStep { body: self.write_out(entry)?.1, judged: None };
        self.0.store().writer().enter(self.0.tenant(), &self.0.space, step, Vec::new()).await?.place()
    }

    /// Writes an entry soon, without waiting for it.
    pub(crate) async fn queue(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let step = EntryStep { body: self.write_out(entry)?.1, judged: None };
        self.0.store().writer().queue(self.0.tenant(), &self.0.space, step).await
    }

    /// Entries behind `after`, oldest first.
    pub async fn page(&self, after: Option<EntryPlace>, limit: usize) -> Result<Vec<RecordedEntry>, StoreError> {
        // The item of `after` may hold more, so it is read again.
        let mut place = after.map(|after| after.item.before());
        let mut page = Vec::new();
        loop {
            let items = self.0.read(&StreamName::audit(), place, ITEMS.min(limit)).await?;
            let ended = items.len() < ITEMS.min(limit).max(1);
            place = items.last().map(|(id, _)| *id);
            let entries = items.into_iter().flat_map(entries_of);
            for entry in entries.filter(|(id, _)| after.is_none_or(|after| *id > after)) {
                if page.len() == limit {
                    return Ok(page);
                }
                page.push(noted(entry)?);
            }
            if ended {
                return Ok(page);
            }
        }
    }

    /// Entries before `before`, newest first.
    pub async fn page_back(&self, before: Option<EntryPlace>, limit: usize) -> Result<Vec<RecordedEntry>, StoreError> {
        let mut place = before.map(|before| before.item.behind());
        let mut page = Vec::new();
        loop {
            let items = self.0.read_back(&StreamName::audit(), place, ITEMS.min(limit)).await?;
            let ended = items.len() < ITEMS.min(limit).max(1);
            place = items.last().map(|(id, _)| *id);
            let entries = items.into_iter().flat_map(|item| entries_of(item).into_iter().rev());
            for entry in entries.filter(|(id, _)| before.is_none_or(|before| *id < before)) {
                if page.len() == limit {
                    return Ok(page);
                }
                page.push(noted(entry)?);
            }
            if ended {
                return Ok(page);
            }
        }
    }

    /// The entry as it rides in the commit of the change it records.
    pub(crate) fn write_out(&self, entry: &AuditEntry) -> Result<(StreamName, Vec<u8>), StoreError> {
        crate::failpoint::audit(entry)?;
        let id = AuditId::from_random(random_bits()?);
        let replica = self.0.store().replica();
        let mut line = entry.line(self.0.tenant(), id, replica);
        line.contents = entry.contents.as_ref().map(|contents| self.0.seal_contents(&line, contents)).transpose()?;
        Ok((StreamName::audit(), line.to_bytes()))
    }

    /// The closing entry, written straight from what is known, without a copy of any of it.
    fn closing(&self, receipt: OpenAuditEntry, facts: &CloseFacts) -> Result<EntryStep, StoreError> {
        self.0.store().receipts().fetch_sub(1, Ordering::Relaxed);
        crate::failpoint::audit_close()?;
        let id = AuditId::from_random(random_bits()?);
        let mut line = EntryRecord {
            session: receipt.session.map(|id| id.to_string()),
            call: Some(receipt.call.to_string()),
            tool: Some(receipt.tool.as_str()),
            decision: facts.decision.as_ref(),
            outcome: Some(EntryEnd::of(facts)),
            trace: receipt.trace.as_deref(),
            client: facts.client.as_deref(),
            ..EntryRecord::new(self.0.tenant(), id, self.0.store().replica(), Phase::Close)
        };
        line.contents = facts.contents.as_ref().map(|contents| self.0.seal_contents(&line, contents)).transpose()?;
        Ok(EntryStep { body: line.to_bytes(), judged: None })
    }
}

fn noted((id, body): (EntryPlace, Vec<u8>)) -> Result<RecordedEntry, StoreError> {
    const UNREADABLE: StoreError = StoreError::Corrupt { what: "an audit entry" };
    let mut entry: Value = serde_json::from_slice(&body).map_err(|_| UNREADABLE)?;
    let at = entry.get_mut("at").and_then(Value::as_object_mut).ok_or(UNREADABLE)?;
    let host = at.get("host").and_then(Value::as_u64).map(Moment::from_millis).ok_or(UNREADABLE)?;
    at.insert("host".to_owned(), Value::String(host.to_string()));
    at.insert("store".to_owned(), Value::String(id.item.at.to_string()));
    Ok(RecordedEntry { id, entry })
}
