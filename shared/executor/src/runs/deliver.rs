//! An agent is handed what became of a run: by the call that asked for it, or by `await_run`. Only then is it delivered;
//! whoever merely reads the record changes nothing.

use super::report;
use crate::executor::Executor;
use crate::open_call::OpenCall;
use crate::perform::quotes;
use crate::run_record::RunStep;
use domain::run::RunEvent;
use domain::{Caller, Failure, Outcome};
use store::VersionedRun;

impl Executor {
    /// Tells the agent what became of a run, and notes that it knows. What cannot be handed out is still owed.
    pub(crate) async fn hand_over(
        &self,
        open: &OpenCall,
        caller: &Caller,
        held: &VersionedRun,
        replayed: bool,
    ) -> Result<Outcome, Failure> {
        let outcome = report::to_agent(&held.run, replayed, &self.codes);
        let outcome = report::with_page(outcome, self.pages.as_deref());
        let taints = match &outcome {
            Outcome::Done(output) => output.tainting,
            Outcome::Failed(failure) => quotes(failure.code),
            Outcome::Waiting(_) => false,
        };
        if taints {
            self.taint_first(open, caller).await?;
        }
        self.note_delivery(caller, held).await;
        Ok(outcome)
    }

    /// Notes that the requester was handed the ending. If that fails, the same call gets the same ending once more.
    async fn note_delivery(&self, caller: &Caller, held: &VersionedRun) {
        let run = &held.run;
        if run.asked.requester != caller.principal || run.delivered || !run.state.is_final() {
            return;
        }
        let shelf = self.store.of(&caller.tenant);
        let delivered = RunEvent::Delivered;
        let step = RunStep::of(caller, &delivered, run.changed_at);
        let noted = self.fold_run(&shelf, held.clone(), step).await;
        if let Err(error) = noted {
            tracing::debug!(code = Failure::from(error).code.as_str(), "a delivery could not be noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use domain::run::{Run, RunState};

    #[tokio::test]
    async fn only_its_own_requester_is_handed_an_ending() {
        for (state, subject, delivered) in [
            (RunState::Succeeded, "agent", true),
            (RunState::Succeeded, "other", false),
            (RunState::PendingApproval, "agent", false),
        ] {
            let executor = example::executor().await;
            let held = example::put(&executor, &example::run(state)).await;
            let caller = example::caller(subject, "tools:write");
            executor.note_delivery(&caller, &held).await;
            let Run { delivered: noted, .. } = executor.find_run(&caller.tenant, held.run.id).await.unwrap().0.run;
            assert_eq!(noted, delivered, "{state:?} {subject}");
        }
    }
}
