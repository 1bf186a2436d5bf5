//! Scrubbers for a tenant's secrets, kept while the values stay the same.

use crate::vault::{TenantSecrets, Vault};
use domain::Tenant;
use redact::{Scrubber, SecretText};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How many scrubbers of a tenant are kept: one for each set of secrets that is used together.
const MOST_KEPT: usize = 16;
/// How often the folder of secrets is looked through for all there are.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The scrubbers of one tenant.
#[derive(Default)]
pub(crate) struct Scrubbers(Mutex<ScrubberCache>);

#[derive(Default)]
struct ScrubberCache {
    /// By a digest of the values; the one used last is last.
    by_values: Vec<([u8; 32], Arc<Scrubber>)>,
    all: Option<FullScrubber>,
    /// Counts how often something was given out that `all` did not know. One that was begun before is not kept.
    surprises: u64,
}

/// The scrubber for everything, and what it was made of.
struct FullScrubber {
    known: Option<Arc<TenantSecrets>>,
    values: HashSet<[u8; 32]>,
    looked: Instant,
    scrubber: Arc<Scrubber>,
}

impl Vault {
    /// What takes these secrets out of texts, as their values are now. A secret that cannot be read was not used either.
    pub fn scrubber(&self, tenant: &Tenant, names: &[String]) -> Arc<Scrubber> {
        self.drawer(tenant).scrubbers.of(&self.values(tenant, names))
    }

    /// What takes all secrets of the tenant out of texts: every one that was given out before, and what else there is. A
    /// file that was just added and that nobody has read is known after a second.
    pub fn scrubber_of_all(&self, tenant: &Tenant) -> Arc<Scrubber> {
        let drawer = self.drawer(tenant);
        let known = drawer.known();
        let surprises = match drawer.scrubbers.fresh(known.as_ref()) {
            Ok(scrubber) => return scrubber,
            Err(surprises) => surprises,
        };
        let looked = Instant::now();
        let values = self.values(tenant, &self.names(tenant));
        let scrubber = drawer.scrubbers.of(&values);
        let values = values.iter().map(|value| digest([value])).collect();
        drawer.scrubbers.keep(FullScrubber { known, values, looked, scrubber: Arc::clone(&scrubber) }, surprises);
        scrubber
    }

    fn values(&self, tenant: &Tenant, names: &[String]) -> Vec<SecretText> {
        let names = names.iter().filter(|name| crate::is_secret_name(name));
        names.filter_map(|name| self.find(tenant, name).ok()).map(|(value, _)| value).collect()
    }
}

impl Scrubbers {
    /// Sees to it that the next scrubber for everything knows this value.
    pub(crate) fn given_out(&self, value: &SecretText) {
        let digest = digest([value]);
        let mut built = self.built();
        if !built.all.as_ref().is_some_and(|all| all.values.contains(&digest)) {
            built.all = None;
            built.surprises += 1;
        }
    }

    fn of(&self, values: &[SecretText]) -> Arc<Scrubber> {
        let digest = digest(values);
        let mut built = self.built();
        let found = match built.by_values.iter().position(|(known, _)| *known == digest) {
            Some(at) => built.by_values.remove(at),
            None => (digest, Arc::new(Scrubber::new(values.iter().cloned()))),
        };
        let scrubber = Arc::clone(&found.1);
        built.by_values.push(found);
        if built.by_values.len() > MOST_KEPT {
            built.by_values.remove(0);
        }
        scrubber
    }

    /// The one for everything, if nothing can have changed. Otherwise how many surprises there were.
    fn fresh(&self, known: Option<&Arc<TenantSecrets>>) -> Result<Arc<Scrubber>, u64> {
        let built = self.built();
        let same = |all: &&FullScrubber| match (all.known.as_ref(), known) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let fresh = built.all.as_ref().filter(same).filter(|all| all.looked.elapsed() < LOOK_EVERY);
        fresh.map(|all| Arc::clone(&all.scrubber)).ok_or(built.surprises)
    }

    fn keep(&self, all: FullScrubber, surprises: u64) {
        let mut built = self.built();
        if built.surprises == surprises {
            built.all = Some(all);
        }
    }

    fn built(&self) -> MutexGuard<'_, ScrubberCache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest<'a>(values: impl IntoIterator<Item = &'a SecretText>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for value in values {
        hash.update((value.expose().len() as u64).to_be_bytes());
        hash.update(value.expose());
    }
    hash.finalize().into()
}
