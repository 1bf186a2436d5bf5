//! A run: a call that waits for a person, and what became of it.
//!
//! The record moves only through [`Run::apply`], one [`RunEvent`] at a time; what is not an edge is refused. The same
//! events, in order, always give the same run, so a recorded log proves the state it led to.
//! Three clocks are kept apart: how long a person may take, how long a yes is good for, and how long a replica may be
//! silent while it acts. All are judged by the store's time, which the caller hands in.
//!
//! Not here: who may answer (see `policy` and the gateway), how a preview is drawn (see the tool).

use crate::text::visible;
use crate::{Assignment, Call, Code, Effect, Level, Moment, Principal, RunId, SessionId, ToolName, ToolsetName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

mod apply;
mod event;

pub use event::{Answer, NotAnEdge, RunEvent, Verdict};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Waits for a person.
    PendingApproval,
    /// A person said yes; nobody has begun.
    Approved,
    /// A person said no.
    Rejected,
    /// Nobody answered, or nobody began, in time.
    Expired,
    /// The requester took it back.
    Cancelled,
    /// A replica holds it and acts.
    Executing,
    /// Done.
    Succeeded,
    /// Not done, and known not to be.
    Failed,
    /// Something may have been sent, and nobody knows what came of it.
    OutcomeUnknown,
    /// Was unknown, and proved done.
    ReconciledSucceeded,
    /// Was unknown, and proved not done.
    ReconciledFailed,
}

impl RunState {
    /// Every state.
    pub const ALL: [RunState; 11] = [
        RunState::PendingApproval,
        RunState::Approved,
        RunState::Rejected,
        RunState::Expired,
        RunState::Cancelled,
        RunState::Executing,
        RunState::Succeeded,
        RunState::Failed,
        RunState::OutcomeUnknown,
        RunState::ReconciledSucceeded,
        RunState::ReconciledFailed,
    ];

    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            RunState::PendingApproval => "pending_approval",
            RunState::Approved => "approved",
            RunState::Rejected => "rejected",
            RunState::Expired => "expired",
            RunState::Cancelled => "cancelled",
            RunState::Executing => "executing",
            RunState::Succeeded => "succeeded",
            RunState::Failed => "failed",
            RunState::OutcomeUnknown => "outcome_unknown",
            RunState::ReconciledSucceeded => "reconciled_succeeded",
            RunState::ReconciledFailed => "reconciled_failed",
        }
    }

    /// Whether nothing can change it any more.
    pub const fn is_final(self) -> bool {
        match self {
            RunState::Rejected
            | RunState::Expired
            | RunState::Cancelled
            | RunState::Succeeded
            | RunState::Failed
            | RunState::ReconciledSucceeded
            | RunState::ReconciledFailed => true,
            RunState::PendingApproval | RunState::Approved | RunState::Executing | RunState::OutcomeUnknown => false,
        }
    }

    /// Whether an agent may stop waiting: final, or only a person or a probe can go on.
    pub const fn is_settled(self) -> bool {
        self.is_final() || matches!(self, RunState::OutcomeUnknown)
    }
}

/// What a rejection means for the session that asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReject {
    /// The step is over: further writes of the session are refused until a person clears it.
    Fail,
    /// The agent may go on and choose something else.
    Continue,
}

/// What a run would do, drawn by the service from the real arguments and the target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// One line, for lists.
    pub summary: String,
    /// What changes, as text a person reads.
    pub text: String,
    /// Warnings that go with it.
    pub warnings: Vec<String>,
    /// What must still be so at execution; compared, not shown.
    pub fingerprint: String,
    /// The arguments as people are shown them, where some of them may not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What is hidden from whoever decides: how much of what, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
}

impl Preview {
    /// What stands in the text before the arguments, which come last.
    pub const ARGUMENTS: &str = "\n\narguments: ";
}

/// What was asked for; never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Who asked.
    pub requester: Principal,
    /// The scopes of the token it was asked with.
    pub scopes: String,
    /// In which session.
    pub session: Option<SessionId>,
    /// The tool.
    pub tool: ToolName,
    /// Its toolset.
    pub toolset: ToolsetName,
    /// The list the tool is in.
    pub needs: Level,
    /// SHA-256 of the schema the arguments were checked against.
    pub schema: String,
    /// The canonical arguments, as JSON text.
    pub arguments: String,
    /// What these arguments do.
    pub effect: Effect,
    /// What they are about, for rules.
    pub about: Option<String>,
    /// SHA-256 over tenant, principal, session, tool, schema and arguments.
    pub digest: String,
    /// Whether the tool may be sent again after a crash.
    pub idempotent: bool,
    /// What would happen.
    pub preview: Preview,
    /// Whether people review it at their own pace: then it waits longer, is counted apart from what is urgent, and a no
    /// must say why.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reviewed: bool,
    /// What a no means.
    pub on_reject: OnReject,
    /// How many people must say yes.
    pub deciders: u32,
    /// Whether the session had read text from outside.
    pub tainted: bool,
    /// What the session was opened for.
    #[serde(default, skip_serializing_if = "Assignment::is_empty")]
    pub assignment: Assignment,
    /// When it was asked, by the store's clock.
    pub asked_at: Moment,
    /// Until when a person may answer.
    pub expires_at: Moment,
    /// How long a yes is good for, in milliseconds.
    pub execute_within_ms: u64,
    /// The trace of the request.
    pub trace: Option<String>,
    /// The span of the request, as a `traceparent`, for links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// What it was done to, kept when the arguments that say so are dropped; see [`RunRequest::object`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_object: Option<String>,
}

impl RunRequest {
    /// What was asked for, in one line, from the call alone: the tool and its arguments, the longer ones by their size.
    pub fn requested(&self) -> String {
        const LONGEST_VALUE: usize = 80;
        const LONGEST_LINE: usize = 400;
        let shown = |(key, value): (&String, &Value)| match value {
            Value::String(text) if text.contains('\n') || text.chars().count() > LONGEST_VALUE => {
                format!("{key} ({} characters)", text.chars().count())
            }
            Value::String(text) => format!("{key}={text}"),
            Value::Array(items) => format!("{key} ({} items)", items.len()),
            Value::Object(fields) => format!("{key} ({} fields)", fields.len()),
            Value::Null | Value::Bool(_) | Value::Number(_) => format!("{key}={value}"),
        };
        let tool = self.tool.as_str();
        let arguments: Value = serde_json::from_str(&self.arguments).unwrap_or_default();
        let words: Vec<String> = arguments.as_object().into_iter().flatten().map(shown).collect();
        let line = if words.is_empty() { tool.to_owned() } else { format!("{tool}: {}", words.join(", ")) };
        let line = visible(&line);
        match line.char_indices().nth(LONGEST_LINE) {
            Some((at, _)) => format!("{}…", &line[..at]),
            None => line,
        }
    }

    /// What it is done to, by the arguments that name things: cluster, namespace, kind, name and their like, with slashes
    /// between them. `None` if no argument names more than a place.
    pub fn object(&self) -> Option<String> {
        if self.kept_object.is_some() {
            return self.kept_object.clone();
        }
        const PLACES: [&str; 4] = ["cluster", "server", "namespace", "kind"];
        const THINGS: [&str; 7] = ["name", "release", "rollout", "job", "path", "node", "runbook"];
        const LONGEST: usize = 200;
        let arguments: Value = serde_json::from_str(&self.arguments).unwrap_or_default();
        let named = |key: &&str| arguments.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let things: Vec<&str> = THINGS.iter().filter_map(named).collect();
        let words: Vec<&str> = PLACES.iter().filter_map(named).chain(things.iter().copied()).collect();
        let object = visible(&words.join("/"));
        (!things.is_empty() && object.len() <= LONGEST).then_some(object)
    }

    /// What a call asks for at this moment, under the plainest terms: one person decides at once, and a rejection ends
    /// nothing. Whoever records a run sets the terms that are its own.
    pub fn new(call: &Call, asked_at: Moment) -> RunRequest {
        RunRequest {
            requester: call.caller.principal.clone(),
            scopes: call.caller.scopes.to_claim(),
            session: call.session,
            tool: call.tool.clone(),
            toolset: call.toolset.clone(),
            needs: call.needs,
            schema: String::new(),
            arguments: "{}".to_owned(),
            effect: call.effect,
            about: call.about.clone(),
            digest: call.digest().to_owned(),
            idempotent: false,
            preview: Preview::default(),
            reviewed: false,
            on_reject: OnReject::Continue,
            deciders: 1,
            tainted: call.tainted,
            assignment: (*call.assignment).clone(),
            asked_at,
            expires_at: asked_at,
            execute_within_ms: 0,
            trace: None,
            span: None,
            kept_object: None,
        }
    }
}

/// Who carries a run out. The epoch fences whoever held it before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The replica.
    pub owner: String,
    /// How often it was claimed.
    pub epoch: u64,
    /// Until when the owner may be silent.
    pub lease_until: Moment,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// Why it failed; `None` if it did not.
    pub code: Option<String>,
    /// What happened, in words.
    pub message: String,
    /// Whether anything was sent to the target.
    pub attempted: bool,
    /// The structured result, as JSON text.
    pub result: Option<String>,
    /// What the knowledge rests on: the tool's answer, a probe, a report, a person.
    pub basis: String,
    /// Whether the result holds text from outside, so that whoever is handed it is tainted by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tainting: bool,
}

impl Ending {
    /// It was done.
    pub fn done(result: Option<String>) -> Ending {
        let (message, basis) = ("done".into(), "the tool's answer".into());
        Ending { code: None, message, attempted: true, result, basis, tainting: false }
    }

    /// It was not done, and nothing was sent.
    pub fn not_attempted(code: Code, message: impl Into<String>) -> Ending {
        Ending { attempted: false, basis: "checked before sending".into(), ..Ending::failed(code, message) }
    }

    /// It was tried and the target, or the tool, said no.
    pub fn failed(code: Code, message: impl Into<String>) -> Ending {
        let (code, message) = (Some(code.as_str().to_owned()), message.into());
        let basis = "the tool's answer".into();
        Ending { code, message, attempted: true, result: None, basis, tainting: false }
    }
}

/// A call that waits for a person, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its name.
    pub id: RunId,
    /// What was asked for.
    pub asked: RunRequest,
    /// Where it stands.
    pub state: RunState,
    /// What people said, in order.
    pub answers: Vec<Answer>,
    /// Until when execution must have begun, once approved.
    pub execute_by: Option<Moment>,
    /// Who carries it out.
    pub claim: Option<Claim>,
    /// How it ended, or why that is not known.
    pub ending: Option<Ending>,
    /// Whether the requester has been handed the ending.
    pub delivered: bool,
    /// When it last changed.
    pub changed_at: Moment,
    /// The span of its execution, as a `traceparent`, for links.
    pub executed_in: Option<String>,
}

impl Run {
    /// A new run, waiting for a person.
    pub fn new(id: RunId, asked: RunRequest) -> Run {
        let changed_at = asked.asked_at;
        Run {
            id,
            asked,
            state: RunState::PendingApproval,
            answers: Vec::new(),
            execute_by: None,
            claim: None,
            ending: None,
            delivered: false,
            changed_at,
            executed_in: None,
        }
    }

    /// When somebody has to look at it next, whatever else happens; `None` once nobody need.
    pub fn due(&self) -> Option<Moment> {
        match self.state {
            RunState::PendingApproval => Some(self.asked.expires_at),
            // At once: whoever approved usually claims, and if it died another replica does.
            RunState::Approved => Some(self.changed_at),
            RunState::Executing => self.claim.as_ref().map(|claim| claim.lease_until),
            RunState::OutcomeUnknown => Some(self.changed_at),
            RunState::Rejected
            | RunState::Expired
            | RunState::Cancelled
            | RunState::Succeeded
            | RunState::Failed
            | RunState::ReconciledSucceeded
            | RunState::ReconciledFailed => None,
        }
    }

    /// The decision that counted last, if there was one.
    pub fn decision(&self) -> Option<&Answer> {
        self.answers.last()
    }

    /// How many different people have said yes.
    pub fn yeses(&self) -> usize {
        self.answers.iter().filter(|answer| answer.verdict == Verdict::Approve).count()
    }

    /// How long a yes is good for.
    pub fn execute_within(&self) -> Duration {
        Duration::from_millis(self.asked.execute_within_ms)
    }
}

#[cfg(test)]
mod tests;
