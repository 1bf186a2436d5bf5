//! What a run holds for itself alone while it is at work, across replicas. A hold that is not renewed ends by itself.

use crate::{Commit, Committed, RecordKey, RecordVersion, StoreError, TenantStore};
use domain::{Moment, RunId};
use std::time::Duration;

/// The holds of one tenant.
#[derive(Debug, Clone)]
pub struct LockStore(TenantStore);

/// One hold. Has to be renewed before it ends, and given back.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it lasts until it is given back or runs out"]
pub struct Lock {
    key: RecordKey,
    run: RunId,
    version: RecordVersion,
    /// The last moment at which it is certainly this run's. Versions begin anew with every record, so they do not tell.
    until: Moment,
}

/// Whether a run got what it wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockResult {
    /// It is the run's.
    Mine(Lock),
    /// Another run has it.
    Busy(RunId),
}

impl LockStore {
    pub(crate) fn new(shelf: TenantStore) -> LockStore {
        LockStore(shelf)
    }

    /// Takes it for a run, unless another run has it. The same run may take it again: then it was lost by a crash.
    pub async fn take(&self, key: &RecordKey, run: RunId, lasts: Duration) -> Result<LockResult, StoreError> {
        let mut expect = RecordVersion::NONE;
        loop {
            match self.0.commit(written(key, expect, run, lasts)).await? {
                Committed::Done(version, at) => {
                    let until = last_moment(at, lasts);
                    return Ok(LockResult::Mine(Lock { key: key.clone(), run, version, until }));
                }
                Committed::Conflict(RecordVersion::NONE, _) => expect = RecordVersion::NONE,
                Committed::Conflict(version, body) => match owner(&body)? {
                    other if other != run => return Ok(LockResult::Busy(other)),
                    _ => expect = version,
                },
                Committed::Late(_) | Committed::NoRoom(_) => return Err(StoreError::Corrupt { what: "a hold" }),
            }
        }
    }

    /// Which run has it.
    pub async fn holder(&self, key: &RecordKey) -> Result<Option<RunId>, StoreError> {
        self.0.get(key).await?.map(|record| owner(&record.body)).transpose()
    }

    /// Makes it last longer, from now. `false`: it ran out, and may be another's.
    pub async fn renew(&self, hold: &mut Lock, lasts: Duration) -> Result<bool, StoreError> {
        let commit = written(&hold.key, hold.version, hold.run, lasts);
        match self.0.commit(Commit { not_after: Some(hold.until), ..commit }).await? {
            Committed::Done(version, at) => {
                (hold.version, hold.until) = (version, last_moment(at, lasts));
                Ok(true)
            }
            Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(false),
        }
    }

    /// Gives it back. One that ran out meanwhile is left to whoever has it.
    pub async fn free(&self, hold: Lock) -> Result<(), StoreError> {
        let commit = Commit { not_after: Some(hold.until), ..Commit::delete(hold.key, hold.version) };
        match self.0.commit(commit).await? {
            Committed::Done(..) | Committed::Conflict(..) | Committed::Late(_) | Committed::NoRoom(_) => Ok(()),
        }
    }
}

/// Just before it runs out.
fn last_moment(taken: Moment, lasts: Duration) -> Moment {
    taken.plus(lasts.saturating_sub(Duration::from_millis(1)))
}

fn written(key: &RecordKey, expect: RecordVersion, run: RunId, lasts: Duration) -> Commit {
    Commit { expires: Some(lasts), ..Commit::write(key.clone(), expect, run.to_string().into_bytes()) }
}

fn owner(body: &[u8]) -> Result<RunId, StoreError> {
    let read = || RunId::parse(std::str::from_utf8(body).ok()?).ok();
    read().ok_or(StoreError::Corrupt { what: "a hold" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Store};
    use domain::Tenant;

    fn memory() -> Config {
        Config::at("memory:")
    }

    #[tokio::test]
    async fn a_hold_is_one_runs_until_it_is_given_back_or_runs_out() {
        let store = Store::open(&memory()).await.unwrap();
        let holds = store.of(&Tenant::parse("acme").unwrap()).holds();
        let key = RecordKey::release("main", "shop", "web");
        let (one, two) = (RunId::from_random([1; 16]), RunId::from_random([2; 16]));
        let long = Duration::from_secs(60);
        let LockResult::Mine(mut hold) = holds.take(&key, one, long).await.unwrap() else { panic!("it was free") };
        assert_eq!(holds.take(&key, two, long).await.unwrap(), LockResult::Busy(one));
        assert!(holds.renew(&mut hold, long).await.unwrap());
        holds.free(hold).await.unwrap();
        assert_eq!(holds.holder(&key).await.unwrap(), None);

        let LockResult::Mine(mut short) = holds.take(&key, one, Duration::from_millis(20)).await.unwrap() else {
            panic!()
        };
        let taken = async {
            loop {
                if let LockResult::Mine(hold) = holds.take(&key, two, long).await.unwrap() {
                    return hold;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let theirs = tokio::time::timeout(Duration::from_secs(10), taken).await.unwrap();
        assert!(!holds.renew(&mut short, long).await.unwrap(), "it is another's now");
        holds.free(short).await.unwrap();
        assert_eq!(holds.holder(&key).await.unwrap(), Some(two));
        holds.free(theirs).await.unwrap();
    }
}
