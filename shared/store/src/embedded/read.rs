//! Looking things up; the same code for a snapshot and for the middle of a transaction.
//!
//! What has ended is not there, whether or not it was swept yet.

use super::tables::{COUNTERS, LIVES, RANKS, RECORDS, STREAMS};
use crate::ops::{Op, OpResult, OpenResult, OpenStep, StreamId, StreamWalk};
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

/// Whether the rate of a call that would be opened is used up, and for how long.
pub(super) fn exceeded(
    counters: &impl ReadableTable<&'static str, (u64, u64)>,
    open: &OpenStep,
    now: Moment,
) -> Result<Option<OpenResult>, redb::Error> {
    let left = |end: u64| Duration::from_millis(end.saturating_sub(now.millis()));
    let tenant = counter(counters, &open.minute, now)?;
    if let Some((_, end)) = tenant.filter(|(count, _)| *count >= open.tenant_most) {
        return Ok(Some(OpenResult::TenantExceeded(left(end))));
    }
    let caller = counter(counters, &caller_counter(open), now)?;
    // A caller that is alone may use all of the minute.
    let others = |count: u64| tenant.is_some_and(|(all, _)| all > count);
    if let Some((_, end)) = caller.filter(|(count, _)| *count >= open.caller_most && others(*count)) {
        return Ok(Some(OpenResult::CallerExceeded(left(end))));
    }
    let full = open.quota.map(|most| Ok::<_, redb::Error>(total(counters, &open.usage)? >= most)).transpose()?;
    Ok(full.filter(|full| *full).map(|_| OpenResult::QuotaReached))
}

/// A number that has no end.
pub(super) fn total(counters: &impl ReadableTable<&'static str, (u64, u64)>, key: &str) -> Result<u64, redb::Error> {
    Ok(counters.get(key)?.map_or(0, |counter| counter.value().0))
}

/// Where a caller's calls are counted.
pub(super) fn caller_counter(open: &OpenStep) -> String {
    format!("{}:{}", open.minute, open.caller)
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
        Op::Open(open) => match exceeded(&snapshot.open_table(COUNTERS)?, open, now)? {
            Some(exceeded) => OpResult::Opened(exceeded),
            None => return Ok(None),
        },
        Op::Total { key } => OpResult::Count(total(&snapshot.open_table(COUNTERS)?, key)?),
        Op::Append { .. }
        | Op::Count { .. }
        | Op::Rerank { .. }
        | Op::TakeOut { .. }
        | Op::Forget { .. }
        | Op::Publish { .. } => {
            return Ok(None);
        }
    }))
}
