//! People who signed in with a browser: bound to what the browser holds, sliding, and never longer than a working day.
//!
//! The store keeps the SHA-256 of what the browser holds and never the thing itself, so whoever reads the store cannot
//! sign in with it. Every request of every replica reads the record, so deleting it signs out everywhere at once.
//! Sign-ins under way and links that sign in once are records that can be taken once.
//!
//! Not here: cookies, issuers and who may do what (see the gateway).

use crate::entry::AuditEntry;
use crate::ops::Op;
use crate::{Commit, Committed, RecordKey, RecordVersion, StoreError, StoredRecord, TenantStore, Topic};
use domain::{Moment, Principal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A session that was seen this recently is not written again only because it is seen.
const SEEN_EVERY: Duration = Duration::from_secs(60);
const UNREADABLE: StoreError = StoreError::Corrupt { what: "a browser session" };

/// How somebody proved who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignInMethod {
    /// To an issuer, by OpenID Connect.
    Issuer,
    /// By a link that works once.
    Link,
}

/// How long browser sessions live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrowserTimes {
    /// Without a request.
    pub idle: Duration,
    /// In all.
    pub longest: Duration,
}

/// A person who signed in with a browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrowserSession {
    /// Who.
    pub principal: Principal,
    /// What they may do, as a token says it.
    pub scopes: String,
    /// How they proved who they are.
    pub method: SignInMethod,
    /// When they signed in.
    pub signed_in_at: Moment,
    /// When they last proved to their issuer who they are.
    pub proven_at: Moment,
    /// When a request of theirs was last noted.
    pub seen_at: Moment,
}

/// The shape in which a session is stored; the number tells later releases how to read it.
#[derive(Serialize, Deserialize)]
struct StoredBrowser {
    v: u8,
    #[serde(flatten)]
    session: BrowserSession,
}

/// The people of one tenant who signed in with a browser.
#[derive(Debug, Clone)]
pub struct BrowserStore(TenantStore);

impl BrowserStore {
    pub(crate) fn new(shelf: TenantStore) -> BrowserStore {
        BrowserStore(shelf)
    }

    /// Writes a new session together with its audit entry.
    pub async fn open(
        &self,
        digest: &str,
        session: &BrowserSession,
        times: BrowserTimes,
        entry: &AuditEntry,
    ) -> Result<(), StoreError> {
        let commit = Commit {
            expires: Some(times.idle.min(times.longest)),
            append: vec![self.0.audit().write_out(entry)?],
            ..Commit::write(RecordKey::browser_session(digest), RecordVersion::NONE, to_bytes(session)?)
        };
        match self.0.commit(commit).await? {
            Committed::Done(..) => Ok(()),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Err(UNREADABLE),
        }
    }

    /// The session of whoever holds this, if it is not over, and the store's time. With `seen` its end moves.
    pub async fn find(
        &self,
        digest: &str,
        times: BrowserTimes,
        seen: bool,
    ) -> Result<Option<(BrowserSession, Moment)>, StoreError> {
        let key = RecordKey::browser_session(digest);
        let reading = self.0.reading(&key);
        let mut answers = self.0.run(&[Op::Get { key: self.0.space.record(&key) }, Op::Now]).await?;
        let (record, now) = (answers.record()?, answers.now()?);
        let Some(StoredRecord { version, body }) = authentic(reading.open(record))? else { return Ok(None) };
        let mut session = from_bytes(&body)?;
        let (unseen, age) = (now.since(session.seen_at), now.since(session.signed_in_at));
        if unseen >= times.idle || age >= times.longest {
            return Ok(None);
        }
        if seen && unseen >= SEEN_EVERY.min(times.idle / 4) {
            session.seen_at = now;
            let expires = Some(times.idle.min(times.longest.saturating_sub(age)));
            let commit = Commit { expires, ..Commit::write(key, version, to_bytes(&session)?) };
            // Whoever was quicker has noted the same, or has signed out; then the next request says so.
            if let Committed::Conflict(RecordVersion::NONE, _) = self.0.commit(commit).await? {
                return Ok(None);
            }
        }
        Ok(Some((session, now)))
    }

    /// Signs out on every replica at once, with the audit entry; tells whether there was somebody to sign out.
    pub async fn close(&self, digest: &str, entry: &AuditEntry) -> Result<bool, StoreError> {
        let key = RecordKey::browser_session(digest);
        let mut found = authentic(self.0.get(&key).await)?.map(|record| record.version);
        while let Some(version) = found {
            let delete = Commit {
                wake: Some(Topic::SignedOut),
                append: vec![self.0.audit().write_out(entry)?],
                ..Commit::delete(key.clone(), version)
            };
            found = match self.0.commit(delete).await? {
                Committed::Done(..) => return Ok(true),
                Committed::Conflict(RecordVersion::NONE, _) | Committed::Late(_) | Committed::NoRoom(_) => None,
                Committed::Conflict(version, _) => Some(version),
            };
        }
        Ok(false)
    }

    /// Keeps something that can be taken once, for so long.
    pub async fn keep_once<T: Serialize>(&self, key: RecordKey, what: &T, lives: Duration) -> Result<(), StoreError> {
        let body = serde_json::to_vec(what).map_err(|_| UNREADABLE)?;
        let commit = Commit { expires: Some(lives), ..Commit::write(key, RecordVersion::NONE, body) };
        match self.0.commit(commit).await? {
            Committed::Done(..) => Ok(()),
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Err(UNREADABLE),
        }
    }

    /// Takes it; of several who try, one gets it.
    pub async fn take_once<T: DeserializeOwned>(&self, key: RecordKey) -> Result<Option<T>, StoreError> {
        let Some(record) = authentic(self.0.get(&key).await)? else { return Ok(None) };
        let taken = self.0.commit(Commit::delete(key, record.version)).await?;
        if !matches!(taken, Committed::Done(..)) {
            return Ok(None);
        }
        serde_json::from_slice(&record.body).map(Some).map_err(|_| UNREADABLE)
    }
}

/// What is not authentic reads like what never was: whoever had it signs in again.
fn authentic(read: Result<Option<StoredRecord>, StoreError>) -> Result<Option<StoredRecord>, StoreError> {
    match read {
        Err(StoreError::NotAuthentic { .. }) => Ok(None),
        read => read,
    }
}

fn to_bytes(session: &BrowserSession) -> Result<Vec<u8>, StoreError> {
    serde_json::to_vec(&StoredBrowser { v: 1, session: session.clone() }).map_err(|_| UNREADABLE)
}

fn from_bytes(body: &[u8]) -> Result<BrowserSession, StoreError> {
    let stored: StoredBrowser = serde_json::from_slice(body).map_err(|_| UNREADABLE)?;
    if stored.v == 1 { Ok(stored.session) } else { Err(UNREADABLE) }
}
