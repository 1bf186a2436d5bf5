//! A target that counts: tools whose every effect is seen by run, that can be held, that can fall silent.
//!
//! The tenant is configured nowhere, so no sweep but the test's own looks at its runs. Calls, answers and sweeps take the
//! executor's ordinary path on a real store; only the catalog and the rules are the test's.

use crate::here::World;
use catalog::{
    BoxedFuture, Catalog, CatalogEntry, CatalogRules, ErasedCall, ErasedTool, ProbeResult, Progress, ToolDefinition,
    ToolFuture, ToolPreview, ToolSource,
};
use domain::run::{Answer, OnReject, Run, RunEvent, RunState, Verdict};
use domain::{
    Caller, Code, Effect, Failure, Level, LoadedToolsets, Moment, Outcome, Principal, RunId, Scopes, SessionMode,
    Tenant, ToolName, ToolOutput, ToolsetName,
};
use executor::runs::{RunWait, WaitUntil};
use executor::{ApprovalRules, CallRequest, ClientEra, Executor, Handle, Leases, RunDecision, Snapshot};
use gateway::app::Gateway;
use policy::{Gate, Pattern, Permit, PermitMode, Policy};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::{AuditEntry, Phase, RunCasOutcome, Store, VersionedRun};
use testkit::patience::{PATIENCE, in_time};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Changes something and may be sent again.
pub(crate) const SET: &str = "yard_set";
/// Changes something, or with `n: 0` takes it away, or with a negative `n` only looks; never sent twice.
pub(crate) const RAZE: &str = "yard_raze";
/// As the one above, with little time to answer.
pub(crate) const BRIEF: &str = "yard_brief";
/// Gives back what somebody outside wrote: with a positive `n` after a change, else by only looking.
pub(crate) const HEAR: &str = "yard_hear";
/// Proposes something that people review at their own pace.
pub(crate) const ADOPT: &str = "yard_adopt";
/// How long they may take for it.
pub(crate) const REVIEW: Duration = Duration::from_secs(14 * 24 * 3600);
/// How long that one has.
const BRIEFLY: Duration = Duration::from_millis(200);

/// Holds whoever comes by, until it is opened for them.
struct Barrier {
    shut: AtomicBool,
    entered: Semaphore,
    release: Semaphore,
}

impl Barrier {
    fn new() -> Barrier {
        Barrier { shut: AtomicBool::new(false), entered: Semaphore::new(0), release: Semaphore::new(0) }
    }

    async fn pass(&self) {
        self.entered.add_permits(1);
        if self.shut.load(Ordering::SeqCst) {
            self.release.acquire().await.expect("it is never closed").forget();
        }
    }

    async fn reached(&self, times: u32, what: &str) {
        in_time(what, self.entered.acquire_many(times)).await.expect("it is never closed").forget();
    }

    fn open(&self) {
        self.shut.store(false, Ordering::SeqCst);
        self.release.add_permits(64);
    }
}

/// How the target answers once the effect has happened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// As it should.
    Done,
    /// With that many bytes.
    Large(usize),
    /// With a no, having changed nothing.
    Refused,
    /// Not at all: the connection broke after the request was sent.
    Lost,
    /// With a bug in the tool.
    Panic,
}

/// What the tools act on.
pub(crate) struct Target {
    sent: Mutex<Vec<Option<RunId>>>,
    reply: Mutex<Reply>,
    revision: AtomicU64,
    absence_is_proof: AtomicBool,
    blind: AtomicBool,
    tools: Barrier,
    looks: Barrier,
    previews: Barrier,
}

impl Target {
    fn new() -> Arc<Target> {
        Arc::new(Target {
            sent: Mutex::default(),
            reply: Mutex::new(Reply::Done),
            revision: AtomicU64::new(1),
            absence_is_proof: AtomicBool::new(false),
            blind: AtomicBool::new(false),
            tools: Barrier::new(),
            looks: Barrier::new(),
            previews: Barrier::new(),
        })
    }

    /// How often a run has changed something here.
    pub(crate) fn effects(&self, run: RunId) -> usize {
        self.sent.lock().unwrap().iter().filter(|sent| **sent == Some(run)).count()
    }

    /// How often anybody has changed something here.
    pub(crate) fn all_effects(&self) -> usize {
        self.sent.lock().unwrap().len()
    }

    /// Changes something as this run, whose answer nobody hears.
    pub(crate) fn happened(&self, run: RunId) {
        self.sent.lock().unwrap().push(Some(run));
    }

    /// Somebody else changes what the tools are about.
    pub(crate) fn moved_by_somebody_else(&self) {
        self.revision.fetch_add(1, Ordering::SeqCst);
    }

    /// How it answers from now on.
    pub(crate) fn replies(&self, reply: Reply) {
        *self.reply.lock().unwrap() = reply;
    }

    /// From now on a probe that finds nothing takes that as proof that nothing happened.
    pub(crate) fn absence_proves(&self) {
        self.absence_is_proof.store(true, Ordering::SeqCst);
    }

    /// From now on nothing can be looked at.
    pub(crate) fn goes_blind(&self) {
        self.blind.store(true, Ordering::SeqCst);
    }

    /// Holds tools inside from now on.
    pub(crate) fn holds(&self) {
        self.tools.shut.store(true, Ordering::SeqCst);
    }

    /// Waits until that many more calls are inside.
    pub(crate) async fn reached(&self, times: u32) {
        self.tools.reached(times, "a run to reach its target").await;
    }

    /// Lets everybody on.
    pub(crate) fn lets_go(&self) {
        self.tools.open();
    }

    /// Holds whoever only looks from now on.
    pub(crate) fn holds_looks(&self) {
        self.looks.shut.store(true, Ordering::SeqCst);
    }

    /// Waits until one more call looks.
    pub(crate) async fn look_reached(&self) {
        self.looks.reached(1, "a call to look").await;
    }

    /// Lets those who only look on.
    pub(crate) fn lets_looks_go(&self) {
        self.looks.open();
    }

    /// Holds previews from now on.
    pub(crate) fn holds_previews(&self) {
        while self.previews.entered.try_acquire().map(tokio::sync::SemaphorePermit::forget).is_ok() {}
        self.previews.shut.store(true, Ordering::SeqCst);
    }

    /// Waits until somebody draws a preview.
    pub(crate) async fn preview_reached(&self) {
        self.previews.reached(1, "a preview to be drawn").await;
    }

    /// Lets previews on.
    pub(crate) fn lets_previews_go(&self) {
        self.previews.open();
    }
}

struct Toolbox {
    target: Arc<Target>,
    name: &'static str,
}

impl ErasedTool for Toolbox {
    fn understand(self: Arc<Self>, arguments: Value) -> Result<(Effect, Option<String>, Box<dyn ErasedCall>), Failure> {
        let n = arguments["n"].as_i64().unwrap_or_default();
        let effect = match (self.name, n) {
            (SET | ADOPT, _) | (_, 1..) => Effect::Change,
            (_, 0) => Effect::Disrupt,
            (_, _) => Effect::Read,
        };
        Ok((effect, Some(format!("lot-{n}")), Box::new(Job { target: Arc::clone(&self.target), n })))
    }
}

struct Job {
    target: Arc<Target>,
    n: i64,
}

impl ErasedCall for Job {
    fn run<'a>(self: Box<Self>, permit: &'a Permit, _: &'a Progress) -> ToolFuture<'a> {
        Box::pin(async move {
            if permit.effect() == Effect::Read {
                self.target.looks.pass().await;
                let mut told = json!({ "looked": self.n });
                if permit.call().tool.as_str() == HEAR {
                    told["tainted"] = json!(permit.call().tainted);
                }
                return Ok(ToolOutput::structured(told.to_string()));
            }
            assert_eq!(permit.extent(), PermitMode::Act, "a rehearsal changes nothing");
            self.target.tools.pass().await;
            let reply = *self.target.reply.lock().unwrap();
            if reply == Reply::Refused {
                return Err(Failure::new(Code::PolicyDenied, "the target says no"));
            }
            self.target.sent.lock().unwrap().push(permit.run());
            match reply {
                Reply::Done | Reply::Refused => Ok(ToolOutput::structured(json!({ "set": self.n }).to_string())),
                Reply::Large(bytes) => Ok(ToolOutput::structured(json!({ "set": "x".repeat(bytes) }).to_string())),
                Reply::Lost => Err(Failure::new(Code::OutcomeUnknown, "the connection broke")),
                Reply::Panic => panic!("a tool of the tests panics as it should"),
            }
        })
    }

    fn preview<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, Result<Option<ToolPreview>, Failure>> {
        Box::pin(async move {
            assert_eq!(permit.extent(), PermitMode::Rehearse, "whoever only looks can only look");
            self.target.previews.pass().await;
            if self.target.blind.load(Ordering::SeqCst) {
                return Err(Failure::new(Code::Deadline, "the yard does not answer"));
            }
            let revision = self.target.revision.load(Ordering::SeqCst);
            Ok(Some(ToolPreview {
                summary: format!("set the lot to {}", self.n),
                text: format!("the lot of revision {revision} becomes {}", self.n),
                warnings: vec!["The lot is in use.".to_owned()],
                arguments: None,
                hidden: Vec::new(),
                fingerprint: revision.to_string(),
            }))
        })
    }

    fn probe<'a>(&'a self, permit: &'a Permit) -> BoxedFuture<'a, ProbeResult> {
        Box::pin(async move {
            assert_eq!(permit.extent(), PermitMode::Rehearse, "whoever only looks can only look");
            match permit.run() {
                Some(run) if self.target.effects(run) > 0 => {
                    ProbeResult::Done(Some(json!({ "set": self.n }).to_string()))
                }
                Some(_) | None if self.target.absence_is_proof.load(Ordering::SeqCst) => ProbeResult::NotDone,
                Some(_) | None => ProbeResult::Unknown,
            }
        })
    }
}

fn entry(name: &'static str, target: &Arc<Target>, newer: bool) -> Arc<CatalogEntry> {
    let mut schema = json!({
        "type": "object", "properties": { "n": { "type": "integer" }, "why": { "type": "string" } },
        "required": ["n"], "additionalProperties": false,
    });
    if newer {
        schema["properties"]["how"] = json!({ "type": "string" });
    }
    let (most, idempotent) =
        if matches!(name, SET | ADOPT) { (Effect::Change, true) } else { (Effect::Disrupt, false) };
    let definition = ToolDefinition {
        name: ToolName::parse(name).unwrap(),
        toolset: toolset(),
        title: name.to_owned(),
        description: "A tool of the tests.".to_owned(),
        hint: None,
        source: ToolSource::BuiltIn,
        most,
        idempotent,
        open_world: true,
        deadline: if name == BRIEF { BRIEFLY } else { Duration::from_secs(60) },
        outside_text: name == HEAR,
        reviewed: (name == ADOPT).then_some(REVIEW),
        waits: false,
        wire: schema.to_string(),
        strict: schema,
        output: None,
        needs_client: None,
    };
    Arc::new(CatalogEntry::new(definition, Arc::new(Toolbox { target: Arc::clone(target), name })).unwrap())
}

fn toolset() -> ToolsetName {
    ToolsetName::parse("yard").unwrap()
}

/// What the tenant's rules say.
#[derive(Clone)]
pub(crate) struct House {
    pub(crate) mode: SessionMode,
    pub(crate) deny: Vec<&'static str>,
    pub(crate) fail: Vec<&'static str>,
    pub(crate) approvals: ApprovalRules,
    pub(crate) result_bytes: usize,
    /// Whether the tools have the schema of a later release.
    pub(crate) newer: bool,
    /// Whether the tools cannot be had at the moment.
    pub(crate) bare: bool,
}

impl Default for House {
    fn default() -> House {
        let approvals = ApprovalRules {
            expires: Duration::from_secs(600),
            execute_within: Duration::from_secs(600),
            deciders: 1,
            most_waiting: 1_000,
            review: None,
        };
        let (deny, fail) = (Vec::new(), Vec::new());
        House { mode: SessionMode::Write, deny, fail, approvals, result_bytes: 262_144, newer: false, bare: false }
    }
}

/// The tenant, its target, and the snapshot its calls are judged against.
#[derive(Clone)]
pub(crate) struct Yard {
    pub(crate) tenant: Tenant,
    pub(crate) target: Arc<Target>,
    pub(crate) snapshot: Arc<Snapshot>,
}

impl Yard {
    /// A yard where everything is as usual.
    pub(crate) fn new() -> Yard {
        Yard::of(&House::default())
    }

    /// A yard with rules.
    pub(crate) fn of(house: &House) -> Yard {
        let (tenant, target) = (Tenant::parse("yard").unwrap(), Target::new());
        let snapshot = snapshot(&tenant, &target, house);
        Yard { tenant, target, snapshot }
    }

    /// The same yard under other rules.
    pub(crate) fn under(&self, house: &House) -> Yard {
        Yard { snapshot: snapshot(&self.tenant, &self.target, house), ..self.clone() }
    }

    /// Everything there is here, loaded.
    pub(crate) fn loaded(&self) -> LoadedToolsets {
        LoadedToolsets::from_iter([(toolset(), Level::Write)])
    }

    /// Somebody of this tenant.
    pub(crate) fn caller(&self, subject: &str, scopes: &str) -> Arc<Caller> {
        Arc::new(Caller {
            tenant: self.tenant.clone(),
            principal: principal(subject),
            scopes: Scopes::parse(scopes),
            expires_at: Moment::from_secs(u64::from(u32::MAX)),
            token: None,
            labels: Vec::new(),
        })
    }

    /// A call of the agent, as it would come in by any door.
    pub(crate) async fn call(&self, executor: &Executor, tool: &str, arguments: Value) -> Answered {
        self.call_with(executor, tool, arguments, |_| {}).await
    }

    /// The same, changed as the test wants.
    pub(crate) async fn call_with(
        &self,
        executor: &Executor,
        tool: &str,
        arguments: Value,
        change: impl FnOnce(&mut CallRequest),
    ) -> Answered {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let mut request = CallRequest {
            caller: self.caller("agent", "tools:read tools:write"),
            tool: tool.to_owned(),
            arguments,
            handle: Handle::None,
            selection: Some(LoadedToolsets::from_iter([(toolset(), Level::Write)])),
            era: ClientEra::Modern,
            progress: Progress::default(),
            cancel: CancellationToken::new(),
            hold: None,
            idempotency_key: None,
            trace: None,
            client: None,
        };
        change(&mut request);
        answered(Box::pin(executor.call(&self.snapshot, request)).await)
    }

    /// Asks for something and gives the run that now waits.
    pub(crate) async fn ask(&self, executor: &Executor, tool: &str, n: i64) -> RunId {
        let mut answered = self.call(executor, tool, json!({ "n": n })).await;
        // Replicas that have to confirm the run may be late; the service says that asking the same again is right then.
        for _ in 0..10 {
            match &answered {
                Err(failure) if failure.code == Code::StoreUnavailable => {
                    answered = self.call(executor, tool, json!({ "n": n })).await;
                }
                Ok(_) | Err(_) => break,
            }
        }
        let told = told(&answered);
        assert_eq!(told["run"]["state"], "pending_approval", "{told}");
        run_id(&told)
    }

    /// A person answers.
    pub(crate) async fn answer(
        &self,
        executor: &Executor,
        person: &str,
        run: RunId,
        verdict: Verdict,
    ) -> Result<Run, Failure> {
        let said = RunDecision { verdict, reason: Some(format!("{person} said so")) };
        Box::pin(executor.answer(&self.snapshot, &self.caller(person, "runs:decide"), run, said)).await
    }

    /// Opens one more run like `seed`, as if it had been asked for as well.
    pub(crate) async fn one_more(&self, store: &Store, seed: &Run, number: usize) -> RunId {
        let mut bits = [9; 16];
        bits[..8].copy_from_slice(&(number as u64).to_be_bytes());
        let run = Run { id: RunId::from_random(bits), ..seed.clone() };
        let entry = AuditEntry::new(Phase::Transition);
        let opened = store.of(&self.tenant).runs().open(&run, None, u64::MAX, &entry).await.unwrap();
        assert!(matches!(opened, RunCasOutcome::Done(_)), "{opened:?}");
        run.id
    }

    /// A person says yes, and is heard.
    pub(crate) async fn approve(&self, executor: &Executor, run: RunId) {
        self.answer(executor, "ana", run, Verdict::Approve).await.unwrap();
    }

    /// Looks once at everything that is due.
    pub(crate) async fn sweep(&self, executor: &Executor) {
        Box::pin(executor.sweep(&self.snapshot, &self.tenant)).await.ok();
    }

    /// Waits until a run is settled.
    pub(crate) async fn settled(&self, executor: &Executor, run: RunId) -> Run {
        let run = executor
            .wait_for(
                &self.tenant,
                run,
                RunWait {
                    until: WaitUntil::Settled,
                    patience: PATIENCE,
                    may_see: &|_| true,
                    progress: &Progress::default(),
                },
            )
            .await
            .unwrap()
            .run;
        assert!(run.state.is_settled(), "it should have ended: {run:?}");
        run
    }

    /// The run as it stands.
    pub(crate) async fn run(&self, store: &Store, run: RunId) -> Run {
        self.held(store, run).await.run
    }

    async fn held(&self, store: &Store, run: RunId) -> VersionedRun {
        store.of(&self.tenant).runs().find(run).await.unwrap().0.expect("the run should be there")
    }

    /// Writes what another replica would have written, as if it had happened at that moment.
    pub(crate) async fn force(&self, store: &Store, run: RunId, event: &RunEvent, at: Moment) -> Run {
        let held = self.held(store, run).await;
        let next = held.run.apply(event, at).unwrap();
        let entry = AuditEntry::new(Phase::Transition);
        match store.of(&self.tenant).runs().commit(&held, &next, None, &entry).await.unwrap() {
            RunCasOutcome::Done(held) => held.run,
            refused @ (RunCasOutcome::Conflict(_)
            | RunCasOutcome::Late(_)
            | RunCasOutcome::TooManyWaiting
            | RunCasOutcome::Gone) => {
                panic!("it should be written: {refused:?}")
            }
        }
    }

    /// A yes that nobody has acted on: whoever took it is dead.
    pub(crate) async fn approved_by_the_dead(&self, store: &Store, run: RunId) -> Run {
        let at = store.now().await.unwrap();
        let answer = Answer { by: principal("ana"), verdict: Verdict::Approve, reason: None, at, span: None };
        self.force(store, run, &RunEvent::Answered(answer), at).await
    }

    /// A run whose owner died with its lease, which is over.
    pub(crate) async fn claimed_by_the_dead(&self, store: &Store, run: RunId) -> Run {
        self.approved_by_the_dead(store, run).await;
        let now = store.now().await.unwrap();
        let lease_until = Moment::from_millis(now.millis() - 1);
        self.force(store, run, &RunEvent::Claimed { owner: "rep_dead".into(), lease_until, span: None }, now).await
    }

    /// The states a run went through, as the audit log has them: one entry per move.
    pub(crate) async fn moves(&self, store: &Store, run: RunId) -> Vec<String> {
        let entries = store.of(&self.tenant).audit().page(None, 10_000).await.unwrap();
        let of_run = |entry: &&Value| entry["phase"] == "transition" && entry["run"]["id"] == run.to_string();
        let entries: Vec<Value> = entries.into_iter().map(|noted| noted.entry).collect();
        entries.iter().filter(of_run).map(|entry| entry["run"]["to"].as_str().unwrap().to_owned()).collect()
    }
}

fn snapshot(tenant: &Tenant, target: &Arc<Target>, house: &House) -> Arc<Snapshot> {
    let pattern = |text: &&str| Pattern::parse(text).unwrap();
    let deny: Vec<Pattern> = house.deny.iter().map(pattern).collect();
    let gate = |text: &&str| Gate { pattern: pattern(text), on_reject: OnReject::Fail };
    let require_approval: Vec<Gate> = house.fail.iter().map(gate).collect();
    let names: &[&'static str] = if house.bare { &[] } else { &[SET, RAZE, BRIEF, HEAR, ADOPT] };
    let tools = names.iter().map(|name| entry(name, target, house.newer));
    let rules = CatalogRules { deny: &deny, gates: &require_approval };
    let defaults = [toolset()];
    let catalog = Catalog::build(tenant, tools, if house.bare { &[] } else { &defaults }, rules).unwrap();
    Arc::new(Snapshot {
        catalog: Arc::new(catalog),
        policy: Policy { mode: house.mode, deny, require_approval, calls_per_minute: 1_000_000 },
        approvals: house.approvals,
        secrets: executor::SecretsNow::default(),
        withheld: std::collections::BTreeSet::new(),
        result_bytes: house.result_bytes,
        in_flight: 1_000,
        audit: executor::AuditRules {
            contents: true,
            keep: std::time::Duration::from_secs(86_400),
            unrecorded_reads: false,
        },
        rules: Vec::new(),
    })
}

/// Somebody whom the usual issuer vouches for.
pub(crate) fn principal(subject: &str) -> Principal {
    Principal::new("https://login.example.com", subject)
}

/// What a client is told of an outcome: an answer, be it a result or a run that waits, or a failure.
pub(crate) type Answered = Result<ToolOutput, Failure>;

pub(crate) fn answered(outcome: Outcome) -> Answered {
    match outcome {
        Outcome::Done(output) => Ok(output),
        Outcome::Waiting(run) => Ok(ToolOutput::structured(run.json)),
        Outcome::Failed(failure) => Err(failure),
    }
}

/// What a call that worked was told.
pub(crate) fn told(outcome: &Answered) -> Value {
    let output = outcome.as_ref().unwrap_or_else(|failure| panic!("the call should work: {failure:?}"));
    serde_json::from_str(output.structured.as_deref().unwrap_or("null")).unwrap()
}

/// The run an answer speaks of.
pub(crate) fn run_id(told: &Value) -> RunId {
    let id = told["run"]["id"].as_str().unwrap_or_else(|| panic!("there is no run in {told}"));
    RunId::parse(id).unwrap()
}

/// An executor of this replica that never says that it lives: frozen, as far as the others can see.
pub(crate) fn frozen(gateway: &Gateway, lease: Duration) -> Executor {
    let never = Duration::from_secs(24 * 3600);
    let leases = Leases { lease, renew_every: never };
    let (store, tasks) = (gateway.store.clone(), gateway.tasks.clone());
    Executor::new(store, tasks, gateway.lives, Arc::clone(&gateway.keys), leases)
}

/// Waits until the store's own clock has passed a moment.
pub(crate) async fn pass(store: &Store, moment: Moment) {
    while store.now().await.unwrap() <= moment {
        tokio::task::yield_now().await;
    }
}

/// Waits until the lease of a run is over by the store's clock.
pub(crate) async fn lease_over(world: &World, yard: &Yard, run: RunId) {
    let store = &world.part(0).store;
    let held = yard.run(store, run).await;
    assert_eq!(held.state, RunState::Executing, "{held:?}");
    pass(store, held.claim.unwrap().lease_until).await;
}
