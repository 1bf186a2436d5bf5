//! How somebody learns what became of a run: by reading the record, again on each wake-up and each tick.

use crate::executor::Executor;
use crate::run_record::{RunError, RunStep, RunUpdate};
use catalog::Progress;
use domain::run::{Run, RunEvent, RunState};
use domain::{RunId, Tenant};
use std::time::Duration;
use store::{Topic, VersionedRun, WakeUp};

/// How long a wake-up may be lost before the record is read all the same.
const TICK: Duration = Duration::from_secs(2);

/// What somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitUntil {
    /// The run is over, or nobody can say how it ended.
    Settled,
    /// The run is in another state than when the waiting began.
    Moved,
}

/// Who waits, for what, and how long.
pub struct RunWait<'a> {
    /// What for.
    pub until: WaitUntil,
    /// How long.
    pub patience: Duration,
    /// Who may wait for the run; for anybody else it is as if it never was.
    pub may_see: &'a (dyn Fn(&Run) -> bool + Send + Sync),
    /// Where each change is told.
    pub progress: &'a Progress,
}

impl Executor {
    /// Waits for a run; gives it as it is when the waiting ends. One look per wake-up or tick, and no other.
    pub async fn wait_for(&self, tenant: &Tenant, id: RunId, waiting: RunWait<'_>) -> Result<VersionedRun, RunError> {
        let RunWait { until: what, patience, may_see, progress } = waiting;
        let until = tokio::time::Instant::now() + patience;
        // Watched before the first look, so that nothing falls in between.
        let mut watch = self.store.of(tenant).watch();
        let mut seen: Option<RunState> = None;
        let mut steps = 0;
        loop {
            let held = self.run(tenant, id).await?;
            let run = &held.run;
            if !may_see(run) {
                return Err(RunError::Gone);
            }
            let moved = what == WaitUntil::Moved && seen.is_some_and(|state| state != run.state);
            if run.state.is_settled() || moved || patience.is_zero() {
                return Ok(held);
            }
            if seen != Some(run.state) {
                seen = Some(run.state);
                steps += 1;
                progress.report(steps, None, Some(run.state.as_str()));
            }
            loop {
                tokio::select! {
                    () = tokio::time::sleep_until(until) => return Ok(held),
                    () = tokio::time::sleep(TICK) => break,
                    wake = watch.next() => match wake {
                        WakeUp::Topic(Topic::Run(moved)) if moved == id => break,
                        WakeUp::Topic(_) => {}
                        WakeUp::Resync => break,
                    },
                }
            }
        }
    }

    /// A run as anybody of the tenant who may see it sees it. The first reader after its time ends it, so that nobody
    /// is shown a run as waiting that can no longer be decided.
    pub async fn run(&self, tenant: &Tenant, id: RunId) -> Result<VersionedRun, RunError> {
        let (held, now) = self.find_run(tenant, id).await?;
        if held.run.apply(&RunEvent::Expired, now).is_err() {
            return Ok(held);
        }
        match self.fold_run(&self.store.of(tenant), held, RunStep::of_service(&RunEvent::Expired, now)).await? {
            RunUpdate::Done(held) | RunUpdate::No(_, held) | RunUpdate::Late(held) => Ok(*held),
        }
    }
}
