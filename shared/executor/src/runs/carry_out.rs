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
                self.tasks.spawn_lasting("run", async move { executor.carry_out(&snapshot, &tenant, *held).await });
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
        let carried = self.carry(snapshot, tenant, held, &claim);
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
        held: HeldRun,
        claim: &Claim,
    ) -> Result<(), Failure> {
        let run = held.run.clone();
        let ready = match prepare(snapshot, tenant, &run) {
            Ok(ready) => ready,
            Err(ending) => return self.write_end(tenant, held, claim, ending).await,
        };
        let mut lease = Lease { held, renewed: tokio::time::Instant::now() };
        let Some(looked) = self.renewing(tenant, &mut lease, claim, last_look(&ready, &run, claim.epoch)).await else {
            tracing::warn!(run = %run.id, "a run was taken over before anything was sent");
            return Ok(());
        };
        match looked {
            Looked::Same => {}
            Looked::Happened(result) => {
                let ending = Ending { basis: "a probe of the target".into(), ..Ending::done(result) };
                return self.write_end(tenant, lease.held, claim, ending).await;
            }
            // Somebody held it before, so the difference may be what that one did.
            Looked::Other(ending) if claim.epoch > 1 => {
                let ending = Ending { code: Some(Code::OutcomeUnknown.as_str().into()), attempted: true, ..ending };
                return self.write_lost(tenant, lease.held, claim, ending).await;
            }
            Looked::Other(ending) => return self.write_end(tenant, lease.held, claim, ending).await,
        }
        // A replica that was frozen must not send what others have settled meanwhile.
        if lease.renewed.elapsed() * 2 > self.leases.lease && !self.renew_now(tenant, &mut lease, claim).await? {
            return Ok(());
        }
        self.execute(tenant, lease, claim, ready, snapshot.result_bytes).await
    }

    /// Runs the tool in a task of its own while the lease is renewed. What was sent goes on whatever happens here.
    async fn execute(
        &self,
        tenant: &Tenant,
        mut lease: Lease,
        claim: &Claim,
        ready: Prepared,
        cap: usize,
    ) -> Result<(), Failure> {
        let Prepared { parsed, permit, deadline, .. } = ready;
        let id = lease.held.run.id;
        let mut work = self.tasks.spawn_lasting("tool of a run", async move {
            let progress = Progress::default();
            parsed.work.run(&permit, &progress).await
        });
        let ended = tokio::time::timeout(deadline, self.renewing(tenant, &mut lease, claim, &mut work)).await;
        match ended {
            Ok(Some(ended)) => match ending(ended.ok().flatten(), cap) {
                Ok(ending) => self.write_end(tenant, lease.held, claim, ending).await,
                Err(unknown) => self.write_lost(tenant, lease.held, claim, unknown).await,
            },
            // Taken over while it was being sent: what comes of it is evidence, and no more.
            Ok(None) => {
                tracing::warn!(run = %id, "a run was taken over while this replica still held it");
                self.late_report(tenant, id, work.await.ok().flatten(), cap).await
            }
            Err(_) => {
                let late = Ending::failed(Code::Deadline, format!("no answer within {} s", deadline.as_secs()));
                self.write_lost(tenant, lease.held, claim, late).await?;
                self.late_report(tenant, id, work.await.ok().flatten(), cap).await
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
        loop {
            tokio::select! {
                biased; // what is done wins a tie against the tick
                done = &mut work => return Some(done),
                _ = tick.tick() => match self.renew_now(tenant, lease, claim).await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    // Not renewed is not yet lost; the next tick tries again while the lease lasts.
                    Err(failure) => tracing::warn!(code = failure.code.as_str(), "a lease could not be renewed"),
                },
            }
        }
    }

    async fn renew_now(&self, tenant: &Tenant, lease: &mut Lease, claim: &Claim) -> Result<bool, Failure> {
        let asked = tokio::time::Instant::now();
        match self.renew(tenant, lease.held.clone(), claim).await? {
            Some(held) => {
                *lease = Lease { held, renewed: asked };
                Ok(true)
            }
            None => Ok(false),
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
    async fn late_report(
        &self,
        tenant: &Tenant,
        id: domain::RunId,
        ended: Option<Outcome>,
        cap: usize,
    ) -> Result<(), Failure> {
        let Ok(ending) = ending(ended, cap) else { return Ok(()) };
        let (held, _) = self.find_run(tenant, id).await?;
        let ending = Ending { basis: "a late report of the replica that sent it".into(), ..ending };
        self.reconcile(tenant, held, ending).await
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

/// A run as this replica holds it, and when it last said so.
struct Lease {
    held: HeldRun,
    renewed: tokio::time::Instant,
}

/// What the last look before sending says.
enum Looked {
    /// What the approver judged is still so.
    Same,
    /// It has happened already; this is its result.
    Happened(Option<String>),
    /// It is no longer so.
    Other(Ending),
}

/// Looks at the target for the last time. Whoever takes a run over asks first whether it has happened: the effect itself
/// would make everything look different.
async fn last_look(ready: &Prepared, run: &Run, epoch: u64) -> Looked {
    let look = policy::look(ready.permit.call().clone(), run.id);
    let work = &ready.parsed.work;
    let stale = |what: String| Looked::Other(Ending::not_attempted(Code::Stale, what));
    if epoch > 1
        && let Ok(Probe::Done(result)) = tokio::time::timeout(ready.deadline, work.probe(&look)).await
    {
        return Looked::Happened(result);
    }
    let drawn = match tokio::time::timeout(ready.deadline, work.preview(&look)).await {
        Ok(Ok(drawn)) => drawn,
        Ok(Err(failure)) => return stale(format!("the target can no longer be looked at: {}", failure.message)),
        Err(_) => return stale("the target can no longer be looked at in time".to_owned()),
    };
    let (now, was) = (ask::preview(&ready.entry, &ready.parsed, drawn), &run.asked.preview);
    // Where the target moved and what would be done is still the same, the yes still covers it.
    if now.fingerprint == was.fingerprint || (now.text == was.text && now.warnings == was.warnings) {
        return Looked::Same;
    }
    stale(format!("the target has changed since it was approved; now: {}", now.summary))
}

/// What a tool's answer proves. `Err`: it proves nothing, because something may have been sent.
fn ending(ended: Option<Outcome>, cap: usize) -> Result<Ending, Ending> {
    match ended {
        Some(Ok(output)) => match output.structured {
            Some(text) if text.len() > cap => {
                let message =
                    format!("done; its result of {} bytes is over the cap of {cap} and was not kept", text.len());
                Ok(Ending { message, ..Ending::done(None) })
            }
            structured => Ok(Ending::done(structured)),
        },
        Some(Err(failure)) if is_ambiguous(failure.code) => Err(Ending::failed(failure.code, failure.message)),
        Some(Err(failure)) => Ok(Ending::failed(failure.code, failure.message)),
        None => Err(Ending::failed(Code::Internal, "the tool failed inside the service")),
    }
}

/// Codes after which the change may have happened all the same.
fn is_ambiguous(code: Code) -> bool {
    matches!(code, Code::OutcomeUnknown | Code::StoreUnavailable | Code::Deadline | Code::Internal)
}
