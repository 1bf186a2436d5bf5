//! The runs that are not over, as the last sweep saw them. A tenant without such runs costs nothing here.

use domain::Tenant;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use store::DueRuns;

/// What the last sweep of each tenant saw; tenants without such runs are not in it.
#[derive(Debug, Default)]
pub(crate) struct OpenRuns(Mutex<HashMap<Tenant, DueRuns>>);

impl OpenRuns {
    pub(crate) fn note(&self, tenant: &Tenant, due: &DueRuns) {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if due.runs.is_empty() {
            tenants.remove(tenant);
        } else {
            tenants.insert(tenant.clone(), due.clone());
        }
    }

    pub(crate) fn all(&self) -> HashMap<Tenant, DueRuns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Moment, RunId};

    #[test]
    fn a_tenant_without_open_runs_is_not_kept() {
        let (open, acme) = (OpenRuns::default(), Tenant::parse("acme").unwrap());
        let due =
            DueRuns { now: Moment::from_secs(1), runs: vec![(RunId::from_random([1; 16]), Moment::from_secs(2))] };
        open.note(&acme, &due);
        assert_eq!(open.all()[&acme], due);
        open.note(&acme, &DueRuns { runs: Vec::new(), ..due });
        assert!(open.all().is_empty());
    }
}
