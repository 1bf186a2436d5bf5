//! Runs: calls that wait for a person, and what became of them.
//!
//! Reading order: `ask` (a gated call becomes a run), `answer` (a person decides), `carry_out` (a claimed run is
//! executed), `ready` (what is looked at just before), `standing` (how firmly the store holds all that), `sweep`
//! (whatever is due is looked at, whoever left it), [`notice`] (who else is told), `wait` (how an agent learns of it),
//! [`told`] (what it is told).
//!
//! A run is a record that moves only through [`Run::apply`], folded by one compare-and-set. Whoever waits reads the
//! record; a wake-up only says when to look again, so a lost one costs a tick.

mod answer;
pub(crate) mod ask;
mod carry_out;
pub mod notice;
mod ready;
mod standing;
mod sweep;
pub mod told;
mod wait;

pub use answer::{Said, may_decide};
pub use wait::{Until, Waiting};

use crate::call::{Executor, no_store};
use domain::run::{Answer, Event, NotAnEdge, Run};
use domain::{Caller, Code, Failure, Moment, RunId, Tenant};
use std::time::Duration;
use store::{Actor, ActorKind, AuditEntry, FoldedRun, HeldRun, Phase, RunMove, Shelf, Verdict};

/// What a tenant says about approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Approvals {
    /// How long a person may take.
    pub expires: Duration,
    /// How long a yes is good for.
    pub execute_within: Duration,
    /// How many people must say yes.
    pub deciders: u32,
    /// How many runs of one principal may wait at once; those that are reviewed are counted apart, up to the same number.
    pub most_waiting: usize,
    /// How long people may take for what they review at their own pace, if the tenant says; else the tool does.
    pub review: Option<Duration>,
}

/// How replicas share the work of carrying runs out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// How long an owner may be silent.
    pub lease: Duration,
    /// How often it says that it lives.
    pub renew_every: Duration,
}

/// How often a fold is repeated on a newer version.
const FOLDS: usize = 16;

/// How a fold ended.
pub(crate) enum Folded {
    Done(Box<HeldRun>),
    /// The event is no edge of the run as it now is.
    No(NotAnEdge, Box<HeldRun>),
    /// The store's clock says it is too late.
    Late(Box<HeldRun>),
}

impl Executor {
    /// Folds one event into a run, again and again on the newer version while others are quicker.
    pub(crate) async fn fold_run(
        &self,
        shelf: &Shelf,
        mut held: HeldRun,
        event: &Event,
        at: Moment,
        actor: Option<&Caller>,
    ) -> Result<Folded, Failure> {
        let runs = shelf.runs();
        let not_after = not_after(event, &held.run);
        for _ in 0..FOLDS {
            let next = match held.run.apply(event, at) {
                Ok(next) => next,
                Err(no) => return Ok(Folded::No(no, Box::new(held))),
            };
            let said = match event {
                Event::Answered(answer) => Some(answer),
                Event::Expired
                | Event::Cancelled { .. }
                | Event::Claimed { .. }
                | Event::Renewed { .. }
                | Event::Finished { .. }
                | Event::Lost { .. }
                | Event::Reconciled { .. }
                | Event::Delivered => None,
            };
            let entry = AuditEntry {
                decision: said.map(recorded),
                ..self.moved(shelf.tenant(), Some(&held.run), &next, actor)
            };
            match runs.commit(&held, &next, not_after, &entry).await.map_err(|e| no_store(&e))? {
                FoldedRun::Done(now) => {
                    self.notices.tell(shelf.tenant(), Some(held.run.state), &now.run);
                    return Ok(Folded::Done(Box::new(now)));
                }
                FoldedRun::Conflict(newer) => held = newer,
                FoldedRun::Late(_) => return Ok(Folded::Late(Box::new(held))),
                FoldedRun::Gone => return Err(no_run()),
            }
        }
        Err(too_fast())
    }

    /// The ledger's entry for a run that moved.
    pub(crate) fn moved(&self, tenant: &Tenant, from: Option<&Run>, to: &Run, actor: Option<&Caller>) -> AuditEntry {
        let actor = actor.map(|caller| Actor {
            principal: caller.principal.clone(),
            kind: crate::call::kind_of(caller),
            scopes: caller.scopes,
            token: None,
        });
        let service = || Actor {
            principal: to.asked.requester.clone(),
            kind: ActorKind::Service,
            scopes: domain::Scopes::default(),
            token: None,
        };
        AuditEntry {
            actor: Some(actor.unwrap_or_else(service)),
            session: to.asked.session,
            tool: Some(to.asked.tool.clone()),
            toolset: Some(to.asked.toolset.clone()),
            effect: Some(to.asked.effect),
            run: Some(RunMove {
                id: to.id,
                from: from.map(|run| run.state.as_str()),
                to: to.state.as_str(),
                epoch: to.claim.as_ref().map_or(0, |claim| claim.epoch),
                // Keyed like every digest in the ledger: arguments are few enough to be guessed.
                digest: self.keys.audit_digest(tenant, &to.asked.digest),
            }),
            trace: to.asked.trace.clone(),
            ..AuditEntry::new(Phase::Transition)
        }
    }

    /// Reads a run of this tenant, and the store's time.
    pub(crate) async fn find_run(&self, tenant: &Tenant, id: RunId) -> Result<(HeldRun, Moment), Failure> {
        let (held, now) = self.store.of(tenant).runs().find(id).await.map_err(|e| no_store(&e))?;
        Ok((held.ok_or_else(no_run)?, now))
    }
}

/// What the store's own clock must still allow: an answer before the expiry, a claim before the yes is stale.
fn not_after(event: &Event, run: &Run) -> Option<Moment> {
    let before = |end: Moment| Moment::from_millis(end.millis().saturating_sub(1));
    match event {
        Event::Answered(_) => Some(before(run.asked.expires_at)),
        Event::Claimed { .. } if run.state == domain::run::State::Approved => run.execute_by.map(before),
        Event::Claimed { .. }
        | Event::Expired
        | Event::Cancelled { .. }
        | Event::Renewed { .. }
        | Event::Finished { .. }
        | Event::Lost { .. }
        | Event::Reconciled { .. }
        | Event::Delivered => None,
    }
}

/// What a person said, as it stands in the ledger.
fn recorded(answer: &Answer) -> Verdict {
    let verdict = match answer.verdict {
        domain::run::Verdict::Approve => "approve",
        domain::run::Verdict::Reject => "reject",
    };
    Verdict { verdict, basis: None, comment: answer.reason.clone() }
}

fn too_fast() -> Failure {
    Failure::new(Code::StoreUnavailable, "the run changes faster than it can be written").retry_after_ms(200)
}

/// Another tenant's run answers like one that never was.
pub(crate) fn no_run() -> Failure {
    Failure::new(Code::NotFound, "no such run")
}
