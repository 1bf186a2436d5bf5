//! A call whose audit entry is open: opened by the store together with everything policy wants to know, and closed
//! once, whatever becomes of the call.

use crate::clean::audited;
use crate::executor::{Executor, kind_of};
use crate::failures::no_store;
use crate::request::{CallRequest, Handle, no_session};
use crate::snapshot::{SecretsNow, Snapshot};
use catalog::{ControlTool, NameMatch, ToolSource};
use domain::text::error_chain;
use domain::{Call, CallId, Code, Content, Effect, Failure, Level, Moment, Outcome, RateExceeded, tokens};
use futures_util::FutureExt;
use policy::{CallEvidence, Decision, Permit, Question};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use store::{
    ApprovalLookup, CallBeginning, CallOpening, CallStart, CallVerdict, CloseFacts, EntryContents, OpenAuditEntry,
    PriorRuns, StoreError, TenantStore, UnrecordedStart,
};
use telemetry::{Step, metrics, names};

/// A call whose audit entry is open. Dropped without a close (the client vanished), it closes itself as cancelled.
/// Only [`Executor::open`] makes one, from the store's receipt; a read may go on without, where its tenant allows that.
pub(crate) struct OpenCall {
    receipt: Option<OpenAuditEntry>,
    call: CallId,
    pub(crate) shelf: TenantStore,
    pub(crate) held: Option<store::VersionedSession>,
    /// The store's time when the call began.
    pub(crate) now: Moment,
    /// Whether the session is known to be tainted by now.
    pub(crate) tainted: AtomicBool,
    /// What the audit log keeps of how it ends.
    keeping: KeptContents,
    began: Instant,
    decision: Option<CallVerdict>,
    /// What reading the result costs a model, about.
    pub(crate) tokens: OnceLock<u64>,
    /// The program that opened the session, where the call names another one or none.
    client: Option<Arc<str>>,
}

/// How arguments and results become what the audit log keeps.
struct KeptContents {
    secrets: SecretsNow,
    most: usize,
}

impl KeptContents {
    fn of(&self, text: &str) -> EntryContents {
        EntryContents { text: audited(text, &self.secrets.now()), most: self.most }
    }
}

impl Executor {
    /// Opens the audit entry and gathers the evidence, in one round trip. No receipt, no action. The store counts the calls
    /// of all replicas, and opens nothing for one that is over the rate.
    pub(crate) async fn open(
        &self,
        snapshot: &Snapshot,
        call: &Call,
        (target, arguments): (Option<String>, &str),
        request: &CallRequest,
    ) -> Result<(OpenCall, CallEvidence, PriorRuns), Failure> {
        let asks = policy::question(&snapshot.policy, call).is_some();
        let gated = asks.then(|| ApprovalLookup {
            digest: call.digest(),
            key: request.idempotency_key.as_deref(),
            reviewed: is_reviewed(snapshot, call),
            most_waiting: snapshot.approvals.most_waiting,
        });
        let most = if snapshot.audit.contents { self.audited_bytes } else { 0 };
        let keeping = KeptContents { secrets: snapshot.secrets.clone(), most };
        let opening = CallOpening {
            call,
            kind: kind_of(&call.caller),
            args: self.keys.audit_digest(&call.caller.tenant, call.digest()),
            token: self.token_mark(&call.caller),
            contents: Some(keeping.of(arguments)),
            client: request.client.as_deref(),
            target,
            trace: request.trace.clone(),
            session: call.session,
            lives: self.lives,
            rate: self.admission.rate(snapshot.policy.calls_per_minute),
            // Whoever waits for what was asked for before adds next to nothing, and is owed the answer.
            held_to_quota: call.tool.as_str() != ControlTool::AwaitRun.name(),
            gated,
        };
        let shelf = self.store.of(&call.caller.tenant);
        let step = Step::begin(names::SPAN_AUDIT_OPEN);
        let begun = shelf.begin(&opening).await;
        step.end_with(&begun, |error| error.code().as_str());
        let begun = match begun {
            Ok(CallBeginning::Opened(begun)) => *begun,
            Ok(CallBeginning::Exceeded(exceeded, left)) => {
                self.admission.calls_exceeded(&call.caller, exceeded, left);
                return Err(Box::pin(self.refuse(snapshot, request, exceeded)).await);
            }
            Err(error) => {
                if let StoreError::QuotaReached(quota) = &error {
                    Box::pin(self.note_refusal(snapshot, request, error.code(), quota.to_string())).await;
                }
                if error.refuses_writes() && is_plain_read(snapshot, call, asks) {
                    return Box::pin(self.open_unrecorded((shelf, keeping), snapshot, call, request)).await;
                }
                return Err(no_store(&error));
            }
        };
        let evidence = match (CallEvidence::of_session(&begun), &request.handle) {
            (Some(evidence), _) => Ok(evidence),
            (None, Handle::None) => {
                let loaded = request.selection.as_ref().unwrap_or_else(|| snapshot.catalog.defaults());
                Ok(CallEvidence::of_address(&begun, loaded.clone()))
            }
            (None, Handle::Transport(_) | Handle::Told(_)) => Err(no_session(&request.handle)),
        };
        let CallStart { receipt, session: held, now, past, .. } = begun;
        if let Some(held) = &held {
            self.sessions_seen.note(held.session.id, std::time::Instant::now());
        }
        let tainted = AtomicBool::new(held.as_ref().is_some_and(|held| held.session.tainted));
        let (call, receipt) = (receipt.call(), Some(receipt));
        let (began, decision, tokens) = (Instant::now(), None, OnceLock::new());
        // The opening was written before the session was known, so the closing names its program.
        let client = held.as_ref().and_then(|held| held.session.client.clone());
        let client = client.filter(|client| request.client.as_deref() != Some(&**client));
        let open = OpenCall { call, receipt, shelf, held, now, tainted, keeping, began, decision, tokens, client };
        match evidence {
            Ok(evidence) => Ok((open, evidence, past)),
            Err(failure) => {
                Box::pin(open.close(&Outcome::Failed(failure.clone()))).await;
                Err(failure)
            }
        }
    }

    /// Goes on without an entry, with what the store still answers. No answer, no action.
    async fn open_unrecorded(
        &self,
        (shelf, keeping): (TenantStore, KeptContents),
        snapshot: &Snapshot,
        call: &Call,
        request: &CallRequest,
    ) -> Result<(OpenCall, CallEvidence, PriorRuns), Failure> {
        let begun = shelf.begin_unrecorded(call.session, &call.caller.principal, self.lives).await;
        let UnrecordedStart { session: held, now, switches } = begun.map_err(|error| no_store(&error))?;
        let loaded = match (&held, &request.handle) {
            (Some(held), _) => &held.session.loaded,
            (None, Handle::None) => request.selection.as_ref().unwrap_or_else(|| snapshot.catalog.defaults()),
            (None, Handle::Transport(_) | Handle::Told(_)) => return Err(no_session(&request.handle)),
        };
        let evidence = CallEvidence::of_unrecorded_read(&switches, loaded.clone());
        let tainted = AtomicBool::new(held.as_ref().is_some_and(|held| held.session.tainted));
        let (call, receipt, began, decision) = (call.id, None, Instant::now(), None);
        let (tokens, client) = (OnceLock::new(), None);
        let open = OpenCall { call, receipt, shelf, held, now, tainted, keeping, began, decision, tokens, client };
        Ok((open, evidence, PriorRuns::default()))
    }

    /// Notes that a call was refused before its entry was opened. The refusals of a caller are one entry a minute.
    async fn note_refusal(&self, snapshot: &Snapshot, request: &CallRequest, code: Code, basis: String) {
        if !self.admission.notes_refusal(&request.caller) {
            return;
        }
        let tenant = &request.caller.tenant;
        tracing::info!(quartermaster.tenant = %tenant, code = code.as_str(), basis, "calls are refused");
        let (store, actor) = (self.store.of(tenant), self.actor(&request.caller));
        let tool = match snapshot.catalog.find(&request.tool) {
            NameMatch::Tool(entry) => Some((entry.name().clone(), entry.definition().toolset.clone())),
            // What somebody calls a tool that does not exist is no part of an audit log.
            NameMatch::Virtual(_) | NameMatch::Nothing => None,
        };
        if let Err(error) = store.note_refusal(actor, tool, code, basis).await {
            // Nothing was done, so nothing has to be proven.
            tracing::debug!(error = %error_chain(&error), "the refusal of calls was not noted");
        }
    }

    /// Refuses a call over the rate.
    pub(crate) async fn refuse(&self, snapshot: &Snapshot, request: &CallRequest, exceeded: RateExceeded) -> Failure {
        let (scope, basis) = match exceeded {
            RateExceeded::Tenant(limit) => ("tenant", format!("rate of the tenant: {limit} a minute")),
            RateExceeded::Caller(limit) => ("caller", format!("rate of the caller: {limit} a minute")),
        };
        let tenant = metrics::tenant_label(request.caller.tenant.as_str());
        metrics::RATE_LIMITED.add([scope, tenant], 1);
        self.note_refusal(snapshot, request, Code::RateLimited, basis).await;
        policy::over_rate(exceeded).0
    }
}

impl OpenCall {
    /// The call whose entry is open.
    pub(crate) fn call(&self) -> CallId {
        self.call
    }

    /// Whether it has an entry. A call without one may only read.
    pub(crate) fn is_recorded(&self) -> bool {
        self.receipt.is_some()
    }

    /// Takes note of what was decided, for the closing entry.
    pub(crate) fn decided(&mut self, decision: &Decision, snapshot: &Snapshot) {
        let asks = |permit: &Permit| policy::asking_rule(&snapshot.policy, permit.call());
        let (verdict, basis, rule) = match decision {
            Decision::Permit(permit) => ("permit", permit.run().map(|run| run.to_string()), None),
            Decision::Ask(Question::Effect(effect), permit) => {
                ("ask", Some(format!("effect {}", effect.as_str())), asks(permit).map(|rule| (true, rule)))
            }
            Decision::Ask(Question::Rule, permit) => {
                ("ask", Some("rule of the tenant".to_owned()), asks(permit).map(|rule| (true, rule)))
            }
            Decision::Deny(reason) => {
                ("deny", Some(reason.0.code.as_str().to_owned()), reason.1.as_ref().map(|rule| (false, rule)))
            }
        };
        let rule = rule.and_then(|(asks, rule)| snapshot.place_of(asks, rule));
        self.decision = Some(CallVerdict { verdict, basis, rule, comment: None });
    }

    /// What the decision rests on: the run that allowed it, or why a person is asked or the call denied.
    pub(crate) fn basis(&self) -> Option<&str> {
        self.decision.as_ref()?.basis.as_deref()
    }

    /// Closes the entry; queued, since the reply need not wait for it.
    pub(crate) async fn close(mut self, outcome: &Outcome) {
        if let Some(receipt) = self.receipt.take() {
            let (code, bytes) = match outcome {
                Outcome::Failed(failure) => (Some(failure.code), 0),
                Outcome::Done(_) | Outcome::Waiting(_) => (None, outcome.structured().map_or(0, str::len) as u64),
            };
            let millis = Some(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX));
            let (decision, contents) = (self.decision.take(), Some(self.keeping.of(&told(outcome))));
            // What a run gave was counted when it ended.
            let tokens = self.tokens.get().copied().or_else(|| outcome.structured().map(tokens::estimate));
            let facts = CloseFacts { code, bytes, tokens, millis, decision, contents, client: self.client.take() };
            let step = Step::begin(names::SPAN_AUDIT_CLOSE);
            let closed = self.shelf.audit().close(receipt, &facts).await;
            step.end_with(&closed, |error| error.code().as_str());
            if let Err(error) = closed {
                tracing::error!(error = %error_chain(&error), "an audit entry could not be closed");
            }
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let Some(receipt) = self.receipt.take() else { return };
        let facts = CloseFacts { code: Some(Code::Cancelled), decision: self.decision.take(), ..CloseFacts::default() };
        // Nobody can wait here: the entry is queued at once, or the queue is full and it stays open for the sweeper.
        if self.shelf.audit().close(receipt, &facts).now_or_never().is_none() {
            tracing::error!("the audit queue is full; the entry of a vanished call stays open");
        }
    }
}

/// What an outcome gives its caller, as a text.
fn told(outcome: &Outcome) -> Cow<'_, str> {
    let text = match outcome {
        Outcome::Done(output) => match &output.structured {
            Some(structured) => return structured.into(),
            None => {
                let block = |content: &Content| match content {
                    Content::Text(text) => Value::from(text.as_str()),
                    Content::Block(block) => block.clone(),
                };
                output.content.iter().map(block).collect::<Value>().to_string()
            }
        },
        Outcome::Waiting(run) => return run.json.as_str().into(),
        Outcome::Failed(failure) => json!({
            "code": failure.code.as_str(), "message": failure.message, "next": failure.next, "details": failure.details,
        })
        .to_string(),
    };
    text.into()
}

/// Whether a call is a read by one of our own tools that nobody has to approve, and its tenant lets such run unrecorded.
/// What a tool of an external server does, nobody here knows for sure.
fn is_plain_read(snapshot: &Snapshot, call: &Call, asks: bool) -> bool {
    let ours = match snapshot.catalog.find(call.tool.as_str()) {
        NameMatch::Tool(entry) => entry.definition().source == ToolSource::BuiltIn,
        NameMatch::Virtual(_) | NameMatch::Nothing => false,
    };
    // A tool of the write list may call it a read when it writes to the caller's own session.
    let reads = call.effect == Effect::Read && call.needs == Level::Read;
    snapshot.audit.unrecorded_reads && ours && !asks && reads
}

fn is_reviewed(snapshot: &Snapshot, call: &Call) -> bool {
    match snapshot.catalog.find(call.tool.as_str()) {
        NameMatch::Tool(entry) => entry.definition().reviewed.is_some(),
        NameMatch::Virtual(_) | NameMatch::Nothing => false,
    }
}
