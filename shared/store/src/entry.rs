//! One entry of a tenant's audit log: its parts. The shape in which it is written is in `line`.
//!
//! Values do not stand here in clear: digests of them, made by whoever holds the key, and sealed contents (see
//! [`contents`](crate::contents)).
//! The store's time of an entry is its place in the stream; the body holds the host's.

use crate::contents::EntryContents;
use domain::{
    AuditId, CallId, Code, Effect, Moment, Principal, RunId, Scopes, SessionId, Tenant, ToolName, ToolsetName,
};
use serde::Serialize;
use std::sync::Arc;

mod line;

pub(crate) use line::{EntryCaller, EntryEnd, EntryRecord};

/// What an entry records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A call is about to be judged and perhaps carried out.
    Open,
    /// A call has ended.
    Close,
    /// A record moved to another state.
    Transition,
    /// A replica found that a run it had claimed is no longer its own; the epoch is that of its claim.
    Fenced,
    /// Somebody changed how the tenant is set up.
    Admin,
    /// A call was refused.
    Denied,
    /// Somebody was given something that is shown to nobody else, such as the exact arguments of a run.
    Disclosed,
    /// Reads ran while nothing could be written.
    Unrecorded,
    /// Somebody signed in with a browser, or out, or was refused.
    SignIn,
}

impl Phase {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Open => "open",
            Phase::Close => "close",
            Phase::Transition => "transition",
            Phase::Fenced => "fenced",
            Phase::Admin => "admin",
            Phase::Denied => "denied",
            Phase::Disclosed => "disclosed",
            Phase::Unrecorded => "unrecorded",
            Phase::SignIn => "sign_in",
        }
    }
}

/// What kind of principal acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorKind {
    /// A program that speaks for a model.
    Agent,
    /// A person.
    Person,
    /// This service itself.
    Service,
    /// A program that executes jobs on a host of the tenant.
    Runner,
}

impl ActorKind {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            ActorKind::Agent => "agent",
            ActorKind::Person => "person",
            ActorKind::Service => "service",
            ActorKind::Runner => "runner",
        }
    }
}

/// Who acted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// Who it is.
    pub principal: Principal,
    /// Of what kind.
    pub kind: ActorKind,
    /// What the token allowed.
    pub scopes: Scopes,
    /// A keyed digest of the token.
    pub token: Option<String>,
}

impl Actor {
    fn who(&self) -> EntryCaller<'_> {
        EntryCaller::new(&self.principal, self.kind, self.scopes, self.token.as_deref())
    }
}

/// What was decided about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallVerdict {
    /// `permit`, `ask` or `deny`.
    pub verdict: &'static str,
    /// The rule or the run it rests on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<String>,
    /// The rule of the tenant's configuration that decided, and where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RulePlace>,
    /// What a person added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// A rule of a tenant's configuration and where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RulePlace {
    /// The key under which it stands, such as `policy.deny`.
    pub key: &'static str,
    /// As it is written.
    pub text: String,
    /// The text in which it stands: `file`, or `http/` and the version of the text.
    pub source: String,
    /// The line, counted from 1.
    pub line: u32,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CloseFacts {
    /// Why it failed; `None` if it did not.
    pub code: Option<Code>,
    /// How many bytes it gave.
    pub bytes: u64,
    /// What reading that costs a model, about.
    pub tokens: Option<u64>,
    /// How many milliseconds it took, from its opening on.
    pub millis: Option<u64>,
    /// What was decided about it.
    pub decision: Option<CallVerdict>,
    /// What it gave, or the failure.
    pub contents: Option<EntryContents>,
    /// The program the caller uses, where only its session told.
    pub client: Option<Arc<str>>,
}

/// One entry, before it has a place. Everything but the phase may be unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// What it records.
    pub phase: Phase,
    /// Who acted.
    pub actor: Option<Actor>,
    /// In which session.
    pub session: Option<SessionId>,
    /// In which call.
    pub call: Option<CallId>,
    /// With which tool.
    pub tool: Option<ToolName>,
    /// Of which toolset.
    pub toolset: Option<ToolsetName>,
    /// To what effect.
    pub effect: Option<Effect>,
    /// On what.
    pub target: Option<String>,
    /// A keyed digest of the arguments.
    pub args: Option<String>,
    /// What was decided.
    pub decision: Option<CallVerdict>,
    /// How it ended.
    pub outcome: Option<CloseFacts>,
    /// The run that moved.
    pub run: Option<RunMove>,
    /// What ran without an entry.
    pub unrecorded: Option<UnrecordedReads>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The program the caller uses, as it names itself.
    pub client: Option<Arc<str>>,
    /// What is kept of what was given or came back.
    pub contents: Option<EntryContents>,
}

/// Reads of one tenant that one replica ran while it could record nothing, by the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UnrecordedReads {
    /// How many.
    pub reads: u64,
    /// When the first of them began.
    #[serde(serialize_with = "in_words")]
    pub from: Moment,
    /// When the last of them began.
    #[serde(serialize_with = "in_words")]
    pub to: Moment,
}

fn in_words<S: serde::Serializer>(moment: &Moment, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(moment)
}

/// How a run moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunMove {
    /// Which run.
    pub id: RunId,
    /// Where it was; `None` when it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// Where it is.
    pub to: &'static str,
    /// The epoch of its claim.
    pub epoch: u64,
    /// The digest of the call.
    pub digest: String,
    /// Who has approved it so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<RunApproval>,
}

/// A person's approval of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunApproval {
    /// Who names them.
    pub iss: String,
    /// Who it was.
    pub sub: String,
    /// When.
    #[serde(serialize_with = "in_words")]
    pub at: Moment,
}

impl AuditEntry {
    /// An entry of which only the phase is known.
    pub fn new(phase: Phase) -> AuditEntry {
        AuditEntry {
            phase,
            actor: None,
            session: None,
            call: None,
            tool: None,
            toolset: None,
            effect: None,
            target: None,
            args: None,
            decision: None,
            outcome: None,
            run: None,
            unrecorded: None,
            trace: None,
            client: None,
            contents: None,
        }
    }

    /// The entry as it is written.
    pub(crate) fn line<'a>(&'a self, tenant: &'a Tenant, id: AuditId, replica: &'a str) -> EntryRecord<'a> {
        EntryRecord {
            actor: self.actor.as_ref().map(Actor::who),
            session: self.session.map(|id| id.to_string()),
            call: self.call.map(|id| id.to_string()),
            tool: self.tool.as_ref().map(ToolName::as_str),
            toolset: self.toolset.as_ref().map(ToolsetName::as_str),
            effect: self.effect.map(Effect::as_str),
            target: self.target.as_deref(),
            args: self.args.as_deref(),
            decision: self.decision.as_ref(),
            outcome: self.outcome.as_ref().map(EntryEnd::of),
            run: self.run.as_ref(),
            unrecorded: self.unrecorded.as_ref(),
            trace: self.trace.as_deref(),
            client: self.client.as_deref(),
            ..EntryRecord::new(tenant, id, replica, self.phase)
        }
    }
}
