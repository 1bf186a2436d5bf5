//! The only edges.

use super::{Answer, Claim, Ending, NotAnEdge, Run, RunEvent, RunState, Verdict};
use crate::Moment;

impl Run {
    /// The run after an event, judged at the store's time; an event that is no edge changes nothing.
    pub fn apply(&self, event: &RunEvent, at: Moment) -> Result<Run, NotAnEdge> {
        match event {
            RunEvent::Answered(answer) => self.answered(answer, at),
            RunEvent::Expired => self.expired(at),
            RunEvent::Cancelled { .. } => {
                // Whoever took it back knows how it ended.
                let run = self.from(RunState::PendingApproval)?;
                Ok(Run { delivered: true, ..run.to(RunState::Cancelled, at) })
            }
            RunEvent::Claimed { owner, lease_until, span } => {
                Ok(Run { executed_in: span.clone(), ..self.claimed(owner, *lease_until, at)? })
            }
            RunEvent::Renewed { owner, epoch, lease_until } => {
                let claim = Claim { lease_until: *lease_until, ..self.held(owner, *epoch)?.clone() };
                Ok(Run { claim: Some(claim), changed_at: at, ..self.clone() })
            }
            RunEvent::Finished { owner, epoch, ending } => {
                self.held(owner, *epoch)?;
                let state = if ending.code.is_none() { RunState::Succeeded } else { RunState::Failed };
                Ok(self.ended(state, ending, at))
            }
            RunEvent::Lost { by, ending } => self.lost(by.as_ref(), ending, at),
            RunEvent::Reconciled { succeeded, ending } => {
                let run = self.from(RunState::OutcomeUnknown)?;
                let state = if *succeeded { RunState::ReconciledSucceeded } else { RunState::ReconciledFailed };
                Ok(run.ended(state, ending, at))
            }
            RunEvent::Delivered => match self.state.is_final() && !self.delivered {
                true => Ok(Run { delivered: true, ..self.clone() }),
                false => Err(NotAnEdge::State(self.state)),
            },
        }
    }

    fn answered(&self, answer: &Answer, at: Moment) -> Result<Run, NotAnEdge> {
        if answer.by.is_same_person(&self.asked.requester) {
            return Err(NotAnEdge::OwnRequest);
        }
        let same = |said: &&Answer| said.by.is_same_person(&answer.by) && said.verdict == answer.verdict;
        if self.answers.iter().any(|said| same(&said)) {
            return Err(NotAnEdge::Repeated);
        }
        if self.state != RunState::PendingApproval {
            // A yes that was not enough before the end decided nothing.
            let undecided = matches!(self.state, RunState::Expired | RunState::Cancelled);
            return Err(match self.decision() {
                Some(winner) if !undecided => NotAnEdge::AlreadyDecided(Box::new(winner.clone())),
                Some(_) | None => NotAnEdge::State(self.state),
            });
        }
        if at >= self.asked.expires_at {
            return Err(NotAnEdge::Late);
        }
        let mut run = self.clone();
        // A person who changes their mind takes the earlier answer back, from whichever account it came.
        run.answers.retain(|said| !said.by.is_same_person(&answer.by));
        run.answers.push(answer.clone());
        run.changed_at = at;
        let enough = usize::try_from(self.asked.deciders.max(1)).unwrap_or(usize::MAX);
        match answer.verdict {
            Verdict::Reject => run.state = RunState::Rejected,
            Verdict::Approve if run.yeses() >= enough => {
                run.state = RunState::Approved;
                run.execute_by = Some(at.plus(run.execute_within()));
            }
            Verdict::Approve => {}
        }
        Ok(run)
    }

    fn expired(&self, at: Moment) -> Result<Run, NotAnEdge> {
        let until = match self.state {
            RunState::PendingApproval => self.asked.expires_at,
            RunState::Approved => self.execute_by.unwrap_or(self.asked.expires_at),
            RunState::Rejected
            | RunState::Expired
            | RunState::Cancelled
            | RunState::Executing
            | RunState::Succeeded
            | RunState::Failed
            | RunState::OutcomeUnknown
            | RunState::ReconciledSucceeded
            | RunState::ReconciledFailed => return Err(NotAnEdge::State(self.state)),
        };
        if at < until {
            return Err(NotAnEdge::Early);
        }
        Ok(self.to(RunState::Expired, at))
    }

    fn claimed(&self, owner: &str, lease_until: Moment, at: Moment) -> Result<Run, NotAnEdge> {
        let epoch = self.claim.as_ref().map_or(0, |claim| claim.epoch);
        let claim = Claim { owner: owner.to_owned(), epoch: epoch.saturating_add(1), lease_until };
        match (self.state, &self.claim) {
            (RunState::Approved, _) if self.execute_by.is_some_and(|by| at >= by) => Err(NotAnEdge::Late),
            (RunState::Approved, _) => Ok(Run { claim: Some(claim), ..self.to(RunState::Executing, at) }),
            (RunState::Executing, Some(held)) if at < held.lease_until => Err(NotAnEdge::Early),
            (RunState::Executing, Some(_)) if !self.asked.idempotent => Err(NotAnEdge::NotIdempotent),
            (RunState::Executing, Some(_)) => Ok(Run { claim: Some(claim), ..self.to(RunState::Executing, at) }),
            (state, _) => Err(NotAnEdge::State(state)),
        }
    }

    fn lost(&self, by: Option<&(String, u64)>, ending: &Ending, at: Moment) -> Result<Run, NotAnEdge> {
        let run = self.from(RunState::Executing)?;
        match (by, &self.claim) {
            (Some((owner, epoch)), _) => {
                self.held(owner, *epoch)?;
            }
            (None, Some(claim)) if at < claim.lease_until => return Err(NotAnEdge::Early),
            (None, _) => {}
        }
        Ok(run.ended(RunState::OutcomeUnknown, ending, at))
    }

    fn held(&self, owner: &str, epoch: u64) -> Result<&Claim, NotAnEdge> {
        match (&self.claim, self.state) {
            (Some(claim), RunState::Executing) if claim.owner == owner && claim.epoch == epoch => Ok(claim),
            (Some(_), RunState::Executing) => Err(NotAnEdge::Fenced),
            (_, state) => Err(NotAnEdge::State(state)),
        }
    }

    fn from(&self, state: RunState) -> Result<&Run, NotAnEdge> {
        if self.state == state { Ok(self) } else { Err(NotAnEdge::State(self.state)) }
    }

    fn to(&self, state: RunState, at: Moment) -> Run {
        Run { state, changed_at: at, ..self.clone() }
    }

    fn ended(&self, state: RunState, ending: &Ending, at: Moment) -> Run {
        Run { ending: Some(ending.clone()), ..self.to(state, at) }
    }
}
