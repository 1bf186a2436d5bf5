//! A person decides. One decision wins; every loser learns who won and when.

use super::report;
use crate::executor::Executor;
use crate::failures::no_store;
use crate::run_record::{FOLDS, RunError, RunStep, RunUpdate, too_fast};
use crate::snapshot::Snapshot;
use domain::run::{Answer, Ending, NotAnEdge, Run, RunEvent, RunState, Verdict};
use domain::{Caller, Code, Failure, Principal, RunId, Session, Tenant, TokenScope};
use serde_json::json;
use std::sync::Arc;
use store::{AuditEntry, Phase, RunCasOutcome, StoreError};
use telemetry::{metrics, names};
use tracing::Instrument;

/// How many runs are taken back in one step.
const AT_ONCE: usize = 256;

/// What a person says about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDecision {
    /// Yes or no.
    pub verdict: Verdict,
    /// Why.
    pub reason: Option<String>,
}

impl Executor {
    /// Takes a person's answer. A yes that completes the quorum is carried out at once by whoever wins the claim.
    pub async fn answer(
        &self,
        snapshot: &Arc<Snapshot>,
        decider: &Caller,
        id: RunId,
        said: RunDecision,
    ) -> Result<Run, Failure> {
        let verdict = recorded_verdict(said.verdict);
        let tenant = &decider.tenant;
        let span = tracing::info_span!(
            "decision",
            otel.name = format!("{} {verdict}", names::SPAN_DECISION),
            quartermaster.tenant = %tenant,
            quartermaster.run.id = %id,
            quartermaster.run.decider = self.keys.audit_digest(tenant, &decider.principal.subject),
            quartermaster.run.state = tracing::field::Empty,
            quartermaster.run.wait_s = tracing::field::Empty,
            quartermaster.code = tracing::field::Empty,
            error.type = tracing::field::Empty,
        );
        // In a box: confirmed by replicas, it is a large future.
        let answered = Box::pin(self.take_answer(snapshot, decider, id, said).instrument(span.clone())).await;
        match &answered {
            Ok((run, _)) => {
                span.record(names::CODE, "ok").record(names::RUN_STATE, run.state.as_str());
                span.record(names::RUN_WAIT, run.changed_at.since(run.asked.asked_at).as_secs_f64());
            }
            Err(failure) => {
                span.record(names::CODE, failure.code.as_str()).record(names::ERROR_TYPE, "tool_error");
            }
        }
        let result = match &answered {
            Ok((_, TakenAs::Won)) => "won",
            Ok((_, TakenAs::Repeated)) => "repeated",
            Err(failure) if failure.code == Code::AlreadyDecided => "lost",
            Err(failure) if failure.code == Code::DecisionNotDurable => "not_durable",
            Err(_) => "refused",
        };
        metrics::DECISIONS.add([verdict, result], 1);
        answered.map(|(run, _)| run)
    }

    async fn take_answer(
        &self,
        snapshot: &Arc<Snapshot>,
        decider: &Caller,
        id: RunId,
        said: RunDecision,
    ) -> Result<(Run, TakenAs), Failure> {
        may_decide(decider)?;
        let (held, now) = self.find_run(&decider.tenant, id).await?;
        if held.run.asked.reviewed && !explains(&said) {
            return Err(Failure::new(Code::InvalidArgument, "a no to what was proposed needs a reason")
                .next("say why; whoever proposed it reads that"));
        }
        let answer = Answer {
            by: decider.principal.clone(),
            verdict: said.verdict,
            reason: said.reason,
            at: now,
            span: telemetry::current_span(),
        };
        let shelf = self.store.of(&decider.tenant);
        let (event, before) = (RunEvent::Answered(answer.clone()), self.store.lineages().now());
        let decided = match self.fold_run(&shelf, held, RunStep::of(decider, &event, now)).await? {
            RunUpdate::Done(held) => *held,
            // The same person saying the same again is no second decision, and no error.
            RunUpdate::No(NotAnEdge::Repeated, held) => {
                self.confirm_answer(&shelf, id, &answer, before).await?;
                return Ok((held.run, TakenAs::Repeated));
            }
            RunUpdate::No(no, held) => {
                // Whoever is told that another one decided goes home: that decision has to count as well.
                if let NotAnEdge::AlreadyDecided(winner) = &no {
                    self.confirm_answer(&shelf, id, winner, before).await?;
                }
                return Err(refused(no, &held.run));
            }
            RunUpdate::Late(held) => return Err(refused(NotAnEdge::Late, &held.run)),
        };
        self.confirm_answer(&shelf, id, &answer, before).await?;
        tracing::info!(run = %id, state = decided.run.state.as_str(), "a person answered");
        if decided.run.state != RunState::PendingApproval {
            let waited = decided.run.changed_at.since(decided.run.asked.asked_at);
            metrics::RUN_WAIT.observe([recorded_verdict(answer.verdict)], waited.as_secs_f64());
        }
        let run = match decided.run.state {
            RunState::Approved => self.begin(Arc::clone(snapshot), decider.tenant.clone(), decided, now).await,
            RunState::Rejected
            | RunState::PendingApproval
            | RunState::Expired
            | RunState::Cancelled
            | RunState::Executing
            | RunState::Succeeded
            | RunState::Failed
            | RunState::OutcomeUnknown
            | RunState::ReconciledSucceeded
            | RunState::ReconciledFailed => Ok(decided.run),
        };
        run.map(|run| (run, TakenAs::Won))
    }

    /// The exact arguments of a run, for somebody who decides it. Who read them is in the audit log before they are
    /// handed out; once the run is over, nobody keeps them.
    pub async fn exact_arguments(&self, decider: &Caller, id: RunId) -> Result<Run, Failure> {
        may_decide(decider)?;
        let held = self.run(&decider.tenant, id).await?;
        let run = held.run;
        if run.asked.requester.is_same_person(&decider.principal) {
            return Err(refused(NotAnEdge::OwnRequest, &run));
        }
        if run.state.is_final() {
            return Err(Failure::new(Code::NotPossible, "the run is over, and its arguments are not kept")
                .details(json!({ "run": run.id.to_string(), "state": run.state.as_str() })));
        }
        let entry = AuditEntry {
            target: Some(format!("run/{id}/arguments")),
            ..self.moved(&decider.tenant, Some(&run), &run, Some(decider))
        };
        let entry = AuditEntry { phase: Phase::Disclosed, ..entry };
        self.store.of(&decider.tenant).audit().note(&entry).await.map_err(|e| no_store(&e))?;
        Ok(run)
    }

    /// The requester takes a pending run back.
    pub async fn cancel_run(&self, caller: &Caller, id: RunId) -> Result<Run, Failure> {
        let (held, now) = self.find_run(&caller.tenant, id).await?;
        if held.run.asked.requester != caller.principal {
            return Err(RunError::Gone.into());
        }
        let (shelf, before) = (self.store.of(&caller.tenant), self.store.lineages().now());
        let event = RunEvent::Cancelled { by: caller.principal.clone() };
        match self.fold_run(&shelf, held, RunStep::of(caller, &event, now)).await? {
            RunUpdate::Done(held) => self.confirm_told(&shelf, &held.run, before).await.map(|()| held.run),
            RunUpdate::No(no, held) => {
                self.confirm_told(&shelf, &held.run, before).await?;
                Err(refused(no, &held.run))
            }
            RunUpdate::Late(held) => Err(refused(NotAnEdge::Late, &held.run)),
        }
    }

    /// A person settles an outcome that nobody could find out.
    pub async fn resolve(&self, decider: &Caller, id: RunId, succeeded: bool) -> Result<Run, Failure> {
        may_decide(decider)?;
        let (held, now) = self.find_run(&decider.tenant, id).await?;
        if held.run.asked.requester.is_same_person(&decider.principal) {
            return Err(refused(NotAnEdge::OwnRequest, &held.run));
        }
        let basis = format!("settled by {}", decider.principal.subject);
        let ending = match succeeded {
            true => Ending { basis, message: "a person says it was done".into(), ..Ending::done(None) },
            false => Ending { basis, ..Ending::failed(Code::OutcomeUnknown, "a person says it was not done") },
        };
        let (shelf, before) = (self.store.of(&decider.tenant), self.store.lineages().now());
        let settled = RunEvent::Reconciled { succeeded, ending };
        match self.fold_run(&shelf, held, RunStep::of(decider, &settled, now)).await? {
            RunUpdate::Done(held) => self.confirm_told(&shelf, &held.run, before).await.map(|()| held.run),
            RunUpdate::No(no, held) => {
                self.confirm_told(&shelf, &held.run, before).await?;
                Err(refused(no, &held.run))
            }
            RunUpdate::Late(held) => Err(refused(NotAnEdge::Late, &held.run)),
        }
    }

    /// A person lets a session whose step was ended by a rejection go on, and with it what its requester has carried
    /// over since: sessions that began blocked go on, and new ones begin clean.
    pub async fn clear(&self, decider: &Caller, id: RunId) -> Result<Run, Failure> {
        may_decide(decider)?;
        let (mut held, _) = self.find_run(&decider.tenant, id).await?;
        if held.run.asked.requester.is_same_person(&decider.principal) {
            return Err(refused(NotAnEdge::OwnRequest, &held.run));
        }
        let runs = self.store.of(&decider.tenant).runs();
        for _ in 0..FOLDS {
            let entry = self.moved(&decider.tenant, Some(&held.run), &held.run, Some(decider));
            match runs.clear(&held, &entry).await.map_err(|e| no_store(&e))? {
                RunCasOutcome::Done(held) => return Ok(held.run),
                RunCasOutcome::Conflict(newer) => held = newer,
                RunCasOutcome::Late(_) | RunCasOutcome::TooManyWaiting | RunCasOutcome::Gone => {
                    return Err(RunError::Gone.into());
                }
            }
        }
        Err(too_fast())
    }

    /// The rejected run that ended a session's step, or that of an earlier one of the same principal, if one did and
    /// nobody has cleared it.
    pub async fn stopped_by(&self, tenant: &Tenant, session: &Session) -> Result<Option<RunId>, Failure> {
        self.store.of(tenant).runs().stopped_by(session, self.lives).await.map_err(|e| no_store(&e))
    }

    /// Takes back whatever waits for a person in a tenant that is no longer served. Tells whether anything is left.
    pub async fn cancel_waiting(&self, tenant: &Tenant) -> Result<bool, Failure> {
        let shelf = self.store.of(tenant);
        let open = shelf.runs().open_ones(AT_ONCE).await.map_err(|e| no_store(&e))?;
        let full = open.len() == AT_ONCE;
        let mut cancelled = 0;
        for id in open {
            let (held, now) = match shelf.runs().find(id).await {
                Ok((Some(held), now)) => (held, now),
                // Nobody can take back what is gone or not ours, and it must not hold up the others.
                Ok((None, _)) | Err(StoreError::NotAuthentic { .. }) => continue,
                Err(error) => return Err(no_store(&error)),
            };
            let by = Principal::new("quartermaster", "tenant switched off");
            let taken_back = RunEvent::Cancelled { by };
            let step = RunStep::of_service(&taken_back, now);
            if let RunUpdate::Done(_) = self.fold_run(&shelf, held, step).await? {
                cancelled += 1;
            }
        }
        // What is approved or under way is left to its own end; a page of nothing else would be read for ever.
        Ok(full && cancelled > 0)
    }
}

/// How a decision that counts was taken.
enum TakenAs {
    /// As a new one.
    Won,
    /// As one that the same person had made before.
    Repeated,
}

/// A verdict as metrics and the audit log name it.
fn recorded_verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approve => "approve",
        Verdict::Reject => "reject",
    }
}

/// Whether somebody who says no says why.
fn explains(said: &RunDecision) -> bool {
    match said.verdict {
        Verdict::Approve => true,
        Verdict::Reject => said.reason.as_ref().is_some_and(|reason| !reason.trim().is_empty()),
    }
}

/// A token that may call tools may never decide runs, even if its issuer put both scopes there.
pub fn may_decide(caller: &Caller) -> Result<(), Failure> {
    let scopes = caller.scopes;
    if scopes.allow(TokenScope::RunsDecide) && !scopes.allow(TokenScope::ToolsRead) {
        return Ok(());
    }
    let message = if scopes.allow(TokenScope::RunsDecide) {
        "a token that may call tools can never decide runs"
    } else {
        "the token lacks the scope runs:decide"
    };
    Err(Failure::new(Code::InsufficientScope, message).details(json!({ "scope": TokenScope::RunsDecide.as_str() })))
}

/// Why an answer did not count, in words for the person.
fn refused(no: NotAnEdge, run: &Run) -> Failure {
    let facts = json!({ "run": run.id.to_string(), "state": run.state.as_str() });
    let failure = match no {
        NotAnEdge::OwnRequest => Failure::new(Code::OwnRequest, "a run cannot be decided by the one who asked for it"),
        NotAnEdge::AlreadyDecided(winner) => {
            let verdict = report::verdict(winner.verdict);
            let message = format!("{verdict} by {} at {}", winner.by.subject, winner.at);
            return Failure::new(Code::AlreadyDecided, message).details(json!({
                "run": run.id.to_string(), "state": run.state.as_str(),
                "by": winner.by.subject, "verdict": verdict, "at": winner.at.to_string(),
            }));
        }
        NotAnEdge::Late => {
            Failure::new(Code::Expired, "the time to decide this run is over").next("the agent must ask anew")
        }
        NotAnEdge::State(RunState::Expired) => {
            Failure::new(Code::Expired, "the run has expired").next("the agent must ask anew")
        }
        NotAnEdge::State(state) => {
            Failure::new(Code::NotPossible, format!("the run is {}, so this cannot be done", state.as_str()))
        }
        no @ (NotAnEdge::Repeated | NotAnEdge::Early | NotAnEdge::Fenced | NotAnEdge::NotIdempotent) => {
            Failure::new(Code::NotPossible, no.to_string())
        }
    };
    failure.details(facts)
}

#[cfg(test)]
mod tests {
    use super::super::example;
    use super::*;

    #[test]
    fn only_a_token_that_calls_no_tools_decides() {
        assert!(may_decide(&example::caller("ana", "runs:decide")).is_ok());
        for (scopes, why) in [
            ("", "lacks the scope"),
            ("tools:read", "lacks the scope"),
            ("runs:decide tools:read", "may call tools"),
            ("runs:decide tools:write", "may call tools"),
        ] {
            let failure = may_decide(&example::caller("ana", scopes)).unwrap_err();
            assert_eq!(failure.code, Code::InsufficientScope);
            assert!(failure.message.contains(why), "{scopes}: {}", failure.message);
        }
    }

    /// As many runs as fit on a page, from this number on.
    async fn page(executor: &Executor, from: usize, state: RunState) -> Vec<RunId> {
        let mut ids = Vec::new();
        for number in from..from + AT_ONCE {
            let mut bits = [0; 16];
            bits[..8].copy_from_slice(&u64::try_from(number).unwrap().to_be_bytes());
            let run = Run { id: RunId::from_random(bits), ..example::run(state) };
            ids.push(example::put(executor, &run).await.run.id);
        }
        ids
    }

    #[tokio::test]
    async fn what_waits_is_taken_back_page_by_page_and_what_was_approved_is_left() {
        let (executor, tenant) = (example::executor().await, Tenant::parse("acme").unwrap());
        assert!(!executor.cancel_waiting(&tenant).await.unwrap(), "there is nothing");
        let ids = page(&executor, 0, RunState::PendingApproval).await;
        assert!(executor.cancel_waiting(&tenant).await.unwrap(), "there may be more than a page");
        for id in ids {
            assert_eq!(executor.find_run(&tenant, id).await.unwrap().0.run.state, RunState::Cancelled);
        }
        assert!(!executor.cancel_waiting(&tenant).await.unwrap());
        page(&executor, AT_ONCE, RunState::Approved).await;
        assert!(!executor.cancel_waiting(&tenant).await.unwrap(), "a page of nothing else is not read again");
    }

    #[tokio::test]
    async fn a_run_that_is_gone_does_not_hold_up_those_that_wait() {
        let (executor, tenant) = (example::executor().await, Tenant::parse("acme").unwrap());
        let waiting = |number| Run { id: RunId::from_random([number; 16]), ..example::run(RunState::PendingApproval) };
        let held = example::put(&executor, &waiting(1)).await;
        example::put(&executor, &waiting(2)).await;
        let gone = store::Commit::delete(store::RecordKey::run(held.run.id), held.version);
        assert!(matches!(executor.store.of(&tenant).commit(gone).await.unwrap(), store::Committed::Done(..)));
        assert!(!executor.cancel_waiting(&tenant).await.unwrap());
        let (left, _) = executor.find_run(&tenant, waiting(2).id).await.unwrap();
        assert_eq!(left.run.state, RunState::Cancelled);
    }

    #[test]
    fn a_no_needs_a_reason_and_a_yes_does_not() {
        let said = |verdict, reason: Option<&str>| RunDecision { verdict, reason: reason.map(str::to_owned) };
        assert!(explains(&said(Verdict::Approve, None)) && explains(&said(Verdict::Reject, Some("because"))));
        assert!(!explains(&said(Verdict::Reject, None)) && !explains(&said(Verdict::Reject, Some("  "))));
    }
}
