//! How many calls of one tenant may be at one server, how many may wait for it, and how many there may be of all tenants.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// How many calls of all tenants together this process has at one address.
const TOGETHER: usize = 64;

/// The places of one tenant at one server.
#[derive(Debug)]
pub(crate) struct ServerSlots {
    free: Arc<Semaphore>,
    most: usize,
    waiting: AtomicUsize,
    most_waiting: usize,
}

/// One place, free again when it is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct ConcurrencySlot {
    _mine: OwnedSemaphorePermit,
    _common: OwnedSemaphorePermit,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoFreeSlot {
    /// Too many wait already.
    Queue,
    /// None became free in time.
    Late,
}

impl ServerSlots {
    pub(crate) fn new(in_flight: u32, waiting: u32) -> ServerSlots {
        let wide = |n: u32| usize::try_from(n).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        ServerSlots {
            free: Arc::new(Semaphore::new(wide(in_flight))),
            most: wide(in_flight),
            waiting: AtomicUsize::new(0),
            most_waiting: wide(waiting),
        }
    }

    /// How many calls are at the server, and how many wait.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.most.saturating_sub(self.free.available_permits()), self.waiting.load(Ordering::Relaxed))
    }

    /// The next place that is free, at the server and among all tenants.
    pub(crate) async fn take(&self, common: &Arc<Semaphore>, deadline: Instant) -> Result<ConcurrencySlot, NoFreeSlot> {
        let at_once = |room: &Arc<Semaphore>| Arc::clone(room).try_acquire_owned().ok();
        if let Some((mine, common)) = at_once(&self.free).and_then(|mine| Some((mine, at_once(common)?))) {
            return Ok(ConcurrencySlot { _mine: mine, _common: common });
        }
        let _chair = WaitingSeat::take(&self.waiting, self.most_waiting).ok_or(NoFreeSlot::Queue)?;
        // One's own place first: whoever waits for all tenants holds back nobody but its own.
        let both = async {
            let mine = Arc::clone(&self.free).acquire_owned().await.ok()?;
            Some(ConcurrencySlot { _mine: mine, _common: Arc::clone(common).acquire_owned().await.ok()? })
        };
        timeout_at(deadline, both).await.ok().flatten().ok_or(NoFreeSlot::Late)
    }
}

/// One of those who wait.
struct WaitingSeat<'a>(&'a AtomicUsize);

impl WaitingSeat<'_> {
    fn take(waiting: &AtomicUsize, most: usize) -> Option<WaitingSeat<'_>> {
        let more = |now: usize| (now < most).then_some(now + 1);
        waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| WaitingSeat(waiting))
    }
}

impl Drop for WaitingSeat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The places that all tenants share, by address.
#[derive(Debug, Default)]
pub(crate) struct SharedSlots(Mutex<HashMap<String, Weak<Semaphore>>>);

impl SharedSlots {
    /// Those of one address; forgotten once nobody is there.
    pub(crate) fn of(&self, address: &str) -> Arc<Semaphore> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.get(address).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, room| room.strong_count() > 0);
        let room = Arc::new(Semaphore::new(TOGETHER));
        all.insert(address.to_owned(), Arc::downgrade(&room));
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::task::JoinSet;

    #[tokio::test(start_paused = true)]
    async fn so_many_go_so_many_wait_and_the_next_is_refused_at_once() {
        let (places, common) = (Arc::new(ServerSlots::new(1, 1)), SharedSlots::default());
        let room = common.of("https://a");
        let soon = Instant::now() + Duration::from_secs(10);
        let first = places.take(&room, soon).await.unwrap();
        let (mut waiting, theirs, common_room) = (JoinSet::new(), Arc::clone(&places), Arc::clone(&room));
        waiting.spawn(async move { theirs.take(&common_room, soon).await.map(drop) });
        while places.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(places.take(&room, soon).await.unwrap_err(), NoFreeSlot::Queue);
        drop(first);
        assert_eq!(waiting.join_next().await.unwrap().unwrap(), Ok(()));
        let again = places.take(&room, soon).await.unwrap();
        assert_eq!(places.take(&room, soon).await.unwrap_err(), NoFreeSlot::Late, "nobody waits beyond the deadline");
        assert_eq!(Instant::now(), soon);
        drop(again);
    }

    #[tokio::test(start_paused = true)]
    async fn all_tenants_together_have_a_bound_at_one_address() {
        let common = SharedSlots::default();
        let (one, other) = (common.of("https://a"), common.of("https://b"));
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut held = Vec::new();
        for _ in 0..TOGETHER / 8 {
            let tenant = ServerSlots::new(8, 0);
            for _ in 0..8 {
                held.push(tenant.take(&common.of("https://a"), deadline).await.unwrap());
            }
        }
        assert_eq!(ServerSlots::new(8, 0).take(&one, deadline).await.unwrap_err(), NoFreeSlot::Queue);
        assert!(
            ServerSlots::new(8, 0).take(&other, deadline).await.is_ok(),
            "another server is none of their business"
        );
    }
}
