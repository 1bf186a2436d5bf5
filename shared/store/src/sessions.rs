//! Sessions in the store: bound to one principal, sliding, and never older than their longest life.
//!
//! Somebody else's session and one that is over read like one that never was.
//! What a session may do next is decided by its own transitions; this file only holds and folds the record.

use crate::carried::{self, CarriedOver};
use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::session_shape::{from_bytes, owner_mark, to_bytes};
use crate::{
    Commit, Committed, IndexName, IndexUpdate, RecordKey, RecordVersion, Room, Score, StoreError, StoreQuota,
    StoredRecord, TenantStore, Topic,
};
use domain::{Moment, Principal, Session, SessionId};
use std::time::Duration;

/// How long sessions live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionConfig {
    /// Without a call.
    pub idle: Duration,
    /// In all, however busy.
    pub longest: Duration,
    /// How long what a session has read and was refused binds new sessions of the same principal.
    pub carry_over: Duration,
}

/// A session as it was read, and the version that a change has to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedSession {
    /// The session.
    pub session: Session,
    /// Its version.
    pub version: RecordVersion,
}

/// How the folding of a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "only `Done` wrote something"]
pub enum SessionUpdate {
    /// Written; this is the session now.
    Done(VersionedSession),
    /// Somebody was faster; this is what to fold on.
    Conflict(VersionedSession),
    /// The session is over.
    Gone,
}

/// Open sessions of a tenant, those that were opened last first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<Session>,
    /// Behind which session the next page begins.
    pub next: Option<SessionId>,
    /// Whether there are more than a list goes through.
    pub cut: bool,
    /// The store's time.
    pub now: Moment,
}

/// How many sessions a list goes through.
const MOST_LISTED: usize = 1_000;

/// The sessions of one tenant.
#[derive(Debug, Clone)]
pub struct SessionStore(TenantStore);

impl SessionStore {
    pub(crate) fn new(shelf: TenantStore) -> SessionStore {
        SessionStore(shelf)
    }

    /// Writes a new session together with its audit entry, unless its owner or the tenant has as many as may be.
    pub async fn open(
        &self,
        session: &Session,
        lives: SessionConfig,
        entry: &AuditEntry,
    ) -> Result<VersionedSession, StoreError> {
        let limits = *self.0.store().limits();
        let life = lives.idle.min(lives.longest);
        let listed = |index: IndexName| IndexUpdate {
            index,
            member: session.id.to_string(),
            rank: Score::At(session.opened_at.plus(life).millis()),
        };
        let own = IndexName::sessions_of(&session.owner).forgotten_after(Some(lives.longest));
        let commit = Commit {
            expires: Some(life),
            append: vec![self.0.audit().write_out(entry)?],
            rooms: vec![
                Room::Members(own.clone(), limits.sessions_per_caller),
                Room::Members(IndexName::sessions(), limits.sessions_per_tenant),
            ],
            index: vec![listed(own), listed(IndexName::sessions())],
            held_to_quota: true,
            ..Commit::write(RecordKey::session(session.id), RecordVersion::NONE, to_bytes(session)?)
        };
        let full = |quota| Err(StoreError::QuotaReached(quota));
        match self.0.commit(commit).await? {
            Committed::Done(version, _) => Ok(VersionedSession { session: session.clone(), version }),
            Committed::NoRoom(Some(0)) => full(StoreQuota::CallerSessions(limits.sessions_per_caller)),
            Committed::NoRoom(Some(_)) => full(StoreQuota::TenantSessions(limits.sessions_per_tenant)),
            Committed::NoRoom(None) => full(StoreQuota::TenantBytes(limits.bytes_per_tenant)),
            Committed::Conflict(..) | Committed::Late(_) => {
                Err(StoreError::Corrupt { what: "a session id that was drawn twice" })
            }
        }
    }

    /// What a session of this principal begins with now, and the store's time, in one round trip.
    pub async fn carried_over(
        &self,
        owner: &Principal,
        lives: SessionConfig,
    ) -> Result<(CarriedOver, Moment), StoreError> {
        let mut answers = self.0.run(&[carried::look(&self.0, owner), Op::Now]).await?;
        let (marks, now) = (answers.members()?, answers.now()?);
        Ok((CarriedOver::at(&marks, now, lives.carry_over), now))
    }

    /// Reads a session and moves its expiry if it is this principal's, in one round trip.
    pub async fn find(
        &self,
        id: SessionId,
        owner: &Principal,
        lives: SessionConfig,
    ) -> Result<Option<VersionedSession>, StoreError> {
        let (reading, key) = (self.0.reading(&RecordKey::session(id)), self.0.space.record(&RecordKey::session(id)));
        let touch = Op::Touch { key, span: lives.idle, begins: owner_mark(owner) };
        let mut answers = self.0.run(&[touch, Op::Now]).await?;
        let (record, now) = (answers.record()?, answers.now()?);
        live(authentic(reading.open(record))?, id, owner, lives, now)
    }

    /// Writes the next state of a session together with its audit entry and its wake-up.
    pub async fn commit(
        &self,
        held: &VersionedSession,
        next: &Session,
        lives: SessionConfig,
        entry: &AuditEntry,
        wake: Option<Topic>,
    ) -> Result<SessionUpdate, StoreError> {
        let commit = Commit { wake, ..self.change(held, next, lives, entry)? };
        self.write(next, commit).await
    }

    /// Writes that a session was handed text from outside at this moment, and that new sessions of its owner begin
    /// tainted for a while.
    pub async fn taint(
        &self,
        held: &VersionedSession,
        lives: SessionConfig,
        entry: &AuditEntry,
        at: Moment,
    ) -> Result<SessionUpdate, StoreError> {
        let next = Session { tainted: true, ..held.session.clone() };
        let index = vec![carried::taint(&next.owner, at)];
        let commit = Commit { index, ..self.change(held, &next, lives, entry)? };
        self.write(&next, commit).await
    }

    fn change(
        &self,
        held: &VersionedSession,
        next: &Session,
        lives: SessionConfig,
        entry: &AuditEntry,
    ) -> Result<Commit, StoreError> {
        Ok(Commit {
            expires: Some(lives.idle),
            // By the store's clock, so that a change cannot prolong a session beyond its longest life.
            not_after: Some(held.session.opened_at.plus(lives.longest)),
            append: vec![self.0.audit().write_out(entry)?],
            ..Commit::write(RecordKey::session(next.id), held.version, to_bytes(next)?)
        })
    }

    async fn write(&self, next: &Session, commit: Commit) -> Result<SessionUpdate, StoreError> {
        match self.0.commit(commit).await? {
            Committed::Done(version, _) => Ok(SessionUpdate::Done(VersionedSession { session: next.clone(), version })),
            Committed::Conflict(RecordVersion::NONE, _) | Committed::Late(_) | Committed::NoRoom(_) => {
                Ok(SessionUpdate::Gone)
            }
            Committed::Conflict(version, body) => {
                Ok(SessionUpdate::Conflict(VersionedSession { session: from_bytes(next.id, &body)?, version }))
            }
        }
    }

    /// Ends a session, with its audit entry; tells whether there was one of this principal.
    pub async fn close(
        &self,
        id: SessionId,
        owner: &Principal,
        entry: &AuditEntry,
    ) -> Result<Option<Duration>, StoreError> {
        let key = RecordKey::session(id);
        let mut found = authentic(self.0.get(&key).await)?;
        while let Some(record) = found {
            let session = from_bytes(id, &record.body)?;
            if session.owner != *owner {
                return Ok(None);
            }
            let member = id.to_string();
            let out = |index| IndexUpdate { index, member: member.clone(), rank: Score::Out };
            let delete = Commit {
                index: vec![out(IndexName::sessions()), out(IndexName::sessions_of(owner))],
                wake: Some(Topic::Session(id)),
                append: vec![self.0.audit().write_out(entry)?],
                ..Commit::delete(key.clone(), record.version)
            };
            found = match self.0.commit(delete).await? {
                Committed::Done(_, now) => return Ok(Some(now.since(session.opened_at))),
                Committed::Conflict(RecordVersion::NONE, _) | Committed::Late(_) | Committed::NoRoom(_) => None,
                Committed::Conflict(version, body) => Some(StoredRecord { version, body }),
            };
        }
        Ok(None)
    }

    /// Ends a session, whoever's it is, with its audit entry; tells whose it was, if there was one.
    pub async fn end(&self, id: SessionId, entry: &AuditEntry) -> Result<Option<Principal>, StoreError> {
        let Some(record) = authentic(self.0.get(&RecordKey::session(id)).await)? else { return Ok(None) };
        let owner = from_bytes(id, &record.body)?.owner;
        Ok(self.close(id, &owner, entry).await?.map(|_| owner))
    }

    /// Open sessions of the tenant behind `after`, at most `limit`. Looking prolongs none.
    pub async fn list(
        &self,
        after: Option<SessionId>,
        lives: SessionConfig,
        limit: usize,
    ) -> Result<SessionPage, StoreError> {
        let index = self.0.space.index(&IndexName::sessions());
        let ops = [Op::RangeBack { index, from: 0, limit: MOST_LISTED + 1 }, Op::Now];
        let mut answers = self.0.run(&ops).await?;
        let (members, now) = (answers.members()?, answers.now()?);
        let cut = members.len() > MOST_LISTED;
        let listed = members.iter().take(MOST_LISTED).filter_map(|(id, _)| SessionId::parse(id).ok());
        let ids: Vec<SessionId> = match after {
            Some(after) => listed.skip_while(|id| *id != after).skip(1).collect(),
            None => listed.collect(),
        };
        let (mut sessions, mut last, mut left) = (Vec::new(), None, ids.len());
        // Some are over and not yet taken out of the list; a page is filled all the same.
        for some in ids.chunks(limit.max(1)) {
            let keys: Vec<RecordKey> = some.iter().map(|id| RecordKey::session(*id)).collect();
            let gets: Vec<Op> = keys.iter().map(|key| Op::Get { key: self.0.space.record(key) }).collect();
            let readings: Vec<_> = keys.iter().map(|key| self.0.reading(key)).collect();
            let mut answers = self.0.run(&gets).await?;
            for (id, reading) in some.iter().zip(readings) {
                let record = answers.record()?;
                if sessions.len() == limit {
                    continue;
                }
                (last, left) = (Some(*id), left - 1);
                let Some(record) = authentic(reading.open(record))? else { continue };
                let session = from_bytes(*id, &record.body)?;
                if now <= session.opened_at.plus(lives.longest) {
                    sessions.push(session);
                }
            }
            if sessions.len() == limit {
                break;
            }
        }
        Ok(SessionPage { sessions, next: last.filter(|_| left > 0), cut, now })
    }

    /// Takes sessions that are over out of the list of the tenant, or of one owner: at most `limit` are looked at, those
    /// that should be over first. Tells how many.
    pub async fn tidy(&self, of: Option<&Principal>, lives: SessionConfig, limit: usize) -> Result<usize, StoreError> {
        let now = self.0.store().now().await?;
        let index = of.map_or_else(IndexName::sessions, IndexName::sessions_of);
        let members = self.0.range(&index, 0, now.millis(), limit).await?;
        let ids: Vec<SessionId> = members.iter().filter_map(|(id, _)| SessionId::parse(id).ok()).collect();
        if ids.is_empty() {
            return Ok(0);
        }
        let get = |id: &SessionId| Op::Get { key: self.0.space.record(&RecordKey::session(*id)) };
        let mut answers = self.0.run(&ids.iter().map(get).collect::<Vec<Op>>()).await?;
        // One that is in use lives on; it is looked at again when it would be over if nobody used it any more.
        let again = now.plus(lives.idle).millis();
        let (mut over, mut alive) = (Vec::new(), Vec::new());
        for id in ids {
            match answers.record()? {
                Some(_) => alive.push((id.to_string(), again)),
                None => over.push(id.to_string()),
            }
        }
        let (taken, index) = (over.len(), self.0.space.index(&index));
        let mut ops = Vec::new();
        if !over.is_empty() {
            ops.push(Op::TakeOut { index: index.clone(), members: over });
        }
        if !alive.is_empty() {
            ops.push(Op::Rerank { index, members: alive });
        }
        self.0.run(&ops).await?;
        Ok(taken)
    }

    /// Makes `owner` the holder of the session's open stream; the one before hears of it by a wake-up.
    pub async fn take_stream(&self, id: SessionId, owner: &str, lives: SessionConfig) -> Result<(), StoreError> {
        let key = RecordKey::stream_owner(id);
        let mut expect = self.0.get(&key).await?.map_or(RecordVersion::NONE, |record| record.version);
        loop {
            let commit = Commit {
                expires: Some(lives.longest),
                wake: Some(Topic::StreamOwner { session: id, owner: owner.to_owned() }),
                ..Commit::write(key.clone(), expect, owner.as_bytes().to_vec())
            };
            match self.0.commit(commit).await? {
                Committed::Done(..) | Committed::Late(_) | Committed::NoRoom(_) => return Ok(()),
                // The last one to ask holds it, so only the version matters.
                Committed::Conflict(version, _) => expect = version,
            }
        }
    }

    /// Who holds the session's open stream.
    pub async fn stream_owner(&self, id: SessionId) -> Result<Option<String>, StoreError> {
        let record = self.0.get(&RecordKey::stream_owner(id)).await?;
        let text = |record: StoredRecord| String::from_utf8(record.body);
        record.map(text).transpose().map_err(|_| StoreError::Corrupt { what: "a stream's owner" })
    }
}

/// A session whose record is not authentic reads like one that never was: whoever had it opens another.
pub(crate) fn authentic(read: Result<Option<StoredRecord>, StoreError>) -> Result<Option<StoredRecord>, StoreError> {
    match read {
        Err(StoreError::NotAuthentic { .. }) => Ok(None),
        read => read,
    }
}

/// The session in a record, if it is this principal's and not over.
pub(crate) fn live(
    record: Option<StoredRecord>,
    id: SessionId,
    owner: &Principal,
    lives: SessionConfig,
    now: Moment,
) -> Result<Option<VersionedSession>, StoreError> {
    let Some(StoredRecord { version, body }) = record else { return Ok(None) };
    let session = from_bytes(id, &body)?;
    let serves = session.owner == *owner && now <= session.opened_at.plus(lives.longest);
    Ok(serves.then_some(VersionedSession { session, version }))
}
