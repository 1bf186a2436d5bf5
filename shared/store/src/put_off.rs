//! Runs that a person has put off: they leave that person's inbox for a while. The run itself does not know of it and
//! expires when it would have.
//!
//! One record for each person, bounded, with the end of each. What is not authentic reads like nothing put off.

use crate::{Commit, Committed, RecordKey, RecordVersion, StoreError, StoredRecord, TenantStore};
use domain::{Moment, Principal, RunId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How many runs one person can put off; the one that comes back soonest makes room for another.
const MOST: usize = 100;
const UNREADABLE: StoreError = StoreError::Corrupt { what: "the runs that a person put off" };

/// A run that a person has put off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPutOff {
    /// Which run.
    pub id: RunId,
    /// When it comes back to the person's inbox.
    pub until: Moment,
}

/// The shape in which they are stored; the number tells later releases how to read it.
#[derive(Serialize, Deserialize)]
struct StoredPutOff {
    v: u8,
    runs: Vec<RunPutOff>,
}

/// What the people of one tenant have put off.
#[derive(Debug, Clone)]
pub struct PutOffStore(TenantStore);

impl PutOffStore {
    pub(crate) fn new(shelf: TenantStore) -> PutOffStore {
        PutOffStore(shelf)
    }

    /// What a person has put off and is not back yet, the soonest first.
    pub async fn of(&self, person: &Principal) -> Result<Vec<RunPutOff>, StoreError> {
        let (_, runs) = self.read(person).await?;
        Ok(runs)
    }

    /// Puts a run off for this person and so long, or brings it back at once with no time at all.
    pub async fn put_off(&self, person: &Principal, id: RunId, lasts: Duration) -> Result<(), StoreError> {
        loop {
            let (version, mut runs) = self.read(person).await?;
            let now = self.0.store().now().await?;
            runs.retain(|run| run.id != id);
            if !lasts.is_zero() {
                runs.push(RunPutOff { id, until: now.plus(lasts) });
            }
            runs.sort_by_key(|run| run.until);
            runs.drain(..runs.len().saturating_sub(MOST));
            let key = RecordKey::put_off(person);
            let commit = match runs.last() {
                Some(last) => {
                    let expires = Some(last.until.since(now));
                    let body = serde_json::to_vec(&StoredPutOff { v: 1, runs }).map_err(|_| UNREADABLE)?;
                    Commit { expires, ..Commit::write(key, version, body) }
                }
                None if version == RecordVersion::NONE => return Ok(()),
                None => Commit::delete(key, version),
            };
            // Whoever was quicker is the same person in another window.
            match self.0.commit(commit).await? {
                Committed::Conflict(..) => {}
                Committed::Done(..) => return Ok(()),
                Committed::Late(_) | Committed::NoRoom(_) => return Err(UNREADABLE),
            }
        }
    }

    async fn read(&self, person: &Principal) -> Result<(RecordVersion, Vec<RunPutOff>), StoreError> {
        let record = match self.0.get(&RecordKey::put_off(person)).await {
            // It is written over by the next one.
            Err(StoreError::NotAuthentic { version, .. }) => return Ok((version, Vec::new())),
            read => read?,
        };
        let Some(StoredRecord { version, body }) = record else { return Ok((RecordVersion::NONE, Vec::new())) };
        let stored: StoredPutOff = serde_json::from_slice(&body).map_err(|_| UNREADABLE)?;
        let now = self.0.store().now().await?;
        Ok((version, stored.runs.into_iter().filter(|run| run.until > now).collect()))
    }
}
