//! Opening, reading and closing sessions, for the doors that do so outside a tool call.

use crate::executor::Executor;
use crate::failures::{no_store, random};
use crate::request::{Handle, no_session, read_handle};
use crate::snapshot::Snapshot;
use domain::{
    Assignment, Caller, Code, Failure, LoadedToolsets, Moment, Principal, RunId, Session, SessionDoor, SessionId,
    SessionMode, TokenScope,
};
use std::sync::Arc;
use std::time::Instant;
use store::{
    Actor, ActorKind, AuditEntry, CarriedOver, Phase, SessionStore, SessionUpdate, StoreError, StoreQuota, TenantStore,
    VersionedSession,
};

/// How often a fold is repeated on a newer version before the caller is told to try again.
const FOLDS: usize = 8;

/// How many sessions are looked at when one finds no room.
const ENDED_AT_ONCE: usize = 1_000;

/// Why a session was not opened.
pub type SessionOpenError = Failure;

/// A session that was just opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    /// The session; it may begin tainted.
    pub session: Session,
    /// The rejected run of an earlier session of the same principal that keeps this one from changing anything.
    pub stopped_by: Option<RunId>,
}

/// What a session is opened for, and by which program.
#[derive(Debug, Clone, Default)]
pub struct SessionOrigin {
    /// What it is opened for.
    pub assignment: Assignment,
    /// The program, as it names itself.
    pub client: Option<Arc<str>>,
    /// How it is opened.
    pub door: Option<SessionDoor>,
}

impl From<Assignment> for SessionOrigin {
    fn from(assignment: Assignment) -> SessionOrigin {
        SessionOrigin { assignment, client: None, door: None }
    }
}

impl Executor {
    /// Opens a session for a caller. The mode is the most that was asked for, the token allows and the tenant allows.
    /// Whether the tenant knows the assignment is for whoever holds its configuration to say.
    pub async fn open_session(
        &self,
        snapshot: &Snapshot,
        caller: &Caller,
        wanted: SessionMode,
        loaded: Option<LoadedToolsets>,
        origin: impl Into<SessionOrigin>,
    ) -> Result<OpenedSession, SessionOpenError> {
        let SessionOrigin { assignment, client, door } = origin.into();
        let (carried, now) = self.carried_over(caller).await?;
        let fresh = fresh(snapshot, caller, wanted, loaded, now)?;
        self.keep(caller, Session { assignment, client, door, ..fresh }, carried).await
    }

    /// What a session of this caller begins with, and the store's time.
    pub(crate) async fn carried_over(&self, caller: &Caller) -> Result<(CarriedOver, Moment), Failure> {
        let sessions = self.store.of(&caller.tenant).sessions();
        sessions.carried_over(&caller.principal, self.lives).await.map_err(|e| no_store(&e))
    }

    /// Writes a new session, with what earlier ones of the caller have left it.
    pub(crate) async fn keep(
        &self,
        caller: &Caller,
        session: Session,
        carried: CarriedOver,
    ) -> Result<OpenedSession, Failure> {
        let CarriedOver { tainted, stopped_by } = carried;
        let session = Session { tainted, ..session };
        let what = if carried == CarriedOver::default() { "open" } else { "open-carried-over" };
        let sessions = self.store.of(&caller.tenant).sessions();
        let entry = AuditEntry { client: session.client.clone(), ..self.session_entry(caller, session.id, what) };
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
        if carried != CarriedOver::default() {
            tracing::info!(session = %session.id, tainted, stopped = stopped_by.is_some(), "a session carries over");
        }
        Ok(OpenedSession { session, stopped_by })
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
        Err(changes_too_fast())
    }

    /// Writes that a session was handed text from outside at this moment, in the audit log too. New sessions of its
    /// owner begin tainted for a while.
    pub(crate) async fn taint(
        &self,
        sessions: &SessionStore,
        mut held: VersionedSession,
        caller: &Caller,
        at: Moment,
    ) -> Result<(), Failure> {
        self.taints.note(held.session.id, Instant::now());
        for _ in 0..FOLDS {
            let entry = self.session_entry(caller, held.session.id, "taint");
            match sessions.taint(&held, self.lives, &entry, at).await.map_err(|e| no_store(&e))? {
                SessionUpdate::Done(_) => return Ok(()),
                // Another call of the session was quicker, and has written the same.
                SessionUpdate::Conflict(newer) if newer.session.tainted && !held.session.tainted => return Ok(()),
                SessionUpdate::Conflict(newer) => held = newer,
                SessionUpdate::Gone => return Err(no_session(&Handle::None)),
            }
        }
        Err(changes_too_fast())
    }

    /// Closes a session for every replica and forgets its documents, unless people are still reviewing something that
    /// was proposed from it: then they are left to their own end.
    pub async fn close_session(&self, caller: &Caller, handle: &Handle) -> Result<(), Failure> {
        let Some(id) = read_handle(handle)? else { return Err(no_session(handle)) };
        let shelf = self.store.of(&caller.tenant);
        let entry = self.session_entry(caller, id, "close");
        let closed = shelf.sessions().close(id, &caller.principal, &entry).await.map_err(|e| no_store(&e))?;
        let Some(lasted) = closed else { return Err(no_session(handle)) };
        telemetry::metrics::MCP_SERVER_SESSION.observe(["", ""], lasted.as_secs_f64());
        forget_documents(&shelf, id, &caller.principal).await
    }

    /// Ends a session of anybody in the tenant, for a person whose right to that was checked. Its documents are treated as
    /// if its owner had closed it.
    pub async fn end_session(&self, person: &Caller, id: SessionId) -> Result<(), Failure> {
        let shelf = self.store.of(&person.tenant);
        let entry = AuditEntry {
            actor: Some(self.person(person)),
            session: Some(id),
            target: Some("session/end".to_owned()),
            ..AuditEntry::new(Phase::Admin)
        };
        let owner = shelf.sessions().end(id, &entry).await.map_err(|e| no_store(&e))?;
        let gone = || Failure::new(Code::NotFound, "no such session; it may be over");
        forget_documents(&shelf, id, &owner.ok_or_else(gone)?).await
    }

    /// The audit log's entry for a session that moved.
    fn session_entry(&self, caller: &Caller, session: SessionId, what: &str) -> AuditEntry {
        AuditEntry {
            actor: Some(Actor { kind: ActorKind::Agent, ..self.actor(caller) }),
            session: Some(session),
            target: Some(format!("session/{what}")),
            ..AuditEntry::new(Phase::Transition)
        }
    }
}

/// Forgets what a session remembered, unless people are still reviewing something that was proposed from it.
async fn forget_documents(shelf: &TenantStore, id: SessionId, owner: &Principal) -> Result<(), Failure> {
    if shelf.runs().is_under_review(id, owner).await.map_err(|e| no_store(&e))? {
        return Ok(());
    }
    shelf.memory().remove_session(id).await.map_err(|e| no_store(&e))
}

fn changes_too_fast() -> Failure {
    Failure::new(Code::StoreUnavailable, "the session changes faster than it can be written").retry_after_ms(200)
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
        client: None,
        door: None,
        opened_at: now,
    })
}
