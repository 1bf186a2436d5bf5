//! A call whose audit entry is open: opened by the store together with everything policy wants to know, and closed
//! once, whatever becomes of the call.

use crate::clean::audited;
use crate::executor::Executor;
use crate::failures::no_store;
use crate::request::{CallRequest, Handle, no_session};
use crate::snapshot::{SecretsNow, Snapshot};
use catalog::{ControlTool, NameMatch};
use domain::text::error_chain;
use domain::{Call, CallId, Code, Content, Failure, Moment, Outcome, RateExceeded};
use futures_util::FutureExt;
use policy::{CallEvidence, Decision, Question};
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use store::{
    ApprovalLookup, CallBeginning, CallOpening, CallStart, CallVerdict, CloseFacts, EntryContents, OpenAuditEntry,
    PriorRuns, StoreError, TenantStore,
};
use telemetry::{Step, metrics, names};

/// A call whose audit entry is open. Dropped without a close (the client vanished), it closes itself as cancelled.
/// Only [`Executor::open`] makes one, from the store's receipt.
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
        let actor = self.actor(&call.caller);
        let most = if snapshot.audit.contents { self.audited_bytes } else { 0 };
        let keeping = KeptContents { secrets: snapshot.secrets.clone(), most };
        let opening = CallOpening {
            call,
            kind: actor.kind,
            args: self.keys.audit_digest(&call.caller.tenant, call.digest()),
            token: actor.token,
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
                return Err(self.refuse(snapshot, request, exceeded).await);
            }
            Err(error) => {
                if let StoreError::QuotaReached(quota) = &error {
                    self.note_refusal(snapshot, request, error.code(), quota.to_string()).await;
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
        let (began, decision) = (Instant::now(), None);
        let open = OpenCall { call, receipt, shelf, held, now, tainted, keeping, began, decision };
        match evidence {
            Ok(evidence) => Ok((open, evidence, past)),
            Err(failure) => {
                open.close(&Outcome::Failed(failure.clone())).await;
                Err(failure)
            }
        }
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

    /// Takes note of what was decided, for the closing entry.
    pub(crate) fn decided(&mut self, decision: &Decision) {
        let (verdict, basis) = match decision {
            Decision::Permit(permit) => ("permit", permit.run().map(|run| run.to_string())),
            Decision::Ask(Question::Effect(effect), _) => ("ask", Some(format!("effect {}", effect.as_str()))),
            Decision::Ask(Question::Rule, _) => ("ask", Some("rule of the tenant".to_owned())),
            Decision::Deny(reason) => ("deny", Some(reason.0.code.as_str().to_owned())),
        };
        self.decision = Some(CallVerdict { verdict, basis, comment: None });
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
            let facts = CloseFacts { code, bytes, millis, decision, contents };
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
fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(output) => match &output.structured {
            Some(structured) => structured.clone(),
            None => {
                let block = |content: &Content| match content {
                    Content::Text(text) => Value::from(text.as_str()),
                    Content::Block(block) => block.clone(),
                };
                output.content.iter().map(block).collect::<Value>().to_string()
            }
        },
        Outcome::Waiting(run) => run.json.clone(),
        Outcome::Failed(failure) => json!({
            "code": failure.code.as_str(), "message": failure.message, "next": failure.next, "details": failure.details,
        })
        .to_string(),
    }
}

fn is_reviewed(snapshot: &Snapshot, call: &Call) -> bool {
    match snapshot.catalog.find(call.tool.as_str()) {
        NameMatch::Tool(entry) => entry.definition().reviewed.is_some(),
        NameMatch::Virtual(_) | NameMatch::Nothing => false,
    }
}
