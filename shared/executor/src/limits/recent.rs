//! Who has called lately: a caller that is alone may use all of its tenant's rate.

use super::CountedAs;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A caller that tried in this time still counts, so that one who was refused has its part in the next minute.
const LATELY: Duration = Duration::from_secs(120);

/// Of each tenant who called last, and when somebody else did.
#[derive(Debug, Default)]
pub(super) struct RecentCallers(Mutex<HashMap<u64, LastCalls>>);

#[derive(Debug, Clone, Copy)]
struct LastCalls {
    newest: u64,
    at: Instant,
    other_at: Option<Instant>,
}

impl RecentCallers {
    /// Notes that this caller calls, and tells whether another one of its tenant did lately.
    pub(super) fn note(&self, counted: CountedAs, now: Instant) -> bool {
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = LastCalls { newest: counted.caller, at: now, other_at: None };
        let last = tenants.entry(counted.tenant).or_insert(first);
        if last.newest != counted.caller {
            *last = LastCalls { newest: counted.caller, at: now, other_at: Some(last.at) };
        }
        last.at = now;
        last.other_at.is_some_and(|at| now.saturating_duration_since(at) < LATELY)
    }

    /// Notes that another caller of the tenant calls elsewhere.
    pub(super) fn note_others(&self, counted: CountedAs, now: Instant) {
        let last = LastCalls { newest: counted.caller, at: now, other_at: Some(now) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(counted.tenant, last);
    }
}
