//! An approved run is claimed, checked once more, executed under a lease, and written down.
//!
//! The claim comes before the first byte. Whatever turns out wrong after it and before anything was sent ends the run as
//! failed and not attempted; there is no way around the claim. What was sent and not answered is unknown, never failed.

use super::ask;
use super::ready::{PreSendFinding, PreparedRun, last_look, prepare};
use super::standing::{ClaimDurability, PreSendCheck, forgotten};
use crate::clean;
use crate::executor::Executor;
use crate::failpoint::stop_at;
use crate::failures::no_store;
use crate::perform::{AtDeadline, BoundCall, CallBounds, OpenEntry, PerformOutcome, quotes, tool_type};
use crate::run_record::{ClaimOutcome, RunClaim, RunEndFacts, RunError, RunStep, RunUpdate};
use crate::snapshot::Snapshot;
use catalog::{ProbeResult, Progress};
use domain::run::{Claim, Ending, NotAnEdge, Run, RunEvent, RunState};
use domain::{Code, Content, Failure, KnownSwitches, Moment, RunId, Tenant, ToolOutput};
use std::sync::Arc;
use std::time::Duration;
use store::{AuditEntry, Phase, StoreEpoch, SwitchesInForce, VersionedRun};
use telemetry::{Step, names};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

/// How long until a lease that could not be renewed is tried again.
const SOON: Duration = Duration::from_millis(500);

impl Executor {
    /// Claims an approved run and carries it out in the background. Losing the claim is no failure: another has it.
    pub(super) async fn begin(
        &self,
        snapshot: Arc<Snapshot>,
        tenant: Tenant,
        held: VersionedRun,
        now: Moment,
    ) -> Result<Run, Failure> {
        if !knows(&snapshot, &held.run) {
            // Another replica may know the tool, or this one soon; the yes is good until its time is over.
            tracing::warn!(run = %held.run.id, tool = %held.run.asked.tool, "an approved run waits for its tool");
            return Ok(held.run);
        }
        self.store.switches().ensure_read().await.map_err(|e| no_store(&e))?;
        if self.is_switched(&snapshot, &tenant, &held.run, now) {
            // Not executed and not lost: it goes on when the switch is lifted, and expires like any that nobody began.
            tracing::warn!(run = %held.run.id, tool = %held.run.asked.tool, "an approved run waits for a kill switch");
            return Ok(held.run);
        }
        stop_at!("before_claim");
        // All before the claim: what the lease is counted from, whose word it is, and what it writes over.
        let (taken, lineage) = (tokio::time::Instant::now(), self.store.lineages().now());
        let approved_at = (held.run.state == RunState::Approved).then_some(held.run.changed_at);
        let span = execution_span(&tenant, &held.run);
        let step = Step::begin(names::SPAN_CLAIM);
        let claim = self.claim_run(&self.store.of(&tenant), held, now, telemetry::span_reference(&span)).await;
        match &claim {
            Ok(ClaimOutcome::Mine(..)) => span.in_scope(|| step.end(None)),
            Err(RunError::Failed(failure)) => span.in_scope(|| step.end(Some(failure.code.as_str()))),
            // Then there is no execution that the step could be a part of.
            Ok(ClaimOutcome::Not(_)) | Err(RunError::Gone) => {}
        }
        match claim? {
            ClaimOutcome::Mine(held, proof) => {
                let run = held.run.clone();
                let executor = self.clone();
                let (began, audited) = (taken, self.end_facts(&snapshot).most);
                let (renewed, held) = (taken, *held);
                let lease = Lease { held, proof, renewed, lineage, approved_at, sent: false, began, audited };
                self.tasks.spawn_lasting("run", async move {
                    Box::pin(executor.carry_out(&snapshot, &tenant, lease, span)).await;
                });
                Ok(run)
            }
            ClaimOutcome::Not(held) => {
                span.record(names::CODE, names::NOT_CLAIMED);
                Ok(held.run)
            }
        }
    }

    async fn carry_out(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant, lease: Lease, span: Span) {
        stop_at!("after_claim");
        let claim = lease.proof.claim().clone();
        span.record(names::RUN_EPOCH, claim.epoch);
        let carried = Box::pin(self.carry(snapshot, tenant, lease, &claim));
        if let Err(failure) = tracing::Instrument::instrument(carried, span).await {
            // The record says "executing" until the lease is over; the sweep then finds out what happened.
            tracing::error!(code = failure.code.as_str(), "the end of a run could not be written");
        }
    }

    /// Looks once more, then sends, then writes down what came of it; the lease is renewed all the while.
    async fn carry(
        &self,
        snapshot: &Arc<Snapshot>,
        tenant: &Tenant,
        mut lease: Lease,
        claim: &Claim,
    ) -> Result<(), Failure> {
        let run = lease.held.run.clone();
        if !self.is_confirmed(tenant, &lease, claim).await? {
            return Ok(());
        }
        let wanted = PreSendCheck::of(&run, lease.approved_at, self.store.lineages().now(), self.leases.lease);
        // Then nobody can say that nothing was sent, and a difference may be what that one did.
        let somebody_held_it = claim.epoch > 1 || matches!(wanted, PreSendCheck::Proof | PreSendCheck::More);
        let doubted =
            |ending: Ending| Ending { code: Some(Code::OutcomeUnknown.as_str().into()), attempted: true, ..ending };
        let ready = match prepare(snapshot, tenant, &run, &self.switches_of(tenant, run.changed_at)) {
            Ok(ready) => ready,
            Err(ending) if somebody_held_it => return self.write_lost(tenant, &lease, claim, doubted(ending)).await,
            Err(ending) => return self.write_end(tenant, &lease, claim, ending).await,
        };
        let Some(looked) =
            self.renewing(tenant, &mut lease, claim, last_look(&ready, &run, wanted, &snapshot.secrets.now())).await
        else {
            self.note_fenced(tenant, run.id, claim).await;
            return Ok(());
        };
        match looked {
            PreSendFinding::Same => {}
            PreSendFinding::Happened(result) => {
                return self.write_end(tenant, &lease, claim, found_done(snapshot, &run, result)).await;
            }
            PreSendFinding::Tried(ending) => return self.write_end(tenant, &lease, claim, ending).await,
            PreSendFinding::Unproven => {
                let why = "the store was restarted or replaced after the yes, and nothing proves that this was not \
                           sent before; nothing was sent now";
                return self.write_lost(tenant, &lease, claim, unsent(why)).await;
            }
            PreSendFinding::Other(ending) if somebody_held_it => {
                return self.write_lost(tenant, &lease, claim, doubted(ending)).await;
            }
            PreSendFinding::Other(ending) => return self.write_end(tenant, &lease, claim, ending).await,
        }
        // A replica that was frozen must not send what others have settled meanwhile, nor what the store has forgotten.
        let is_old = self.leases.lease.checked_sub(lease.renewed.elapsed() * 2).is_none();
        let doubtful = is_old || self.store.lineages().now() != lease.lineage;
        if doubtful && !self.renew_now(tenant, &mut lease, claim).await? {
            self.note_fenced(tenant, run.id, claim).await;
            return Ok(());
        }
        // The look may have taken a while, and somebody may have pulled a switch meanwhile.
        match prepare(snapshot, tenant, &run, &self.switches_of(tenant, run.changed_at)) {
            Err(ending) if somebody_held_it => self.write_lost(tenant, &lease, claim, doubted(ending)).await,
            Err(ending) => self.write_end(tenant, &lease, claim, ending).await,
            Ok(_) => Box::pin(self.execute(tenant, lease, claim, ready, snapshot)).await,
        }
    }

    /// Whether a claim stands firmly enough to be acted on. Where it does not, what has to be written about that has been.
    async fn is_confirmed(&self, tenant: &Tenant, lease: &Lease, claim: &Claim) -> Result<bool, Failure> {
        let run = &lease.held.run;
        match self.confirm_claim(tenant, run, lease.lineage, lease.renewed).await {
            ClaimDurability::Firm => return Ok(true),
            // Whoever may repeat it takes it over with the end of the lease.
            ClaimDurability::Loose if run.asked.idempotent => {}
            ClaimDurability::Loose => {
                let why = "the store's replicas did not confirm the claim, so nothing was sent";
                self.write_lost(tenant, lease, claim, unsent(why)).await?;
            }
            ClaimDurability::Not => self.note_fenced(tenant, run.id, claim).await,
        }
        Ok(false)
    }

    fn switches_of(&self, tenant: &Tenant, now: Moment) -> SwitchesInForce {
        self.store.switches().in_force(tenant, now)
    }

    /// Whether a kill switch keeps an approved run from being executed.
    fn is_switched(&self, snapshot: &Snapshot, tenant: &Tenant, run: &Run, now: Moment) -> bool {
        let switches = self.switches_of(tenant, now);
        let is_switch = |ending: Ending| {
            [Code::SwitchedOff, Code::SwitchedReadOnly].iter().any(|code| ending.code.as_deref() == Some(code.as_str()))
        };
        !switches.switches().is_empty() && prepare(snapshot, tenant, run, &switches).is_err_and(is_switch)
    }

    /// Runs the tool in a task of its own while the lease is renewed. What was sent goes on whatever happens here.
    async fn execute(
        &self,
        tenant: &Tenant,
        mut lease: Lease,
        claim: &Claim,
        ready: PreparedRun,
        snapshot: &Snapshot,
    ) -> Result<(), Failure> {
        let PreparedRun { entry, parsed, permit, deadline } = ready;
        let id = lease.held.run.id;
        let (late, is_late) = oneshot::channel();
        let bounds = CallBounds {
            secrets: snapshot.secrets.clone(),
            cap: snapshot.result_bytes,
            shape: kept,
            // Nobody who asked for it waits, so nobody can call it off.
            cancel: CancellationToken::new(),
            at_deadline: AtDeadline::GoOn(late),
        };
        lease.sent = true;
        let (executor, proof) = (self.clone(), lease.proof.clone());
        let mut work = self.tasks.spawn_lasting(
            "tool of a run",
            async move {
                let progress = Progress::default();
                let call = BoundCall::Tool { entry: &entry, parsed, progress: &progress };
                executor.perform(OpenEntry::Run(&proof), &permit, call, bounds).await
            }
            .in_current_span(),
        );
        stop_at!("in_flight");
        let ended = tokio::select! {
            biased; // an answer that is there wins a tie against its own deadline
            ended = self.renewing(tenant, &mut lease, claim, &mut work) => Ok(ended),
            late = reached(is_late) => Err(late),
        };
        match ended {
            Ok(Some(ended)) => {
                stop_at!("after_effect");
                match ending(ended.ok().flatten()) {
                    Ok(ending) => {
                        let (before, write) =
                            (self.store.lineages().now(), || self.write_end(tenant, &lease, claim, ending.clone()));
                        self.insist(write).await?;
                        self.keep_ending(tenant, id, before, write).await;
                        self.tidy_target(snapshot, tenant, &lease.held.run).await;
                        Ok(())
                    }
                    Err(unknown) => self.insist(|| self.write_lost(tenant, &lease, claim, unknown.clone())).await,
                }
            }
            // Taken over while it was being sent: what comes of it is evidence, and no more.
            Ok(None) => {
                self.note_fenced(tenant, id, claim).await;
                self.late_report(tenant, &lease, work.await.ok().flatten()).await
            }
            Err(()) => {
                let late = Ending::failed(Code::Deadline, format!("no answer within {} s", deadline.as_secs()));
                self.insist(|| self.write_lost(tenant, &lease, claim, late.clone())).await?;
                self.late_report(tenant, &lease, work.await.ok().flatten()).await
            }
        }
    }

    /// Does something while saying again and again that this replica lives. `None`: somebody else holds the run now.
    async fn renewing<T>(
        &self,
        tenant: &Tenant,
        lease: &mut Lease,
        claim: &Claim,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(work);
        let every = self.leases.renew_every;
        let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + every, every);
        let mut lineages = self.store.lineages();
        loop {
            tokio::select! {
                biased; // what is done wins a tie against the tick
                done = &mut work => return Some(done),
                _ = tick.tick() => {}
                // Another server may have forgotten the claim, and shows the run to others as if nobody had it.
                _ = lineages.changed() => {}
            }
            match self.renew_now(tenant, lease, claim).await {
                Ok(true) => {}
                Ok(false) => return None,
                // Not renewed is not yet lost; it is tried again soon, while the lease lasts.
                Err(failure) => {
                    tracing::warn!(code = failure.code.as_str(), "a lease could not be renewed");
                    tick.reset_after(every.min(SOON));
                }
            }
        }
    }

    async fn renew_now(&self, tenant: &Tenant, lease: &mut Lease, claim: &Claim) -> Result<bool, Failure> {
        let asked = tokio::time::Instant::now();
        match self.renew(tenant, lease, claim).await? {
            Some(held) => {
                (lease.held, lease.renewed) = (held, asked);
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn renew(&self, tenant: &Tenant, lease: &Lease, claim: &Claim) -> Result<Option<VersionedRun>, Failure> {
        let mine = &lease.held.run;
        let (found, now) = self.store.of(tenant).runs().find(mine.id).await.map_err(|e| no_store(&e))?;
        let held = match found {
            Some(held) if !forgotten(&held.run, claim) => held,
            // Nothing has left this process: the run may begin once more, by whoever claims it.
            Some(_) if !lease.sent => return Ok(None),
            found => {
                self.write_back(tenant, mine, found, lease.sent).await?;
                return Ok(None);
            }
        };
        let lease_until = now.plus(self.leases.lease);
        let event = RunEvent::Renewed { owner: claim.owner.clone(), epoch: claim.epoch, lease_until };
        match self.fold_run(&self.store.of(tenant), held, RunStep::of_service(&event, now)).await? {
            RunUpdate::Done(held) => Ok(Some(*held)),
            RunUpdate::No(..) | RunUpdate::Late(_) => Ok(None),
        }
    }

    async fn write_end(&self, tenant: &Tenant, lease: &Lease, claim: &Claim, ending: Ending) -> Result<(), Failure> {
        let id = lease.held.run.id;
        let event = RunEvent::Finished { owner: claim.owner.clone(), epoch: claim.epoch, ending: ending.clone() };
        match self.fold_held(tenant, lease, claim, &event).await? {
            RunUpdate::Done(held) => {
                stop_at!("after_record");
                tracing::info!(run = %id, state = held.run.state.as_str(), "a run ended");
                note_ending(&held.run);
                Ok(())
            }
            // The lease was over before the answer came. The answer still says what happened.
            RunUpdate::No(NotAnEdge::State(RunState::OutcomeUnknown), held) => {
                self.note_fenced(tenant, id, claim).await;
                self.reconcile(tenant, *held, ending, lease.end()).await
            }
            RunUpdate::No(_, held) if is_written(&held.run.claim, &held.run.ending, claim, &ending) => Ok(()),
            RunUpdate::No(..) | RunUpdate::Late(_) => {
                self.note_fenced(tenant, id, claim).await;
                Ok(())
            }
        }
    }

    async fn write_lost(&self, tenant: &Tenant, lease: &Lease, claim: &Claim, ending: Ending) -> Result<(), Failure> {
        let event = RunEvent::Lost { by: Some((claim.owner.clone(), claim.epoch)), ending: ending.clone() };
        let id = lease.held.run.id;
        match self.fold_held(tenant, lease, claim, &event).await? {
            RunUpdate::Done(held) => {
                tracing::warn!(run = %id, "the outcome of a run is unknown");
                note_ending(&held.run);
            }
            RunUpdate::No(_, held) if is_written(&held.run.claim, &held.run.ending, claim, &ending) => {}
            RunUpdate::No(..) | RunUpdate::Late(_) => self.note_fenced(tenant, id, claim).await,
        }
        Ok(())
    }

    /// Folds the end of a run that this replica holds. One that the store has forgotten is written back first, and is
    /// then what anybody's is whose lease was over: unknown, until it is settled.
    async fn fold_held(
        &self,
        tenant: &Tenant,
        lease: &Lease,
        claim: &Claim,
        event: &RunEvent,
    ) -> Result<RunUpdate, Failure> {
        let mine = &lease.held;
        let step = RunStep::of_service(event, self.time().await?).ending(lease.end());
        let folded = self.fold_run(&self.store.of(tenant), mine.clone(), step).await;
        let found = match folded {
            Ok(RunUpdate::No(_, found)) if lease.sent && forgotten(&found.run, claim) => Some(*found),
            Err(RunError::Gone) => None,
            folded => return Ok(folded?),
        };
        let held = self.write_back(tenant, &mine.run, found, lease.sent).await?;
        Ok(RunUpdate::No(NotAnEdge::State(held.run.state), Box::new(held)))
    }

    /// Puts into the audit log that this replica was too late: others hold or have settled the run it had claimed. What it
    /// wrote to the run was refused, so nothing depends on this entry; it tells whoever asks why an effect has two senders.
    async fn note_fenced(&self, tenant: &Tenant, id: RunId, claim: &Claim) {
        telemetry::metrics::RUN_FENCED.add([], 1);
        tracing::warn!(run = %id, epoch = claim.epoch, "a run is no longer this replica's");
        let noted = async {
            let (held, _) = self.find_run(tenant, id).await?;
            let now = self.moved(tenant, Some(&held.run), &held.run, None);
            let run = now.run.clone().map(|run| store::RunMove { epoch: claim.epoch, ..run });
            let entry = AuditEntry { phase: Phase::Fenced, run, ..now };
            self.store.of(tenant).audit().note(&entry).await.map_err(|error| no_store(&error))
        };
        if let Err(failure) = noted.await {
            tracing::error!(run = %id, code = failure.code.as_str(), "a fenced claim could not be put into the audit log");
        }
    }

    /// What the former owner learns late settles what was unknown.
    async fn late_report(&self, tenant: &Tenant, lease: &Lease, ended: Option<PerformOutcome>) -> Result<(), Failure> {
        let Ok(ending) = ending(ended) else { return Ok(()) };
        let (held, _) = self.find_run(tenant, lease.held.run.id).await?;
        let ending = Ending { basis: "a late report of the replica that sent it".into(), ..ending };
        self.reconcile(tenant, held, ending, lease.end()).await
    }

    pub(super) async fn reconcile(
        &self,
        tenant: &Tenant,
        held: VersionedRun,
        ending: Ending,
        end: RunEndFacts,
    ) -> Result<(), Failure> {
        let succeeded = ending.code.is_none();
        let event = RunEvent::Reconciled { succeeded, ending };
        let step = RunStep::of_service(&event, self.time().await?).ending(end);
        Ok(self.fold_run(&self.store.of(tenant), held, step).await.map(drop)?)
    }

    /// What the audit log keeps of the end of a run of this tenant.
    pub(super) fn end_facts(&self, snapshot: &Snapshot) -> RunEndFacts {
        RunEndFacts { most: if snapshot.audit.contents { self.audited_bytes } else { 0 }, millis: None }
    }

    /// Removes what a run whose ending is recorded has left at its target. What cannot be removed stays, and is told of.
    async fn tidy_target(&self, snapshot: &Snapshot, tenant: &Tenant, run: &Run) {
        // What is stopped is left alone; what may only read may still be tidied up after.
        let switches = self.switches_of(tenant, run.changed_at).stops();
        let Ok(ready) = prepare(snapshot, tenant, run, &switches) else { return };
        let tidied = tokio::time::timeout(ready.deadline, ready.parsed.work.tidy(&ready.permit)).await;
        match tidied {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => {
                tracing::warn!(run = %run.id, code = failure.code.as_str(), "what a run left behind could not be removed");
            }
            Err(_) => tracing::warn!(run = %run.id, "what a run left behind could not be removed in time"),
        }
    }

    /// Looks at the target for what became of a run.
    pub(super) async fn probe(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant, run: &Run) -> ProbeResult {
        // To look is to read, so only what is stopped is not looked at.
        let Ok(now) = self.time().await else { return ProbeResult::Unknown };
        match prepare(snapshot, tenant, run, &self.switches_of(tenant, now).stops()) {
            Ok(ready) => {
                let look = ready.permit.for_preview();
                let (step, probing) = (Step::begin(names::SPAN_PROBE), ready.parsed.work.probe(&look));
                let found = tokio::time::timeout(Duration::from_secs(30), probing).await;
                let found = found.unwrap_or(ProbeResult::Unknown);
                step.end(matches!(found, ProbeResult::Unknown).then_some(Code::OutcomeUnknown.as_str()));
                match found {
                    ProbeResult::Done(result) => {
                        ProbeResult::Done(result.map(|text| clean::json(text, &snapshot.secrets.now())))
                    }
                    ProbeResult::Failed(failure) => {
                        ProbeResult::Failed(clean::failed(failure, &snapshot.secrets.now()))
                    }
                    found @ (ProbeResult::NotDone | ProbeResult::Unknown) => found,
                }
            }
            Err(_) => ProbeResult::Unknown,
        }
    }

    pub(super) async fn time(&self) -> Result<Moment, Failure> {
        self.store.now().await.map_err(|e| no_store(&e))
    }
}

/// The span of an execution: a trace of its own, since hours may have passed, linked to the request, to each decision and
/// to whoever held the run before.
fn execution_span(tenant: &Tenant, run: &Run) -> Span {
    let span = tracing::info_span!(
        parent: None,
        "execute_tool",
        gen_ai.operation.name = names::SPAN_EXECUTE_TOOL,
        gen_ai.tool.name = run.asked.tool.as_str(),
        quartermaster.tenant = %tenant,
        quartermaster.toolset = run.asked.toolset.as_str(),
        quartermaster.effect = run.asked.effect.as_str(),
        quartermaster.run.id = %run.id,
        quartermaster.run.epoch = tracing::field::Empty,
        quartermaster.code = tracing::field::Empty,
        gen_ai.tool.type = tool_type(run.asked.toolset.as_str()),
        quartermaster.run.digest = ask::run_digest(run),
    );
    if let Some(request) = &run.asked.span {
        telemetry::link_to(&span, request, "request");
    }
    for decision in run.answers.iter().filter_map(|answer| answer.span.as_deref()) {
        telemetry::link_to(&span, decision, "decision");
    }
    if let Some(before) = &run.executed_in {
        telemetry::link_to(&span, before, "previous_epoch");
    }
    span
}

/// Notes on the span of an execution how the run ended.
fn note_ending(run: &Run) {
    telemetry::note(|span| {
        span.set(names::RUN_STATE, run.state.as_str());
        let code = run.ending.as_ref().and_then(|ending| ending.code.as_deref());
        span.set(names::CODE, code.unwrap_or("ok"));
        if code.is_some() {
            span.set(names::ERROR_TYPE, "tool_error");
        }
    });
}

/// Whether this replica can tell what a run is about: the tool is there, or a rule of the tenant took it away.
fn knows(snapshot: &Snapshot, run: &Run) -> bool {
    let tool = run.asked.tool.as_str();
    matches!(snapshot.catalog.find(tool), catalog::NameMatch::Tool(_))
        || snapshot.policy.deny.iter().any(|rule| rule.tool_matches(tool))
}

/// What a probe bases its finding on.
pub(super) const PROBED: &str = "a probe of the target";

/// The end of a run of which a probe found that it was done.
pub(super) fn found_done(snapshot: &Snapshot, run: &Run, result: Option<String>) -> Ending {
    Ending { basis: PROBED.into(), tainting: speaks_from_outside(snapshot, run), ..Ending::done(result) }
}

/// The end of a run of which a probe found that it was tried and failed.
pub(super) fn found_failed(failure: Failure) -> Ending {
    Ending { basis: PROBED.into(), ..failed(failure) }
}

/// The end of a run that was tried and failed. What its tool said about it besides its sentence is kept as its result.
fn failed(failure: Failure) -> Ending {
    let result = failure.details.as_ref().map(ToString::to_string);
    Ending { tainting: quotes(failure.code), result, ..Ending::failed(failure.code, failure.message) }
}

/// Whether the result of a run, however it is learnt, is text from outside.
fn speaks_from_outside(snapshot: &Snapshot, run: &Run) -> bool {
    match snapshot.catalog.find(run.asked.tool.as_str()) {
        catalog::NameMatch::Tool(entry) => entry.definition().outside_text,
        // Nobody can say, so it counts as such.
        catalog::NameMatch::Virtual(_) | catalog::NameMatch::Nothing => true,
    }
}

/// A run as this replica holds it, and when it last said so.
struct Lease {
    held: VersionedRun,
    /// What proves that the run was claimed.
    proof: RunClaim,
    renewed: tokio::time::Instant,
    /// Which store took the claim.
    lineage: StoreEpoch,
    /// When the run that was claimed had been approved; `None` if it was taken over.
    approved_at: Option<Moment>,
    /// Whether anything may have reached the target.
    sent: bool,
    /// When it was claimed.
    began: tokio::time::Instant,
    /// How much the audit log keeps of its end.
    audited: usize,
}

impl Lease {
    /// What the audit log is told of the end of the run, if it ends now.
    fn end(&self) -> RunEndFacts {
        let millis = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        RunEndFacts { most: self.audited, millis: Some(millis) }
    }
}

/// Nothing was sent by this replica, and nobody can say whether it was by another.
fn unsent(why: &str) -> Ending {
    Ending { basis: why.to_owned(), ..Ending::not_attempted(Code::OutcomeUnknown, why) }
}

/// Whether the record says what this claim wanted to write: an earlier try was taken and only its answer got lost.
fn is_written(holder: &Option<Claim>, stored: &Option<Ending>, claim: &Claim, ending: &Ending) -> bool {
    let mine = |held: &Claim| held.owner == claim.owner && held.epoch == claim.epoch;
    holder.as_ref().is_some_and(mine) && stored.as_ref() == Some(ending)
}

/// Resolves when a tool is told late, and never if it ends in time.
async fn reached(late: oneshot::Receiver<()>) {
    if late.await.is_err() {
        std::future::pending().await
    }
}

/// What a tool's answer proves. `Err`: it proves nothing, because something may have been sent.
fn ending(ended: Option<PerformOutcome>) -> Result<Ending, Ending> {
    match ended {
        Some(PerformOutcome::Done(output)) => {
            Ok(Ending { tainting: output.tainting, ..Ending::done(output.structured) })
        }
        Some(PerformOutcome::TooLarge { bytes, cap }) => {
            let message = format!("done; its result of {bytes} bytes is over the cap of {cap} and was not kept");
            Ok(Ending { message, ..Ending::done(None) })
        }
        Some(PerformOutcome::Failed(failure)) if is_ambiguous(failure.code) => {
            Err(Ending::failed(failure.code, failure.message))
        }
        Some(PerformOutcome::Failed(failure)) => Ok(failed(failure)),
        // A tool that waits for a run of its own is none of ours.
        Some(PerformOutcome::Waiting(_)) | None => {
            Err(Ending::failed(Code::Internal, "the tool failed inside the service"))
        }
    }
}

/// What a run keeps of an output: its structured result, or the blocks of a tool that gives nothing else.
fn kept(output: ToolOutput) -> ToolOutput {
    let block = |content: &Content| match content {
        Content::Text(text) => serde_json::json!({ "type": "text", "text": text }),
        Content::Block(block) => block.clone(),
    };
    let blocks = || output.content.iter().map(block).collect::<Vec<_>>();
    let text = || (!output.content.is_empty()).then(|| serde_json::json!({ "content": blocks() }).to_string());
    ToolOutput { structured: output.structured.clone().or_else(text), content: Vec::new(), tainting: output.tainting }
}

/// Codes after which the change may have happened all the same.
fn is_ambiguous(code: Code) -> bool {
    matches!(code, Code::OutcomeUnknown | Code::StoreUnavailable | Code::Deadline | Code::Internal)
}

#[cfg(test)]
mod lost;

#[cfg(test)]
mod tests {
    use super::*;
    use domain::{Class, ToolCode};

    #[test]
    fn only_what_may_have_been_sent_without_an_answer_is_unknown() {
        let output = ToolOutput { tainting: true, ..ToolOutput::structured("7".into()) };
        let done = ending(Some(PerformOutcome::Done(output))).unwrap();
        assert_eq!((done.code, done.result.as_deref(), done.tainting), (None, Some("7"), true));
        let large = ending(Some(PerformOutcome::TooLarge { bytes: 9, cap: 8 })).unwrap();
        assert_eq!((large.code, large.result, large.attempted), (None, None, true));
        assert!(large.message.contains("9 bytes is over the cap of 8"), "{}", large.message);
        for code in [Code::OutcomeUnknown, Code::StoreUnavailable, Code::Deadline, Code::Internal] {
            let unknown = ending(Some(PerformOutcome::Failed(Failure::new(code, "no word")))).unwrap_err();
            assert_eq!((unknown.code.as_deref(), unknown.message.as_str()), (Some(code.as_str()), "no word"));
        }
        let quoting = ToolCode {
            name: "said_no",
            class: Class::Conflict,
            retryable: false,
            quotes_target: true,
            before_asking: false,
        };
        for (code, tainting) in [(Code::NotFound, false), (Code::Tool(Box::leak(Box::new(quoting))), true)] {
            let failed = ending(Some(PerformOutcome::Failed(Failure::new(code, "a no")))).unwrap();
            assert_eq!((failed.code.as_deref(), failed.tainting), (Some(code.as_str()), tainting));
        }
        assert_eq!(ending(None).unwrap_err().code.as_deref(), Some(Code::Internal.as_str()), "it panicked");
    }

    #[test]
    fn a_failure_that_a_probe_found_says_so_and_keeps_what_the_tool_said_about_it() {
        let told = Failure { details: Some(serde_json::json!({ "exit": 2 })), ..Failure::new(Code::NotFound, "a no") };
        let ending = found_failed(told);
        assert_eq!((ending.basis.as_str(), ending.result.as_deref()), (PROBED, Some(r#"{"exit":2}"#)));
    }

    #[test]
    fn a_run_keeps_the_result_or_the_blocks_of_a_tool_that_gives_nothing_else() {
        let blocks = vec![Content::Text("a".into()), Content::Block(serde_json::json!({ "type": "image" }))];
        let output = |structured: Option<&str>, content| ToolOutput {
            structured: structured.map(str::to_owned),
            content,
            tainting: true,
        };
        let both = kept(output(Some("7"), blocks.clone()));
        assert_eq!((both.structured.as_deref(), both.content.len(), both.tainting), (Some("7"), 0, true));
        let text = r#"{"content":[{"text":"a","type":"text"},{"type":"image"}]}"#;
        assert_eq!(kept(output(None, blocks)).structured.as_deref(), Some(text));
        assert_eq!(kept(output(None, Vec::new())).structured, None);
    }

    #[test]
    fn what_was_not_sent_says_why() {
        let ending = unsent("nobody confirmed it");
        assert_eq!((ending.attempted, ending.basis.as_str()), (false, "nobody confirmed it"));
    }

    #[test]
    fn only_ones_own_words_under_ones_own_claim_were_written_before() {
        let claim = |owner: &str, epoch| Claim { owner: owner.into(), epoch, lease_until: Moment::from_millis(epoch) };
        let renewed = Claim { lease_until: Moment::from_millis(9), ..claim("a", 1) };
        let (mine, done) = (claim("a", 1), Ending::done(Some("7".into())));
        assert!(is_written(&Some(renewed), &Some(done.clone()), &mine, &done));
        for (holder, stored) in [
            (Some(claim("a", 2)), Some(done.clone())),
            (Some(claim("b", 1)), Some(done.clone())),
            (Some(mine.clone()), Some(Ending::done(None))),
            (Some(mine.clone()), None),
            (None, Some(done.clone())),
        ] {
            assert!(!is_written(&holder, &stored, &mine, &done), "{holder:?} {stored:?}");
        }
    }
}
