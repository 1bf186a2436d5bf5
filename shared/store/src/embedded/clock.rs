//! The embedded store's time: the host's clock, never backwards, not even across a restart.

use domain::Moment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The latest time ever told. It is written down with every transaction.
pub(super) struct EmbeddedClock(AtomicU64);

impl EmbeddedClock {
    pub(super) fn starting_at(mark: u64) -> EmbeddedClock {
        EmbeddedClock(AtomicU64::new(mark))
    }

    pub(super) fn now(&self) -> Moment {
        let host = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.at_least(u64::try_from(host.as_millis()).unwrap_or(u64::MAX))
    }

    fn at_least(&self, host: u64) -> Moment {
        Moment::from_millis(self.0.fetch_max(host, Ordering::Relaxed).max(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_clock_that_is_set_back_does_not_set_time_back() {
        let clock = EmbeddedClock::starting_at(1_000);
        assert_eq!(clock.at_least(900), Moment::from_millis(1_000));
        assert_eq!(clock.at_least(1_200), Moment::from_millis(1_200));
        assert_eq!(clock.at_least(1_100), Moment::from_millis(1_200));
    }
}
