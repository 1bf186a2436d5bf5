//! Which store this is, as far as this process knows: the marks it has seen, and what follows from all of them together.
//!
//! A store on one node has one mark, a cluster one for each shard. What is told is the store as a whole: it counts as
//! another one from the latest moment at which any shard did. So the failover of one shard makes doubtful what was approved
//! on any; the other way, moments for each shard, would lose the moment of a shard when slots move away from it.

use super::mark::EpochRecord;
use crate::lineage::{StoreEpoch, StoreEpochs};
use domain::Moment;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How long a loss is told of on the readiness page.
const TELL: Duration = Duration::from_secs(600);

pub(super) struct EpochMemory {
    known: Mutex<KnownMarks>,
    told: watch::Sender<StoreEpoch>,
    /// Whether what answered last was of another kind than the address says.
    misfit: AtomicBool,
}

#[derive(Default)]
struct KnownMarks {
    /// By their keys, so that a mark is remembered whichever node holds it.
    marks: HashMap<String, EpochRecord>,
    /// The servers whose mark could not be read or written, and were told of.
    unwritten: HashMap<String, Option<String>>,
    lost: Option<Instant>,
}

impl EpochMemory {
    pub(super) fn new() -> EpochMemory {
        EpochMemory {
            known: Mutex::default(),
            told: watch::Sender::new(StoreEpoch::default()),
            misfit: AtomicBool::new(false),
        }
    }

    /// Notes whether what answers is of the kind that the address says.
    pub(super) fn is_of_kind(&self, fits: bool, what: &str) {
        if self.misfit.swap(!fits, Ordering::Relaxed) == fits && !fits {
            tracing::error!(
                db.system.name = "redis",
                found = what,
                "store.url does not fit what answers: redis:// is for one node, redis+cluster:// for a cluster, \
                 redis+sentinel:// for the addresses of sentinels"
            );
        }
    }

    /// Whether it is not.
    pub(super) fn is_misfit(&self) -> bool {
        self.misfit.load(Ordering::Relaxed)
    }

    pub(super) fn lineages(&self) -> StoreEpochs {
        StoreEpochs::new(self.told.subscribe())
    }

    /// Whether all records of the store, or of one shard, were lost not long ago.
    pub(super) fn lost_lately(&self) -> bool {
        self.marks().lost.is_some_and(|at| at.elapsed() < TELL)
    }

    /// The mark under a key, as it was last seen.
    pub(super) fn known(&self, key: &str) -> Option<EpochRecord> {
        self.marks().marks.get(key).cloned()
    }

    /// The highest generation seen; 0 before any was.
    pub(super) fn generation(&self) -> u64 {
        self.told.borrow().generation
    }

    /// Takes the mark that stands in the store as what is so.
    pub(super) fn adopt(&self, key: &str, mark: EpochRecord) {
        let mut known = self.marks();
        if known.marks.get(key).is_some_and(|before| !before.same_line(&mark)) {
            known.lost = Some(Instant::now());
            tracing::error!(
                db.system.name = "redis",
                generation = mark.generation,
                "the store has lost its records; runs that this process still holds are written back as unknown"
            );
        }
        let epoch = StoreEpoch { generation: mark.generation, since: mark.since };
        known.unwritten.remove(key);
        known.marks.insert(key.to_owned(), mark);
        drop(known);
        self.tell(epoch);
    }

    /// Takes a mark that could not be written as what is so, once for each server.
    pub(super) fn expect(&self, key: &str, mark: &EpochRecord, server: Option<String>) {
        let told = self.marks().unwritten.insert(key.to_owned(), server.clone()) == Some(server);
        if !told {
            self.tell(StoreEpoch { generation: mark.generation, since: mark.since });
        }
    }

    /// A mark cannot be read at this server for the moment. Unless the server is the one that is known to have it, what was
    /// before is in doubt.
    pub(super) fn doubt(&self, key: &str, server: Option<String>) {
        let mut known = self.marks();
        if known.marks.get(key).is_some_and(|mark| mark.is_of(server.as_deref())) {
            return;
        }
        let told = known.unwritten.insert(key.to_owned(), server.clone()) == Some(server);
        drop(known);
        if !told {
            // The only moment taken from our own clock: the server's came with the answer that was refused.
            let since = Some(Moment::from_millis(unix_millis()));
            self.tell(StoreEpoch { generation: self.generation().max(1), since });
        }
    }

    /// Never goes back: a connection that still leads to the server of before knows no better.
    fn tell(&self, epoch: StoreEpoch) {
        let moved = self.told.send_if_modified(|told| {
            let next =
                StoreEpoch { generation: told.generation.max(epoch.generation), since: told.since.max(epoch.since) };
            std::mem::replace(told, next) != next
        });
        if moved && epoch.since.is_some() {
            tracing::warn!(db.system.name = "redis", "the store is held by another server than before");
        }
    }

    fn marks(&self) -> MutexGuard<'_, KnownMarks> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unix_millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
