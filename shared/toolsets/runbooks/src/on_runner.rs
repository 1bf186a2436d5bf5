//! A runbook on a runner: one job in the tenant's queue, followed until it is over.
//!
//! The job is named after the run, or after the call where there is no run. So whoever carries a run out a second time
//! finds the job of the first time and follows it; there is never a second one. Where the store may have forgotten a job,
//! nothing is submitted and the outcome is unknown.
//!
//! Not here: how a job is claimed and executed (see `store` and `runner`).

use crate::codes;
use crate::declaration::Runbook;
use crate::outcome::{self, KeptOutput, RunbookResult};
use crate::resolved::ResolvedCall;
use catalog::{ProbeResult, Progress};
use domain::job::{JobEnding, JobOutput, JobSpec, JobStanding, RunnerLabel};
use domain::{Code, Failure, JobId, Moment};
use policy::{Permit, PermitMode};
use redact::KeptSecret;
use std::collections::BTreeMap;
use std::time::Duration;
use store::{JobNews, JobStore, JobSubmission, Store, StoreError};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

/// How long a job may wait for a runner that takes it.
pub const CLAIMABLE: Duration = Duration::from_secs(60);
/// How long a runner that fell silent is waited for, before the outcome counts as unknown.
const SILENCE: Duration = Duration::from_secs(20);
/// How much longer than its commands may take a job is followed: its start, its last report and a lease.
pub const MARGIN: Duration = Duration::from_secs(60);
/// How long until a store that is away is asked again.
const AGAIN: Duration = Duration::from_secs(1);
/// How much output of one job is kept in the store.
const OUTPUT_BYTES: u64 = 1024 * 1024;
/// How long after an approval a job is certain to be still in the store if it was ever there.
const REMEMBERED: Duration = Duration::from_secs(5 * 24 * 60 * 60);
/// The longest line that is passed on while a job is at work.
const LINE_CHARS: usize = 300;

/// The job of a permit: named after its run, or after its call.
pub fn job_of(permit: &Permit) -> (JobId, String) {
    let owner = permit.run().map_or_else(|| permit.call().id.to_string(), |run| run.to_string());
    (JobId::of(&owner), owner)
}

/// Refuses what no runner is there for, before anybody is asked to approve it.
pub async fn check_runner(store: &Store, permit: &Permit, label: &RunnerLabel) -> Result<(), Failure> {
    match store.of(permit.tenant()).jobs().has_runner(label).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(offline(label)),
        Err(error) => Err(no_store(&error)),
    }
}

/// Submits the job of a call, or finds it, and follows it until it is over.
pub async fn run(
    store: &Store,
    permit: &Permit,
    label: &RunnerLabel,
    (call, secrets): (&ResolvedCall, &BTreeMap<String, KeptSecret>),
    progress: &Progress,
) -> Result<RunbookResult, Failure> {
    if permit.extent() != PermitMode::Act {
        return Err(Failure::new(Code::Internal, "this permit does not reach a runner"));
    }
    let jobs = store.of(permit.tenant()).jobs();
    let (id, owner) = job_of(permit);
    let (found, now) = jobs.find(id).await.map_err(|error| no_store(&error))?;
    if found.is_none() {
        remembered(store, permit, now)?;
        check_runner(store, permit, label).await?;
        let spec = spec(call, label, secrets)?;
        match jobs.submit(id, &owner, spec, CLAIMABLE).await.map_err(|error| no_store(&error))? {
            JobSubmission::New(_) | JobSubmission::Existing(_) => {}
            JobSubmission::TooLarge => {
                let message = format!("the commands and variables of {} are too large", call.runbook.id());
                return Err(Failure::new(Code::TooLarge, message).next("nothing was executed; send less"));
            }
            JobSubmission::TooMany => {
                let message = format!("as many jobs wait for runners of {label} as may");
                return Err(Failure::new(codes::RUNNER_BUSY, message).next("nothing was executed; call again later"));
            }
        }
    }
    // A read ends with whoever waits for it; a run goes on, whatever becomes of this process.
    let _guard = permit.run().is_none().then(|| CancelOnDrop { jobs: Some(jobs.clone()), id });
    let timeout = Duration::from_millis(call.runbook.text.timeout_ms);
    follow(&jobs, id, &call.runbook, Instant::now() + CLAIMABLE + timeout + SILENCE, progress).await
}

/// What is to be executed, with the tenant's secrets in it.
fn spec(call: &ResolvedCall, label: &RunnerLabel, secrets: &BTreeMap<String, KeptSecret>) -> Result<JobSpec, Failure> {
    let (text, resolved) = (&call.runbook.text, &call.resolved);
    Ok(JobSpec {
        label: label.clone(),
        runbook: text.full_name(),
        text: text.canonical(),
        arguments: resolved.arguments.clone(),
        check: resolved.check.clone(),
        run: Some(resolved.run.clone()),
        verify: resolved.verify.clone(),
        env: call.environment(secrets)?,
        directory: text.directory.clone(),
        timeout_ms: text.timeout_ms,
        output_bytes: OUTPUT_BYTES,
    })
}

/// Refuses to submit a job where an earlier one may have been forgotten: by a store that is another one than at the
/// approval, or because it was so long ago.
fn remembered(store: &Store, permit: &Permit, now: Moment) -> Result<(), Failure> {
    let Some(approval) = permit.approval() else { return Ok(()) };
    if store.lineages().now().doubts(approval.at) || now.since(approval.at) > REMEMBERED {
        let message = "nothing proves that this was not handed to a runner before; nothing was handed over now";
        return Err(outcome::unknown(message));
    }
    Ok(())
}

async fn follow(
    jobs: &JobStore,
    id: JobId,
    runbook: &Runbook,
    until: Instant,
    progress: &Progress,
) -> Result<RunbookResult, Failure> {
    let (mut follower, mut output, mut told) = (jobs.follow(id), KeptOutput::default(), 0);
    let (whole, mut until, mut lost) = (until, until, false);
    let mut tell = |words: &str| {
        told += 1;
        progress.report(told, None, Some(words));
    };
    loop {
        let news = match timeout_at(until, follower.next()).await {
            Ok(Ok(news)) => news,
            // The job goes on without the store, and so does whoever waits for it.
            Ok(Err(error)) if Instant::now() < until => {
                tracing::debug!(job = %id, %error, "a job could not be looked at");
                sleep(AGAIN).await;
                continue;
            }
            Ok(Err(_)) | Err(_) => {
                let why = if lost { "its runner fell silent" } else { "nothing was heard of its end in time" };
                return Err(outcome::unknown(&format!("nobody knows how {} ended: {why}", runbook.id())));
            }
        };
        match news {
            JobNews::Moved(standing) => {
                (until, lost) = (whole, false);
                tell(standing.as_str());
            }
            JobNews::Printed(pieces) => {
                output.push_all(&pieces);
                if let Some(line) = last_line(&pieces) {
                    tell(&line);
                }
            }
            JobNews::Lost => {
                lost = true;
                until = until.min(Instant::now() + SILENCE);
                tell(JobStanding::Lost.as_str());
            }
            JobNews::Over(ending) => {
                note_dropped(jobs, id, &mut output).await;
                return outcome::of_ending(runbook, runbook.place.words(), &ending, &output);
            }
            JobNews::Absent => return Err(outcome::unknown("the store has forgotten the job")),
        }
    }
}

/// Counts what neither the runner nor the store kept.
async fn note_dropped(jobs: &JobStore, id: JobId, output: &mut KeptOutput) {
    if let Ok((Some(held), _)) = jobs.find(id).await {
        output.omit(held.job.dropped_bytes);
    }
}

/// The last line that was printed, fit to be shown.
fn last_line(pieces: &[JobOutput]) -> Option<String> {
    let line = pieces.iter().rev().flat_map(|piece| piece.text.lines().rev()).find(|line| !line.trim().is_empty())?;
    Some(domain::text::visible(&redact::redact(line)).chars().take(LINE_CHARS).collect())
}

/// What became of the job of a run whose outcome is unknown.
pub async fn probe(store: &Store, permit: &Permit, runbook: &Runbook) -> ProbeResult {
    let jobs = store.of(permit.tenant()).jobs();
    let (id, _) = job_of(permit);
    let Ok((Some(held), _)) = jobs.find(id).await else { return ProbeResult::Unknown };
    let Some(ending) = held.job.ending.clone() else { return ProbeResult::Unknown };
    let mut output = KeptOutput::default();
    let mut from = 0;
    while from < held.job.chunks {
        let Ok(pieces) = jobs.output(&held.job, from).await else { break };
        from += pieces.len() as u64;
        pieces.iter().for_each(|(_, pieces)| output.push_all(pieces));
    }
    output.omit(held.job.dropped_bytes);
    let untouched = matches!(ending, JobEnding::NotBegun { .. } | JobEnding::Refused { .. });
    match outcome::of_ending(runbook, runbook.place.words(), &ending, &output) {
        Ok(result) => ProbeResult::Done(serde_json::to_string(&result).ok()),
        Err(_) if untouched => ProbeResult::NotDone,
        Err(failure) if failure.code == Code::OutcomeUnknown => ProbeResult::Unknown,
        Err(failure) => ProbeResult::Failed(failure),
    }
}

/// Ends a job whose caller is gone.
struct CancelOnDrop {
    jobs: Option<JobStore>,
    id: JobId,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (Some(jobs), Ok(runtime)) = (self.jobs.take(), Handle::try_current()) else { return };
        let id = self.id;
        // A job that is over stays as it is.
        runtime.spawn(async move {
            if let Err(error) = jobs.cancel(id, "its caller is gone").await {
                tracing::debug!(job = %id, %error, "a job could not be cancelled");
            }
        });
    }
}

fn offline(label: &RunnerLabel) -> Failure {
    Failure::new(codes::RUNNER_OFFLINE, format!("no runner serves the label {label}; nothing was executed"))
        .next(format!("start one where the work is to happen: quartermaster runner --label {label}"))
        .retry_after_ms(30_000)
}

fn no_store(error: &StoreError) -> Failure {
    tracing::debug!(%error, "the store of jobs did not answer");
    error.failure("")
}
