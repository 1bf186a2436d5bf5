//! `await_run`: what became of a call that a person must approve, from whichever replica.

use crate::call::{CallRequest, Executor};
use crate::runs::{no_run, told};
use crate::virtuals::typed;
use catalog::virtuals::AwaitArgs;
use domain::{Code, Failure, Outcome, RunId};
use serde_json::Value;
use std::time::Duration;

/// The longest wait: common clients give up at a minute.
pub(super) const LONGEST: Duration = Duration::from_millis(55_000);
const USUAL: Duration = Duration::from_millis(20_000);

impl Executor {
    pub(super) async fn await_run(&self, request: &CallRequest, arguments: Value) -> Outcome {
        let AwaitArgs { run_id, wait_ms } = typed(arguments)?;
        let unknown =
            || Failure::new(Code::NotFound, "there is no such run of yours").next("use the run id you were given");
        let id = RunId::parse(&run_id).map_err(|_| unknown())?;
        let patience = wait_ms.map_or(USUAL, Duration::from_millis).min(LONGEST);
        let caller = &request.caller;
        // Looked at before waiting: another principal's run answers like one that never was.
        let run =
            self.run(&caller.tenant, id).await.map_err(|f| if f.code == no_run().code { unknown() } else { f })?;
        if run.asked.requester != caller.principal {
            return Err(unknown());
        }
        let run = tokio::select! {
            run = self.wait_for(&caller.tenant, id, patience, &request.progress) => run?,
            () = request.cancel.cancelled() => return Err(Failure::new(Code::Cancelled, "the caller cancelled the wait")),
        };
        if run.state.is_final() {
            self.note_delivery(caller, id).await;
        }
        told::to_agent(&run, false)
    }
}
