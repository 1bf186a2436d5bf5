//! A runner: takes jobs from a service until it is told to stop.
//!
//! One request waits for a job while a slot is free. What goes wrong is tried again with growing pauses; only a service
//! that refuses the very first request ends the runner, because its owner has to correct something.

use crate::client::{ClientFault, JobClient};
use crate::work::{Workplace, wait};
use crate::{AllowList, Host};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The shortest pause after a failed request for a job.
const PAUSE: Duration = Duration::from_millis(500);
/// How long killed commands may take to be reported before the process ends.
const LAST_REPORT: Duration = Duration::from_secs(20);

/// How a runner works.
pub struct RunnerOptions {
    /// The service.
    pub client: JobClient,
    /// What may be executed.
    pub allow: AllowList,
    /// What commands find here.
    pub host: Host,
    /// How long commands may go on once the runner is to stop.
    pub drain: Duration,
}

/// How a runner is told to stop.
#[derive(Debug, Clone, Default)]
pub struct RunnerStop {
    /// Takes no more jobs, and ends when those it has are over.
    pub drain: CancellationToken,
    /// Ends the commands, too.
    pub now: CancellationToken,
}

/// Works until it is told to stop. An error means that the service refused the first request.
pub async fn serve(options: RunnerOptions, stop: &RunnerStop) -> Result<(), ClientFault> {
    let RunnerOptions { client, allow, host, drain } = options;
    let slots = Arc::new(Semaphore::new(client.slots as usize));
    let place = Arc::new(Workplace { client, allow, host, kill: CancellationToken::new() });
    let tasks = TaskTracker::new();
    let taken = take_jobs(&place, &slots, &tasks, stop).await;
    tasks.close();
    if taken.is_ok() {
        tracing::info!(jobs = tasks.len(), "no more jobs are taken");
        if let Err(fault) = place.client.leave().await {
            tracing::debug!(%fault, "the service was not told that this runner goes");
        }
    }
    let drained = async {
        tokio::select! {
            () = tasks.wait() => true,
            () = stop.now.cancelled() => false,
        }
    };
    if !matches!(timeout(drain, drained).await, Ok(true)) {
        tracing::warn!(jobs = tasks.len(), "commands are ended before they are done");
        place.kill.cancel();
        if timeout(LAST_REPORT + place.host.grace, tasks.wait()).await.is_err() {
            tracing::error!(jobs = tasks.len(), "not every ending was reported");
        }
    }
    taken
}

async fn take_jobs(
    place: &Arc<Workplace>,
    slots: &Arc<Semaphore>,
    tasks: &TaskTracker,
    stop: &RunnerStop,
) -> Result<(), ClientFault> {
    let (mut pause, mut met) = (PAUSE, false);
    loop {
        let taking = async {
            let slot = Arc::clone(slots).acquire_owned().await;
            (slot, place.client.claim().await)
        };
        let (slot, claimed) = tokio::select! {
            biased;
            () = stop.drain.cancelled() => return Ok(()),
            taken = taking => taken,
        };
        match (slot, claimed) {
            (Ok(slot), Ok(claimed)) => {
                if !std::mem::replace(&mut met, true) {
                    tracing::info!(runner = %place.client.runner, "connected");
                }
                pause = PAUSE;
                let Some(job) = claimed else { continue };
                let place = Arc::clone(place);
                tasks.spawn(async move {
                    place.work(job).await;
                    drop(slot);
                });
            }
            (_, Err(fault @ (ClientFault::Denied { .. } | ClientFault::Rejected(_) | ClientFault::Token(_))))
                if !met =>
            {
                return Err(fault);
            }
            (_, Err(fault)) => {
                tracing::warn!(%fault, "no job could be asked for");
                tokio::select! {
                    () = stop.drain.cancelled() => return Ok(()),
                    next = wait(pause) => pause = next,
                }
            }
            (Err(_), Ok(_)) => return Ok(()),
        }
    }
}
