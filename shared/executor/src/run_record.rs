//! The record of a run: read, moved by one compare-and-set with its audit entry, and claimed.

use crate::clean::audited;
use crate::executor::Executor;
use crate::failures::no_store;
use domain::run::{Answer, Claim, Ending, NotAnEdge, Preview, Run, RunEvent, Verdict};
use domain::{Caller, Code, Failure, Moment, RunId, Tenant, tokens};
use policy::Permit;
use redact::{Scrubber, redact};
use serde_json::{Value, json};
use store::{
    Actor, ActorKind, AuditEntry, CallVerdict, CloseFacts, EntryContents, Phase, RunApproval, RunCasOutcome, RunMove,
    TenantStore, VersionedRun,
};

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

/// One step of a run: what happened, when by the store's clock, and who did it, if not this service.
pub(crate) struct RunStep<'a> {
    event: &'a RunEvent,
    at: Moment,
    actor: Option<&'a Caller>,
    end: RunEndFacts,
}

/// What the audit log is told of how a run ended, besides the ending.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunEndFacts {
    /// How many bytes it keeps of the result or the failure.
    pub(crate) most: usize,
    /// How many milliseconds it took, from its claim on.
    pub(crate) millis: Option<u64>,
}

impl<'a> RunStep<'a> {
    /// A step of this service.
    pub(crate) fn of_service(event: &'a RunEvent, at: Moment) -> RunStep<'a> {
        RunStep { event, at, actor: None, end: RunEndFacts::default() }
    }

    /// A step of somebody.
    pub(crate) fn of(caller: &'a Caller, event: &'a RunEvent, at: Moment) -> RunStep<'a> {
        RunStep { actor: Some(caller), ..RunStep::of_service(event, at) }
    }

    /// The same, with what is told of the end.
    pub(crate) fn ending(self, end: RunEndFacts) -> RunStep<'a> {
        RunStep { end, ..self }
    }
}

impl Executor {
    /// Claims a run for this replica.
    pub(crate) async fn claim_run(
        &self,
        shelf: &TenantStore,
        held: VersionedRun,
        now: Moment,
        span: Option<String>,
    ) -> Result<ClaimOutcome, RunError> {
        let owner = self.store.replica().to_owned();
        let event = RunEvent::Claimed { owner, lease_until: now.plus(self.leases.lease), span };
        let held = match self.fold_run(shelf, held, RunStep::of_service(&event, now)).await? {
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
        step: RunStep<'_>,
    ) -> Result<RunUpdate, RunError> {
        let RunStep { event, at, actor, end } = step;
        let runs = shelf.runs();
        let not_after = not_after(event, &held.run);
        for _ in 0..FOLDS {
            let next = match held.run.apply(event, at) {
                Ok(next) => after_the_end(&held.run, next),
                Err(no) => return Ok(RunUpdate::No(no, Box::new(held))),
            };
            let moved = self.moved(shelf.tenant(), Some(&held.run), &next, actor);
            let entry = match event {
                RunEvent::Answered(answer) => AuditEntry { decision: Some(recorded(answer)), ..moved },
                RunEvent::Finished { ending, .. }
                | RunEvent::Lost { ending, .. }
                | RunEvent::Reconciled { ending, .. } => self.ended(moved, ending, end),
                RunEvent::Expired
                | RunEvent::Cancelled { .. }
                | RunEvent::Claimed { .. }
                | RunEvent::Renewed { .. }
                | RunEvent::Delivered => moved,
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

    /// The entry of a run that ended: with its exact result or failure. The tenant's secrets were taken out of both when the
    /// tool gave them; what looks like one is masked now.
    fn ended(&self, moved: AuditEntry, ending: &Ending, end: RunEndFacts) -> AuditEntry {
        let text = match &ending.code {
            None => ending.result.clone().unwrap_or_else(|| Value::from(ending.message.as_str()).to_string()),
            Some(code) => json!({ "code": code, "message": ending.message, "basis": ending.basis }).to_string(),
        };
        let code = |text: &str| Code::parse(text, &self.codes).unwrap_or(Code::Internal);
        let outcome = CloseFacts {
            code: ending.code.as_deref().map(code),
            bytes: ending.result.as_ref().map_or(0, String::len) as u64,
            tokens: ending.result.as_deref().map(tokens::estimate),
            millis: end.millis,
            ..CloseFacts::default()
        };
        let contents = EntryContents { text: audited(&text, &Scrubber::default()), most: end.most };
        AuditEntry { outcome: Some(outcome), contents: Some(contents), ..moved }
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
                approvals: to
                    .answers
                    .iter()
                    .filter(|answer| answer.verdict == Verdict::Approve)
                    .map(approval)
                    .collect(),
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
        Verdict::Approve => "approve",
        Verdict::Reject => "reject",
    };
    CallVerdict { verdict, basis: None, rule: None, comment: answer.reason.clone() }
}

/// An approval, as it stands beside every later step of its run.
fn approval(answer: &Answer) -> RunApproval {
    RunApproval { iss: answer.by.issuer.clone(), sub: answer.by.subject.clone(), at: answer.at }
}

pub(crate) fn too_fast() -> Failure {
    Failure::new(Code::StoreUnavailable, "the run changes faster than it can be written").retry_after_ms(200)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::example;
    use domain::run::RunState;

    struct Opened;

    impl domain::KnownSwitches for Opened {
        fn switches(&self) -> &[domain::Switch] {
            &[]
        }
    }

    fn answer(verdict: Verdict) -> Answer {
        let (by, reason) = (domain::Principal::new("i", "ana"), Some("because".to_owned()));
        Answer { by, verdict, reason, at: Moment::from_secs(150), span: None }
    }

    #[test]
    fn the_stores_clock_ends_the_time_to_answer_and_the_time_to_begin() {
        let last = |end: u64| Some(Moment::from_millis(end * 1_000 - 1));
        let answered = RunEvent::Answered(answer(Verdict::Approve));
        assert_eq!(not_after(&answered, &example::run(RunState::PendingApproval)), last(200));
        let claimed = RunEvent::Claimed { owner: "a".into(), lease_until: Moment::from_secs(300), span: None };
        let begun_by = |state| Run { execute_by: Some(Moment::from_secs(250)), ..example::run(state) };
        assert_eq!(not_after(&claimed, &begun_by(RunState::Approved)), last(250));
        assert_eq!(not_after(&claimed, &begun_by(RunState::Executing)), None, "what began in time may be taken over");
        let finished = RunEvent::Finished { owner: "a".into(), epoch: 1, ending: Ending::done(None) };
        assert_eq!(not_after(&finished, &begun_by(RunState::Executing)), None, "what happened can be said at any time");
    }

    #[test]
    fn what_people_were_shown_is_masked_once_a_run_has_ended_and_not_before() {
        let shown = |state| {
            let mut run = example::run(state);
            run.asked.preview.text = format!("password=hunter2x9{}{{\"password\":\"kept\"}}", Preview::ARGUMENTS);
            run.asked.preview.summary = "password=hunter2x9".into();
            run.asked.preview.warnings = vec!["password=hunter2x9".into()];
            run
        };
        let over = shown(RunState::Succeeded);
        let masked = after_the_end(&shown(RunState::Executing), over.clone()).asked.preview;
        let text = format!("{} {} {:?}", masked.text, masked.summary, masked.warnings);
        assert!(!text.contains("hunter2x9"), "{text}");
        assert!(masked.text.ends_with("{\"password\":\"kept\"}"), "arguments go when it is written: {}", masked.text);
        let executing = shown(RunState::Executing);
        assert_eq!(after_the_end(&shown(RunState::Approved), executing.clone()), executing);
        assert_eq!(after_the_end(&over, over.clone()), over, "what was over before is left as it is");
    }

    #[tokio::test]
    async fn the_audit_log_says_who_moved_which_run_from_where_to_where() {
        let executor = example::executor().await;
        let mut to = example::run(RunState::Executing);
        to.asked.session = Some(domain::SessionId::from_random([2; 16]));
        to.asked.trace = Some("4bf9".into());
        to.claim = Some(Claim { owner: "a".into(), epoch: 3, lease_until: Moment::from_secs(300) });
        let tenant = Tenant::parse("acme").unwrap();
        let entry = executor.moved(&tenant, Some(&example::run(RunState::Approved)), &to, None);
        let actor = entry.actor.unwrap();
        assert!(matches!(actor.kind, ActorKind::Service) && actor.principal == to.asked.requester);
        assert_eq!((entry.session, entry.trace), (to.asked.session, to.asked.trace.clone()));
        assert_eq!((entry.tool, entry.toolset), (Some(to.asked.tool.clone()), Some(to.asked.toolset.clone())));
        assert_eq!(entry.effect, Some(to.asked.effect));
        let run = entry.run.unwrap();
        assert_eq!((run.id, run.from, run.to, run.epoch), (to.id, Some("approved"), "executing", 3));
        assert_ne!(run.digest, to.asked.digest, "it is keyed");
        let ana = example::caller("ana", "runs:decide");
        let entry = executor.moved(&tenant, None, &to, Some(&ana));
        assert_eq!(entry.actor.map(|actor| actor.principal), Some(ana.principal));
        assert_eq!(entry.run.unwrap().from, None);
    }

    #[tokio::test]
    async fn the_audit_log_says_how_a_run_ended_and_how_much_came_of_it() {
        let executor = example::executor().await;
        let end = RunEndFacts { most: 9, millis: Some(7) };
        let told = |ending| executor.ended(AuditEntry::new(Phase::Transition), &ending, end).outcome.unwrap();
        let done = told(Ending::done(Some("seven".into())));
        assert_eq!((done.code, done.bytes, done.millis), (None, 5, Some(7)));
        let failed = told(Ending::failed(Code::NotFound, "no such pod"));
        assert_eq!((failed.code, failed.bytes), (Some(Code::NotFound), 0));
    }

    #[test]
    fn a_claim_covers_the_permit_of_its_own_run_and_no_other() {
        let approved = Run { answers: vec![answer(Verdict::Approve)], ..example::run(RunState::Executing) };
        let policy = policy::Policy {
            mode: domain::SessionMode::Write,
            deny: Vec::new(),
            require_approval: Vec::new(),
            calls_per_minute: 1,
        };
        let evidence = policy::CallEvidence::of_approved_run(&approved, &Opened).unwrap();
        let policy::Decision::Permit(permit) = policy::decide(&policy, example::call(), &evidence) else { panic!() };
        let claim = Claim { owner: "a".into(), epoch: 1, lease_until: Moment::from_secs(300) };
        assert!(RunClaim { run: approved.id, claim: claim.clone() }.covers(&permit));
        assert!(!RunClaim { run: RunId::from_random([9; 16]), claim }.covers(&permit));
    }

    #[test]
    fn what_a_person_said_stands_in_the_audit_log() {
        for (verdict, word) in [(Verdict::Approve, "approve"), (Verdict::Reject, "reject")] {
            let told = recorded(&answer(verdict));
            assert_eq!((told.verdict, told.comment.as_deref()), (word, Some("because")));
        }
    }
}
