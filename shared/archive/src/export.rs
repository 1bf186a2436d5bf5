//! Sending an audit log to a sink, chunk by chunk.
//!
//! How far a sink has got is a versioned record. Before a chunk is sent, its end is written there together with who
//! sends it and until when: whoever sends it again, after a crash or a lost answer, sends the same bytes under the same
//! name. So a sink gets everything at least once, and what it gets twice takes its own place.

use crate::archive::Archive;
use crate::checkpoint::Checkpoint;
use crate::config::SinkContents;
use crate::lines::{ExportEntry, ExportHead, write_line};
use crate::range::{RangeError, RangeReader, tell_broken};
use crate::sign::NewestCheckpoint;
use crate::sink::{Chunk, Sink, SinkError};
use domain::Moment;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::time::Duration;
use store::{
    AuditLogPosition, ChainLink, Commit, Committed, RecordKey, RecordVersion, StoreError, StreamId, StreamName,
    TenantStore,
};

/// The most entries of a chunk.
const MOST_ENTRIES: u64 = 1_000;
/// No further page is taken into a chunk of so many bytes.
const MANY_BYTES: usize = 8 << 20;
/// Checkpoints that are read at once.
const CHECKPOINTS: usize = 100;
/// How long others leave a chunk to whoever sends it.
const LEASE: Duration = Duration::from_secs(120);
/// How long a tenant is left to the replica that was quicker.
const LATER: Duration = Duration::from_secs(1);

const UNREADABLE: StoreError = StoreError::Corrupt { what: "how far an audit log was exported" };

/// How far a sink has got.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ExportPlace {
    /// The link of the last entry it has.
    pub(crate) link: Option<ChainLink>,
    /// Where the entries behind it begin.
    at: Option<String>,
    /// The number of the last checkpoint it has.
    pub(crate) checkpoint: u64,
    /// Its place in the stream of checkpoints.
    checkpoint_at: Option<String>,
}

impl ExportPlace {
    pub(crate) fn seq(&self) -> u64 {
        self.link.map_or(0, |link| link.seq)
    }
}

/// A chunk that somebody is sending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Claim {
    by: String,
    until: Moment,
    /// The last entry of the chunk.
    to: u64,
    /// The last checkpoint of the chunk.
    checkpoint: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct StoredExport {
    v: u8,
    done: ExportPlace,
    claim: Option<Claim>,
}

/// Why nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The audit log.
    #[error(transparent)]
    Range(#[from] RangeError),
    /// The sink.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl From<StoreError> for ExportError {
    fn from(error: StoreError) -> ExportError {
        ExportError::Range(RangeError::Store(error))
    }
}

/// What came of a look at a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportOutcome {
    /// The sink has everything that is sealed.
    Nothing,
    /// Something waits, for its time or for another replica, and is to be looked at after that long.
    Waiting(Duration),
    /// A chunk was sent; there may be more.
    Sent,
}

/// How far a sink has got with a tenant.
pub(crate) async fn exported(shelf: &TenantStore, sink: &str) -> Result<ExportPlace, StoreError> {
    Ok(find(shelf, sink).await?.1.done)
}

async fn find(shelf: &TenantStore, sink: &str) -> Result<(RecordVersion, StoredExport), StoreError> {
    let (version, mut state) = match shelf.get(&RecordKey::export(sink)).await? {
        Some(record) => (record.version, serde_json::from_slice(&record.body).map_err(|_| UNREADABLE)?),
        None => (RecordVersion::NONE, StoredExport { v: 1, ..StoredExport::default() }),
    };
    if state.v != 1 {
        return Err(UNREADABLE);
    }
    // A sink that is new, or was away from the settings, gets what is still there.
    if let Some(trim) = shelf.trimmed().await?.filter(|trim| trim.link.seq > state.done.seq()) {
        state.done = ExportPlace { link: Some(trim.link), at: None, ..state.done };
        state.claim = None;
    }
    Ok((version, state))
}

impl Archive {
    /// Sends the next chunk of a tenant's audit log to a sink, if one is due.
    pub async fn export(&self, sink: usize, shelf: &TenantStore) -> Result<ExportOutcome, ExportError> {
        let Some(sink) = self.sinks.get(sink).filter(|sink| sink.config.takes(shelf.tenant())) else {
            return Ok(ExportOutcome::Nothing);
        };
        let (tenant, name) = (shelf.tenant(), sink.config.name.as_str());
        let (version, state) = find(shelf, name).await?;
        let (seal, (_, newest)) = (shelf.find_seal().await?, NewestCheckpoint::find(shelf).await?);
        let sealed = seal.map_or(0, |seal| seal.seq);
        let signed = newest.map_or(0, |newest| newest.checkpoint.checkpoint);
        if sealed <= state.done.seq() && signed <= state.done.checkpoint {
            self.status.unsent(tenant, name, None);
            return Ok(ExportOutcome::Nothing);
        }
        let now = shelf.store().now().await?;
        let ours = shelf.store().replica();
        if let Some(claim) = state.claim.as_ref().filter(|claim| claim.by != ours && claim.until > now) {
            return Ok(ExportOutcome::Waiting(claim.until.since(now)));
        }
        let draft = match ChunkDraft::read(shelf, &state, sealed, sink.config.contents).await {
            Err(error @ RangeError::Broken(_)) => {
                self.status.failed_to_verify();
                tell_broken(tenant, &error);
                return Err(error.into());
            }
            draft => draft?,
        };
        let oldest = draft.at.unwrap_or(now);
        self.status.unsent(tenant, name, Some(oldest));
        let whole = draft.end.seq() - state.done.seq() >= MOST_ENTRIES || draft.text.len() >= MANY_BYTES;
        let due_in = sink.config.every.saturating_sub(now.since(oldest));
        if state.claim.is_none() && !whole && !due_in.is_zero() && draft.at.is_some() {
            return Ok(ExportOutcome::Waiting(due_in));
        }
        self.send(sink, shelf, (version, state), draft, now).await
    }

    async fn send(
        &self,
        sink: &Sink,
        shelf: &TenantStore,
        (version, state): (RecordVersion, StoredExport),
        draft: ChunkDraft,
        now: Moment,
    ) -> Result<ExportOutcome, ExportError> {
        let (key, by) = (RecordKey::export(&sink.config.name), shelf.store().replica().to_owned());
        let (to, checkpoint) = (draft.end.seq(), draft.end.checkpoint);
        let claim = Some(Claim { by, until: now.plus(LEASE), to, checkpoint });
        let claimed = StoredExport { claim, ..state.clone() };
        let Committed::Done(version, _) = shelf.commit(Commit::write(key.clone(), version, bytes(&claimed)?)).await?
        else {
            return Ok(ExportOutcome::Waiting(LATER));
        };
        let name = format!("{:012}-{to:012}-{checkpoint:08}.jsonl", state.done.seq() + 1);
        let chunk =
            Chunk { tenant: shelf.tenant().clone(), name, at: draft.at.unwrap_or(now), lines: draft.text.into_bytes() };
        sink.put(&chunk, now).await?;
        let done = StoredExport { v: 1, done: draft.end, claim: None };
        // Whoever took the claim over meanwhile has sent the same chunk.
        match shelf.commit(Commit::write(key, version, bytes(&done)?)).await? {
            Committed::Done(..) => Ok(ExportOutcome::Sent),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(ExportOutcome::Waiting(LATER)),
        }
    }
}

fn bytes(state: &StoredExport) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(state).map_err(|_| UNREADABLE)
}

/// The lines of a chunk, and how far the sink has got once it has them.
struct ChunkDraft {
    text: String,
    /// When the first entry was written; none if there are only checkpoints.
    at: Option<Moment>,
    end: ExportPlace,
}

impl ChunkDraft {
    /// Reads what is behind `done`: up to the claim if there is one, else as much as a chunk takes.
    async fn read(
        shelf: &TenantStore,
        state: &StoredExport,
        sealed: u64,
        opens: SinkContents,
    ) -> Result<ChunkDraft, RangeError> {
        let StoredExport { done, claim, .. } = state;
        let to = claim.as_ref().map_or(sealed.min(done.seq() + MOST_ENTRIES), |claim| claim.to);
        let at = done.at.as_deref().and_then(AuditLogPosition::parse);
        let mut range = RangeReader::behind(shelf, done.link.as_ref(), at);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while range.seq() < to && (claim.is_some() || bytes < MANY_BYTES) {
            let page = range.next(to - range.seq()).await?;
            bytes += page.iter().map(|entry| entry.body.len()).sum::<usize>();
            entries.extend(page);
        }
        let link = entries.last().map(|entry| entry.whole).or(done.link);
        let (to, most) = (range.seq(), claim.as_ref().map_or(u64::MAX, |claim| claim.checkpoint));
        let mut checkpoints = checkpoints(shelf, done, to, most).await?;
        let last = checkpoints.back().map(|(id, checkpoint)| (checkpoint.checkpoint, Some(id.to_string())));
        let (checkpoint, checkpoint_at) = last.unwrap_or((done.checkpoint, done.checkpoint_at.clone()));
        let at = range.position().map(|at| at.to_string());
        let end = ExportPlace { link, at, checkpoint, checkpoint_at };

        let mut text = String::with_capacity(bytes + bytes / 2);
        let head = ExportHead::new(shelf.tenant().to_string(), done.link, end.link);
        let first = entries.first().map(|entry| entry.place.item.at);
        let unwritable = |_| RangeError::Store(UNREADABLE);
        write_line(&mut text, &head).map_err(unwritable)?;
        write_due(&mut text, &mut checkpoints, done.seq());
        for entry in entries {
            let seq = entry.whole.seq;
            // It was verified, so it is what this service wrote: one line of JSON.
            let raw = String::from_utf8(entry.body).ok().and_then(|body| RawValue::from_string(body).ok());
            let raw = raw.ok_or(RangeError::Broken(seq))?;
            let contents = (opens == SinkContents::Opened).then(|| shelf.open_contents(raw.get().as_bytes())).flatten();
            // A tenant that wants digests only has its salts kept as well.
            let contents = contents.filter(|contents| contents.whole || !contents.text.is_empty());
            let line = ExportEntry { id: entry.place.to_string(), contents, entry: raw };
            write_line(&mut text, &line).and_then(|()| write_line(&mut text, &entry.link)).map_err(unwritable)?;
            write_due(&mut text, &mut checkpoints, seq);
        }
        Ok(ChunkDraft { text, at: first, end })
    }
}

fn write_due(text: &mut String, checkpoints: &mut VecDeque<(StreamId, Checkpoint)>, seq: u64) {
    while checkpoints.front().is_some_and(|(_, checkpoint)| checkpoint.last <= seq)
        && let Some((_, checkpoint)) = checkpoints.pop_front()
    {
        text.push_str(&checkpoint.to_line());
        text.push('\n');
    }
}

/// The checkpoints behind those the sink has, as far as they sign entries up to `to`.
async fn checkpoints(
    shelf: &TenantStore,
    done: &ExportPlace,
    to: u64,
    most: u64,
) -> Result<VecDeque<(StreamId, Checkpoint)>, StoreError> {
    let (mut found, mut after) = (VecDeque::new(), done.checkpoint_at.as_deref().and_then(StreamId::parse));
    loop {
        let page = shelf.read(&StreamName::checkpoints(), after, CHECKPOINTS).await?;
        let count = page.len();
        for (id, body) in page {
            let line = std::str::from_utf8(&body).ok().and_then(Checkpoint::read);
            let checkpoint = line.ok_or(StoreError::Corrupt { what: "a checkpoint" })?;
            if checkpoint.last > to || checkpoint.checkpoint > most {
                return Ok(found);
            }
            after = Some(id);
            found.push_back((id, checkpoint));
        }
        if count < CHECKPOINTS {
            return Ok(found);
        }
    }
}
