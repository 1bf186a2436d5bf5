//! Lines at which a test lets the store be slow or fail. In a build without failpoints they are nothing.
//!
//! | `FAILPOINTS` | does |
//! |---|---|
//! | `store_error=return` | every round trip somebody waits for fails |
//! | `store_delay=return(200)` | every one takes that many milliseconds longer |
//! | `audit_open=return` | nothing can be recorded that comes before an act: the opening of a call, the claim of a run |
//! | `audit_close=return` | nothing can be recorded that comes after one: the end of a call, the end of a run |

use crate::StoreError;
use crate::entry::{AuditEntry, Phase};
use domain::run::RunState;
use std::time::Duration;

/// Before a round trip.
pub(crate) async fn round_trip() -> Result<(), StoreError> {
    if let Some(delay) = delay() {
        tokio::time::sleep(delay).await;
    }
    fail::fail_point!("store_error", |_| Err(StoreError::unavailable("a test wants it so")));
    Ok(())
}

fn delay() -> Option<Duration> {
    fail::fail_point!("store_delay", |millis| millis?.parse().ok().map(Duration::from_millis));
    None
}

/// Before an entry is written that must be there before the act.
pub(crate) fn audit_open() -> Result<(), StoreError> {
    fail::fail_point!("audit_open", |_| Err(StoreError::unavailable("a test wants it so")));
    Ok(())
}

/// Before the entry of a call that has ended.
pub(crate) fn audit_close() -> Result<(), StoreError> {
    fail::fail_point!("audit_close", |_| Err(StoreError::unavailable("a test wants it so")));
    Ok(())
}

/// Before any other entry: what a run's claim is to its execution, its end is as well.
pub(crate) fn audit(entry: &AuditEntry) -> Result<(), StoreError> {
    let before = [RunState::PendingApproval, RunState::Approved];
    match (entry.phase, &entry.run) {
        (Phase::Close, _) => audit_close(),
        (Phase::Transition, Some(run)) if run.to == RunState::Executing.as_str() => audit_open(),
        (Phase::Transition, Some(run)) if before.iter().all(|state| run.to != state.as_str()) => audit_close(),
        (Phase::Open | Phase::Transition | Phase::Fenced | Phase::Admin, _) => Ok(()),
        (Phase::Denied | Phase::Disclosed | Phase::Unrecorded | Phase::SignIn, _) => Ok(()),
    }
}
