//! Taking the beginning of an audit log away, up to the end of a checkpoint.
//!
//! Entries and links leave in the commit of the record that says from where the rest is verified, and the tenant's bytes
//! go down by what left. Not here: when that may be (see `archive`).

use crate::chain::{ChainLink, LinkBatch};
use crate::commit::{Commit, Committed, RecordVersion, SideWrite};
use crate::ops::Op;
use crate::{RecordKey, StoreError, StoredRecord, StreamId, StreamName, TenantStore};
use serde::{Deserialize, Serialize};

/// Items that are read at once to count them.
const AT_ONCE: usize = 256;

/// How far an audit log was trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trim {
    /// The link of the last entry that is gone.
    pub link: ChainLink,
    /// The place of the checkpoint that ends there.
    pub checkpoint: StreamId,
}

/// The shape in which it is stored.
#[derive(Serialize, Deserialize)]
struct StoredTrim {
    v: u8,
    link: ChainLink,
    checkpoint: String,
}

const UNREADABLE: StoreError = StoreError::Corrupt { what: "how far an audit log was trimmed" };

impl TenantStore {
    /// How far the audit log was trimmed; `None` if all of it is there.
    pub async fn trimmed(&self) -> Result<Option<Trim>, StoreError> {
        Ok(self.find_trim().await?.1)
    }

    async fn find_trim(&self) -> Result<(RecordVersion, Option<Trim>), StoreError> {
        let Some(record) = self.get(&RecordKey::trimmed()).await? else { return Ok((RecordVersion::NONE, None)) };
        Ok((record.version, Some(read(&record)?)))
    }

    /// The step that reads how far it was trimmed, for whoever reads it together with something else.
    pub(crate) fn read_trim(&self) -> Op {
        Op::Get { key: self.space.record(&RecordKey::trimmed()) }
    }

    /// What that step answered.
    pub(crate) fn trim_of(&self, record: Option<StoredRecord>) -> Result<Option<Trim>, StoreError> {
        let record = self.reading(&RecordKey::trimmed()).open(record)?;
        record.as_ref().map(read).transpose()
    }

    /// Takes everything up to an entry away, which is the last one of its item. Tells whether it did: not, if somebody
    /// else has trimmed meanwhile.
    pub async fn trim(&self, trim: &Trim) -> Result<bool, StoreError> {
        let (version, before) = self.find_trim().await?;
        if before.is_some_and(|before| before.link.seq >= trim.link.seq) {
            return Ok(false);
        }
        let last = trim.link.entry.item;
        let (_, entry_bytes) = self.measure(&StreamName::audit(), |id, _| id <= last).await?;
        let under = |_, body: &[u8]| LinkBatch::read(body).is_none_or(|batch| batch.last() <= trim.link.seq);
        let (last_link, link_bytes) = self.measure(&StreamName::links(), under).await?;
        let mut beside = vec![SideWrite::Trim(StreamName::audit(), last, entry_bytes)];
        beside.extend(last_link.map(|last| SideWrite::Trim(StreamName::links(), last, link_bytes)));
        let stored = StoredTrim { v: 1, link: trim.link, checkpoint: trim.checkpoint.to_string() };
        let body = serde_json::to_vec(&stored).map_err(|_| UNREADABLE)?;
        let commit = Commit { beside, ..Commit::write(RecordKey::trimmed(), version, body) };
        Ok(matches!(self.commit(commit).await?, Committed::Done(..)))
    }

    /// The last item of a stream's beginning, and the bytes of that beginning.
    async fn measure(
        &self,
        stream: &StreamName,
        belongs: impl Fn(StreamId, &[u8]) -> bool,
    ) -> Result<(Option<StreamId>, u64), StoreError> {
        let (mut last, mut bytes) = (None, 0);
        loop {
            let page = self.read(stream, last, AT_ONCE).await?;
            let count = page.len();
            for (id, body) in page {
                if !belongs(id, &body) {
                    return Ok((last, bytes));
                }
                (last, bytes) = (Some(id), bytes + body.len() as u64);
            }
            if count < AT_ONCE {
                return Ok((last, bytes));
            }
        }
    }
}

fn read(record: &StoredRecord) -> Result<Trim, StoreError> {
    let stored: StoredTrim = serde_json::from_slice(&record.body).map_err(|_| UNREADABLE)?;
    let checkpoint = StreamId::parse(&stored.checkpoint).filter(|_| stored.v == 1).ok_or(UNREADABLE)?;
    Ok(Trim { link: stored.link, checkpoint })
}
