//! How far the archive is behind, for readiness and metrics. What this process has seen; nothing is asked for it.

use domain::{Moment, Tenant};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// From here on a sink counts as behind.
const BEHIND: Duration = Duration::from_secs(15 * 60);

/// How far the archive is behind.
#[derive(Debug, Default)]
pub struct ArchiveStatus {
    oldest: Mutex<Oldest>,
    verify_failures: AtomicU64,
}

/// When the oldest entry was written that waits.
#[derive(Debug, Default)]
struct Oldest {
    unsigned: HashMap<Tenant, Moment>,
    unsent: HashMap<(Tenant, String), Moment>,
}

impl ArchiveStatus {
    /// How long the oldest sealed entry of any tenant has been without a checkpoint.
    pub fn checkpoint_age(&self, now: Moment) -> Duration {
        age(self.oldest().unsigned.values(), now)
    }

    /// How long the oldest sealed entry of any tenant has waited for any sink.
    pub fn export_lag(&self, now: Moment) -> Duration {
        age(self.oldest().unsent.values(), now)
    }

    /// Whether an operator should look at the sinks.
    pub fn is_behind(&self, now: Moment) -> bool {
        self.export_lag(now) > BEHIND
    }

    /// How often an audit log did not verify before it was to be signed.
    pub fn verify_failures(&self) -> u64 {
        self.verify_failures.load(Ordering::Relaxed)
    }

    pub(crate) fn failed_to_verify(&self) {
        self.verify_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// An entry of a tenant has no checkpoint, and was written then; `None` if all have one. The first one that is told
    /// of counts until then.
    pub(crate) fn unsigned(&self, tenant: &Tenant, at: Option<Moment>) {
        let mut oldest = self.oldest();
        if let Some(at) = at {
            oldest.unsigned.entry(tenant.clone()).or_insert(at);
        } else {
            oldest.unsigned.remove(tenant);
        }
    }

    /// The oldest entry of a tenant that a sink does not have; `None` if it has all.
    pub(crate) fn unsent(&self, tenant: &Tenant, sink: &str, oldest: Option<Moment>) {
        let (key, mut waiting) = ((tenant.clone(), sink.to_owned()), self.oldest());
        if let Some(at) = oldest {
            waiting.unsent.insert(key, at);
        } else {
            waiting.unsent.remove(&key);
        }
    }

    /// Forgets tenants that are no longer served.
    pub fn keep(&self, served: impl Fn(&Tenant) -> bool) {
        let mut oldest = self.oldest();
        oldest.unsigned.retain(|tenant, _| served(tenant));
        oldest.unsent.retain(|(tenant, _), _| served(tenant));
    }

    fn oldest(&self) -> MutexGuard<'_, Oldest> {
        self.oldest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age<'a>(moments: impl Iterator<Item = &'a Moment>, now: Moment) -> Duration {
    moments.min().map_or(Duration::ZERO, |oldest| now.since(*oldest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_of_any_tenant_counts() {
        let (acme, bolt) = (Tenant::parse("acme").unwrap(), Tenant::parse("bolt").unwrap());
        let (status, now) = (ArchiveStatus::default(), Moment::from_secs(10_000));
        assert_eq!((status.checkpoint_age(now), status.export_lag(now)), (Duration::ZERO, Duration::ZERO));
        status.unsigned(&acme, Some(Moment::from_secs(9_990)));
        status.unsigned(&acme, Some(Moment::from_secs(9_999)));
        status.unsent(&acme, "disk", Some(Moment::from_secs(9_000)));
        status.unsent(&bolt, "disk", Some(Moment::from_secs(9_900)));
        assert_eq!(status.checkpoint_age(now), Duration::from_secs(10));
        assert_eq!((status.export_lag(now), status.is_behind(now)), (Duration::from_secs(1_000), true));
        status.unsigned(&acme, None);
        assert_eq!(status.checkpoint_age(now), Duration::ZERO);
        status.unsent(&acme, "disk", None);
        assert_eq!((status.export_lag(now), status.is_behind(now)), (Duration::from_secs(100), false));
        status.keep(|tenant| *tenant == acme);
        assert_eq!(status.export_lag(now), Duration::ZERO);
    }
}
