//! A batch of steps as one pipeline, and its answers back.

use super::packed::{is_packed, pack, unpack};
use super::slides::TtlMove;
use crate::ops::{CallAllowance, EnterResult, EnterStep, EntryVerdict, Op, OpResult, StreamId, StreamWalk, millis};
use crate::{RecordVersion, StoreError, StoredRecord};
use domain::Moment;
use redis::{Cmd, FromRedisValue, Pipeline, Value};
use std::borrow::Cow;
use std::time::Duration;

const SHAPE: &str = "an answer of another shape";
pub(super) const ODD: StoreError = StoreError::Corrupt { what: SHAPE };

/// The key whose slot a step belongs to; a step without one can be taken anywhere.
pub(super) fn routed_by(op: &Op) -> Option<&str> {
    match op {
        Op::Get { key } | Op::Touch { key, .. } | Op::Count { key, .. } | Op::Total { key } => Some(key),
        Op::Enter(step) => Some(&step.stream),
        Op::Range { index, .. }
        | Op::RangeBack { index, .. }
        | Op::Rerank { index, .. }
        | Op::Place { index, .. }
        | Op::TakeOut { index, .. } => Some(index),
        Op::Read { stream, .. } => Some(stream),
        Op::Forget { keys } => keys.first().map(String::as_str),
        // Any node would do; the tenant's own is the one that is asked anyway.
        Op::Publish { channel, .. } => Some(channel),
        Op::Now => None,
    }
}

/// Writes the steps as commands. Those whose answer tells nothing are told by their places, so that each step leaves one
/// value without them.
/// Tells which records' ends are moved along, of those that `due` asks for.
pub(super) fn encode<'o>(
    ops: &'o [Op],
    enter: &EnterScript<'_>,
    due: impl Fn(&TtlMove<'_>) -> bool,
) -> (Pipeline, Vec<usize>, Vec<TtlMove<'o>>) {
    let (mut pipe, mut ignored, mut moved) = (Pipeline::with_capacity(ops.len() * 2), Vec::new(), Vec::new());
    for op in ops {
        match op {
            Op::Get { key } => {
                pipe.add_command(fetch(key));
            }
            Op::Touch { key, span, begins } => {
                pipe.add_command(fetch(key));
                let slide = TtlMove { key, span: *span, begins };
                if due(&slide) {
                    ignored.push(pipe.len());
                    pipe.add_command(ends_if(&slide));
                    moved.push(slide);
                }
            }
            Op::Enter(step) => {
                pipe.add_command(entering(step, enter));
            }
            Op::Count { key, window } => {
                let mut count = sized("INCR", 2, key.len());
                count.arg(key);
                pipe.add_command(count);
                // Only a counter without an end gets one: the window begins with its first call, and a counter that
                // ended between two commands cannot be left without an end for good.
                let mut ends = ends(key, *window);
                ends.arg("NX");
                ignored.push(pipe.len());
                pipe.add_command(ends);
            }
            Op::Range { index, from, to, limit } => range(&mut pipe, index, (*from, *to), *limit),
            Op::RangeBack { index, from, limit } => {
                let cmd = pipe.cmd("ZREVRANGEBYSCORE").arg(index).arg("+inf").arg(from);
                cmd.arg("WITHSCORES").arg("LIMIT").arg(0).arg(most(*limit));
            }
            Op::Read { stream, walk, limit } => read(&mut pipe, stream, *walk, *limit),
            Op::Forget { keys } => {
                pipe.cmd("UNLINK").arg(keys);
            }
            Op::Total { key } => {
                pipe.cmd("GET").arg(key);
            }
            Op::Rerank { index, members } => {
                let add = pipe.cmd("ZADD").arg(index).arg("XX");
                for (member, rank) in members {
                    add.arg(rank).arg(member);
                }
            }
            Op::Place { index, members, lower } => {
                let add = pipe.cmd("ZADD").arg(index);
                if *lower {
                    // Adds who is not there; who is there gets a lower rank or keeps the one it has.
                    add.arg("LT");
                }
                for (member, rank) in members {
                    add.arg(rank).arg(member);
                }
            }
            Op::TakeOut { index, members } => {
                pipe.cmd("ZREM").arg(index).arg(members);
            }
            Op::Publish { channel, text } => {
                pipe.cmd("PUBLISH").arg(channel).arg(text);
            }
            Op::Now => {
                pipe.cmd("TIME");
            }
        }
    }
    (pipe, ignored, moved)
}

/// A command with room for its words: on the path of every call, growing costs more than writing.
fn sized(name: &str, words: usize, bytes: usize) -> Cmd {
    let mut cmd = Cmd::with_capacity(words, name.len() + bytes);
    cmd.arg(name);
    cmd
}

/// How `enter.lua` is called.
pub(super) struct EnterScript<'a> {
    /// Its digest.
    pub(super) digest: &'a str,
    /// Whether the entries of a stream go packed.
    pub(super) packs: &'a (dyn Fn(&str) -> bool + Sync),
}

/// What the script answers instead of a place if it has to look at each entry and cannot, because they are packed.
const PLAIN: &[u8] = b"plain";

/// Whether nothing was written, because the entries were packed and each has to be judged by itself.
pub(super) fn wants_plain(answer: &Value) -> bool {
    let Value::Array(values) = answer else { return false };
    matches!(values.first(), Some(Value::BulkString(first)) if first == PLAIN)
}

/// A call of `enter.lua` by its digest. The entries go as one text and what they are judged by goes once for all of a
/// caller: the script is the dearest thing that a call asks of the server, and it is so by the number of its words.
fn entering(step: &EnterStep, enter: &EnterScript<'_>) -> Cmd {
    let EnterStep { stream, minute, window, usage, entries } = step;
    let mut text = Vec::with_capacity(entries.iter().map(|entry| entry.body.len() + 1).sum());
    let (mut whose, mut judges): (Vec<u8>, Vec<(&CallAllowance, u32)>) =
        (Vec::with_capacity(entries.len()), Vec::new());
    for (number, entry) in entries.iter().enumerate() {
        if number > 0 {
            text.push(b'\n');
        }
        text.extend_from_slice(&entry.body);
        whose.push(entry.judged.as_ref().map_or(0, |judged| judge_of(&mut judges, judged)));
    }
    let packed = if (enter.packs)(stream) { pack(&text) } else { Cow::Borrowed(text.as_slice()) };
    let size = if is_packed(&packed) { text.len().to_string() } else { String::new() };
    let texts = [enter.digest, stream, minute, usage].iter().map(|text| text.len()).sum::<usize>();
    let mut cmd = sized("EVALSHA", 10 + 5 * judges.len(), texts + packed.len() + whose.len() + 128 * judges.len() + 32);
    cmd.arg(enter.digest).arg(3).arg(stream).arg(minute).arg(usage);
    cmd.arg(millis(*window)).arg(&*packed).arg(whose).arg(size);
    for (CallAllowance { caller, tenant_most, caller_most, quota }, openings) in judges {
        cmd.arg(caller).arg(tenant_most).arg(caller_most);
        cmd.arg(quota.map_or_else(String::new, |most| most.to_string())).arg(openings);
    }
    cmd
}

/// Counts an opening under what it is judged by, and tells the number of that, from 1. A batch has fewer entries than a
/// byte has values.
fn judge_of<'a>(judges: &mut Vec<(&'a CallAllowance, u32)>, judged: &'a CallAllowance) -> u8 {
    let known = judges.iter().position(|(known, _)| *known == judged);
    let at = known.unwrap_or_else(|| {
        judges.push((judged, 0));
        judges.len() - 1
    });
    judges[at].1 += 1;
    u8::try_from(at + 1).unwrap_or(u8::MAX)
}

pub(super) fn fetch(key: &str) -> Cmd {
    let mut cmd = sized("HMGET", 4, key.len() + 2);
    cmd.arg(key).arg("v").arg("b");
    cmd
}

fn ends(key: &str, span: Duration) -> Cmd {
    let mut cmd = sized("PEXPIRE", 4, key.len() + 24);
    cmd.arg(key).arg(millis(span));
    cmd
}

/// Moves the end of a record that begins as it should. Sent whole: it is short, and a pipeline cannot be sent again
/// because the server has forgotten a script.
const MOVE_END: &str = "local b = redis.call('HGET', KEYS[1], 'b') \
    if b and string.sub(b, 1, #ARGV[2]) == ARGV[2] then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end \
    return 0";

fn ends_if(slide: &TtlMove<'_>) -> Cmd {
    let mut cmd = sized("EVAL", 6, MOVE_END.len() + slide.key.len() + slide.begins.len() + 24);
    cmd.arg(MOVE_END).arg(1).arg(slide.key).arg(millis(slide.span)).arg(slide.begins);
    cmd
}

fn range(pipe: &mut Pipeline, index: &str, (from, to): (u64, u64), limit: usize) {
    let to = if to == u64::MAX { "+inf".to_owned() } else { to.to_string() };
    let cmd = pipe.cmd("ZRANGEBYSCORE").arg(index).arg(from).arg(to);
    cmd.arg("WITHSCORES").arg("LIMIT").arg(0).arg(most(limit));
}

fn read(pipe: &mut Pipeline, stream: &str, walk: StreamWalk, limit: usize) {
    let behind = |id: Option<StreamId>, end: &str| id.map_or_else(|| end.to_owned(), |id| format!("({id}"));
    match walk {
        StreamWalk::After(id) => pipe.cmd("XRANGE").arg(stream).arg(behind(id, "-")).arg("+"),
        StreamWalk::Before(id) => pipe.cmd("XREVRANGE").arg(stream).arg(behind(id, "+")).arg("-"),
    }
    .arg("COUNT")
    .arg(most(limit));
}

/// Redis counts with a sign, and reads a negative limit as none.
fn most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Reads the answers, one value per step.
pub(super) fn decode(ops: &[Op], values: Vec<Value>) -> Result<Vec<OpResult>, StoreError> {
    if ops.len() != values.len() {
        return Err(StoreError::Corrupt { what: SHAPE });
    }
    // An answer that cannot be read is the matter of whoever asked for it: others may stand in the same batch.
    Ok(ops.iter().zip(values).map(|(op, value)| answer(op, value).unwrap_or_else(OpResult::Unreadable)).collect())
}

fn answer(op: &Op, value: Value) -> Result<OpResult, &'static str> {
    match op {
        Op::Get { .. } | Op::Touch { .. } => read_record(value).map(OpResult::Record),
        Op::Enter(step) => entered(step, value).map(OpResult::Entered),
        Op::Count { .. } => from(value).map(OpResult::Count),
        Op::Range { .. } | Op::RangeBack { .. } => {
            let members: Vec<(String, f64)> = from(value)?;
            // Ranks are whole and at most 2^53, which a double holds exactly.
            Ok(OpResult::Members(members.into_iter().map(|(member, rank)| (member, rank as u64)).collect()))
        }
        Op::Read { .. } => entries(value).map(OpResult::Entries),
        Op::Total { .. } => from::<Option<i64>>(value)
            .map(|total| OpResult::Count(total.and_then(|total| u64::try_from(total).ok()).unwrap_or_default())),
        Op::Rerank { .. } | Op::Place { .. } | Op::TakeOut { .. } | Op::Forget { .. } | Op::Publish { .. } => {
            Ok(OpResult::Done)
        }
        Op::Now => {
            let (secs, micros): (u64, u64) = from(value)?;
            Ok(OpResult::Now(Moment::from_millis(secs.saturating_mul(1000).saturating_add(micros / 1000))))
        }
    }
}

fn entered(step: &EnterStep, value: Value) -> Result<EnterResult, &'static str> {
    let mut values = from::<Vec<Value>>(value)?.into_iter();
    let mut next = || values.next().ok_or(SHAPE);
    let (item, left, before): (String, u64, u64) = (from(next()?)?, from(next()?)?, from(next()?)?);
    let item = if item.is_empty() { None } else { Some(StreamId::parse(&item).ok_or(SHAPE)?) };
    let mut verdicts: Vec<EntryVerdict> = values.map(|value| verdict(from(value)?)).collect::<Result<_, _>>()?;
    // Every one was written, and the calls among them were counted in their order.
    if verdicts.is_empty() {
        let mut calls = before;
        verdicts.extend(step.entries.iter().map(|entry| {
            calls += u64::from(entry.judged.is_some());
            EntryVerdict::Written(if entry.judged.is_some() { calls } else { 0 })
        }));
    }
    let written = verdicts.iter().any(|verdict| matches!(verdict, EntryVerdict::Written(_)));
    if verdicts.len() != step.entries.len() || written != item.is_some() {
        return Err(SHAPE);
    }
    Ok(EnterResult { item, left: Duration::from_millis(left), verdicts })
}

fn verdict(number: i64) -> Result<EntryVerdict, &'static str> {
    match (number, u64::try_from(number)) {
        (_, Ok(calls)) => Ok(EntryVerdict::Written(calls)),
        (-1, _) => Ok(EntryVerdict::TenantExceeded),
        (-2, _) => Ok(EntryVerdict::CallerExceeded),
        (-3, _) => Ok(EntryVerdict::QuotaReached),
        (_, Err(_)) => Err(SHAPE),
    }
}

/// A record that stands alone in its answer.
pub(super) fn record(value: Value) -> Result<Option<StoredRecord>, StoreError> {
    read_record(value).map_err(|what| StoreError::Corrupt { what })
}

fn read_record(value: Value) -> Result<Option<StoredRecord>, &'static str> {
    match from::<(Option<u64>, Option<Vec<u8>>)>(value)? {
        (Some(version), Some(body)) => Ok(Some(StoredRecord { version: RecordVersion::new(version), body })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err("half a record"),
    }
}

fn entries(value: Value) -> Result<Vec<(StreamId, Vec<u8>)>, &'static str> {
    let entries: Vec<(String, Vec<Vec<u8>>)> = from(value)?;
    let entry = |(id, fields): (String, Vec<Vec<u8>>)| match <[Vec<u8>; 2]>::try_from(fields) {
        Ok([_, body]) => {
            Ok((StreamId::parse(&id).ok_or(SHAPE)?, unpack(body).ok_or("a packed text of another shape")?))
        }
        Err(_) => Err(SHAPE),
    };
    entries.into_iter().map(entry).collect()
}

fn from<T: FromRedisValue>(value: Value) -> Result<T, &'static str> {
    T::from_redis_value(value).map_err(|_| SHAPE)
}
