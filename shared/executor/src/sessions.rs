//! Opening, reading and closing sessions, for the doors that do so outside a tool call.

use crate::executor::Executor;
use crate::failures::{no_store, random};
use crate::request::{Handle, no_session, read_handle};
use crate::snapshot::Snapshot;
use domain::{Assignment, Caller, Code, Failure, LoadedToolsets, Moment, Session, SessionId, SessionMode, TokenScope};
use store::{
    Actor, ActorKind, AuditEntry, Phase, SessionStore, SessionUpdate, StoreError, StoreQuota, VersionedSession,
};

/// How often a fold is repeated on a newer version before the caller is told to try again.
const FOLDS: usize = 8;

/// How many sessions are looked at when one finds no room.
const ENDED_AT_ONCE: usize = 1_000;

/// Why a session was not opened.
pub type SessionOpenError = Failure;

impl Executor {
    /// Opens a session for a caller. The mode is the most that was asked for, the token allows and the tenant allows.
    /// Whether the tenant knows the assignment is for whoever holds its configuration to say.
    pub async fn open_session(
        &self,
        snapshot: &Snapshot,
        caller: &Caller,
        wanted: SessionMode,
        loaded: Option<LoadedToolsets>,
        assignment: Assignment,
    ) -> Result<Session, SessionOpenError> {
        let now = self.store.now().await.map_err(|e| no_store(&e))?;
        let fresh = fresh(snapshot, caller, wanted, loaded, now)?;
        self.keep(caller, Session { assignment, ..fresh }).await
    }

    /// Writes a new session.
    pub(crate) async fn keep(&self, caller: &Caller, session: Session) -> Result<Session, Failure> {
        let (sessions, entry) =
            (self.store.of(&caller.tenant).sessions(), self.session_entry(caller, session.id, "open"));
        let mut opened = sessions.open(&session, self.lives, &entry).await;
        // Those that were left to end by themselves are counted until somebody looks.
        if let Err(StoreError::QuotaReached(quota)) = &opened
            && self.admission.looks_for_ended_sessions(caller)
        {
            let owner = match quota {
                StoreQuota::TenantSessions(_) => None,
                StoreQuota::CallerSessions(_)
                | StoreQuota::CallerRuns(_)
                | StoreQuota::TenantRuns(_)
                | StoreQuota::TenantBytes(_) => Some(&caller.principal),
            };
            if sessions.tidy(owner, self.lives, ENDED_AT_ONCE).await.map_err(|e| no_store(&e))? > 0 {
                opened = sessions.open(&session, self.lives, &entry).await;
            }
        }
        opened.map_err(|e| no_store(&e))?;
        Ok(session)
    }

    /// Reads a session of this caller and slides its expiry. Another principal's answers like one that never was.
    /// A session drawn from an older catalog is pinned to the current one, and its streams are told.
    pub async fn session(
        &self,
        snapshot: &Snapshot,
        caller: &Caller,
        handle: &Handle,
    ) -> Result<VersionedSession, Failure> {
        let Some(id) = read_handle(handle)? else { return Err(no_session(handle)) };
        let sessions = self.store.of(&caller.tenant).sessions();
        let found = sessions.find(id, &caller.principal, self.lives).await.map_err(|e| no_store(&e))?;
        let held = found.ok_or_else(|| no_session(handle))?;
        match held.session.pin(snapshot.catalog.digest()) {
            None => Ok(held),
            Some(next) => {
                let wake = Some(store::Topic::Session(id));
                let entry = self.session_entry(caller, id, "catalog");
                let folded = sessions.commit(&held, &next, self.lives, &entry, wake).await.map_err(|e| no_store(&e))?;
                match folded {
                    // Whoever was quicker may have pinned it too; either way this is the session now.
                    SessionUpdate::Done(held) | SessionUpdate::Conflict(held) => Ok(held),
                    SessionUpdate::Gone => Err(no_session(handle)),
                }
            }
        }
    }

    /// Folds a transition into a session's record, again and again on the newer version while others are quicker.
    /// Gives the session as it now is, and as it was.
    pub(crate) async fn fold_session(
        &self,
        sessions: &SessionStore,
        mut held: VersionedSession,
        caller: &Caller,
        what: &str,
        step: impl Fn(&Session) -> Option<Session>,
    ) -> Result<(Session, Session), Failure> {
        for _ in 0..FOLDS {
            let before = held.session.clone();
            let Some(next) = step(&before) else { return Ok((before.clone(), before)) };
            let entry = self.session_entry(caller, next.id, what);
            // Whoever is woken asks for the list of tools again; what does not change it wakes nobody.
            let relisted = next.loaded != before.loaded || next.grown != before.grown;
            let wake = relisted.then_some(store::Topic::Session(next.id));
            let folded = sessions.commit(&held, &next, self.lives, &entry, wake).await;
            match folded.map_err(|e| no_store(&e))? {
                SessionUpdate::Done(_) => return Ok((next, before)),
                SessionUpdate::Conflict(newer) => held = newer,
                SessionUpdate::Gone => return Err(no_session(&Handle::None)),
            }
        }
        Err(Failure::new(Code::StoreUnavailable, "the session changes faster than it can be written")
            .retry_after_ms(200))
    }

    /// Taints a session, if it is not yet: once, and in the ledger too.
    pub(crate) async fn taint(
        &self,
        sessions: &SessionStore,
        held: VersionedSession,
        caller: &Caller,
    ) -> Result<(), Failure> {
        self.fold_session(sessions, held, caller, "taint", Session::taint).await.map(drop)
    }

    /// Closes a session for every replica and forgets its documents, unless people are still reviewing something that
    /// was proposed from it: then they are left to their own end.
    pub async fn close_session(&self, caller: &Caller, handle: &Handle) -> Result<(), Failure> {
        let Some(id) = read_handle(handle)? else { return Err(no_session(handle)) };
        let shelf = self.store.of(&caller.tenant);
        let entry = self.session_entry(caller, id, "close");
        let closed = shelf.sessions().close(id, &caller.principal, &entry).await.map_err(|e| no_store(&e))?;
        if !closed {
            return Err(no_session(handle));
        }
        if shelf.runs().is_under_review(id, &caller.principal).await.map_err(|e| no_store(&e))? {
            return Ok(());
        }
        shelf.memory().remove_session(id).await.map_err(|e| no_store(&e))
    }

    /// The ledger's entry for a session that moved.
    fn session_entry(&self, caller: &Caller, session: SessionId, what: &str) -> AuditEntry {
        AuditEntry {
            actor: Some(Actor { kind: ActorKind::Agent, ..self.actor(caller) }),
            session: Some(session),
            target: Some(format!("session/{what}")),
            ..AuditEntry::new(Phase::Transition)
        }
    }
}

/// A session that is not written yet. Its mode is the most that was asked for, the token allows and the tenant allows.
pub(crate) fn fresh(
    snapshot: &Snapshot,
    caller: &Caller,
    wanted: SessionMode,
    loaded: Option<LoadedToolsets>,
    now: Moment,
) -> Result<Session, Failure> {
    let token = if caller.scopes.allow(TokenScope::ToolsWrite) { SessionMode::Write } else { SessionMode::Read };
    Ok(Session {
        id: SessionId::from_random(random()?),
        owner: caller.principal.clone(),
        mode: wanted.min(token).min(snapshot.policy.mode),
        loaded: loaded.unwrap_or_else(|| snapshot.catalog.defaults().clone()),
        grown: false,
        catalog: snapshot.catalog.digest().to_owned(),
        tainted: false,
        assignment: Assignment::default(),
        opened_at: now,
    })
}
