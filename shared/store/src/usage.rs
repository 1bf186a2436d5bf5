//! What was used in one tenant: a record for each day, to which replicas add in batches.
//!
//! A batch has a number, and the record remembers the last one of each replica: a batch whose answer was lost is not added
//! twice. The record counts against no quota, and has a bounded number of rows by itself (see [`domain::usage`]).

use crate::ops::Op;
use crate::{Commit, Committed, RecordKey, RecordVersion, StoreError, StoredRecord, TenantStore};
use domain::Moment;
use domain::usage::UsageDay;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a day is kept.
const KEPT: Duration = Duration::from_secs(400 * 24 * 60 * 60);
/// How many replicas a day remembers the last batch of.
const MOST_REPLICAS: usize = 64;
/// How often a batch is folded again when others write at the same time.
const TRIES: usize = 32;
/// How many days are read in one round trip.
const AT_ONCE: usize = 31;

/// A day, as `2026-11-18` in UTC.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageDate(String);

impl UsageDate {
    /// The day of a moment.
    pub fn of(moment: Moment) -> UsageDate {
        UsageDate(moment.to_string().chars().take(10).collect())
    }

    /// Reads `2026-11-18`.
    pub fn parse(text: &str) -> Option<UsageDate> {
        let noon = Moment::parse(&format!("{text}T12:00:00Z"))?;
        Some(UsageDate::of(noon)).filter(|day| day.0 == text)
    }

    /// The day after it.
    #[must_use]
    pub fn next(&self) -> UsageDate {
        let noon = Moment::parse(&format!("{}T12:00:00Z", self.0)).unwrap_or(Moment::from_millis(0));
        UsageDate::of(noon.plus(Duration::from_secs(24 * 60 * 60)))
    }

    /// As it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What one replica adds at once.
#[derive(Debug, Clone)]
pub struct UsageBatch {
    /// The day it is added to.
    pub day: UsageDate,
    /// The number of the batch; each replica counts its own, upwards.
    pub number: u64,
    /// What was used.
    pub usage: UsageDay,
}

#[derive(Default, Serialize, Deserialize)]
struct StoredUsage {
    v: u32,
    /// The last batch of each replica, the newest at the end.
    batches: Vec<(String, u64)>,
    usage: UsageDay,
}

/// What was used in one tenant.
#[derive(Debug, Clone)]
pub struct UsageStore(TenantStore);

impl UsageStore {
    pub(crate) fn new(shelf: TenantStore) -> UsageStore {
        UsageStore(shelf)
    }

    /// Adds a batch, once.
    pub async fn add(&self, batch: &UsageBatch) -> Result<(), StoreError> {
        let key = RecordKey::usage(batch.day.as_str());
        let replica = self.0.store().replica();
        let get = Op::Get { key: self.0.space.record(&key) };
        let mut record = self.0.store().run_apart(&[get]).await?.record()?;
        for _ in 0..TRIES {
            let (version, mut stored) = read(record);
            if stored.batches.iter().any(|(name, last)| name == replica && *last >= batch.number) {
                return Ok(());
            }
            stored.batches.retain(|(name, _)| name != replica);
            stored.batches.push((replica.to_owned(), batch.number));
            let surplus = stored.batches.len().saturating_sub(MOST_REPLICAS);
            stored.batches.drain(..surplus);
            stored.usage.merge(&batch.usage);
            let body = serde_json::to_vec(&stored).map_err(|_| StoreError::Corrupt { what: "a day of usage" })?;
            let commit = Commit { expires: Some(KEPT), ..Commit::write(key.clone(), version, body) };
            match self.0.commit(commit).await? {
                Committed::Done(..) => return Ok(()),
                Committed::Conflict(version, body) => {
                    record = (version != RecordVersion::NONE).then_some(StoredRecord { version, body });
                }
                Committed::Late(_) | Committed::NoRoom(_) => {
                    return Err(StoreError::Corrupt { what: "a day of usage" });
                }
            }
        }
        Err(StoreError::unavailable("a day of usage changes all the time"))
    }

    /// What was used on these days; a day on which nothing was used is empty.
    pub async fn days(&self, days: &[UsageDate]) -> Result<Vec<UsageDay>, StoreError> {
        let mut found = Vec::with_capacity(days.len());
        for some in days.chunks(AT_ONCE) {
            let key = |day: &UsageDate| self.0.space.record(&RecordKey::usage(day.as_str()));
            let gets: Vec<Op> = some.iter().map(|day| Op::Get { key: key(day) }).collect();
            let mut answers = self.0.run(&gets).await?;
            for _ in some {
                found.push(read(answers.record()?).1.usage);
            }
        }
        Ok(found)
    }
}

/// A record that cannot be read is begun anew: nothing is done by what it says.
fn read(record: Option<StoredRecord>) -> (RecordVersion, StoredUsage) {
    let Some(StoredRecord { version, body }) = record else {
        return (RecordVersion::NONE, StoredUsage { v: 1, ..StoredUsage::default() });
    };
    let stored = serde_json::from_slice::<StoredUsage>(&body).ok().filter(|stored| stored.v == 1);
    if stored.is_none() {
        tracing::error!("a day of usage cannot be read and is begun anew");
    }
    (version, stored.unwrap_or(StoredUsage { v: 1, ..StoredUsage::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_and_has_a_next_one() {
        assert_eq!(UsageDate::of(Moment::from_secs(1_763_280_000)).as_str(), "2025-11-16");
        assert_eq!(UsageDate::parse("2024-02-28").unwrap().next().next().as_str(), "2024-03-01");
        for bad in ["", "2024-2-28", "2024-02-30", "yesterday", "2024-02-28T00:00:00Z", "1969-12-31"] {
            assert_eq!(UsageDate::parse(bad), None, "{bad}");
        }
    }
}
