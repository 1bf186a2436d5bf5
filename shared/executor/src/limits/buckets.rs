//! Token buckets: how often something may happen, in memory that is bounded.
//!
//! A bucket holds a minute's worth and fills up evenly, so a burst of a minute's worth is fine and a second one is not.
//! One that is full says nothing that a new one would not, and is forgotten when room is needed. If none can be, whoever
//! comes new shares one bucket with all others who do: their number is an attack, or far too small a setting.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const MINUTE: f64 = 60.0;
/// How often full buckets are looked for at most, since that looks at all of them.
const FORGET_EVERY: Duration = Duration::from_secs(1);

/// Buckets by key, at most so many.
#[derive(Debug)]
pub struct TokenBuckets<K> {
    most: usize,
    state: Mutex<BucketsState<K>>,
}

#[derive(Debug)]
struct BucketsState<K> {
    buckets: HashMap<K, Bucket>,
    /// For whoever finds no room.
    shared: Option<Bucket>,
    forgotten: Option<Instant>,
}

#[derive(Debug, Clone)]
struct Bucket {
    left: f64,
    per_minute: u64,
    at: Instant,
    closed_until: Option<Instant>,
}

impl Bucket {
    fn full(per_minute: u64, now: Instant) -> Bucket {
        Bucket { left: per_minute as f64, per_minute, at: now, closed_until: None }
    }

    fn refill(&mut self, per_minute: u64, now: Instant) {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * per_minute as f64 / MINUTE;
        self.left = (self.left + gained).min(per_minute as f64);
        (self.per_minute, self.at) = (per_minute, now.max(self.at));
        if self.closed_until.is_some_and(|until| now >= until) {
            self.closed_until = None;
        }
    }

    fn is_idle(&mut self, now: Instant) -> bool {
        self.refill(self.per_minute, now);
        self.closed_until.is_none() && self.left >= self.per_minute as f64
    }
}

impl<K: Eq + Hash + Clone> TokenBuckets<K> {
    /// No buckets yet, and never more than so many.
    pub fn new(most: usize) -> TokenBuckets<K> {
        let state = BucketsState { buckets: HashMap::new(), shared: None, forgotten: None };
        TokenBuckets { most, state: Mutex::new(state) }
    }

    /// Takes one out of a bucket that holds so many a minute; `false` if none is left.
    pub fn take(&self, key: &K, per_minute: u64, now: Instant) -> bool {
        self.with(key, per_minute, now, |bucket| {
            let free = bucket.closed_until.is_none() && bucket.left >= 1.0;
            if free {
                bucket.left -= 1.0;
            }
            free
        })
    }

    /// Puts one back that was taken and is not to count.
    pub fn give_back(&self, key: &K, per_minute: u64, now: Instant) {
        self.with(key, per_minute, now, |bucket| bucket.left = (bucket.left + 1.0).min(per_minute as f64));
    }

    /// Gives nothing out of a bucket until then.
    pub fn close(&self, key: &K, per_minute: u64, until: Instant) {
        let now = Instant::now();
        self.with(key, per_minute, now, |bucket| bucket.closed_until = Some(until));
    }

    /// How many buckets are remembered.
    pub fn len(&self) -> usize {
        self.lock().buckets.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn with<T>(&self, key: &K, per_minute: u64, now: Instant, act: impl FnOnce(&mut Bucket) -> T) -> T {
        let mut state = self.lock();
        let state = &mut *state;
        if !state.buckets.contains_key(key) && state.buckets.len() >= self.most {
            let due = state.forgotten.is_none_or(|last| now.saturating_duration_since(last) >= FORGET_EVERY);
            if due {
                state.forgotten = Some(now);
                state.buckets.retain(|_, bucket| !bucket.is_idle(now));
            }
            if state.buckets.len() >= self.most {
                let shared = state.shared.get_or_insert_with(|| Bucket::full(per_minute, now));
                shared.refill(per_minute, now);
                return act(shared);
            }
        }
        let bucket = match state.buckets.get_mut(key) {
            Some(bucket) => bucket,
            None => state.buckets.entry(key.clone()).or_insert_with(|| Bucket::full(per_minute, now)),
        };
        bucket.refill(per_minute, now);
        act(bucket)
    }

    fn lock(&self) -> MutexGuard<'_, BucketsState<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
