//! Who has called lately: a caller that is alone may use all of its tenant's rate.

use domain::{Caller, Principal, Tenant};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A caller that tried in this time still counts, so that one who was refused has its part in the next minute.
const LATELY: Duration = Duration::from_secs(120);

/// Of each tenant who called last, and when somebody else did.
#[derive(Debug, Default)]
pub(super) struct RecentCallers(Mutex<HashMap<Tenant, LastCalls>>);

#[derive(Debug)]
struct LastCalls {
    newest: Principal,
    at: Instant,
    other_at: Option<Instant>,
}

impl RecentCallers {
    /// Notes that this caller calls, and tells whether another one of its tenant did lately.
    pub(super) fn note(&self, caller: &Caller, now: Instant) -> bool {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = tenants.get_mut(&caller.tenant) else {
            let last = LastCalls { newest: caller.principal.clone(), at: now, other_at: None };
            tenants.insert(caller.tenant.clone(), last);
            return false;
        };
        if last.newest != caller.principal {
            *last = LastCalls { newest: caller.principal.clone(), at: now, other_at: Some(last.at) };
        }
        last.at = now;
        last.other_at.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
    }

    /// Notes that another caller of the tenant calls elsewhere.
    pub(super) fn note_others(&self, caller: &Caller, now: Instant) {
        let last = LastCalls { newest: caller.principal.clone(), at: now, other_at: Some(now) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(caller.tenant.clone(), last);
    }
}
