//! The path of one call: find, parse, take a slot, open the audit entry, decide, invoke, close.
//!
//! Each step hands the next one proof: the parsed arguments carry the effect, the store's receipt says that the entry is
//! open, and only a permit reaches the tool. A refusal at any step is an ordinary outcome with its code.

use crate::invoke::Job;
use crate::keys::Keys;
use crate::runs::Leases;
use crate::runs::ask::Asking;
use crate::runs::notice::Notices;
use crate::snapshot::Snapshot;
use crate::tasks::Tasks;
use catalog::{Entry, Found, Progress};
use domain::outcome::near;
use domain::{
    Call, CallId, Caller, Code, Failure, Level, Loaded, Mode, Moment, Outcome, SessionId, ToolName, ToolsetName,
};
use futures_util::FutureExt;
use policy::{Decision, Evidence};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{ActorKind, Begun, CloseFacts, Gated, Opening, Past, Receipt, SessionConfig, Shelf, Store};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// The two protocol eras differ in what a vanished client means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// The work goes on; only an explicit cancel ends it.
    Legacy,
    /// The request's future is the work: dropped with it.
    Modern,
}

/// How the caller named its session, which decides how a wrong name is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handle {
    /// No session.
    None,
    /// By the transport's header or the address: a wrong one ends the transport's session.
    Transport(String),
    /// By `_meta` or an argument: a wrong one is a tool error, so that the model can load again.
    Told(String),
}

/// One request to use a tool.
pub struct CallRequest {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The tool's name, as told.
    pub tool: String,
    /// Its arguments, as told.
    pub arguments: Map<String, Value>,
    /// The session.
    pub handle: Handle,
    /// What the address itself has loaded, for calls without a session.
    pub selection: Option<Loaded>,
    /// The era.
    pub era: Era,
    /// Where progress goes.
    pub progress: Progress,
    /// Ends the call on the caller's wish.
    pub cancel: CancellationToken,
    /// How long the caller waits for a person before it is answered with the run alone.
    pub hold: Option<Duration>,
    /// The caller's own key, under which a repeated call finds its run.
    pub idempotency_key: Option<String>,
    /// For the audit.
    pub trace: Option<String>,
}

/// Carries out calls.
#[derive(Clone)]
pub struct Executor {
    pub(crate) store: Store,
    pub(crate) tasks: Tasks,
    pub(crate) lives: SessionConfig,
    pub(crate) keys: Arc<Keys>,
    pub(crate) leases: Leases,
    pub(crate) notices: Notices,
    /// Whether nothing new may be recorded for a person to decide.
    pub(crate) closed: Arc<AtomicBool>,
}

impl Executor {
    /// An executor on this store; sessions live this long, and what is digested is keyed with these keys.
    pub fn new(store: Store, tasks: Tasks, lives: SessionConfig, keys: Arc<Keys>, leases: Leases) -> Executor {
        Executor { store, tasks, lives, keys, leases, notices: Notices::default(), closed: Arc::default() }
    }

    /// The same executor, telling of its runs.
    #[must_use]
    pub fn telling(self, notices: Notices) -> Executor {
        Executor { notices, ..self }
    }

    /// Closes or opens the gate: while the store is nearly full, or may forget, nobody is asked to sign anything new.
    /// Decisions and outcomes of what was recorded before go on.
    pub fn close_gate(&self, closed: bool) {
        self.closed.store(closed, Ordering::Relaxed);
    }

    /// Carries out one call.
    pub async fn call(&self, snapshot: &Arc<Snapshot>, mut request: CallRequest) -> Outcome {
        loop {
            return match snapshot.catalog.find(&request.tool) {
                Found::Tool(entry) => self.call_tool(snapshot, entry, request).await,
                Found::Virtual(catalog::Virtual::CallTool) => {
                    // The inner call is an ordinary one: the same path, the same verdict.
                    request = crate::virtuals::call_tool::unwrap(snapshot, request)?;
                    continue;
                }
                Found::Virtual(which) => self.call_virtual(snapshot, which, request).await,
                Found::Nothing if snapshot.withheld.contains(&request.tool) => Err(withheld(&request.tool)),
                Found::Nothing => Err(unknown_tool(snapshot, &request.tool)),
            };
        }
    }

    async fn call_tool(&self, snapshot: &Arc<Snapshot>, entry: &Arc<Entry>, mut request: CallRequest) -> Outcome {
        let parsed = entry.parse(std::mem::take(&mut request.arguments))?;
        let slot = slot(snapshot)?;
        let definition = entry.definition();
        let session = read_handle(&request.handle)?;
        let call = Call {
            id: CallId::from_random(random()?),
            caller: Arc::clone(&request.caller),
            session,
            tainted: false,
            assignment: Arc::default(),
            tool: definition.name.clone(),
            toolset: definition.toolset.clone(),
            needs: entry.list(),
            effect: parsed.effect,
            about: parsed.about.clone(),
            digest: String::new(),
        };
        let call = Call { digest: digest(&call, entry.schema_digest(), &parsed.arguments), ..call };
        let (open, evidence, past) = self.open(snapshot, &call, &mut request).await?;
        let assignment = open.held.as_ref().map(|held| Arc::new(held.session.assignment.clone())).unwrap_or_default();
        let call = Call { tainted: evidence.tainted, assignment, ..call };
        let decided = tracing::debug_span!("decide").in_scope(|| policy::decide(&snapshot.policy, call, &evidence));
        match decided {
            Decision::Permit(permit) => {
                let (progress, entry) = (request.progress, Arc::clone(entry));
                let (cap, secrets) = (snapshot.result_bytes, snapshot.secrets.clone());
                let job = Job { entry, parsed, permit, progress, cap, secrets, open, _slot: slot };
                self.invoke(job, request.era, request.cancel).await
            }
            Decision::Ask(_, rehearsal) => {
                // Waiting for a person holds no slot: others may call meanwhile.
                drop(slot);
                let cancel = request.cancel.clone();
                let asking = Asking { parsed, rehearsal, open, past };
                tokio::select! {
                    outcome = Box::pin(self.ask(snapshot, entry, &request, asking)) => outcome,
                    () = cancel.cancelled() => Err(Failure::new(Code::Cancelled, "the caller cancelled the wait")),
                }
            }
            Decision::Deny(reason) => {
                let refusal = Err(reason.0);
                open.close(&refusal).await;
                refusal
            }
        }
    }

    /// Opens the audit entry and gathers the evidence, in one round trip. No receipt, no action.
    pub(crate) async fn open(
        &self,
        snapshot: &Snapshot,
        call: &Call,
        request: &mut CallRequest,
    ) -> Result<(OpenCall, Evidence, Past), Failure> {
        let asks = policy::question(&snapshot.policy, call).is_some();
        let (handle, key) = (&request.handle, request.idempotency_key.as_deref());
        let gated = asks.then(|| Gated {
            digest: &call.digest,
            key,
            reviewed: is_reviewed(snapshot, call),
            most_waiting: snapshot.approvals.most_waiting,
        });
        let opening = Opening {
            call,
            kind: kind_of(&call.caller),
            args: self.keys.audit_digest(&call.caller.tenant, &call.digest),
            token: None,
            target: None,
            trace: request.trace.clone(),
            session: call.session,
            lives: self.lives,
            gated,
        };
        let shelf = self.store.of(&call.caller.tenant);
        let begun = shelf.begin(&opening).instrument(tracing::debug_span!("audit open")).await;
        let Begun { receipt, session, calls_this_minute, now, past } = begun.map_err(|error| no_store(&error))?;
        let open = OpenCall { receipt: Some(receipt), shelf, held: session, now };
        let evidence = match (&open.held, handle) {
            (Some(held), _) => Evidence {
                loaded: held.session.loaded.clone(),
                mode: held.session.mode,
                tainted: held.session.tainted,
                calls_this_minute,
                stopped: past.stopped_by.is_some(),
                approved: None,
            },
            (None, Handle::None) => Evidence {
                loaded: request.selection.take().unwrap_or_else(|| snapshot.catalog.defaults().clone()),
                mode: Mode::Write, // what an address may issue was judged when the address was read
                tainted: false,
                calls_this_minute,
                stopped: false,
                approved: None,
            },
            (None, Handle::Transport(_) | Handle::Told(_)) => {
                let failure = no_session(handle);
                open.close(&Err(failure.clone())).await;
                return Err(failure);
            }
        };
        Ok((open, evidence, past))
    }
}

/// A call whose audit entry is open. Dropped without a close (the client vanished), it closes itself as cancelled.
pub(crate) struct OpenCall {
    receipt: Option<Receipt>,
    pub(crate) shelf: Shelf,
    pub(crate) held: Option<store::Held>,
    /// The store's time when the call began.
    pub(crate) now: Moment,
}

impl OpenCall {
    /// Closes the entry; queued, since the reply need not wait for it.
    pub(crate) async fn close(mut self, outcome: &Outcome) {
        if let Some(receipt) = self.receipt.take() {
            let facts = match outcome {
                Ok(output) => {
                    CloseFacts { code: None, bytes: output.structured.as_ref().map_or(0, String::len) as u64 }
                }
                Err(failure) => CloseFacts { code: Some(failure.code), bytes: 0 },
            };
            if let Err(error) = self.shelf.audit().close(receipt, &facts).await {
                tracing::error!(error = %chain(&error), "an audit entry could not be closed");
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let Some(receipt) = self.receipt.take() else { return };
        let facts = CloseFacts { code: Some(Code::Cancelled), bytes: 0 };
        // Nobody can wait here: the entry is queued at once, or the queue is full and it stays open for the sweeper.
        if self.shelf.audit().close(receipt, &facts).now_or_never().is_none() {
            tracing::error!("the audit queue is full; the entry of a vanished call stays open");
        }
    }
}

fn is_reviewed(snapshot: &Snapshot, call: &Call) -> bool {
    match snapshot.catalog.find(call.tool.as_str()) {
        Found::Tool(entry) => entry.definition().reviewed.is_some(),
        Found::Virtual(_) | Found::Nothing => false,
    }
}

/// Agents call tools; a token that decides runs and calls nothing is a person's.
pub(crate) fn kind_of(caller: &Caller) -> ActorKind {
    use domain::Scope;
    if !caller.scopes.allow(Scope::ToolsRead) && caller.scopes.allow(Scope::RunsDecide) {
        ActorKind::Person
    } else {
        ActorKind::Agent
    }
}

/// Takes one of the tenant's slots, or says that all are taken: a queue here would only hide the trouble.
pub(crate) fn slot(snapshot: &Snapshot) -> Result<tokio::sync::OwnedSemaphorePermit, Failure> {
    Arc::clone(&snapshot.slots).try_acquire_owned().map_err(|_| {
        Failure::new(Code::RateLimited, "all of the tenant's call slots are in use")
            .next("wait for a running call to end, then call again")
            .retry_after_ms(500)
    })
}

pub(crate) fn read_handle(handle: &Handle) -> Result<Option<SessionId>, Failure> {
    match handle {
        Handle::None => Ok(None),
        // A name that cannot be one is answered like one that never was.
        Handle::Transport(text) | Handle::Told(text) => {
            SessionId::parse(text).map(Some).map_err(|_| no_session(handle))
        }
    }
}

pub(crate) fn no_session(handle: &Handle) -> Failure {
    match handle {
        Handle::Transport(_) => Failure::new(Code::SessionNotFound, "no such session").next("open a new session"),
        Handle::Told(_) | Handle::None => Failure::new(Code::SessionExpired, "no live session has this handle")
            .next("call load_toolset again without a session; it gives a new handle"),
    }
}

pub(crate) fn no_store(error: &store::StoreError) -> Failure {
    tracing::warn!(error = %chain(error), "the state store failed a call");
    Failure::new(error.code(), "the state store did not answer, so nothing was executed")
        .next("try again shortly")
        .retry_after_ms(1_000)
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        told.push_str(": ");
        told.push_str(&inner.to_string());
        cause = inner.source();
    }
    told
}

/// 128 random bits for an id.
pub(crate) fn random() -> Result<[u8; 16], Failure> {
    store::random_bits().map_err(|_| Failure::new(Code::Internal, "the system gave no randomness"))
}

fn withheld(name: &str) -> Failure {
    let message = format!("{name} is not the tool that was accepted: its server describes it differently now");
    Failure::new(Code::ToolChanged, message).next("do without it; an admin of the tenant can look at it and accept it")
}

fn unknown_tool(snapshot: &Snapshot, name: &str) -> Failure {
    let known = snapshot.catalog.entries().iter().map(|e| e.name().as_str());
    let virtuals = catalog::Virtual::ALL.iter().map(|v| v.name());
    let shown: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
    Failure::new(Code::UnknownTool, format!("Unknown tool: {shown}")).did_you_mean(near(name, known.chain(virtuals)))
}

/// What a yes is given to: tenant, principal, session, tool, schema and canonical arguments, and nothing less.
pub(crate) fn digest(call: &Call, schema: &str, arguments: &str) -> String {
    let Caller { tenant, principal, .. } = &*call.caller;
    let session = call.session.map(|id| id.to_string()).unwrap_or_default();
    // Each part is quoted, so that no two calls can read alike.
    let parts =
        [tenant.as_str(), &principal.issuer, &principal.subject, &session, call.tool.as_str(), schema, arguments];
    domain::json::sha256_hex(serde_json::Value::from(parts.to_vec()).to_string().as_bytes())
}

/// A call of a virtual tool, for the audit and the limits.
pub(crate) fn virtual_call(
    which: catalog::Virtual,
    caller: Arc<Caller>,
    session: Option<SessionId>,
    arguments: &Value,
) -> Result<Call, Failure> {
    let name = which.name();
    let broken = || Failure::new(Code::Internal, "a virtual tool has no proper name");
    Ok(Call {
        id: CallId::from_random(random()?),
        caller,
        session,
        tainted: false,
        assignment: Arc::default(),
        tool: ToolName::parse(name).map_err(|_| broken())?,
        toolset: ToolsetName::parse("virtual").map_err(|_| broken())?,
        needs: Level::Read,
        effect: domain::Effect::Read,
        about: None,
        digest: domain::json::sha256_hex(format!("{name}\n{}", domain::json::canonical(arguments)).as_bytes()),
    })
}

/// How long a virtual call may take beyond the store's own deadlines.
pub(crate) const VIRTUAL_DEADLINE: Duration = Duration::from_secs(5);
