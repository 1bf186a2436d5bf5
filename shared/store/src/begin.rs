//! The beginning of a call: one round trip that opens its audit entry and gathers what policy wants to know. Calls of a
//! tenant that begin at the same time share it.

use crate::audit::OpenAuditEntry;
use crate::audit_writer::{EnteredEntry, MINUTE};
use crate::carried::{self, CarriedOver};
use crate::contents::EntryContents;
use crate::entry::{Actor, ActorKind, AuditEntry, CallVerdict, CloseFacts, EntryCaller, EntryRecord, Phase};
use crate::keys::fingerprint;
use crate::ops::{CallAllowance, EntryStep, EntryVerdict, Op};
use crate::runs::{FULL, first};
use crate::session_shape::owner_mark;
use crate::sessions::{SessionConfig, VersionedSession, authentic, live};
use crate::{IndexName, RecordKey, StoreError, StoreQuota, SwitchesInForce, TenantStore, random_bits};
use domain::{
    AuditId, Call, Code, KnownSwitches, Moment, OpenedCall, RateExceeded, RunId, Session, SessionId, Switch, ToolName,
    ToolsetName,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

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
    /// The arguments, as far as they are kept.
    pub contents: Option<EntryContents>,
    /// The program the caller uses, as it names itself.
    pub client: Option<&'a str>,
    /// What the call is about, for the audit log.
    pub target: Option<String>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The session to read.
    pub session: Option<SessionId>,
    /// How long sessions live.
    pub lives: SessionConfig,
    /// How many calls a minute there may be.
    pub rate: CallRate,
    /// Whether the call is refused once the tenant's part of the store is used up.
    pub held_to_quota: bool,
    /// What to look up when the call may have to wait for a person.
    pub gated: Option<ApprovalLookup<'a>>,
}

/// How many calls there may be in a minute, this one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallRate {
    /// Of the whole tenant.
    pub tenant: u64,
    /// Of this caller, once another one has called in the same minute.
    pub caller: u64,
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
    /// The kill switches in force.
    pub switches: SwitchesInForce,
}

/// How the beginning of a call ended.
#[derive(Debug)]
#[must_use = "a call over the rate has no open entry"]
pub enum CallBeginning {
    /// Its audit entry is open.
    Opened(Box<CallStart>),
    /// The rate is used up for that long, and nothing was written.
    Exceeded(RateExceeded, Duration),
}

impl CallBeginning {
    /// The start of the call, if its entry is open.
    pub fn opened(self) -> Option<CallStart> {
        match self {
            CallBeginning::Opened(start) => Some(*start),
            CallBeginning::Exceeded(..) => None,
        }
    }
}

impl KnownSwitches for CallStart {
    fn switches(&self) -> &[Switch] {
        self.switches.switches()
    }
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
    /// Opens the audit entry, reads the session and moves its expiry if it is the caller's, and counts the call: one
    /// round trip. The rate is judged first: over it nothing is written. No receipt, no action.
    pub async fn begin(&self, opening: &CallOpening<'_>) -> Result<CallBeginning, StoreError> {
        crate::failpoint::audit_open()?;
        self.store().switches().ensure_read().await?;
        let mut ops = Vec::new();
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
        let step = self.opened(opening)?;
        let began = Instant::now();
        let entered = self.store().writer().enter(self.tenant(), &self.space, step, ops).await;
        // The round trip itself is that of a batch, which belongs to no call.
        self.store().tell_shared_round_trip("append", began, entered.as_ref().err());
        let entered = entered?;
        let EnteredEntry { verdict, place, left, mut answers } = entered;
        let (rate, most) = (opening.rate, self.store().limits().bytes_per_tenant);
        let calls_this_minute = match verdict {
            EntryVerdict::Written(calls) => calls,
            EntryVerdict::QuotaReached => return Err(StoreError::QuotaReached(StoreQuota::TenantBytes(most))),
            EntryVerdict::TenantExceeded => {
                return Ok(CallBeginning::Exceeded(RateExceeded::Tenant(rate.tenant), left));
            }
            EntryVerdict::CallerExceeded => {
                return Ok(CallBeginning::Exceeded(RateExceeded::Caller(rate.caller), left));
            }
        };
        // The place of an entry is the store's time, so nobody has to ask for it.
        let now = place.ok_or(StoreError::Corrupt { what: "an audit entry without a place" })?.item.at;
        // From here on the entry is open, whatever else may be wrong.
        self.store().receipts().fetch_add(1, Ordering::Relaxed);
        let call = opening.call;
        let receipt = OpenAuditEntry {
            call: call.id,
            session: opening.session,
            tool: call.tool.clone(),
            trace: opening.trace.clone(),
        };
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
        let switches = self.store().switches().in_force(self.tenant(), now);
        Ok(CallBeginning::Opened(Box::new(CallStart { receipt, session, calls_this_minute, now, past, switches })))
    }

    /// Notes that a call was refused before its entry was opened, and by what: one entry per caller and minute, whichever
    /// replica refuses.
    pub async fn note_refusal(
        &self,
        actor: Actor,
        tool: Option<(ToolName, ToolsetName)>,
        code: Code,
        basis: String,
    ) -> Result<(), StoreError> {
        let key = self.space.refused(&actor.principal);
        if self.run(&[Op::Count { key, window: MINUTE }]).await?.count()? > 1 {
            return Ok(());
        }
        let (tool, toolset) = tool.unzip();
        let entry = AuditEntry {
            actor: Some(actor),
            tool,
            toolset,
            decision: Some(CallVerdict { verdict: "deny", basis: Some(basis), rule: None, comment: None }),
            outcome: Some(CloseFacts { code: Some(code), ..CloseFacts::default() }),
            ..AuditEntry::new(Phase::Denied)
        };
        self.audit().queue(&entry).await
    }

    /// The opening entry, written straight from what is known, without a copy of any of it.
    fn opened(&self, opening: &CallOpening<'_>) -> Result<EntryStep, StoreError> {
        let (call, caller) = (opening.call, &opening.call.caller);
        let id = AuditId::from_random(random_bits()?);
        let mut line = EntryRecord {
            actor: Some(EntryCaller::new(&caller.principal, opening.kind, caller.scopes, opening.token.as_deref())),
            session: opening.session.map(|id| id.to_string()),
            call: Some(call.id.to_string()),
            tool: Some(call.tool.as_str()),
            toolset: Some(call.toolset.as_str()),
            effect: Some(call.effect.as_str()),
            target: opening.target.as_deref(),
            args: Some(&opening.args),
            trace: opening.trace.as_deref(),
            client: opening.client,
            ..EntryRecord::new(self.tenant(), id, self.store().replica(), Phase::Open)
        };
        line.contents = opening.contents.as_ref().map(|contents| self.seal_contents(&line, contents)).transpose()?;
        let judged = CallAllowance {
            caller: fingerprint(&caller.principal),
            tenant_most: opening.rate.tenant,
            caller_most: opening.rate.caller,
            quota: opening.held_to_quota.then(|| self.store().limits().bytes_per_tenant),
        };
        Ok(EntryStep { body: line.to_bytes(), judged: Some(judged) })
    }
}
