//! How many requests may be under way to one target, and how long the next one waits for its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

/// How long a request waits for its slot.
const WAIT: Duration = Duration::from_secs(5);

/// The slots of one target.
#[derive(Debug, Clone)]
pub struct TargetSlots {
    free: Arc<Semaphore>,
    many: usize,
    waiting: Arc<AtomicUsize>,
}

/// One slot, free again when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct TargetSlot {
    _held: OwnedSemaphorePermit,
}

/// Too many requests are under way, and none ended while this one waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyRequests;

impl TargetSlots {
    /// So many slots.
    pub fn new(many: usize) -> TargetSlots {
        TargetSlots { free: Arc::new(Semaphore::new(many)), many, waiting: Arc::default() }
    }

    /// How many are taken, and how many requests wait for one.
    pub fn in_use(&self) -> (usize, usize) {
        (self.many.saturating_sub(self.free.available_permits()), self.waiting.load(Ordering::Relaxed))
    }

    /// The next slot that is free; nobody waits longer than the deadline, or for long.
    pub async fn take(&self, deadline: Instant) -> Result<TargetSlot, TooManyRequests> {
        let wait = deadline.min(Instant::now() + WAIT);
        if let Ok(held) = Arc::clone(&self.free).try_acquire_owned() {
            return Ok(TargetSlot { _held: held });
        }
        let _waiting = WaitingRequest::count(&self.waiting);
        match timeout_at(wait, Arc::clone(&self.free).acquire_owned()).await {
            Ok(Ok(held)) => Ok(TargetSlot { _held: held }),
            Ok(Err(_)) | Err(_) => Err(TooManyRequests),
        }
    }
}

/// Counted until it is dropped, however its wait ends.
struct WaitingRequest<'w>(&'w AtomicUsize);

impl WaitingRequest<'_> {
    fn count(waiting: &AtomicUsize) -> WaitingRequest<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        WaitingRequest(waiting)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slot_is_waited_for_and_free_again_when_dropped() {
        let slots = TargetSlots::new(1);
        let later = Instant::now() + Duration::from_secs(60);
        let first = slots.take(later).await.expect("one is free");
        let began = Instant::now();
        assert!(slots.take(later).await.is_err());
        assert_eq!(began.elapsed(), WAIT);
        assert!(slots.take(Instant::now()).await.is_err(), "a deadline is not overstepped");
        drop(first);
        assert!(slots.take(later).await.is_ok());
    }
}
