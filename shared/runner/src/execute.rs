//! The steps of one job in their order: `check`, then `run`, then `verify`.
//!
//! `check` with exit 0 means that it is done already: nothing else runs. Any other code means that there is something to
//! do; a check that could not be started, was killed or ran out of time proves nothing, so nothing else runs either.

use crate::Host;
use crate::output::OutputLog;
use crate::step::{self, StepContext, StepEnd};
use domain::job::{JobEnding, JobSpec, JobStep, StepExit};
use redact::SecretText;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What an execution is given besides the job.
pub struct Execution {
    /// Where it happens.
    pub host: Host,
    /// Ends it, because its submitter wants that.
    pub stop: CancellationToken,
    /// Takes what the commands print.
    pub output: Arc<OutputLog>,
    /// Asked right before each step: whether this process may still begin something. Once a lease is over it may not.
    pub may_begin: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Execution {
    /// An execution of this job here that nobody has to renew anything for.
    pub fn new(spec: &JobSpec, host: Host, stop: CancellationToken) -> Execution {
        let secrets = spec.env.values().filter(|variable| variable.secret);
        let secrets = secrets.map(|variable| SecretText::new(variable.value.as_str()));
        let output = Arc::new(OutputLog::new(spec.output_bytes, secrets));
        Execution { host, stop, output, may_begin: Box::new(|| true) }
    }
}

/// Executes the steps of a job, and tells what became of it. No shell is involved. When this is dropped, its processes are
/// killed.
pub async fn execute(spec: &JobSpec, execution: &Execution) -> JobEnding {
    let ending = run_steps(spec, execution).await;
    execution.output.finish();
    ending
}

async fn run_steps(spec: &JobSpec, execution: &Execution) -> JobEnding {
    let Execution { host, stop, output, may_begin } = execution;
    let deadline = Instant::now() + spec.timeout();
    let context = StepContext { spec, host, output, stop, deadline };
    let steps = [(JobStep::Check, &spec.check), (JobStep::Run, &spec.run), (JobStep::Verify, &spec.verify)];
    let mut run_began = false;
    for (step, argv) in steps {
        let Some(argv) = argv else { continue };
        // What only looks after the fact may always look.
        if step != JobStep::Verify && !may_begin() {
            return JobEnding::NotBegun { reason: "the lease was over before the command began".into() };
        }
        run_began |= step == JobStep::Run;
        let end = step::run(step, argv, &context).await;
        tracing::debug!(step = step.as_str(), ?end, "a step ended");
        match (step, end) {
            (JobStep::Check, StepEnd::Good) => return JobEnding::AlreadyDone,
            (JobStep::Check, StepEnd::Bad(StepExit::Code(_))) if spec.run.is_some() => {}
            (JobStep::Run | JobStep::Verify, StepEnd::Good) => {}
            (_, StepEnd::Cancelled) if run_began => return JobEnding::Cancelled,
            (_, StepEnd::Cancelled) => {
                return JobEnding::NotBegun { reason: "it was cancelled while it checked".into() };
            }
            (step, StepEnd::Bad(exit)) => return JobEnding::Failed { step, exit },
        }
    }
    JobEnding::Succeeded
}

#[cfg(test)]
mod tests;
