//! The highest versions this process has seen.

use crate::{RecordKey, StoreEpoch};
use domain::Tenant;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long the version of a run is remembered: longer than a yes is good for, and short enough that a run of the same
/// name, made after the first was forgotten, is not mistaken for it.
const RUNS_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// A forgotten secret leaves its mark for thirty days; one less, so that nobody looks for it a moment too late.
const MARKS_FOR: Duration = Duration::from_secs(29 * 24 * 60 * 60);
/// From so many on, what is over is thrown away.
const TIDIED_AT: usize = 50_000;

/// What was seen in one store.
#[derive(Default)]
pub(super) struct SeenVersions {
    epoch: StoreEpoch,
    versions: HashMap<(Tenant, RecordKey), SeenVersion>,
    tidied_at: usize,
}

struct SeenVersion {
    version: u64,
    at: Instant,
}

impl SeenVersions {
    /// The highest version of a record that was seen; 0 if none was.
    pub(super) fn floor(&mut self, tenant: &Tenant, key: &RecordKey, epoch: StoreEpoch) -> u64 {
        self.begin(epoch);
        let seen = self.versions.get(&(tenant.clone(), key.clone()));
        seen.filter(|seen| !is_over(key, seen)).map_or(0, |seen| seen.version)
    }

    /// Whether a record was seen lately enough that even the mark of a forgotten secret must still be there.
    pub(super) fn is_recent(&mut self, tenant: &Tenant, key: &RecordKey, epoch: StoreEpoch) -> bool {
        self.begin(epoch);
        self.versions.get(&(tenant.clone(), key.clone())).is_some_and(|seen| seen.at.elapsed() < MARKS_FOR)
    }

    /// This version was read.
    pub(super) fn read(&mut self, tenant: &Tenant, key: &RecordKey, version: u64, epoch: StoreEpoch) {
        let version = version.max(self.floor(tenant, key, epoch));
        self.wrote(tenant, key, version, epoch);
    }

    /// This version was written, by this very process: a record that was deleted begins anew with it.
    pub(super) fn wrote(&mut self, tenant: &Tenant, key: &RecordKey, version: u64, epoch: StoreEpoch) {
        self.begin(epoch);
        if self.versions.len() >= TIDIED_AT.max(self.tidied_at) {
            self.versions.retain(|(_, key), seen| !is_over(key, seen));
            self.tidied_at = self.versions.len() * 2;
        }
        self.versions.insert((tenant.clone(), key.clone()), SeenVersion { version, at: Instant::now() });
    }

    /// Another server may have forgotten the last changes by itself.
    fn begin(&mut self, epoch: StoreEpoch) {
        if self.epoch != epoch {
            (self.epoch, self.versions) = (epoch, HashMap::new());
        }
    }
}

fn is_over(key: &RecordKey, seen: &SeenVersion) -> bool {
    key.is_run() && seen.at.elapsed() > RUNS_FOR
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Moment;

    #[test]
    fn the_highest_version_stays_until_the_store_is_another_one() {
        let (tenant, key) = (Tenant::parse("acme").unwrap(), RecordKey::tenant_text());
        let (here, there) = (StoreEpoch::default(), StoreEpoch { generation: 1, since: Some(Moment::from_secs(1)) });
        let mut seen = SeenVersions::default();
        assert_eq!(seen.floor(&tenant, &key, here), 0);
        seen.read(&tenant, &key, 7, here);
        seen.read(&tenant, &key, 5, here);
        assert_eq!(seen.floor(&tenant, &key, here), 7, "what was read late lowers nothing");
        assert_eq!(seen.floor(&Tenant::parse("bolt").unwrap(), &key, here), 0);
        seen.wrote(&tenant, &key, 1, here);
        assert_eq!(seen.floor(&tenant, &key, here), 1, "this process made it anew");
        assert_eq!(seen.floor(&tenant, &key, there), 0);
    }
}
