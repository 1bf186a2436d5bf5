//! The sweep: takes no input, finds what is due in the store, and does what is to be done about it.
//!
//! Any replica may do it at any time. Whoever is first does the work; the compare-and-set sees to that.

use super::carry_out::{PROBED, found_done, found_failed};
use super::standing::may_be_under_way;
use crate::executor::Executor;
use crate::failures::no_store;
use crate::run_record::{RunStep, RunUpdate};
use crate::snapshot::Snapshot;
use catalog::ProbeResult;
use domain::run::{Ending, Run, RunEvent, RunState};
use domain::{Code, Failure, Moment, RunId, Tenant};
use std::sync::Arc;
use std::time::Duration;
use store::{StoreError, VersionedRun};
use tracing::{Instrument, Span};

/// How many runs are looked at in one sweep of one tenant.
const AT_ONCE: usize = 128;
/// How many of the oldest runs are looked at in one tidying.
const TIDIED_AT_ONCE: usize = 256;
/// When an unknown outcome is looked at again after it became unknown; then only a person can settle it.
const PROBES: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];

impl Executor {
    /// Looks at everything of one tenant that is due, and tells when somebody has to look again; `None` if all its runs are
    /// over, [`store::NEVER_DUE`] if only a person can go on.
    pub async fn sweep(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant) -> Result<Option<Moment>, StoreError> {
        let runs = self.store.of(tenant).runs();
        let mut due = runs.due(AT_ONCE).await?;
        let by_now: Vec<RunId> = due.by_now().collect();
        for &id in &by_now {
            let Err(failure) = Box::pin(self.look(snapshot, tenant, id)).await else { continue };
            tracing::debug!(run = %id, code = failure.code.as_str(), "a due run could not be looked at");
            if failure.code == Code::RecordNotAuthentic
                && let Err(error) = self.store.of(tenant).runs().set_aside(id).await
            {
                tracing::debug!(run = %id, %error, "a run that is not authentic is looked at again");
            }
        }
        if !by_now.is_empty() {
            due = runs.due(1).await?;
        }
        Ok(due.runs.first().map(|(_, at)| *at))
    }

    /// Takes what the store has forgotten out of the lists of a tenant's runs and sessions, and out of their counts.
    pub async fn tidy(&self, tenant: &Tenant) {
        let store = self.store.of(tenant);
        // A store that is away is told of elsewhere; the next round tries again.
        while let Ok(taken @ 1..) = store.runs().tidy(TIDIED_AT_ONCE).await {
            tracing::debug!(%tenant, taken, "forgotten runs were taken out of the list");
        }
        while let Ok(taken @ 1..) = store.sessions().tidy(None, self.lives, TIDIED_AT_ONCE).await {
            tracing::debug!(%tenant, taken, "sessions that are over were taken out of the list");
        }
    }

    async fn look(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant, id: RunId) -> Result<(), Failure> {
        let (held, now) = self.find_run(tenant, id).await?;
        let shelf = self.store.of(tenant);
        match held.run.state {
            RunState::PendingApproval => {
                Ok(self.fold_run(&shelf, held, RunStep::of_service(&RunEvent::Expired, now)).await.map(drop)?)
            }
            RunState::Approved => {
                let late = held.run.execute_by.is_some_and(|by| now >= by);
                if late {
                    return Ok(self
                        .fold_run(&shelf, held, RunStep::of_service(&RunEvent::Expired, now))
                        .await
                        .map(drop)?);
                }
                if may_be_under_way(&held.run, self.store.lineages().now(), self.leases.lease, now) {
                    return Ok(());
                }
                self.begin(Arc::clone(snapshot), tenant.clone(), held, now).await.map(|_| ())
            }
            RunState::Executing if held.run.asked.idempotent => {
                self.begin(Arc::clone(snapshot), tenant.clone(), held, now).await.map(|_| ())
            }
            RunState::Executing => {
                let silent = "the replica that carried it out fell silent";
                let ending = Ending { basis: silent.into(), ..Ending::failed(Code::OutcomeUnknown, silent) };
                let lost = RunEvent::Lost { by: None, ending };
                let step = RunStep::of_service(&lost, now).ending(self.end_facts(snapshot));
                match self.fold_run(&shelf, held, step).await? {
                    RunUpdate::Done(held) => self.settle(snapshot, tenant, *held, now).await,
                    RunUpdate::No(..) | RunUpdate::Late(_) => Ok(()),
                }
            }
            RunState::OutcomeUnknown => self.settle(snapshot, tenant, held, now).await,
            RunState::Rejected
            | RunState::Expired
            | RunState::Cancelled
            | RunState::Succeeded
            | RunState::Failed
            | RunState::ReconciledSucceeded
            | RunState::ReconciledFailed => self.leave(tenant, &held).await,
        }
    }

    /// Takes a run that is over out of what is due: it ended since the list was read, or nobody sealed its record.
    async fn leave(&self, tenant: &Tenant, held: &VersionedRun) -> Result<(), Failure> {
        let runs = self.store.of(tenant).runs();
        let ending = held.run.ending.as_ref().and_then(|ending| ending.code.as_deref());
        if ending != Some(Code::RecordNotAuthentic.as_str()) {
            // The change that ended it wrote its own entry, so this one has nothing to tell.
            return runs.set_aside(held.run.id).await.map_err(|e| no_store(&e));
        }
        // From now on the record is this service's own, as over.
        let entry = self.moved(tenant, None, &held.run, None);
        runs.look_again(held, None, &entry).await.map(drop).map_err(|e| no_store(&e))
    }

    /// Asks the target what became of a run, and looks again later if it cannot tell.
    async fn settle(
        &self,
        snapshot: &Arc<Snapshot>,
        tenant: &Tenant,
        held: VersionedRun,
        now: Moment,
    ) -> Result<(), Failure> {
        let span = reconciliation_span(tenant, &held.run);
        let found = match self.probe(snapshot, tenant, &held.run).instrument(span).await {
            // While the lease lasts its owner may still be sending: that nothing is there yet proves nothing.
            ProbeResult::NotDone if lease_left(&held.run, now).is_some() => ProbeResult::Unknown,
            found @ (ProbeResult::Done(_) | ProbeResult::NotDone | ProbeResult::Failed(_) | ProbeResult::Unknown) => {
                found
            }
        };
        match found {
            ProbeResult::Done(result) => {
                let ending = found_done(snapshot, &held.run, result);
                self.reconcile(tenant, held, ending, self.end_facts(snapshot)).await
            }
            ProbeResult::Failed(failure) => {
                self.reconcile(tenant, held, found_failed(failure), self.end_facts(snapshot)).await
            }
            ProbeResult::NotDone => {
                let failed = Ending::failed(Code::OutcomeUnknown, "it did not happen");
                let ending = Ending { basis: PROBED.into(), attempted: false, ..failed };
                self.reconcile(tenant, held, ending, self.end_facts(snapshot)).await
            }
            ProbeResult::Unknown => {
                let entry = self.moved(tenant, Some(&held.run), &held.run, None);
                // Not over, so it stays among those that are not.
                let next = next_look(&held.run, now).unwrap_or(store::NEVER_DUE);
                let looked = self.store.of(tenant).runs().look_again(&held, Some(next), &entry).await;
                looked.map(|_| ()).map_err(|e| no_store(&e))
            }
        }
    }
}

/// The span of a look at what became of a run: a trace of its own, linked to the execution.
fn reconciliation_span(tenant: &Tenant, run: &Run) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "reconcile",
        gen_ai.tool.name = run.asked.tool.as_str(),
        quartermaster.tenant = tenant.as_str(),
        quartermaster.toolset = run.asked.toolset.as_str(),
        quartermaster.run.id = %run.id,
        quartermaster.run.state = run.state.as_str(),
    );
    if let Some(execution) = &run.executed_in {
        telemetry::link_to(&span, execution, "execution");
    }
    span
}

/// The end of the lease of whoever may still be sending; `None` if nobody may.
fn lease_left(run: &Run, now: Moment) -> Option<Moment> {
    run.claim.as_ref().map(|claim| claim.lease_until).filter(|until| !until.since(now).is_zero())
}

/// When an unknown outcome is looked at again, and at the latest when its owner can send no more. `None`: only a person
/// can settle it.
fn next_look(run: &Run, now: Moment) -> Option<Moment> {
    let looks = PROBES.map(|after| run.changed_at.plus(after)).into_iter().chain(lease_left(run, now));
    looks.filter(|at| !at.since(now).is_zero()).min()
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;
    use domain::run::Claim;
    use store::{Commit, Committed, RecordKey, RunCasOutcome};

    #[tokio::test]
    async fn what_the_store_has_forgotten_is_tidied_away() {
        let (executor, tenant) = (example::executor().await, Tenant::parse("acme").unwrap());
        let held = example::put(&executor, &example::run(RunState::PendingApproval)).await;
        let shelf = executor.store.of(&tenant);
        let gone = Commit::delete(RecordKey::run(held.run.id), held.version);
        assert!(matches!(shelf.commit(gone).await.unwrap(), Committed::Done(..)));
        assert_eq!(shelf.runs().ids(None, None, 9).await.unwrap().len(), 1);
        executor.tidy(&tenant).await;
        assert_eq!(shelf.runs().ids(None, None, 9).await.unwrap(), []);
    }

    #[tokio::test]
    async fn a_run_that_is_over_is_no_longer_due() {
        let (executor, tenant) = (example::executor().await, Tenant::parse("acme").unwrap());
        let runs = executor.store.of(&tenant).runs();
        let due = async || runs.due(9).await.unwrap().runs.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
        let forged = Ending::failed(Code::RecordNotAuthentic, "not ours");
        let noted = async || executor.store.of(&tenant).audit().page(None, 99).await.unwrap().len();
        for (number, ending, entries) in [(1, None, 0), (2, Some(forged), 1)] {
            let over = Run { id: RunId::from_random([number; 16]), ending, ..example::run(RunState::Expired) };
            let held = example::put(&executor, &over).await;
            let moved = executor.moved(&tenant, None, &over, None);
            let looked = runs.look_again(&held, Some(Moment::from_secs(1)), &moved).await.unwrap();
            assert!(matches!(looked, RunCasOutcome::Done(..)), "{looked:?}");
            assert_eq!(due().await, [over.id]);
            let (held, _) = executor.find_run(&tenant, over.id).await.unwrap();
            let before = noted().await;
            executor.leave(&tenant, &held).await.unwrap();
            assert_eq!(due().await, [], "{number}");
            assert_eq!(noted().await - before, entries, "only what was made ours is told of");
        }
    }

    fn unknown(lease_until: u64) -> Run {
        let claim = Claim { owner: "a".into(), epoch: 1, lease_until: Moment::from_secs(lease_until) };
        Run { claim: Some(claim), changed_at: Moment::from_secs(100), ..example::run(RunState::OutcomeUnknown) }
    }

    #[test]
    fn an_unknown_outcome_is_looked_at_three_times_and_when_the_lease_is_over() {
        let next = |lease_until, now| next_look(&unknown(lease_until), Moment::from_secs(now));
        let at = |secs| Some(Moment::from_secs(secs));
        assert_eq!([next(90, 100), next(90, 105), next(90, 129)], [at(105), at(130), at(130)]);
        assert_eq!([next(90, 130), next(90, 219), next(90, 220)], [at(220), at(220), None]);
        assert_eq!([next(103, 100), next(110, 105), next(300, 220)], [at(103), at(110), at(300)]);
    }

    #[test]
    fn whoever_holds_a_run_may_send_until_the_lease_is_over() {
        let left = |now| lease_left(&unknown(110), Moment::from_secs(now));
        assert_eq!([left(109), left(110), left(111)], [Some(Moment::from_secs(110)), None, None]);
        assert_eq!(lease_left(&Run { claim: None, ..unknown(110) }, Moment::from_secs(1)), None);
    }
}
