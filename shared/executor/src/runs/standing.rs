//! How firmly a run stands in the store, before anybody relies on it.
//!
//! A decision counts, a claim is acted on, and an agent is told of its run or of its end once enough replicas of the store
//! have it: what one server alone knows can vanish with it. A server that was restarted or replaced may have forgotten a claim, so an approved run that it still
//! shows may have been sent before. And what this process holds and the store has forgotten is written back as unknown,
//! never as anything that could be sent.

use crate::executor::Executor;
use crate::failures::no_store;
use crate::run_record::RunError;
use domain::run::{Answer, Claim, Ending, Run, RunEvent, RunState};
use domain::{Code, Failure, Moment, RunId, Tenant};
use std::time::Duration;
use store::{RunCasOutcome, StandingRun, StoreEpoch, StoreError, TenantStore, VersionedRun};
use telemetry::metrics;
use tokio::time::Instant;

/// How long the store's replicas may take to catch up with a decision or a claim.
const WITHIN: Duration = Duration::from_millis(100);
/// How long until replicas that had not caught up with a claim are asked again.
const AGAIN: Duration = Duration::from_millis(50);
/// How long they may then take: hardly any time, so that many claims that wait do not hold up a decision.
const AT_ONCE: Duration = Duration::from_millis(1);
/// How long replicas may take altogether until somebody who waits for an answer is sent away without it.
const TELL_WITHIN: Duration = Duration::from_secs(1);
/// How long until a store that is away is told an ending again.
const TELL_AGAIN: Duration = Duration::from_millis(250);

/// Whether a claim can be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClaimDurability {
    /// A failover would keep it.
    Firm,
    /// Nobody confirmed it as long as the lease lasted.
    Loose,
    /// It is not this replica's (any more), or forgotten already.
    Not,
}

/// What must be known of the target before a run is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreSendCheck {
    /// Nothing: nobody can have sent it.
    Nothing,
    /// Whether it has happened. Where the target cannot tell, the run is sent.
    Look,
    /// That it has not happened. Where the target cannot tell, nothing is sent.
    Proof,
    /// As above, but whoever may have it could still be sending, so that absence proves nothing.
    More,
}

impl PreSendCheck {
    /// Judged once the run is claimed. `approved_at` is when it was approved, unless it was taken over.
    pub(super) fn of(run: &Run, approved_at: Option<Moment>, store: StoreEpoch, lease: Duration) -> PreSendCheck {
        let taken_over = run.claim.as_ref().is_some_and(|claim| claim.epoch > 1);
        let claim_forgotten = !run.asked.idempotent && approved_at.is_some_and(|at| store.doubts(at));
        if claim_forgotten {
            let over = store.since.is_none_or(|since| run.changed_at >= since.plus(lease));
            return if over { PreSendCheck::Proof } else { PreSendCheck::More };
        }
        if taken_over || store.doubts(run.asked.asked_at) { PreSendCheck::Look } else { PreSendCheck::Nothing }
    }
}

impl Executor {
    /// Wants a person's answer to be held by enough of the store. If it is not, the person says it once more.
    /// `before` is the store as it was when the answer was written.
    pub(super) async fn confirm_answer(
        &self,
        shelf: &TenantStore,
        id: RunId,
        answer: &Answer,
        before: StoreEpoch,
    ) -> Result<(), Failure> {
        let same = |given: &Answer| given.by.is_same_person(&answer.by) && given.verdict == answer.verdict;
        let said = |run: &Run| run.answers.iter().any(same);
        match self.standing(shelf, id, before, WITHIN).await {
            Ok(None) => return Ok(()),
            Ok(Some(StandingRun { held: Some(held), enough: true })) if said(&held.run) => return Ok(()),
            Ok(Some(_)) => tracing::warn!(run = %id, "the store's replicas did not confirm a decision"),
            Err(error) => tracing::warn!(run = %id, %error, "a decision could not be confirmed"),
        }
        let failure = Failure::new(Code::DecisionNotDurable, "decision not durable, retry");
        Err(failure.next("say the same again; it is no second decision").retry_after_ms(1_000))
    }

    /// Wants a run to be held by enough of the store as somebody is about to be told of it: that it waits, or how it ended.
    /// If it is not, they are told nothing and ask again. `before` is the store as it was before the run was read.
    pub(crate) async fn confirm_told(
        &self,
        shelf: &TenantStore,
        told: &Run,
        before: StoreEpoch,
    ) -> Result<(), Failure> {
        // A delivery is noted after this, so whoever has the note has what was delivered. Only taking a run back is its own
        // delivery.
        if told.delivered && told.state != RunState::Cancelled {
            return Ok(());
        }
        let (until, mut within) = (Instant::now() + TELL_WITHIN, WITHIN);
        loop {
            match self.standing(shelf, told.id, before, std::mem::replace(&mut within, AT_ONCE)).await {
                Ok(None) => return Ok(()),
                Ok(Some(StandingRun { held: Some(held), enough })) if is_still(&held.run, told) => {
                    if enough {
                        return Ok(());
                    }
                }
                // Forgotten, or others have moved it on: whoever asks again is told what is true by then.
                Ok(Some(_)) => break,
                Err(error) => tracing::debug!(run = %told.id, %error, "a run could not be confirmed"),
            }
            if Instant::now() >= until {
                break;
            }
            tokio::time::sleep(AGAIN).await;
        }
        tracing::warn!(run = %told.id, state = told.state.as_str(), "the store's replicas did not confirm a run");
        metrics::RUN_UNCONFIRMED.add([told.state.as_str()], 1);
        let failure = Failure::new(Code::StoreUnavailable, "the store's replicas have not confirmed the run yet");
        Err(failure.next("ask exactly the same again: it is the same run").retry_after_ms(1_000))
    }

    /// Sees to it that the end of a run outlives the server that took it: one that has forgotten it is told again, by the
    /// replica that knows it. What nobody confirms in time stays as it is, and agents are not told of it.
    pub(super) async fn keep_ending<W>(&self, tenant: &Tenant, id: RunId, before: StoreEpoch, tell: impl Fn() -> W)
    where
        W: Future<Output = Result<(), Failure>>,
    {
        let shelf = self.store.of(tenant);
        let (until, mut within) = (Instant::now() + self.leases.lease * 4, WITHIN);
        loop {
            match self.standing(&shelf, id, before, std::mem::replace(&mut within, AT_ONCE)).await {
                Ok(None) => return,
                Ok(Some(StandingRun { held: Some(held), enough })) if held.run.state.is_settled() => {
                    if enough {
                        return;
                    }
                }
                Ok(Some(_)) => {
                    tracing::warn!(run = %id, "the store forgot the end of a run, which is written again");
                    if let Err(failure) = tell().await {
                        tracing::debug!(run = %id, code = failure.code.as_str(), "the end could not be written again");
                    }
                }
                Err(error) => tracing::debug!(run = %id, %error, "the end of a run could not be confirmed"),
            }
            if Instant::now() >= until || self.tasks.stopping().is_cancelled() {
                tracing::warn!(run = %id, "the store's replicas did not confirm the end of a run");
                return;
            }
            tokio::time::sleep(TELL_AGAIN).await;
        }
    }

    /// Waits until a claim is held by enough of the store. Nothing is sent before.
    pub(super) async fn confirm_claim(
        &self,
        tenant: &Tenant,
        mine: &Run,
        before: StoreEpoch,
        taken: Instant,
    ) -> ClaimDurability {
        let shelf = self.store.of(tenant);
        // The rest of the lease is for writing down that nothing was sent.
        let patience = self.leases.lease * 9 / 10;
        let mut within = WITHIN;
        loop {
            match self.standing(&shelf, mine.id, before, std::mem::replace(&mut within, AT_ONCE)).await {
                Ok(None) => return ClaimDurability::Firm,
                Ok(Some(StandingRun { held, enough })) => match held.is_some_and(|held| same_claim(&held.run, mine)) {
                    true if enough => return ClaimDurability::Firm,
                    true => {}
                    false => return ClaimDurability::Not,
                },
                Err(error) => tracing::debug!(run = %mine.id, %error, "a claim could not be confirmed"),
            }
            if taken.elapsed() + AGAIN >= patience || self.tasks.stopping().is_cancelled() {
                return ClaimDurability::Loose;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// How firmly a run stands; `None` where nobody but the store itself has to hold it. If that is another server than
    /// the one that took the last change, it has to be seen that this one has it too.
    async fn standing(
        &self,
        shelf: &TenantStore,
        id: RunId,
        before: StoreEpoch,
        within: Duration,
    ) -> Result<Option<StandingRun>, StoreError> {
        let runs = shelf.runs();
        match runs.confirm(id, within).await? {
            None if self.store.lineages().now() != before => {
                let (held, _) = runs.find(id).await?;
                Ok(Some(StandingRun { held, enough: true }))
            }
            standing => Ok(standing),
        }
    }

    /// Writes a run that this replica holds and the store has forgotten back as unknown.
    pub(super) async fn write_back(
        &self,
        tenant: &Tenant,
        mine: &Run,
        found: Option<VersionedRun>,
        attempted: bool,
    ) -> Result<VersionedRun, Failure> {
        let by = mine.claim.as_ref().map(|claim| (claim.owner.clone(), claim.epoch));
        let message = "the store forgot the run while it was carried out";
        let basis = "the replica that carried it out".to_owned();
        let ending = Ending { basis, attempted, ..Ending::failed(Code::OutcomeUnknown, message) };
        let lost = mine.apply(&RunEvent::Lost { by, ending }, self.time().await?).map_err(|_| RunError::Gone)?;
        let entry = self.moved(tenant, found.as_ref().map(|found| &found.run), &lost, None);
        match self.store.of(tenant).runs().write_back(&lost, found.as_ref(), &entry).await.map_err(|e| no_store(&e))? {
            RunCasOutcome::Done(held) => {
                tracing::error!(run = %mine.id, "a run that the store forgot was written back as unknown");
                self.notices.tell(tenant, Some(mine.state), &held.run);
                Ok(held)
            }
            RunCasOutcome::Conflict(held) => Ok(held),
            RunCasOutcome::Late(_) | RunCasOutcome::TooManyWaiting | RunCasOutcome::Gone => Err(RunError::Gone.into()),
        }
    }

    /// Tells the store how something ended for as long as it is only away: what is known must not be lost with a process
    /// that could have waited.
    pub(super) async fn insist<W>(&self, tell: impl Fn() -> W) -> Result<(), Failure>
    where
        W: Future<Output = Result<(), Failure>>,
    {
        let until = Instant::now() + self.leases.lease * 4;
        loop {
            match tell().await {
                Err(failure)
                    if failure.code.retryable() && Instant::now() < until && !self.tasks.stopping().is_cancelled() =>
                {
                    tokio::time::sleep(TELL_AGAIN).await;
                }
                ended => return ended,
            }
        }
    }
}

/// Whether a run that this store shows as approved may still be under way under a claim that it has forgotten: whoever
/// made that claim is silent for no longer than a lease.
pub(super) fn may_be_under_way(run: &Run, store: StoreEpoch, lease: Duration, now: Moment) -> bool {
    let recent = store.since.is_some_and(|since| now < since.plus(lease));
    !run.asked.idempotent && store.doubts(run.changed_at) && recent
}

/// Whether what somebody is told of a run still holds: that it is there, and if it has ended, that it ended so.
fn is_still(found: &Run, told: &Run) -> bool {
    !told.state.is_settled() || (found.state == told.state && found.ending == told.ending)
}

/// Whether the run is held as this replica holds it.
fn same_claim(found: &Run, mine: &Run) -> bool {
    let whose = |run: &Run| run.claim.as_ref().map(|claim| (claim.owner.clone(), claim.epoch));
    found.state == RunState::Executing && whose(found) == whose(mine)
}

/// Whether the store holds a run as it was before this claim was made: then it has forgotten the claim.
pub(super) fn forgotten(found: &Run, claim: &Claim) -> bool {
    let before = found.claim.as_ref().is_none_or(|held| held.epoch < claim.epoch);
    before && matches!(found.state, RunState::PendingApproval | RunState::Approved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::run::{OnReject, Preview, RunRequest};
    use domain::{Effect, Level, Principal, ToolName, ToolsetName};

    const LEASE: Duration = Duration::from_secs(30);

    fn at(secs: u64) -> Moment {
        Moment::from_secs(1_000 + secs)
    }

    /// Asked at 0, and claimed at this moment.
    fn claimed(idempotent: bool, epoch: u64, when: Moment) -> Run {
        let asked = RunRequest {
            requester: Principal::new("i", "agent"),
            scopes: String::new(),
            session: None,
            tool: ToolName::parse("t").unwrap(),
            toolset: ToolsetName::parse("s").unwrap(),
            needs: Level::Write,
            schema: String::new(),
            arguments: "{}".into(),
            effect: Effect::Change,
            about: None,
            digest: "d".into(),
            idempotent,
            preview: Preview {
                summary: String::new(),
                text: String::new(),
                warnings: Vec::new(),
                fingerprint: String::new(),
                arguments: None,
                hidden: Vec::new(),
            },
            reviewed: false,
            on_reject: OnReject::Continue,
            deciders: 1,
            tainted: false,
            assignment: domain::Assignment::default(),
            asked_at: at(0),
            expires_at: at(600),
            execute_within_ms: 600_000,
            trace: None,
            span: None,
            kept_object: None,
        };
        let claim = Some(Claim { owner: "rep_a".into(), epoch, lease_until: when.plus(LEASE) });
        Run { state: RunState::Executing, claim, changed_at: when, ..Run::new(RunId::from_random([1; 16]), asked) }
    }

    fn changed(secs: u64) -> StoreEpoch {
        StoreEpoch { generation: 1, since: Some(at(secs)) }
    }

    #[test]
    fn s3_what_must_be_known_before_sending_follows_from_what_the_store_may_have_forgotten() {
        let same = StoreEpoch { generation: 1, since: None };
        let (yes, later) = (Some(at(10)), at(60));
        for (idempotent, epoch, approved_at, store, claimed_at, wanted) in [
            (false, 1, yes, same, later, PreSendCheck::Nothing),
            (true, 2, None, same, later, PreSendCheck::Look),
            // The change came before anything was asked.
            (false, 1, yes, StoreEpoch { generation: 1, since: Some(at(0)) }, later, PreSendCheck::Nothing),
            // Between the question and the yes: a yes and what came of it may be forgotten, but this one is new.
            (false, 1, yes, changed(5), later, PreSendCheck::Look),
            // Between the yes and the claim: another claim may be forgotten.
            (false, 1, yes, changed(11), later, PreSendCheck::Proof),
            (false, 1, yes, changed(31), later, PreSendCheck::More),
            (false, 1, yes, changed(30), later, PreSendCheck::Proof),
            (true, 1, yes, changed(11), later, PreSendCheck::Look),
        ] {
            let run = claimed(idempotent, epoch, claimed_at);
            assert_eq!(PreSendCheck::of(&run, approved_at, store, LEASE), wanted, "{idempotent} {epoch} {store:?}");
        }
    }

    #[test]
    fn what_somebody_is_told_holds_while_the_run_is_there_and_its_end_while_it_is_the_same() {
        let run = |state, ending: Option<Ending>| Run { state, ending, ..claimed(false, 1, at(10)) };
        let pending = run(RunState::PendingApproval, None);
        let done = run(RunState::Succeeded, Some(Ending::done(Some("7".into()))));
        assert!(is_still(&pending, &pending) && is_still(&done, &pending), "it is there, and may have gone on");
        assert!(is_still(&done, &done));
        for other in [
            pending,
            run(RunState::Executing, None),
            run(RunState::OutcomeUnknown, None),
            run(RunState::Succeeded, Some(Ending::done(Some("8".into())))),
        ] {
            assert!(!is_still(&other, &done), "{:?}", other.state);
        }
    }

    #[test]
    fn an_approved_run_may_be_under_way_for_a_lease_after_the_store_forgot() {
        let approved = |idempotent| Run { state: RunState::Approved, ..claimed(idempotent, 1, at(10)) };
        let under_way = |idempotent, store, now| may_be_under_way(&approved(idempotent), store, LEASE, at(now));
        let end = 11 + LEASE.as_secs();
        assert!(under_way(false, changed(11), 12) && under_way(false, changed(11), end - 1));
        assert!(!under_way(false, changed(11), end), "its owner would have been silent for too long");
        assert!(!under_way(true, changed(11), 12), "what may be repeated is repeated");
        assert!(!under_way(false, changed(10), 12), "it was approved since, so nothing of it is forgotten");
        assert!(!under_way(false, StoreEpoch { generation: 1, since: None }, 12));
    }

    #[test]
    fn s3_a_run_as_it_was_before_the_claim_is_a_forgotten_one_and_what_others_made_of_it_is_not() {
        let mine = claimed(false, 1, at(20));
        let claim = mine.claim.clone().unwrap();
        for state in RunState::ALL {
            let before = Run { state, claim: None, ..mine.clone() };
            let waits = matches!(state, RunState::PendingApproval | RunState::Approved);
            assert_eq!(forgotten(&before, &claim), waits, "{state:?}");
            assert!(!forgotten(&Run { state, ..mine.clone() }, &claim), "{state:?} under the same claim");
        }
        for (epoch, lost) in [(claim.epoch - 1, true), (claim.epoch + 1, false)] {
            let held = Some(Claim { epoch, ..claim.clone() });
            let found = Run { state: RunState::Approved, claim: held, ..mine.clone() };
            assert_eq!(forgotten(&found, &claim), lost, "only an earlier claim was before this one");
        }
        let other = Claim { owner: "rep_b".into(), ..claim };
        assert!(same_claim(&mine, &mine));
        assert!(!same_claim(&Run { claim: Some(other), ..mine.clone() }, &mine), "somebody else's");
        assert!(!same_claim(&Run { state: RunState::OutcomeUnknown, ..mine.clone() }, &mine), "settled meanwhile");
    }
}
