//! Which traces are kept from their beginning, and on whose word.
//!
//! By default the configured share of them, chosen by the trace's id. A caller's word that its trace is to be kept counts
//! up to a rate for each tenant. Whoever is nobody, because no valid token came along, has no word.
//!
//! Not here: what is sent of other traces because it failed or waits for a person (see `layer`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many tenants' rates are remembered at once.
const MOST_TENANTS: usize = 10_000;
const MINUTE: Duration = Duration::from_secs(60);

/// The share of traces that is kept, whoever began them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TraceShare {
    /// Ids below it are kept: of each, 63 bits count, as in the ratio sampler of OpenTelemetry.
    bound: u64,
}

impl TraceShare {
    pub(crate) fn new(ratio: f64) -> TraceShare {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a ratio is between 0 and 1")]
        let bound = (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64;
        TraceShare { bound }
    }

    pub(crate) fn contains(self, trace: u128) -> bool {
        #[expect(clippy::cast_possible_truncation, reason = "the lower half of the id")]
        let half = trace as u64;
        half >> 1 < self.bound
    }
}

/// How many traces of each tenant were kept on its callers' word in this minute.
#[derive(Debug)]
pub(crate) struct CallersWord {
    tenants: Mutex<HashMap<Box<str>, MinuteCount>>,
    most: u32,
}

impl CallersWord {
    /// So many of each tenant.
    pub(crate) fn new(most: u32) -> CallersWord {
        CallersWord { tenants: Mutex::default(), most }
    }

    /// Whether one more of this tenant counts.
    pub(crate) fn counts(&self, tenant: &str, now: Instant) -> bool {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if tenants.len() >= MOST_TENANTS && !tenants.contains_key(tenant) {
            tenants.retain(|_, count| !count.is_over(now));
        }
        if tenants.len() >= MOST_TENANTS && !tenants.contains_key(tenant) {
            return false;
        }
        tenants.entry(tenant.into()).or_default().take(self.most, now)
    }
}

/// How many there were since the minute began.
#[derive(Debug, Default)]
pub(crate) struct MinuteCount {
    since: Option<Instant>,
    count: u32,
}

impl MinuteCount {
    fn is_over(&self, now: Instant) -> bool {
        self.since.is_none_or(|since| now.saturating_duration_since(since) >= MINUTE)
    }

    /// Whether one more is within the bound.
    pub(crate) fn take(&mut self, most: u32, now: Instant) -> bool {
        if self.is_over(now) {
            (self.since, self.count) = (Some(now), 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_about_so_large() {
        let ids = |count: u128| (0..count).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
        let kept = |ratio| ids(10_000).filter(|id| TraceShare::new(ratio).contains(*id)).count();
        assert_eq!((kept(0.0), kept(1.0)), (0, 10_000));
        assert!((900..1_100).contains(&kept(0.1)), "{}", kept(0.1));
        assert!(TraceShare::new(1.0).contains(u128::MAX) && !TraceShare::new(0.5).contains(u128::MAX));
    }

    #[test]
    fn a_tenants_word_counts_so_often_a_minute() {
        let (words, now) = (CallersWord::new(3), Instant::now());
        assert_eq!((0..5).filter(|_| words.counts("acme", now)).count(), 3);
        assert!(words.counts("bolt", now), "another tenant's word is its own");
        assert!(!words.counts("acme", now + MINUTE / 2));
        assert!(words.counts("acme", now + MINUTE));
        assert!(!CallersWord::new(0).counts("acme", now), "no rate, no word");
    }
}
