//! How long this process may count on a job being its own.
//!
//! Counted from before the request was sent that took or renewed the lease, so it ends here no later than there. The clock
//! goes on while the process is stopped or the host is asleep.

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The lease of one job.
#[derive(Debug)]
pub struct Lease {
    ends_ms: AtomicU64,
}

impl Lease {
    /// A lease that was taken by a request sent at this moment.
    pub fn taken(sent_ms: u64, lasts: Duration) -> Lease {
        Lease { ends_ms: AtomicU64::new(end(sent_ms, lasts)) }
    }

    /// Renewed by a request sent at this moment.
    pub fn renew(&self, sent_ms: u64, lasts: Duration) {
        self.ends_ms.store(end(sent_ms, lasts), Ordering::Relaxed);
    }

    /// Whether it is certainly this process's still.
    pub fn holds(&self) -> bool {
        now_ms() < self.ends_ms.load(Ordering::Relaxed)
    }

    /// How long it certainly lasts.
    pub fn left(&self) -> Duration {
        Duration::from_millis(self.ends_ms.load(Ordering::Relaxed).saturating_sub(now_ms()))
    }
}

fn end(sent_ms: u64, lasts: Duration) -> u64 {
    sent_ms.saturating_add(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX))
}

/// Milliseconds since this host was started, sleep included.
pub(crate) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (secs, nanos) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    secs.saturating_mul(1_000).saturating_add(nanos / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_before_it_was_asked_for() {
        let sent = now_ms();
        let lease = Lease::taken(sent, Duration::from_secs(60));
        assert!(lease.holds() && lease.left() <= Duration::from_secs(60));
        lease.renew(sent.saturating_sub(61_000), Duration::from_secs(60));
        assert!(!lease.holds() && lease.left().is_zero());
    }
}
