//! The sealer: gives entries of the audit log their links, some time after they were written.
//!
//! A batch of items is sealed by one record of links. Every replica may seal at any time. The seal is a versioned record, moved together with the links it stands for by
//! one compare-and-set, so of two sealers one advances and the other has done nothing. Appending never waits for it.
//!
//! Who appends to an audit log seals it: [`Store::take_unsealed`](crate::Store::take_unsealed) names the tenants.
//!
//! Not here: how a link is computed (see [`chain`](crate::chain)), and how often is sealed (see the gateway).

use crate::chain::{Chain, ChainLink, LinkBatch};
use crate::commit::{Commit, Committed, RecordVersion};
use crate::ops::{Op, StreamWalk};
use crate::place::lines_of;
use crate::{RecordKey, StoreError, StoredRecord, StreamName, TenantStore};
use domain::Tenant;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The most items of one batch: they are read whole.
const MOST_ITEMS: usize = 128;
/// No further item is taken into a batch of so many entries: whoever reads a page reads their links.
const MANY_ENTRIES: usize = 1_024;

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
    /// Seals the next items of the audit log, at most `limit`.
    ///
    /// An audit log with nothing new costs one round trip, a batch three. To lose the race is fine: the winner goes on.
    pub async fn seal(&self, limit: usize) -> Result<SealedBatch, StoreError> {
        let newest =
            Op::Read { stream: self.space.stream(&StreamName::audit()), walk: StreamWalk::Before(None), limit: 1 };
        let mut answers = self.run(&[self.read_seal(), newest]).await?;
        let (record, newest) = (answers.record()?, answers.entries()?.pop().map(|(id, _)| id));
        let version = record.as_ref().map_or(RecordVersion::NONE, |record| record.version);
        let seal = record.map(|record| seal_of(&record)).transpose()?;
        let last = seal.map(|seal| seal.entry.item);
        if newest <= last {
            return Ok(NOTHING);
        }
        let items = self.read(&StreamName::audit(), last, limit.clamp(1, MOST_ITEMS)).await?;
        let mut chain = seal.as_ref().map_or_else(|| Chain::of(self.tenant()), Chain::behind);
        let mut links: Vec<ChainLink> = Vec::new();
        for (item, body) in &items {
            if links.len() >= MANY_ENTRIES {
                break;
            }
            links.extend(lines_of(*item, body).map(|(place, line)| chain.add(place, line)));
        }
        let (Some(seal), Some(batch)) = (links.last(), LinkBatch::of(&links)) else { return Ok(NOTHING) };
        match self.commit(advance(version, seal, &batch)?).await? {
            Committed::Done(..) => Ok(SealedBatch { count: links.len(), behind: Some(seal.entry.item) < newest }),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(NOTHING),
        }
    }

    /// The step that reads the seal, for whoever reads it together with something else.
    pub(crate) fn read_seal(&self) -> Op {
        Op::Get { key: self.space.record(&RecordKey::seal()) }
    }

    /// How far the audit log is sealed.
    pub async fn find_seal(&self) -> Result<Option<ChainLink>, StoreError> {
        self.get(&RecordKey::seal()).await?.map(|record| seal_of(&record)).transpose()
    }
}

/// Moves the seal and appends the links it stands for, or does neither.
fn advance(expect: RecordVersion, seal: &ChainLink, batch: &LinkBatch) -> Result<Commit, StoreError> {
    const UNWRITABLE: StoreError = StoreError::Corrupt { what: "a link that cannot be written" };
    let links = batch.to_bytes().map_err(|_| UNWRITABLE)?;
    let body = serde_json::to_vec(&StoredSeal { v: 2, seal: *seal }).map_err(|_| UNWRITABLE)?;
    Ok(Commit { append: vec![(StreamName::links(), links)], ..Commit::write(RecordKey::seal(), expect, body) })
}

/// The shape in which a seal is stored. The number tells how to read it: under 1 every item held one entry.
#[derive(Serialize, Deserialize)]
struct StoredSeal {
    v: u8,
    seal: ChainLink,
}

pub(crate) fn seal_of(record: &StoredRecord) -> Result<ChainLink, StoreError> {
    match serde_json::from_slice(&record.body) {
        Ok(StoredSeal { v: 1 | 2, seal }) => Ok(seal),
        Ok(StoredSeal { .. }) | Err(_) => Err(StoreError::Corrupt { what: "the seal of an audit log" }),
    }
}

/// The tenants whose audit log this process has written to since it last sealed it.
#[derive(Default)]
pub(crate) struct Unsealed {
    tenants: Mutex<BTreeSet<Tenant>>,
    added: Notify,
}

impl Unsealed {
    pub(crate) fn add(&self, tenant: &Tenant) {
        let mut tenants = self.tenants();
        if !tenants.contains(tenant) {
            tenants.insert(tenant.clone());
            drop(tenants);
            self.added.notify_one();
        }
    }

    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    pub(crate) fn all(&self) -> BTreeSet<Tenant> {
        self.tenants().clone()
    }

    pub(crate) fn take(&self) -> BTreeSet<Tenant> {
        std::mem::take(&mut *self.tenants())
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeSet<Tenant>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
