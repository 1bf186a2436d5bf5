//! Looking things up; the same code for a snapshot and for the middle of a transaction.
//!
//! What has ended is not there, whether or not it was swept yet.

use super::tables::{COUNTERS, LIVES, RANKS, RECORDS, STREAMS};
use crate::ops::{CallAllowance, EnterResult, EnterStep, EntryVerdict, Op, OpResult, StreamId, StreamWalk};
use crate::{RecordVersion, StoredRecord};
use domain::Moment;
use redb::{AccessGuard, ReadTransaction, ReadableTable, StorageError};
use std::ops::Bound;
use std::time::Duration;

/// A record and its end.
pub(super) fn record(
    records: &impl ReadableTable<&'static str, (u64, u64, &'static [u8])>,
    key: &str,
    now: Moment,
) -> Result<Option<(StoredRecord, u64)>, redb::Error> {
    let Some(found) = records.get(key)? else { return Ok(None) };
    let (version, end, body) = found.value();
    Ok((now.millis() < end)
        .then(|| (StoredRecord { version: RecordVersion::new(version), body: body.to_owned() }, end)))
}

/// Whether a stream or index is still there as a whole.
pub(super) fn lives(
    lives: &impl ReadableTable<&'static str, u64>,
    key: &str,
    now: Moment,
) -> Result<bool, redb::Error> {
    Ok(lives.get(key)?.is_none_or(|end| now.millis() < end.value()))
}

pub(super) fn entries(
    streams: &impl ReadableTable<(&'static str, u64, u64), &'static [u8]>,
    stream: &str,
    walk: StreamWalk,
    limit: usize,
) -> Result<Vec<(StreamId, Vec<u8>)>, redb::Error> {
    let place = |id: StreamId| Bound::Excluded((stream, id.at.millis(), id.seq));
    let (first, last) = (Bound::Included((stream, 0, 0)), Bound::Included((stream, u64::MAX, u64::MAX)));
    match walk {
        StreamWalk::After(id) => {
            streams.range::<(&str, u64, u64)>((id.map_or(first, place), last))?.take(limit).map(entry).collect()
        }
        StreamWalk::Before(id) => {
            streams.range::<(&str, u64, u64)>((first, id.map_or(last, place)))?.rev().take(limit).map(entry).collect()
        }
    }
}

/// What walking a stream gives at each step.
type StreamStep<'a> = Result<(AccessGuard<'a, (&'static str, u64, u64)>, AccessGuard<'a, &'static [u8]>), StorageError>;

fn entry(step: StreamStep<'_>) -> Result<(StreamId, Vec<u8>), redb::Error> {
    let (key, body) = step?;
    let (_, at, seq) = key.value();
    Ok((StreamId { at: Moment::from_millis(at), seq }, body.value().to_owned()))
}

pub(super) fn members(
    ranks: &impl ReadableTable<(&'static str, u64, &'static str), ()>,
    index: &str,
    (from, to): (u64, u64),
    limit: usize,
) -> Result<Vec<(String, u64)>, redb::Error> {
    let mut found = Vec::new();
    // There is no greatest text, so the walk is open to the right and ends where index or rank do.
    for entry in ranks.range::<(&str, u64, &str)>((index, from, "")..)? {
        let (key, _) = entry?;
        let (name, rank, member) = key.value();
        if name != index || rank > to || found.len() == limit {
            break;
        }
        found.push((member.to_owned(), rank));
    }
    Ok(found)
}

/// Members of at least this rank, highest first.
pub(super) fn members_back(
    ranks: &impl ReadableTable<(&'static str, u64, &'static str), ()>,
    index: &str,
    from: u64,
    limit: usize,
) -> Result<Vec<(String, u64)>, redb::Error> {
    let mut found = Vec::new();
    for entry in ranks.range::<(&str, u64, &str)>((index, from, "")..(index, u64::MAX, ""))?.rev().take(limit) {
        let (key, _) = entry?;
        let (_, rank, member) = key.value();
        found.push((member.to_owned(), rank));
    }
    Ok(found)
}

/// A counter and its end, if its window has not ended.
pub(super) fn counter(
    counters: &impl ReadableTable<&'static str, (u64, u64)>,
    key: &str,
    now: Moment,
) -> Result<Option<(u64, u64)>, redb::Error> {
    Ok(counters.get(key)?.map(|counter| counter.value()).filter(|(_, end)| now.millis() < *end))
}

/// Why a call may not be opened, if it may not; `used` are the bytes stored for the tenant.
pub(super) fn refused(
    counters: &impl ReadableTable<&'static str, (u64, u64)>,
    minute: &str,
    allowed: &CallAllowance,
    used: u64,
    now: Moment,
) -> Result<Option<EntryVerdict>, redb::Error> {
    let (tenant, _) = counter(counters, minute, now)?.unwrap_or_default();
    if tenant >= allowed.tenant_most {
        return Ok(Some(EntryVerdict::TenantExceeded));
    }
    let (caller, _) = counter(counters, &caller_counter(minute, &allowed.caller), now)?.unwrap_or_default();
    // A caller that is alone may use all of the minute.
    if caller >= allowed.caller_most && tenant > caller {
        return Ok(Some(EntryVerdict::CallerExceeded));
    }
    Ok(allowed.quota.filter(|most| used >= *most).map(|_| EntryVerdict::QuotaReached))
}

/// For how long the calls of the window stay used up.
pub(super) fn left(
    counters: &impl ReadableTable<&'static str, (u64, u64)>,
    minute: &str,
    now: Moment,
) -> Result<Duration, redb::Error> {
    let end = counter(counters, minute, now)?.map_or(0, |(_, end)| end);
    Ok(Duration::from_millis(end.saturating_sub(now.millis())))
}

/// What becomes of entries of which none may be written; `None` if one may.
fn all_refused(
    counters: &impl ReadableTable<&'static str, (u64, u64)>,
    step: &EnterStep,
    now: Moment,
) -> Result<Option<EnterResult>, redb::Error> {
    let (used, mut verdicts) = (total(counters, &step.usage)?, Vec::with_capacity(step.entries.len()));
    for entry in &step.entries {
        let Some(allowed) = &entry.judged else { return Ok(None) };
        let Some(verdict) = refused(counters, &step.minute, allowed, used, now)? else { return Ok(None) };
        verdicts.push(verdict);
    }
    Ok(Some(EnterResult { item: None, left: left(counters, &step.minute, now)?, verdicts }))
}

/// A number that has no end.
pub(super) fn total(counters: &impl ReadableTable<&'static str, (u64, u64)>, key: &str) -> Result<u64, redb::Error> {
    Ok(counters.get(key)?.map_or(0, |counter| counter.value().0))
}

/// Where a caller's calls are counted.
pub(super) fn caller_counter(minute: &str, caller: &str) -> String {
    format!("{minute}:{caller}")
}

/// Answers a step from a snapshot; `None` if the step has to write.
pub(super) fn answer(snapshot: &ReadTransaction, op: &Op, now: Moment) -> Result<Option<OpResult>, redb::Error> {
    Ok(Some(match op {
        Op::Get { key } => {
            OpResult::Record(record(&snapshot.open_table(RECORDS)?, key, now)?.map(|(record, _)| record))
        }
        Op::Touch { key, span, begins } => match record(&snapshot.open_table(RECORDS)?, key, now)? {
            Some((record, end)) if record.body.starts_with(begins) && super::write::worth_moving(end, now, *span) => {
                return Ok(None);
            }
            found => OpResult::Record(found.map(|(record, _)| record)),
        },
        Op::Range { index, from, to, limit } => {
            let there = lives(&snapshot.open_table(LIVES)?, index, now)?;
            let limit = if there { *limit } else { 0 };
            OpResult::Members(members(&snapshot.open_table(RANKS)?, index, (*from, *to), limit)?)
        }
        Op::RangeBack { index, from, limit } => {
            let there = lives(&snapshot.open_table(LIVES)?, index, now)?;
            let limit = if there { *limit } else { 0 };
            OpResult::Members(members_back(&snapshot.open_table(RANKS)?, index, *from, limit)?)
        }
        Op::Read { stream, walk, limit } => {
            let there = lives(&snapshot.open_table(LIVES)?, stream, now)?;
            let limit = if there { *limit } else { 0 };
            OpResult::Entries(entries(&snapshot.open_table(STREAMS)?, stream, *walk, limit)?)
        }
        Op::Now => OpResult::Now(now),
        Op::Enter(step) => match all_refused(&snapshot.open_table(COUNTERS)?, step, now)? {
            Some(refused) => OpResult::Entered(refused),
            None => return Ok(None),
        },
        Op::Total { key } => OpResult::Count(total(&snapshot.open_table(COUNTERS)?, key)?),
        Op::Count { .. }
        | Op::Rerank { .. }
        | Op::Place { .. }
        | Op::TakeOut { .. }
        | Op::Forget { .. }
        | Op::Publish { .. } => {
            return Ok(None);
        }
    }))
}
