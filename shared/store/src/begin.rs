//! The beginning of a call: one round trip that opens its audit entry and gathers what policy wants to know.

use crate::audit::OpenAuditEntry;
use crate::carried::{self, CarriedOver};
use crate::entry::{ActorKind, EntryCaller, EntryRecord, Phase};
use crate::ops::Op;
use crate::runs::{FULL, first};
use crate::session_shape::owner_mark;
use crate::sessions::{SessionConfig, VersionedSession, authentic, live};
use crate::{IndexName, RecordKey, StoreError, StreamName, TenantStore, random_bits};
use domain::{AuditId, Call, Moment, OpenedCall, RunId, Session, SessionId};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The window in which calls are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// What is known when a call begins.
#[derive(Debug, Clone)]
pub struct CallOpening<'a> {
    /// The call.
    pub call: &'a Call,
    /// What kind of principal asks.
    pub kind: ActorKind,
    /// A keyed digest of the arguments.
    pub args: String,
    /// A keyed digest of the token.
    pub token: Option<String>,
    /// What the call is about, for the ledger.
    pub target: Option<String>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The session to read.
    pub session: Option<SessionId>,
    /// How long sessions live.
    pub lives: SessionConfig,
    /// What to look up when the call may have to wait for a person.
    pub gated: Option<ApprovalLookup<'a>>,
}

/// What identifies a call that may have been asked before.
#[derive(Debug, Clone, Copy)]
pub struct ApprovalLookup<'a> {
    /// The digest of the call.
    pub digest: &'a str,
    /// The caller's own key.
    pub key: Option<&'a str>,
    /// Whether people review it at their own pace; then it is counted among such runs only.
    pub reviewed: bool,
    /// Open runs of one principal are counted up to here.
    pub most_waiting: usize,
}

/// What is known of earlier runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriorRuns {
    /// The newest run with the same digest.
    pub same_digest: Option<RunId>,
    /// The run under the same key.
    pub same_key: Option<RunId>,
    /// How many runs of this principal wait for a person.
    pub waiting: usize,
    /// The rejected run that ended the step of the session, or of an earlier one of the same principal.
    pub stopped_by: Option<RunId>,
}

/// What a call begins with.
#[derive(Debug)]
pub struct CallStart {
    /// Proof that the audit entry is open.
    pub receipt: OpenAuditEntry,
    /// The session; `None` if it is absent, over, or somebody else's.
    pub session: Option<VersionedSession>,
    /// Calls of the tenant in the present minute, this one included.
    pub calls_this_minute: u64,
    /// The store's time.
    pub now: Moment,
    /// Earlier runs, if they were asked for.
    pub past: PriorRuns,
}

impl OpenedCall for CallStart {
    fn session(&self) -> Option<&Session> {
        self.session.as_ref().map(|held| &held.session)
    }

    fn calls_this_minute(&self) -> u64 {
        self.calls_this_minute
    }

    fn is_stopped(&self) -> bool {
        self.past.stopped_by.is_some()
    }
}

impl TenantStore {
    /// Opens the audit entry, reads the session and moves its expiry if it is the caller's, and counts the call: one round trip.
    /// No receipt, no action.
    pub async fn begin(&self, opening: &CallOpening<'_>) -> Result<CallStart, StoreError> {
        crate::failpoint::audit_open()?;
        let mut ops = Vec::with_capacity(3);
        ops.push(self.opened(opening)?);
        ops.push(Op::Count { key: self.space.calls(), window: MINUTE });
        if let Some(id) = opening.session {
            let (key, span) = (self.space.record(&RecordKey::session(id)), opening.lives.idle);
            ops.push(Op::Touch { key, span, begins: owner_mark(&opening.call.caller.principal) });
        }
        if let Some(gated) = &opening.gated {
            let owner = &opening.call.caller.principal;
            let newest = |index| Op::Range { index: self.space.index(&index), from: 0, to: FULL, limit: 1 };
            let waiting = self.space.index(&IndexName::waiting(owner, gated.reviewed));
            ops.push(newest(IndexName::same_digest(gated.digest)));
            ops.push(Op::Range { index: waiting, from: 0, to: FULL, limit: gated.most_waiting });
            ops.extend(opening.session.map(|session| newest(IndexName::stopped(session))));
            ops.push(carried::look(self, owner));
            ops.extend(gated.key.map(|key| newest(IndexName::same_key(owner, key))));
        }
        let mut answers = self.run(&ops).await?;
        // The place of an entry is the store's time, so nobody has to ask for it.
        let now = answers.appended()?.at;
        // From here on the entry is open, whatever else may be wrong.
        self.store().receipts().fetch_add(1, Ordering::Relaxed);
        let call = opening.call;
        let receipt = OpenAuditEntry {
            call: call.id,
            session: opening.session,
            tool: call.tool.clone(),
            trace: opening.trace.clone(),
        };
        let calls_this_minute = answers.count()?;
        let session = match opening.session {
            Some(id) => live(
                authentic(self.reading(&RecordKey::session(id)).open(answers.record()?))?,
                id,
                &call.caller.principal,
                opening.lives,
                now,
            )?,
            None => None,
        };
        let past = match &opening.gated {
            None => PriorRuns::default(),
            Some(gated) => {
                let same_digest = first(&answers.members()?);
                let waiting = answers.members()?.len();
                let own = if opening.session.is_some() { first(&answers.members()?) } else { None };
                let began = session.as_ref().map_or(now, |held| held.session.opened_at);
                let carried = CarriedOver::at(&answers.members()?, began, opening.lives.carry_over);
                let stopped_by = own.or(carried.stopped_by);
                let same_key = if gated.key.is_some() { first(&answers.members()?) } else { None };
                PriorRuns { same_digest, same_key, waiting, stopped_by }
            }
        };
        Ok(CallStart { receipt, session, calls_this_minute, now, past })
    }

    /// The opening entry, written straight from what is known, without a copy of any of it.
    fn opened(&self, opening: &CallOpening<'_>) -> Result<Op, StoreError> {
        let (call, stream) = (opening.call, StreamName::audit());
        let caller = &call.caller;
        let id = AuditId::from_random(random_bits()?);
        let line = EntryRecord {
            actor: Some(EntryCaller::new(&caller.principal, opening.kind, caller.scopes, opening.token.as_deref())),
            session: opening.session.map(|id| id.to_string()),
            call: Some(call.id.to_string()),
            tool: Some(call.tool.as_str()),
            toolset: Some(call.toolset.as_str()),
            effect: Some(call.effect.as_str()),
            target: opening.target.as_deref(),
            args: Some(&opening.args),
            trace: opening.trace.as_deref(),
            ..EntryRecord::new(self.tenant(), id, self.store().replica(), Phase::Open)
        };
        Ok(Op::Append { stream: self.space.stream(&stream), body: line.to_bytes(), lives: stream.lives })
    }
}
