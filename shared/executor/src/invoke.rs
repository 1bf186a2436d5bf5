//! The tool itself: under its deadline, with its panic caught, and cancelled as the era wants.
//!
//! The rule stands once, here. Modern reads live in the request's future: the client that vanishes takes them along.
//! Legacy reads are spawned and waited for: a lost connection is not a cancellation there, only the explicit one is.

use crate::call::{Era, Executor, OpenCall};
use crate::clean::cleaned;
use crate::snapshot::Secrets;
use catalog::{Entry, Parsed, Progress};
use domain::{Code, Content, Failure, Outcome, Output};
use futures_util::FutureExt;
use policy::Permit;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// One permitted call, ready to run.
pub(crate) struct Job {
    pub(crate) entry: Arc<Entry>,
    pub(crate) parsed: Parsed,
    pub(crate) permit: Permit,
    pub(crate) progress: Progress,
    /// The tenant's cap on one result.
    pub(crate) cap: usize,
    /// The tenant's secrets.
    pub(crate) secrets: Secrets,
    /// The open audit entry; closed where the work ends, whoever is still waiting.
    pub(crate) open: OpenCall,
    /// Held until the work ends.
    pub(crate) _slot: OwnedSemaphorePermit,
}

impl Executor {
    pub(crate) async fn invoke(&self, job: Job, era: Era, cancel: CancellationToken) -> Outcome {
        match era {
            Era::Modern => self.run_job(job, cancel).await,
            Era::Legacy => {
                let executor = self.clone();
                let work = self.tasks.spawn("legacy call", async move { executor.run_job(job, cancel).await });
                match work.await {
                    Ok(Some(outcome)) => outcome,
                    Ok(None) | Err(_) => Err(Failure::new(Code::Internal, "the call ended without a result")),
                }
            }
        }
    }

    async fn run_job(&self, job: Job, cancel: CancellationToken) -> Outcome {
        let Job { entry, parsed, permit, progress, cap, secrets, open, _slot } = job;
        let work = under_deadline(parsed, &permit, &progress, entry.definition().deadline, cancel);
        let outcome = cleaned(&secrets, work).await;
        let outcome = outcome.and_then(|output| capped(marked(output, &entry), cap));
        let outcome = self.taint_first(&open, &permit.call().caller, &outcome).await.and(outcome);
        open.close(&outcome).await;
        outcome
    }
}

/// Whatever such a tool gives is text from outside, whether it says so itself or not.
pub(crate) fn marked(output: Output, entry: &Entry) -> Output {
    Output { tainting: output.tainting || entry.definition().outside_text, ..output }
}

async fn under_deadline(
    parsed: Parsed,
    permit: &Permit,
    progress: &Progress,
    deadline: Duration,
    cancel: CancellationToken,
) -> Outcome {
    let tool = permit.call().tool.clone();
    let ended = AssertUnwindSafe(parsed.work.run(permit, progress)).catch_unwind();
    tokio::select! {
        biased; // a result that is there wins a tie against its own deadline
        ended = ended => ended.unwrap_or_else(|_| {
            tracing::error!(tool = %tool, "a tool panicked");
            Err(Failure::new(Code::Internal, format!("{tool} failed inside the service")))
        }),
        () = cancel.cancelled() => Err(Failure::new(Code::Cancelled, "the caller cancelled the call")),
        () = tokio::time::sleep(deadline) => Err(
            Failure::new(Code::Deadline, format!("{tool} took longer than its {} s", deadline.as_secs()))
                .next("narrow the call, or try again later")
                .retry_after_ms(1_000),
        ),
    }
}

/// Holds a result to the tenant's cap. Tools page their results themselves; what still does not fit is refused whole,
/// because JSON cut in the middle is worse than none.
fn capped(output: Output, cap: usize) -> Outcome {
    let block = |content: &Content| match content {
        Content::Text(text) => text.len(),
        Content::Block(block) => block.to_string().len(),
    };
    // Blocks often say once more what the structured result says, so the larger of the two counts.
    let size = output.structured.as_ref().map_or(0, String::len).max(output.content.iter().map(block).sum());
    if size <= cap {
        return Ok(output);
    }
    Err(Failure::new(Code::ResultTooLarge, format!("the result has {size} bytes and the cap is {cap}"))
        .next("narrow the call so that it returns less"))
}
