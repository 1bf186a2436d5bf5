//! The record of a run: read, moved by one compare-and-set with its audit entry, and claimed.

use crate::executor::Executor;
use crate::failures::no_store;
use domain::run::{Answer, Claim, NotAnEdge, Preview, Run, RunEvent};
use domain::{Caller, Code, Failure, Moment, RunId, Tenant};
use policy::Permit;
use redact::redact;
use store::{Actor, ActorKind, AuditEntry, CallVerdict, Phase, RunCasOutcome, RunMove, TenantStore, VersionedRun};

/// How often a fold is repeated on a newer version.
pub(crate) const FOLDS: usize = 16;

/// How a fold ended.
pub(crate) enum RunUpdate {
    Done(Box<VersionedRun>),
    /// The event is no edge of the run as it now is.
    No(NotAnEdge, Box<VersionedRun>),
    /// The store's clock says it is too late.
    Late(Box<VersionedRun>),
}

/// Why a run could not be read or moved.
#[derive(Debug)]
pub enum RunError {
    /// There is no such run of the tenant, or the store has forgotten it. Another tenant's answers the same.
    Gone,
    /// Something else failed, most likely the store.
    Failed(Failure),
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Gone => Failure::new(Code::NotFound, "no such run"),
            RunError::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> RunError {
        RunError::Failed(failure)
    }
}

/// Proof that this replica has claimed a run and that the audit log says so: the claim and its entry are one commit.
/// Only [`Executor::claim_run`] makes one.
#[derive(Clone)]
pub(crate) struct RunClaim {
    run: RunId,
    claim: Claim,
}

impl RunClaim {
    /// The claim as it was written.
    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Whether the permit was given for the run that was claimed.
    pub(crate) fn covers(&self, permit: &Permit) -> bool {
        permit.run() == Some(self.run)
    }
}

/// How a claim ended.
pub(crate) enum ClaimOutcome {
    /// The run is this replica's.
    Mine(Box<VersionedRun>, RunClaim),
    /// Somebody else's, or too late; this is the run as it is.
    Not(Box<VersionedRun>),
}

impl Executor {
    /// Claims a run for this replica.
    pub(crate) async fn claim_run(
        &self,
        shelf: &TenantStore,
        held: VersionedRun,
        now: Moment,
    ) -> Result<ClaimOutcome, RunError> {
        let owner = self.store.replica().to_owned();
        let event = RunEvent::Claimed { owner, lease_until: now.plus(self.leases.lease) };
        let held = match self.fold_run(shelf, held, &event, now, None).await? {
            RunUpdate::Done(held) => held,
            RunUpdate::No(_, held) | RunUpdate::Late(held) => return Ok(ClaimOutcome::Not(held)),
        };
        Ok(match held.run.claim.clone() {
            Some(claim) => {
                let claim = RunClaim { run: held.run.id, claim };
                ClaimOutcome::Mine(held, claim)
            }
            None => ClaimOutcome::Not(held),
        })
    }

    /// Folds one event into a run, again and again on the newer version while others are quicker.
    pub(crate) async fn fold_run(
        &self,
        shelf: &TenantStore,
        mut held: VersionedRun,
        event: &RunEvent,
        at: Moment,
        actor: Option<&Caller>,
    ) -> Result<RunUpdate, RunError> {
        let runs = shelf.runs();
        let not_after = not_after(event, &held.run);
        for _ in 0..FOLDS {
            let next = match held.run.apply(event, at) {
                Ok(next) => after_the_end(&held.run, next),
                Err(no) => return Ok(RunUpdate::No(no, Box::new(held))),
            };
            let said = match event {
                RunEvent::Answered(answer) => Some(answer),
                RunEvent::Expired
                | RunEvent::Cancelled { .. }
                | RunEvent::Claimed { .. }
                | RunEvent::Renewed { .. }
                | RunEvent::Finished { .. }
                | RunEvent::Lost { .. }
                | RunEvent::Reconciled { .. }
                | RunEvent::Delivered => None,
            };
            let entry = AuditEntry {
                decision: said.map(recorded),
                ..self.moved(shelf.tenant(), Some(&held.run), &next, actor)
            };
            match runs.commit(&held, &next, not_after, &entry).await.map_err(|e| no_store(&e))? {
                RunCasOutcome::Done(now) => {
                    self.notices.tell(shelf.tenant(), Some(held.run.state), &now.run);
                    return Ok(RunUpdate::Done(Box::new(now)));
                }
                RunCasOutcome::Conflict(newer) => held = newer,
                RunCasOutcome::Late(_) => return Ok(RunUpdate::Late(Box::new(held))),
                // Only opening a run is limited, so a move never meets the limit.
                RunCasOutcome::TooManyWaiting | RunCasOutcome::Gone => return Err(RunError::Gone),
            }
        }
        Err(too_fast().into())
    }

    /// The audit log's entry for a run that moved.
    pub(crate) fn moved(&self, tenant: &Tenant, from: Option<&Run>, to: &Run, actor: Option<&Caller>) -> AuditEntry {
        let service = || Actor {
            principal: to.asked.requester.clone(),
            kind: ActorKind::Service,
            scopes: domain::Scopes::default(),
            token: None,
        };
        AuditEntry {
            actor: Some(actor.map_or_else(service, |caller| self.actor(caller))),
            session: to.asked.session,
            tool: Some(to.asked.tool.clone()),
            toolset: Some(to.asked.toolset.clone()),
            effect: Some(to.asked.effect),
            run: Some(RunMove {
                id: to.id,
                from: from.map(|run| run.state.as_str()),
                to: to.state.as_str(),
                epoch: to.claim.as_ref().map_or(0, |claim| claim.epoch),
                // Keyed like every digest in the audit log: arguments are few enough to be guessed.
                digest: self.keys.audit_digest(tenant, &to.asked.digest),
            }),
            trace: to.asked.trace.clone(),
            ..AuditEntry::new(Phase::Transition)
        }
    }

    /// Reads a run of this tenant, and the store's time.
    pub(crate) async fn find_run(&self, tenant: &Tenant, id: RunId) -> Result<(VersionedRun, Moment), RunError> {
        let (held, now) = self.store.of(tenant).runs().find(id).await.map_err(|e| no_store(&e))?;
        Ok((held.ok_or(RunError::Gone)?, now))
    }
}

/// A run that has just ended. Nothing of it will be executed any more, so what people were shown as it is, is kept masked by
/// its looks like everything else; the arguments below it go altogether when it is written.
fn after_the_end(before: &Run, mut run: Run) -> Run {
    if before.state.is_final() || !run.state.is_final() {
        return run;
    }
    let preview = &mut run.asked.preview;
    // The arguments apart, or what looks like a key could reach over the sign before them.
    let arguments = preview.text.rfind(Preview::ARGUMENTS).map(|at| preview.text.split_off(at)).unwrap_or_default();
    preview.text = redact(&preview.text) + &arguments;
    preview.summary = redact(&preview.summary);
    preview.warnings.iter_mut().for_each(|warning| *warning = redact(warning));
    run
}

/// What the store's own clock must still allow: an answer before the expiry, a claim before the yes is stale.
fn not_after(event: &RunEvent, run: &Run) -> Option<Moment> {
    let before = |end: Moment| Moment::from_millis(end.millis().saturating_sub(1));
    match event {
        RunEvent::Answered(_) => Some(before(run.asked.expires_at)),
        RunEvent::Claimed { .. } if run.state == domain::run::RunState::Approved => run.execute_by.map(before),
        RunEvent::Claimed { .. }
        | RunEvent::Expired
        | RunEvent::Cancelled { .. }
        | RunEvent::Renewed { .. }
        | RunEvent::Finished { .. }
        | RunEvent::Lost { .. }
        | RunEvent::Reconciled { .. }
        | RunEvent::Delivered => None,
    }
}

/// What a person said, as it stands in the audit log.
fn recorded(answer: &Answer) -> CallVerdict {
    let verdict = match answer.verdict {
        domain::run::Verdict::Approve => "approve",
        domain::run::Verdict::Reject => "reject",
    };
    CallVerdict { verdict, basis: None, comment: answer.reason.clone() }
}

pub(crate) fn too_fast() -> Failure {
    Failure::new(Code::StoreUnavailable, "the run changes faster than it can be written").retry_after_ms(200)
}
