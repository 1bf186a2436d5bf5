//! Fetched indexes, by tenant and repository. One is fetched at a time for each of them.

use super::ChartRepository;
use super::index::ChartIndex;
use domain::{Moment, Tenant};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How many indexes are kept; the oldest of those at rest go first.
const MOST: usize = 128;
/// How many bytes of index text those may have had together.
const MOST_BYTES: usize = 256 << 20;

/// An index and when it was fetched.
#[derive(Debug)]
pub struct FetchedIndex {
    /// What the repository has.
    pub index: ChartIndex,
    /// When it said so.
    pub at: Moment,
    pub(in crate::client) since: Instant,
    bytes: usize,
}

impl FetchedIndex {
    /// Fetched just now, out of so many bytes.
    pub(in crate::client) fn now(index: ChartIndex, bytes: usize) -> FetchedIndex {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at = Moment::from_millis(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        FetchedIndex { index, at, since: Instant::now(), bytes }
    }
}

/// The place of one index; held while it is fetched.
pub(in crate::client) type IndexSlot = Arc<tokio::sync::Mutex<Option<Arc<FetchedIndex>>>>;
type IndexSlots = HashMap<(Tenant, ChartRepository), IndexSlot>;

/// All of them.
#[derive(Default)]
pub(in crate::client) struct ChartIndexes(Mutex<IndexSlots>);

impl ChartIndexes {
    /// The place of one. A new one makes room for itself.
    pub(in crate::client) fn slot(&self, tenant: &Tenant, repository: &ChartRepository) -> IndexSlot {
        let key = (tenant.clone(), repository.clone());
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !slots.contains_key(&key) {
            make_room(&mut slots);
        }
        Arc::clone(slots.entry(key).or_default())
    }
}

fn make_room(slots: &mut IndexSlots) {
    // Places that nobody filled weigh nothing and are the first to go.
    let at_rest = |slot: &IndexSlot| {
        let held = slot.try_lock().ok()?;
        Some(held.as_ref().map(|fetched| (fetched.since, fetched.bytes)))
    };
    let mut rest: Vec<_> = slots.iter().filter_map(|(key, slot)| Some((at_rest(slot)?, key.clone()))).collect();
    rest.sort_by_key(|(held, _)| held.map(|(since, _)| since));
    let size = |held: Option<(Instant, usize)>| held.map_or(0, |(_, bytes)| bytes);
    let mut bytes: usize = rest.iter().map(|(held, _)| size(*held)).sum();
    for (held, key) in rest {
        if slots.len() < MOST && bytes <= MOST_BYTES {
            break;
        }
        slots.remove(&key);
        bytes -= size(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(n: usize) -> ChartRepository {
        ChartRepository { name: format!("r{n}"), url: String::new(), credential: None }
    }

    #[tokio::test]
    async fn the_oldest_at_rest_make_room_and_one_under_way_stays() {
        let (indexes, acme) = (ChartIndexes::default(), Tenant::parse("acme").unwrap());
        let under_way = indexes.slot(&acme, &repository(0));
        let _held = under_way.lock().await;
        for n in 1..=MOST + 10 {
            *indexes.slot(&acme, &repository(n)).lock().await =
                Some(Arc::new(FetchedIndex::now(ChartIndex::default(), 1)));
        }
        assert_eq!(indexes.0.lock().unwrap().len(), MOST);
        assert!(Arc::ptr_eq(&under_way, &indexes.slot(&acme, &repository(0))));
        assert!(indexes.slot(&acme, &repository(MOST + 10)).lock().await.is_some(), "the newest is there");

        *indexes.slot(&acme, &repository(1_000)).lock().await =
            Some(Arc::new(FetchedIndex::now(ChartIndex::default(), MOST_BYTES + 1)));
        indexes.slot(&acme, &repository(1_001));
        assert!(indexes.slot(&acme, &repository(1_000)).lock().await.is_none(), "too large to stay");
    }
}
