//! How somebody learns what became of a run: by reading the record, again on each wake-up and each tick.

use super::Folded;
use crate::call::Executor;
use catalog::Progress;
use domain::run::{Event, Run, State};
use domain::{Caller, Failure, RunId, Tenant};
use std::time::Duration;
use store::{Topic, Wake};

/// How long a wake-up may be lost before the record is read all the same.
const TICK: Duration = Duration::from_secs(2);

impl Executor {
    /// Waits until a run is settled, or until patience runs out; gives the run as it then is.
    pub async fn wait_for(
        &self,
        tenant: &Tenant,
        id: RunId,
        patience: Duration,
        progress: &Progress,
    ) -> Result<Run, Failure> {
        let until = tokio::time::Instant::now() + patience;
        // Watched before the first look, so that nothing falls in between.
        let mut watch = self.store.of(tenant).watch();
        let mut seen: Option<State> = None;
        let mut steps = 0;
        loop {
            let run = self.run(tenant, id).await?;
            if run.state.is_settled() {
                return Ok(run);
            }
            if seen != Some(run.state) {
                seen = Some(run.state);
                steps += 1;
                progress.report(steps, None, Some(run.state.as_str()));
            }
            loop {
                tokio::select! {
                    () = tokio::time::sleep_until(until) => return Ok(run),
                    () = tokio::time::sleep(TICK) => break,
                    wake = watch.next() => match wake {
                        Wake::Topic(Topic::Run(moved)) if moved == id => break,
                        Wake::Topic(_) => {}
                        Wake::Resync => break,
                    },
                }
            }
        }
    }

    /// Notes that the requester was handed the ending. If that fails, the same call gets the same ending once more.
    pub async fn note_delivery(&self, caller: &Caller, id: RunId) {
        let Ok((held, now)) = self.find_run(&caller.tenant, id).await else { return };
        if held.run.asked.requester != caller.principal || held.run.delivered {
            return;
        }
        let shelf = self.store.of(&caller.tenant);
        if let Err(failure) = self.fold_run(&shelf, held, &Event::Delivered, now, Some(caller)).await {
            tracing::debug!(code = failure.code.as_str(), "a delivery could not be noted");
        }
    }

    /// A run as anybody of the tenant who may see it sees it. The first reader after its time ends it, so that nobody
    /// is shown a run as waiting that can no longer be decided.
    pub async fn run(&self, tenant: &Tenant, id: RunId) -> Result<Run, Failure> {
        let (held, now) = self.find_run(tenant, id).await?;
        if held.run.apply(&Event::Expired, now).is_err() {
            return Ok(held.run);
        }
        match self.fold_run(&self.store.of(tenant), held, &Event::Expired, now, None).await? {
            Folded::Done(held) | Folded::No(_, held) | Folded::Late(held) => Ok(held.run),
        }
    }
}
