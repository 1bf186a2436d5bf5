//! The sealer: gives entries of the audit log their links, some time after they were written.
//!
//! Every replica may seal at any time. The seal is a versioned record, moved together with the links it stands for by
//! one compare-and-set, so of two sealers one advances and the other has done nothing. Appending never waits for it.
//!
//! Not here: how a link is computed (see [`chain`](crate::chain)), who seals and how often (see the gateway).

use crate::chain::{Chain, ChainLink};
use crate::commit::{Commit, Committed, RecordVersion};
use crate::ops::{Op, StreamId, StreamWalk};
use crate::{RecordKey, StoreError, StoredRecord, StreamName, TenantStore};
use serde::{Deserialize, Serialize};

/// The most entries of one batch: others wait while a commit appends their links.
const MOST: usize = 500;

/// What one batch came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedBatch {
    /// How many entries were sealed; none if somebody else was quicker.
    pub count: usize,
    /// Whether entries behind these were there to be sealed as well.
    pub behind: bool,
}

const NOTHING: SealedBatch = SealedBatch { count: 0, behind: false };

impl TenantStore {
    /// Seals the next entries of the audit log, at most `limit`.
    ///
    /// An audit log with nothing new costs one round trip, a batch three. To lose the race is fine: the winner goes on.
    pub async fn seal(&self, limit: usize) -> Result<SealedBatch, StoreError> {
        let newest =
            Op::Read { stream: self.space.stream(&StreamName::audit()), walk: StreamWalk::Before(None), limit: 1 };
        let mut answers = self.run(&[self.read_seal(), newest]).await?;
        let (record, newest) = (answers.record()?, answers.entries()?.pop().map(|(id, _)| id));
        let version = record.as_ref().map_or(RecordVersion::NONE, |record| record.version);
        let seal = record.map(|record| seal_of(&record)).transpose()?;
        let last = seal.map(|seal| seal.entry);
        if newest <= last {
            return Ok(NOTHING);
        }
        let entries = self.read(&StreamName::audit(), last, limit.clamp(1, MOST)).await?;
        let mut chain = seal.as_ref().map_or_else(|| Chain::of(self.tenant()), Chain::behind);
        let links: Vec<ChainLink> = entries.iter().map(|(id, body)| chain.add(*id, body)).collect();
        let Some(seal) = links.last() else { return Ok(NOTHING) };
        match self.commit(advance(version, seal, &links)?).await? {
            Committed::Done(..) => Ok(SealedBatch { count: links.len(), behind: Some(seal.entry) < newest }),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(NOTHING),
        }
    }

    /// The step that reads the seal, for whoever reads it together with something else.
    pub(crate) fn read_seal(&self) -> Op {
        Op::Get { key: self.space.record(&RecordKey::seal()) }
    }

    /// How far the audit log is sealed.
    pub(crate) async fn find_seal(&self) -> Result<Option<ChainLink>, StoreError> {
        self.get(&RecordKey::seal()).await?.map(|record| seal_of(&record)).transpose()
    }
}

/// Moves the seal and appends the links it stands for, or does neither.
fn advance(expect: RecordVersion, seal: &ChainLink, links: &[ChainLink]) -> Result<Commit, StoreError> {
    let append =
        links.iter().map(|link| Ok((StreamName::links(), to_bytes(link)?))).collect::<Result<_, StoreError>>()?;
    let body = to_bytes(&StoredSeal { v: 1, seal: *seal })?;
    Ok(Commit { append, ..Commit::write(RecordKey::seal(), expect, body) })
}

/// The shape in which a seal is stored; the number tells later releases how to read it.
#[derive(Serialize, Deserialize)]
struct StoredSeal {
    v: u8,
    seal: ChainLink,
}

pub(crate) fn seal_of(record: &StoredRecord) -> Result<ChainLink, StoreError> {
    match serde_json::from_slice(&record.body) {
        Ok(StoredSeal { v: 1, seal }) => Ok(seal),
        Ok(StoredSeal { .. }) | Err(_) => Err(StoreError::Corrupt { what: "the seal of an audit log" }),
    }
}

/// A link as it stands in the stream; `None` if that is not one of ours.
pub(crate) fn link_of((_, body): &(StreamId, Vec<u8>)) -> Option<ChainLink> {
    serde_json::from_slice(body).ok()
}

fn to_bytes(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(value).map_err(|_| StoreError::Corrupt { what: "a link that cannot be written" })
}
