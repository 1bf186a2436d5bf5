//! An approved run is claimed, checked once more, executed under a lease, and written down.
//!
//! The claim comes before the first byte. Whatever turns out wrong after it and before anything was sent ends the run as
//! failed and not attempted; there is no way around the claim. What was sent and not answered is unknown, never failed.

use super::{Folded, ask};
use crate::call::{Executor, digest};
use crate::snapshot::Snapshot;
use catalog::{Entry, Found, Parsed, Probe, Progress};
use domain::run::{Claim, Ending, Event, NotAnEdge, Run, State};
use domain::{Call, CallId, Caller, Code, Failure, Level, Loaded, Moment, Outcome, Scopes, Tenant};
use policy::{Approved, Decision, Evidence, Permit};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use store::HeldRun;

impl Executor {
    /// Claims an approved run and carries it out in the background. Losing the claim is no failure: another has it.
    pub(super) async fn begin(
        &self,
        snapshot: Arc<Snapshot>,
        tenant: Tenant,
        held: HeldRun,
        now: Moment,
    ) -> Result<Run, Failure> {
        let owner = self.store.replica().to_owned();
        let event = Event::Claimed { owner, lease_until: now.plus(self.leases.lease) };
        match self.fold_run(&self.store.of(&tenant), held, &event, now, None).await? {
            Folded::Done(held) => {
                let run = held.run.clone();
                let executor = self.clone();
                self.tasks.spawn("run", async move { executor.carry_out(&snapshot, &tenant, *held).await });
                Ok(run)
            }
            Folded::No(_, held) | Folded::Late(held) => Ok(held.run),
        }
    }

    async fn carry_out(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant, held: HeldRun) {
        let run = &held.run;
        let Some(claim) = run.claim.clone() else { return };
        let span = tracing::info_span!(
            "execute_tool",
            otel.name = format!("execute_tool {}", run.asked.tool),
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = run.asked.tool.as_str(),
            quartermaster.tenant = %tenant,
            quartermaster.run.id = %run.id,
            quartermaster.run.epoch = claim.epoch,
        );
        let prepared = match prepare(snapshot, tenant, run) {
            Ok(prepared) => still_the_same(&prepared, run).await.map(|()| prepared),
            Err(ending) => Err(ending),
        };
        let executed = match prepared {
            Ok(prepared) => tracing::Instrument::instrument(self.execute(tenant, held, &claim, prepared), span).await,
            Err(ending) => self.write_end(tenant, held, &claim, ending).await,
        };
        if let Err(failure) = executed {
            // The record says "executing" until the lease is over; the sweep then finds out what happened.
            tracing::error!(code = failure.code.as_str(), "the end of a run could not be written");
        }
    }

    /// Runs the tool in a task of its own while the lease is renewed. What was sent goes on whatever happens here.
    async fn execute(&self, tenant: &Tenant, held: HeldRun, claim: &Claim, ready: Prepared) -> Result<(), Failure> {
        let Prepared { parsed, permit, deadline, .. } = ready;
        let mut work = self.tasks.spawn("tool of a run", async move {
            let progress = Progress::default();
            parsed.work.run(&permit, &progress).await
        });
        let mut renew =
            tokio::time::interval_at(tokio::time::Instant::now() + self.leases.renew_every, self.leases.renew_every);
        let overdue = tokio::time::sleep(deadline);
        tokio::pin!(overdue);
        let mut held = held;
        loop {
            tokio::select! {
                biased; // a change that is done wins a tie against its own deadline
                ended = &mut work => return match ending(ended.ok().flatten()) {
                    Ok(ending) => self.write_end(tenant, held, claim, ending).await,
                    Err(unknown) => self.write_lost(tenant, held, claim, unknown).await,
                },
                () = &mut overdue => {
                    let late = Ending::failed(Code::Deadline, format!("no answer within {} s", deadline.as_secs()));
                    self.write_lost(tenant, held.clone(), claim, late).await?;
                    return self.late_report(tenant, held.run.id, work.await.ok().flatten()).await;
                }
                _ = renew.tick() => match self.renew(tenant, held.clone(), claim).await {
                    Ok(Some(renewed)) => held = renewed,
                    Ok(None) => return self.fenced(tenant, held.run.id, work.await.ok().flatten()).await,
                    // Not renewed is not yet lost; the next tick tries again while the lease lasts.
                    Err(failure) => tracing::warn!(code = failure.code.as_str(), "a lease could not be renewed"),
                },
            }
        }
    }

    async fn renew(&self, tenant: &Tenant, held: HeldRun, claim: &Claim) -> Result<Option<HeldRun>, Failure> {
        let (held, now) = self.find_run(tenant, held.run.id).await?;
        let lease_until = now.plus(self.leases.lease);
        let event = Event::Renewed { owner: claim.owner.clone(), epoch: claim.epoch, lease_until };
        match self.fold_run(&self.store.of(tenant), held, &event, now, None).await? {
            Folded::Done(held) => Ok(Some(*held)),
            Folded::No(..) | Folded::Late(_) => Ok(None),
        }
    }

    async fn write_end(&self, tenant: &Tenant, held: HeldRun, claim: &Claim, ending: Ending) -> Result<(), Failure> {
        let id = held.run.id;
        let event = Event::Finished { owner: claim.owner.clone(), epoch: claim.epoch, ending: ending.clone() };
        match self.fold_run(&self.store.of(tenant), held, &event, self.time().await?, None).await? {
            Folded::Done(held) => {
                tracing::info!(run = %id, state = held.run.state.as_str(), "a run ended");
                Ok(())
            }
            Folded::No(NotAnEdge::State(State::OutcomeUnknown), held) => self.reconcile(tenant, *held, ending).await,
            Folded::No(..) | Folded::Late(_) => {
                tracing::warn!(run = %id, "the end of a run came from an epoch that no longer holds it");
                Ok(())
            }
        }
    }

    async fn write_lost(&self, tenant: &Tenant, held: HeldRun, claim: &Claim, ending: Ending) -> Result<(), Failure> {
        let event = Event::Lost { by: Some((claim.owner.clone(), claim.epoch)), ending };
        let id = held.run.id;
        match self.fold_run(&self.store.of(tenant), held, &event, self.time().await?, None).await? {
            Folded::Done(_) => tracing::warn!(run = %id, "the outcome of a run is unknown"),
            Folded::No(..) | Folded::Late(_) => {}
        }
        Ok(())
    }

    /// What the former owner learns late settles what was unknown.
    async fn late_report(&self, tenant: &Tenant, id: domain::RunId, ended: Option<Outcome>) -> Result<(), Failure> {
        let Ok(ending) = ending(ended) else { return Ok(()) };
        let (held, _) = self.find_run(tenant, id).await?;
        let ending = Ending { basis: "a late report of the replica that sent it".into(), ..ending };
        self.reconcile(tenant, held, ending).await
    }

    async fn fenced(&self, tenant: &Tenant, id: domain::RunId, ended: Option<Outcome>) -> Result<(), Failure> {
        tracing::warn!(run = %id, "a run was taken over while this replica still held it");
        self.late_report(tenant, id, ended).await
    }

    pub(super) async fn reconcile(&self, tenant: &Tenant, held: HeldRun, ending: Ending) -> Result<(), Failure> {
        let succeeded = ending.code.is_none();
        let event = Event::Reconciled { succeeded, ending };
        self.fold_run(&self.store.of(tenant), held, &event, self.time().await?, None).await.map(|_| ())
    }

    /// Looks at the target for what became of a run.
    pub(super) async fn probe(&self, snapshot: &Arc<Snapshot>, tenant: &Tenant, run: &Run) -> Probe {
        match prepare(snapshot, tenant, run) {
            Ok(ready) => {
                let look = policy::look(ready.permit.call().clone(), run.id);
                let probing = ready.parsed.work.probe(&look);
                tokio::time::timeout(Duration::from_secs(30), probing).await.unwrap_or(Probe::Unknown)
            }
            Err(_) => Probe::Unknown,
        }
    }

    pub(super) async fn time(&self) -> Result<Moment, Failure> {
        self.store.now().await.map_err(|e| crate::call::no_store(&e))
    }
}

/// Everything that must be there before a byte is sent.
struct Prepared {
    entry: Arc<Entry>,
    parsed: Parsed,
    permit: Permit,
    deadline: Duration,
}

/// Finds the tool again, understands the arguments again, and asks today's policy with the yes as evidence.
fn prepare(snapshot: &Snapshot, tenant: &Tenant, run: &Run) -> Result<Prepared, Ending> {
    let asked = &run.asked;
    let stale = |what: &str| Ending::not_attempted(Code::Stale, format!("{what} since it was approved"));
    let Found::Tool(entry) = snapshot.catalog.find(asked.tool.as_str()) else { return Err(stale("the tool is gone")) };
    if entry.schema_digest() != asked.schema {
        return Err(stale("the tool's schema has changed"));
    }
    let arguments: Map<String, Value> =
        serde_json::from_str(&asked.arguments).map_err(|_| stale("the arguments can no longer be read"))?;
    let parsed = entry.parse(arguments).map_err(|_| stale("the arguments no longer fit"))?;
    let caller = Caller {
        tenant: tenant.clone(),
        principal: asked.requester.clone(),
        scopes: Scopes::parse(&asked.scopes),
        expires_at: asked.expires_at,
    };
    let mut call = Call {
        id: CallId::from_random(crate::call::random().map_err(|f| Ending::not_attempted(f.code, f.message))?),
        caller: Arc::new(caller),
        session: asked.session,
        tool: asked.tool.clone(),
        toolset: entry.definition().toolset.clone(),
        needs: entry.list(),
        effect: parsed.effect,
        about: parsed.about.clone(),
        digest: String::new(),
    };
    call.digest = digest(&call, entry.schema_digest(), &parsed.arguments);
    let evidence = Evidence {
        // What was issued when it was asked was judged then; what the tenant forbids today is judged below.
        loaded: Loaded::from_iter([(asked.toolset.clone(), Level::Write)]),
        mode: domain::Mode::Write,
        tainted: asked.tainted,
        calls_this_minute: 0,
        stopped: false,
        approved: Some(Approved { run: run.id, digest: asked.digest.clone() }),
    };
    match policy::decide(&snapshot.policy, call, &evidence) {
        Decision::Permit(permit) => {
            Ok(Prepared { entry: Arc::clone(entry), parsed, permit, deadline: entry.definition().deadline })
        }
        Decision::Ask(..) => Err(stale("what would be done is no longer what was approved")),
        Decision::Deny(reason) => Err(Ending::not_attempted(Code::PolicyDenied, reason.0.message)),
    }
}

/// Draws the preview again: what the approver judged must still be so.
async fn still_the_same(ready: &Prepared, run: &Run) -> Result<(), Ending> {
    let look = policy::look(ready.permit.call().clone(), run.id);
    let drawn = ready.parsed.work.preview(&look).await.map_err(|failure| {
        Ending::not_attempted(Code::Stale, format!("the target can no longer be looked at: {}", failure.message))
    })?;
    let now = ask::preview(&ready.entry, &ready.parsed, drawn);
    let was = &run.asked.preview;
    if now.fingerprint == was.fingerprint {
        return Ok(());
    }
    // The target moved; if what would be done is still the same, the yes still covers it.
    if now.text == was.text && now.warnings == was.warnings {
        return Ok(());
    }
    Err(Ending::not_attempted(
        Code::Stale,
        format!("the target has changed since it was approved; now: {}", now.summary),
    ))
}

/// What a tool's answer proves. `Err`: it proves nothing, because something may have been sent.
fn ending(ended: Option<Outcome>) -> Result<Ending, Ending> {
    match ended {
        Some(Ok(output)) => Ok(Ending::done(output.structured)),
        Some(Err(failure)) if is_ambiguous(failure.code) => Err(Ending::failed(failure.code, failure.message)),
        Some(Err(failure)) => Ok(Ending::failed(failure.code, failure.message)),
        None => Err(Ending::failed(Code::Internal, "the tool failed inside the service")),
    }
}

/// Codes after which the change may have happened all the same.
fn is_ambiguous(code: Code) -> bool {
    matches!(code, Code::OutcomeUnknown | Code::StoreUnavailable | Code::Deadline | Code::Internal)
}
