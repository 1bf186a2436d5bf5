//! The beginning of a call: one round trip that opens its audit entry and gathers what policy wants to know.

use crate::audit::Receipt;
use crate::entry::{Actor, ActorKind, AuditEntry, Phase};
use crate::ops::Op;
use crate::sessions::{Held, SessionConfig, live};
use crate::{RecordKey, Shelf, StoreError};
use domain::{Call, Moment, SessionId};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The window in which calls are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// What is known when a call begins.
#[derive(Debug, Clone)]
pub struct Opening<'a> {
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
}

/// What a call begins with.
#[derive(Debug)]
pub struct Begun {
    /// Proof that the audit entry is open.
    pub receipt: Receipt,
    /// The session; `None` if it is absent, over, or somebody else's.
    pub session: Option<Held>,
    /// Calls of the tenant in the present minute, this one included.
    pub calls_this_minute: u64,
    /// The store's time.
    pub now: Moment,
}

impl Shelf {
    /// Opens the audit entry, reads the session and moves its expiry, and counts the call: one round trip.
    /// No receipt, no action.
    pub async fn begin(&self, opening: &Opening<'_>) -> Result<Begun, StoreError> {
        let mut ops =
            vec![self.audit().append(&entry(opening))?, Op::Count { key: self.space.calls(), window: MINUTE }, Op::Now];
        ops.extend(
            opening
                .session
                .map(|id| Op::Touch { key: self.space.record(&RecordKey::session(id)), span: opening.lives.idle }),
        );
        let mut answers = self.run(&ops).await?;
        answers.appended()?;
        // From here on the entry is open, whatever else may be wrong.
        self.store().receipts().fetch_add(1, Ordering::Relaxed);
        let call = opening.call;
        let receipt =
            Receipt { call: call.id, session: opening.session, tool: call.tool.clone(), trace: opening.trace.clone() };
        let (calls_this_minute, now) = (answers.count()?, answers.now()?);
        let session = match opening.session {
            Some(id) => live(answers.record()?, id, &call.caller.principal, opening.lives, now)?,
            None => None,
        };
        Ok(Begun { receipt, session, calls_this_minute, now })
    }
}

fn entry(opening: &Opening<'_>) -> AuditEntry {
    let call = opening.call;
    let actor = Actor {
        principal: call.caller.principal.clone(),
        kind: opening.kind,
        scopes: call.caller.scopes,
        token: opening.token.clone(),
    };
    AuditEntry {
        actor: Some(actor),
        session: opening.session,
        call: Some(call.id),
        tool: Some(call.tool.clone()),
        toolset: Some(call.toolset.clone()),
        effect: Some(call.effect),
        target: opening.target.clone(),
        args: Some(opening.args.clone()),
        trace: opening.trace.clone(),
        ..AuditEntry::new(Phase::Open)
    }
}
