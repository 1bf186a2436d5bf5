//! The sweep: takes no input, finds what is due in the store, and does what is to be done about it.
//!
//! It runs on every replica, again and again. Whoever is first does the work; the compare-and-set sees to that.

use super::carry_out::speaks_from_outside;
use crate::executor::Executor;
use crate::failures::no_store;
use crate::run_record::RunUpdate;
use crate::snapshot::Snapshot;
use catalog::ProbeResult;
use domain::run::{Ending, RunEvent, RunState};
use domain::{Code, Failure, Moment, RunId, Tenant};
use std::sync::Arc;
use std::time::Duration;
use store::VersionedRun;

/// How many runs are looked at in one sweep of one tenant.
const AT_ONCE: usize = 128;
/// How many of the oldest runs are looked at in one tidying.
const TIDIED_AT_ONCE: usize = 256;
/// When an unknown outcome is looked at again after it became unknown; then only a person can settle it.
const PROBES: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];

impl Executor {
    /// Looks at everything of one tenant that is due.
    pub async fn sweep(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant) {
        let due = match self.store.of(tenant).runs().due(AT_ONCE).await {
            Ok(due) => due,
            // A store that is away is told of elsewhere; the next sweep tries again.
            Err(_) => return,
        };
        for id in due {
            let Err(failure) = self.look(snapshot, tenant, id).await else { continue };
            tracing::debug!(run = %id, code = failure.code.as_str(), "a due run could not be looked at");
            if failure.code == Code::RecordNotAuthentic
                && let Err(error) = self.store.of(tenant).runs().set_aside(id).await
            {
                tracing::debug!(run = %id, %error, "a run that is not authentic is looked at again");
            }
        }
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
                Ok(self.fold_run(&shelf, held, &RunEvent::Expired, now, None).await.map(drop)?)
            }
            RunState::Approved => {
                let late = held.run.execute_by.is_some_and(|by| now >= by);
                if late {
                    return Ok(self.fold_run(&shelf, held, &RunEvent::Expired, now, None).await.map(drop)?);
                }
                if self.may_be_under_way(&held.run, now) {
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
                match self.fold_run(&shelf, held, &RunEvent::Lost { by: None, ending }, now, None).await? {
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
        let basis = "a probe of the target".to_owned();
        // While the lease lasts its owner may still be sending: that nothing is there yet proves nothing.
        let owner_may_act = held.run.claim.as_ref().is_some_and(|claim| now < claim.lease_until);
        let found = match self.probe(snapshot, tenant, &held.run).await {
            ProbeResult::NotDone if owner_may_act => ProbeResult::Unknown,
            found @ (ProbeResult::Done(_) | ProbeResult::NotDone | ProbeResult::Unknown) => found,
        };
        match found {
            ProbeResult::Done(result) => {
                let tainting = speaks_from_outside(snapshot, &held.run);
                self.reconcile(tenant, held, Ending { basis, tainting, ..Ending::done(result) }).await
            }
            ProbeResult::NotDone => {
                let ending = Ending { basis, ..Ending::failed(Code::OutcomeUnknown, "it did not happen") };
                self.reconcile(tenant, held, Ending { attempted: false, ..ending }).await
            }
            ProbeResult::Unknown => {
                let age = now.since(held.run.changed_at);
                let next = PROBES.into_iter().find(|at| *at > age).map(|at| held.run.changed_at.plus(at));
                let lease = held.run.claim.as_ref().map(|claim| claim.lease_until).filter(|_| owner_may_act);
                let next = lease.map_or(next, |lease| Some(next.map_or(lease, |next| next.min(lease.max(now)))));
                let entry = self.moved(tenant, Some(&held.run), &held.run, None);
                let looked = self.store.of(tenant).runs().look_again(&held, next, &entry).await;
                looked.map(|_| ()).map_err(|e| no_store(&e))
            }
        }
    }
}
