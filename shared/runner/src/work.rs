//! One job, from its claim to its report.
//!
//! Nothing is executed before the service has answered that the start is recorded: from then on nobody else gets the job.
//! If that answer does not come while the lease lasts, nothing is executed at all. A lease that ends while a command is at
//! work ends nothing: the command goes on to its own deadline, and what became of it is reported late.

use crate::allow::AllowList;
use crate::client::{ClaimedJob, ClientFault, JobClient, ReportAnswer, piece};
use crate::execute::{Execution, execute};
use crate::failpoint::{self, stop_at};
use crate::{Host, Lease, OutputLog};
use domain::job::{JobEnding, JobOutput};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How much output one report carries: its JSON stays well below the service's bound.
const PIECE: usize = 32 * 1024;
/// How long output gathers before it is sent.
const GATHER: Duration = Duration::from_millis(300);
/// How long an ending is reported again and again while the service is away.
const REPORT_FOR: Duration = Duration::from_secs(60 * 60);
/// The shortest and the longest pause between two attempts.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

/// What all jobs of this process share.
pub(crate) struct Workplace {
    pub(crate) client: JobClient,
    pub(crate) allow: AllowList,
    pub(crate) host: Host,
    /// Ends every command: the process is to stop now.
    pub(crate) kill: CancellationToken,
}

impl Workplace {
    /// Does one job.
    pub(crate) async fn work(&self, job: ClaimedJob) {
        let (id, owner, runbook) = (job.id, job.owner.as_str(), job.spec.runbook.as_str());
        let lease = Lease::taken(job.taken_ms, Duration::from_millis(job.lease_ms));
        if let Err(reason) = self.allow.judge(&job.spec) {
            tracing::warn!(job = %id, owner, runbook, reason, "a job was refused");
            return self.report(&job, &JobEnding::Refused { reason }).await;
        }
        stop_at!("runner_claimed");
        failpoint::claimed_slowly().await;
        let Some(answer) = self.start(&job, &lease).await else { return };
        let lasts = Duration::from_millis(answer.lease_ms);
        lease.renew(answer.sent_ms, lasts);
        tracing::info!(job = %id, owner, runbook, "a job begins");
        stop_at!("runner_started");
        let began = Instant::now();
        let ending = self.executed(&job, lease, lasts).await;
        stop_at!("runner_executed");
        tracing::info!(job = %id, owner, runbook, ending = ending.as_str(), seconds = began.elapsed().as_secs(), "a job is over");
        self.report(&job, &ending).await;
        stop_at!("runner_reported");
    }

    /// Reports the start, again and again as long as the lease lasts. `None`: nothing may be executed.
    async fn start(&self, job: &ClaimedJob, lease: &Lease) -> Option<ReportAnswer> {
        let mut pause = PAUSES.0;
        while lease.holds() && !self.kill.is_cancelled() {
            match timeout(lease.left(), self.client.start(job)).await {
                Ok(Ok(answer)) => return Some(answer),
                Ok(Err(fault)) if !fault.may_pass() => {
                    tracing::warn!(job = %job.id, %fault, "a job is not ours any more; nothing was executed");
                    return None;
                }
                Ok(Err(fault)) => tracing::warn!(job = %job.id, %fault, "the start of a job could not be reported"),
                Err(_) => break,
            }
            pause = wait(pause).await;
        }
        // The start may be recorded without our knowing; then the service is told that nothing came of it.
        let reason = "the start could not be reported in time".to_owned();
        self.report(job, &JobEnding::NotBegun { reason }).await;
        None
    }

    /// Executes the commands, and reports what they print and that this process is there.
    async fn executed(&self, job: &ClaimedJob, lease: Lease, lasts: Duration) -> JobEnding {
        let stop = self.kill.child_token();
        let lease = Arc::new(lease);
        let holding = Arc::clone(&lease);
        let mut execution = Execution::new(&job.spec, self.host.clone(), stop.clone());
        execution.may_begin = Box::new(move || holding.holds());
        let mut shipper = OutputShipper { place: self, job, lease, lasts, stop, number: 0, unsent: None };
        let output = Arc::clone(&execution.output);
        let ending = {
            let executing = execute(&job.spec, &execution);
            let shipping = shipper.ship(&output);
            tokio::pin!(executing, shipping);
            tokio::select! {
                ending = &mut executing => ending,
                () = &mut shipping => executing.await,
            }
        };
        shipper.flush(&output).await;
        ending
    }

    /// Reports an ending until the service has it, or it does not matter any more.
    async fn report(&self, job: &ClaimedJob, ending: &JobEnding) {
        let (until, mut pause) = (Instant::now() + REPORT_FOR, PAUSES.0);
        while Instant::now() < until {
            match self.client.end(job, ending).await {
                Ok(_) => return,
                Err(fault) if !fault.may_pass() => {
                    tracing::warn!(job = %job.id, ending = ending.as_str(), %fault, "the service did not take the ending of a job");
                    return;
                }
                Err(fault) => tracing::warn!(job = %job.id, %fault, "the ending of a job could not be reported yet"),
            }
            pause = wait(pause).await;
        }
        tracing::error!(job = %job.id, ending = ending.as_str(), "the ending of a job was never reported");
    }
}

/// Sends what a job prints, in pieces that are numbered, so that a piece that is sent twice counts once.
struct OutputShipper<'a> {
    place: &'a Workplace,
    job: &'a ClaimedJob,
    lease: Arc<Lease>,
    lasts: Duration,
    stop: CancellationToken,
    number: u64,
    unsent: Option<(Vec<JobOutput>, u64)>,
}

impl OutputShipper<'_> {
    /// Sends output as it comes, and something every fifth of a lease in any case. Ends when the service does not want any.
    async fn ship(&mut self, output: &OutputLog) {
        let mut pause = PAUSES.0;
        loop {
            if self.unsent.is_none() && output.is_empty() {
                // Nothing printed for a while: the report is then only to renew the lease.
                drop(timeout(self.lasts / 5, output.changed()).await);
                sleep(GATHER.min(self.lasts / 10)).await;
            }
            match self.send(output).await {
                Ok(()) => pause = PAUSES.0,
                Err(fault) if fault.may_pass() => {
                    tracing::warn!(job = %self.job.id, %fault, "a job could not be reported on");
                    pause = wait(pause.min(self.lasts / 5)).await;
                }
                Err(fault @ ClientFault::Rejected(_)) => {
                    // The piece is lost; the job and its lease are not.
                    tracing::warn!(job = %self.job.id, %fault, "the service did not take a piece of output");
                    self.unsent = None;
                    pause = wait(pause).await;
                }
                Err(fault) => {
                    tracing::warn!(job = %self.job.id, %fault, "the service takes no more reports of a job");
                    return;
                }
            }
        }
    }

    /// Sends what is left, as far as the service takes it. An ending without all of the output is better than none.
    async fn flush(&mut self, output: &OutputLog) {
        const TRIES: usize = 3;
        let mut failed = 0;
        while (self.unsent.is_some() || !output.is_empty()) && failed < TRIES {
            if let Err(fault) = self.send(output).await {
                tracing::warn!(job = %self.job.id, %fault, "the last output of a job could not be sent");
                failed += 1;
                wait(PAUSES.0).await;
            }
        }
    }

    async fn send(&mut self, output: &OutputLog) -> Result<(), ClientFault> {
        if self.unsent.is_none() {
            let taken = output.take(PIECE);
            self.unsent = (!taken.0.is_empty() || taken.1 > 0).then_some(taken);
        }
        let body = self.unsent.as_ref().map(|(output, dropped)| piece(self.number, output, *dropped));
        let answer = self.place.client.events(self.job, body.as_ref()).await?;
        if self.unsent.take().is_some() {
            self.number += 1;
        }
        self.lasts = Duration::from_millis(answer.lease_ms);
        self.lease.renew(answer.sent_ms, self.lasts);
        if answer.cancel && !self.stop.is_cancelled() {
            tracing::info!(job = %self.job.id, "a job is to be ended");
            self.stop.cancel();
        }
        Ok(())
    }
}

/// Waits for about this long, and tells how long the next pause is. No two runners wait equally long.
pub(crate) async fn wait(pause: Duration) -> Duration {
    let mut byte = [128_u8];
    // Without randomness all wait equally long, which is no fault.
    getrandom::fill(&mut byte).ok();
    let share = 0.5 + f64::from(byte[0]) / 255.0;
    sleep(pause.mul_f64(share)).await;
    (pause * 2).min(PAUSES.1)
}
