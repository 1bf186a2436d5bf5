//! The gauges that only this crate can set; set when somebody is about to read them.
//!
//! Only tenants that have runs which are not over are looked at, so a tenant that is idle costs nothing. The index of what
//! is due in the whole service names them, so every replica says the same.

use crate::executor::Executor;
use domain::run::RunState;
use domain::{Moment, RunId};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};
use telemetry::metrics;

/// How many runs that are not over are counted of one tenant.
const MOST_OPEN: usize = 1_000;
/// How long after it was due a run counts as overdue: by then a sweep should have seen to it.
const OVERDUE: Duration = Duration::from_secs(30);
/// The states a run can be in before it is over.
const NOT_FINAL: [RunState; 4] =
    [RunState::PendingApproval, RunState::Approved, RunState::Executing, RunState::OutcomeUnknown];

/// What is known of the runs in one state.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct StateCount {
    runs: u32,
    overdue: u32,
    oldest: Duration,
    /// How much of its time the one has used that is nearest to its end.
    used: f64,
}

impl Executor {
    /// Sets the gauges of sessions and runs.
    pub async fn measure(&self) {
        metrics::SESSIONS_ACTIVE.set([], self.sessions_seen.count(Instant::now()) as f64);
        self.measure_runs().await;
    }

    /// A store that does not answer leaves the gauges as they were.
    async fn measure_runs(&self) {
        let mut states: BTreeMap<RunState, StateCount> = NOT_FINAL.map(|state| (state, StateCount::default())).into();
        let Ok(tenants) = self.store.duties().tenants_with_runs().await else { return };
        for tenant in tenants {
            let Ok(due) = self.store.of(&tenant).runs().due(MOST_OPEN).await else { return };
            let ids: Vec<RunId> = due.runs.iter().map(|(id, _)| *id).collect();
            let Ok(briefs) = self.store.of(&tenant).runs().briefs(&ids).await else { return };
            let due_at: HashMap<RunId, Moment> = due.runs.into_iter().collect();
            for brief in briefs {
                // It may have ended since the list was read.
                let Some(count) = states.get_mut(&brief.state) else { continue };
                count.runs += 1;
                count.oldest = count.oldest.max(due.now.since(brief.asked_at));
                if let Some(at) = due_at.get(&brief.id) {
                    count.overdue += u32::from(due.now.since(*at) > OVERDUE);
                    let whole = at.since(brief.asked_at).max(Duration::from_millis(1));
                    count.used = count.used.max(due.now.since(brief.asked_at).div_duration_f64(whole));
                }
            }
        }
        for (state, StateCount { runs, overdue, oldest, used }) in states {
            metrics::RUNS.set([state.as_str()], f64::from(runs));
            metrics::RUNS_OVERDUE.set([state.as_str()], f64::from(overdue));
            metrics::RUNS_OLDEST.set([state.as_str()], oldest.as_secs_f64());
            metrics::RUNS_OLDEST_RATIO.set([state.as_str()], used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_final_or_counted() {
        for state in RunState::ALL {
            assert_ne!(state.is_final(), NOT_FINAL.contains(&state), "{state:?}");
        }
    }
}
