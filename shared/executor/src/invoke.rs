//! A permitted call that only reads: carried out at once, and cancelled as the era wants.
//!
//! The rule stands once, here. Modern reads live in the request's future: the client that vanishes takes them along.
//! Legacy reads are spawned and waited for: a lost connection is not a cancellation there, only the explicit one is.

use crate::executor::Executor;
use crate::limits::SlotGuard;
use crate::open_call::OpenCall;
use crate::perform::{AtDeadline, BoundCall, CallBounds, OpenEntry};
use crate::request::ClientEra;
use crate::snapshot::SecretsNow;
use catalog::{CatalogEntry, ParsedCall, Progress};
use domain::{Code, Failure, Outcome};
use policy::Permit;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// One permitted call, ready to run.
pub(crate) struct PermittedCall {
    pub(crate) entry: Arc<CatalogEntry>,
    pub(crate) parsed: ParsedCall,
    pub(crate) permit: Permit,
    pub(crate) progress: Progress,
    /// The tenant's cap on one result.
    pub(crate) cap: usize,
    /// The tenant's secrets.
    pub(crate) secrets: SecretsNow,
    /// The open audit entry; closed where the work ends, whoever is still waiting.
    pub(crate) open: OpenCall,
    /// Held until the work ends.
    pub(crate) _slot: SlotGuard,
}

impl Executor {
    pub(crate) async fn invoke(&self, job: PermittedCall, era: ClientEra, cancel: CancellationToken) -> Outcome {
        match era {
            ClientEra::Modern => self.run_job(job, cancel).await,
            ClientEra::Legacy => {
                let executor = self.clone();
                let work = self.tasks.spawn("legacy call", async move { executor.run_job(job, cancel).await });
                match work.await {
                    Ok(Some(outcome)) => outcome,
                    Ok(None) | Err(_) => {
                        Outcome::Failed(Failure::new(Code::Internal, "the call ended without a result"))
                    }
                }
            }
        }
    }

    async fn run_job(&self, job: PermittedCall, cancel: CancellationToken) -> Outcome {
        let PermittedCall { entry, parsed, permit, progress, cap, secrets, open, _slot } = job;
        let call = BoundCall::Tool { entry: &entry, parsed, progress: &progress };
        let bounds = CallBounds { secrets, cap, shape: std::convert::identity, cancel, at_deadline: AtDeadline::Stop };
        let outcome = self.perform(OpenEntry::Call(&open), &permit, call, bounds).await.into_outcome();
        open.close(&outcome).await;
        outcome
    }
}
