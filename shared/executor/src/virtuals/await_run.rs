//! `await_run`: what became of a call that a person must approve, from whichever replica.

use crate::executor::Executor;
use crate::open_call::OpenCall;
use crate::request::CallRequest;
use crate::run_record::RunError;
use crate::runs::{RunWait, WaitUntil};
use crate::virtuals::arguments::typed;
use catalog::virtuals::AwaitArgs;
use domain::run::Run;
use domain::{Code, Failure, Outcome, RunId};
use serde_json::Value;
use std::time::Duration;
use tracing::Instrument;

/// The longest wait: common clients give up at a minute.
pub(super) const LONGEST: Duration = Duration::from_millis(55_000);
const USUAL: Duration = Duration::from_millis(20_000);

impl Executor {
    pub(super) async fn await_run(
        &self,
        request: &CallRequest,
        open: &OpenCall,
        arguments: Value,
    ) -> Result<Outcome, Failure> {
        let AwaitArgs { run_id, wait_ms } = typed(arguments)?;
        let unknown =
            || Failure::new(Code::NotFound, "there is no such run of yours").next("use the run id you were given");
        let id = RunId::parse(&run_id).map_err(|_| unknown())?;
        let patience = wait_ms.map_or(USUAL, Duration::from_millis).min(LONGEST);
        let caller = &request.caller;
        // Another principal's run answers like one that never was.
        let may_see = |run: &Run| run.asked.requester == caller.principal;
        let waiting = RunWait { until: WaitUntil::Settled, patience, may_see: &may_see, progress: &request.progress };
        // A span of its own, kept like everything about a run, that leads to the execution.
        let span = tracing::info_span!("await_run", quartermaster.tenant = %caller.tenant, quartermaster.run.id = %id);
        let before = self.store.lineages().now();
        let held = tokio::select! {
            run = self.wait_for(&caller.tenant, id, waiting).instrument(span.clone()) => match run {
                Ok(held) => held,
                Err(RunError::Gone) => return Err(unknown()),
                Err(RunError::Failed(failure)) => return Err(failure),
            },
            () = request.cancel.cancelled() => return Err(Failure::new(Code::Cancelled, "the caller cancelled the wait")),
        };
        if let Some(execution) = &held.run.executed_in {
            telemetry::link_to(&span, execution, "execution");
        }
        // That it waits was confirmed when it was asked for; how it ended is told for the first time.
        if held.run.state.is_settled() {
            self.confirm_told(&open.shelf, &held.run, before).await?;
        }
        self.hand_over(open, caller, &held, false).await
    }
}
