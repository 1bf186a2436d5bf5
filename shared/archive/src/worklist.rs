//! The tenants somebody has to look at, so that nobody looks at those where nothing happened.

use domain::Tenant;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The tenants that are to be looked at.
#[derive(Debug)]
pub struct Worklist {
    tenants: Mutex<HashMap<Tenant, Work>>,
    /// From so many entries on, a tenant is looked at before its time.
    many: u64,
}

#[derive(Debug)]
struct Work {
    entries: u64,
    at: Instant,
}

impl Worklist {
    pub(crate) fn new(many: u64) -> Worklist {
        Worklist { tenants: Mutex::default(), many: many.max(1) }
    }

    /// So many entries of a tenant were sealed; none if it is only to be looked at.
    pub fn add(&self, tenant: &Tenant, entries: u64, now: Instant) {
        let mut tenants = self.tenants();
        match tenants.get_mut(tenant) {
            Some(work) => work.entries += entries,
            None => {
                tenants.insert(tenant.clone(), Work { entries, at: now });
            }
        }
    }

    /// Whom to look at now.
    pub fn due(&self, now: Instant) -> Vec<Tenant> {
        let mut due = Vec::new();
        for (tenant, work) in self.tenants().iter_mut() {
            if work.at <= now || work.entries >= self.many {
                work.entries = 0;
                due.push(tenant.clone());
            }
        }
        due
    }

    /// A tenant was looked at: nothing is left to do (`None`), or something that can wait that long. What was sealed
    /// meanwhile is looked at in its turn.
    pub fn looked(&self, tenant: &Tenant, again: Option<Duration>, now: Instant) {
        let mut tenants = self.tenants();
        match (tenants.get_mut(tenant), again) {
            (Some(work), Some(wait)) => work.at = now + wait,
            (Some(work), None) if work.entries > 0 => work.at = now,
            (Some(_), None) => {
                tenants.remove(tenant);
            }
            (None, _) => {}
        }
    }

    /// Whether something is left to do for a tenant.
    pub fn holds(&self, tenant: &Tenant) -> bool {
        self.tenants().contains_key(tenant)
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<Tenant, Work>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_looked_at_when_it_is_time_or_much_has_come() {
        let (list, acme, start) = (Worklist::new(10), Tenant::parse("acme").unwrap(), Instant::now());
        let minute = Duration::from_secs(60);
        assert!(list.due(start).is_empty(), "where nothing happened nobody looks");
        list.add(&acme, 1, start);
        assert_eq!(list.due(start), std::slice::from_ref(&acme));
        list.looked(&acme, Some(minute), start);
        list.add(&acme, 9, start);
        assert!(list.due(start).is_empty());
        assert_eq!(list.due(start + minute), std::slice::from_ref(&acme), "its time has come");
        list.looked(&acme, Some(minute), start + minute);
        list.add(&acme, 10, start);
        assert_eq!(list.due(start + minute), std::slice::from_ref(&acme), "much has come");
        list.add(&acme, 1, start);
        list.looked(&acme, None, start + minute);
        assert_eq!(list.due(start + minute), std::slice::from_ref(&acme), "something came while it was looked at");
        list.looked(&acme, None, start + minute);
        assert!(list.due(start + 2 * minute).is_empty());
    }
}
