//! A batch of steps as one pipeline, and its answers back.

use super::slides::TtlMove;
use crate::ops::{Op, OpResult, OpenResult, OpenStep, StreamId, StreamWalk, millis};
use crate::{RecordVersion, StoreError, StoredRecord};
use domain::Moment;
use redis::{Cmd, FromRedisValue, Pipeline, Value};
use std::collections::BTreeMap;
use std::time::Duration;

const SHAPE: StoreError = StoreError::Corrupt { what: "an answer of another shape" };

/// Writes the steps as commands. Those whose answer tells nothing are ignored, so each step leaves one value.
/// Tells which records' ends are moved along, of those that `due` asks for. `open` is the digest of `open.lua`.
pub(super) fn encode<'o>(
    ops: &'o [Op],
    open: &str,
    due: impl Fn(&TtlMove<'_>) -> bool,
) -> (Pipeline, Vec<TtlMove<'o>>) {
    let (mut pipe, mut moved) = (Pipeline::with_capacity(ops.len() * 2), Vec::new());
    let mut grown: BTreeMap<&str, usize> = BTreeMap::new();
    for op in ops {
        match op {
            Op::Get { key } => {
                pipe.add_command(fetch(key));
            }
            Op::Touch { key, span, begins } => {
                pipe.add_command(fetch(key));
                let slide = TtlMove { key, span: *span, begins };
                if due(&slide) {
                    pipe.add_command(ends_if(&slide)).ignore();
                    moved.push(slide);
                }
            }
            Op::Append { stream, body, lives, usage } => {
                let mut add = sized("XADD", 5, stream.len() + body.len() + 2);
                add.arg(stream).arg("*").arg("b").arg(body);
                pipe.add_command(add);
                if let Some(lives) = lives {
                    pipe.add_command(ends(stream, *lives)).ignore();
                }
                if let Some(usage) = usage {
                    *grown.entry(usage).or_default() += body.len();
                }
            }
            Op::Open(step) => {
                pipe.add_command(opening(step, open));
            }
            Op::Count { key, window } => {
                let mut count = sized("INCR", 2, key.len());
                count.arg(key);
                pipe.add_command(count);
                // Only a counter without an end gets one: the window begins with its first call, and a counter that
                // ended between two commands cannot be left without an end for good.
                let mut ends = ends(key, *window);
                ends.arg("NX");
                pipe.add_command(ends).ignore();
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
    // One command for many entries; they are counted with them, or neither is written.
    for (usage, bytes) in grown {
        pipe.cmd("INCRBY").arg(usage).arg(bytes).ignore();
    }
    (pipe, moved)
}

/// A command with room for its words: on the path of every call, growing costs more than writing.
fn sized(name: &str, words: usize, bytes: usize) -> Cmd {
    let mut cmd = Cmd::with_capacity(words, name.len() + bytes);
    cmd.arg(name);
    cmd
}

/// A call of `open.lua` by its digest.
fn opening(step: &OpenStep, digest: &str) -> Cmd {
    let OpenStep { stream, body, minute, caller, tenant_most, caller_most, window, usage, quota } = step;
    let texts = [digest, stream, minute, caller, usage].iter().map(|text| text.len()).sum::<usize>();
    let mut cmd = sized("EVALSHA", 12, texts + body.len() + 72);
    cmd.arg(digest).arg(3).arg(stream).arg(minute).arg(usage);
    cmd.arg(body).arg(tenant_most).arg(caller_most).arg(caller).arg(millis(*window));
    cmd.arg(quota.map_or_else(String::new, |most| most.to_string()));
    cmd
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
        return Err(SHAPE);
    }
    ops.iter().zip(values).map(|(op, value)| answer(op, value)).collect()
}

fn answer(op: &Op, value: Value) -> Result<OpResult, StoreError> {
    match op {
        Op::Get { .. } | Op::Touch { .. } => record(value).map(OpResult::Record),
        Op::Append { .. } => {
            let id: String = from(value)?;
            StreamId::parse(&id).map(OpResult::Appended).ok_or(SHAPE)
        }
        Op::Open(_) => opened(value).map(OpResult::Opened),
        Op::Count { .. } => from(value).map(OpResult::Count),
        Op::Range { .. } | Op::RangeBack { .. } => {
            let members: Vec<(String, f64)> = from(value)?;
            // Ranks are whole and at most 2^53, which a double holds exactly.
            Ok(OpResult::Members(members.into_iter().map(|(member, rank)| (member, rank as u64)).collect()))
        }
        Op::Read { .. } => entries(value).map(OpResult::Entries),
        Op::Total { .. } => from::<Option<i64>>(value)
            .map(|total| OpResult::Count(total.and_then(|total| u64::try_from(total).ok()).unwrap_or_default())),
        Op::Rerank { .. } | Op::TakeOut { .. } | Op::Forget { .. } | Op::Publish { .. } => Ok(OpResult::Done),
        Op::Now => {
            let (secs, micros): (u64, u64) = from(value)?;
            Ok(OpResult::Now(Moment::from_millis(secs.saturating_mul(1000).saturating_add(micros / 1000))))
        }
    }
}

fn opened(value: Value) -> Result<OpenResult, StoreError> {
    let (way, number): (String, i64) = from(value)?;
    // A counter without an end says so by a negative number; it is not worth waiting for.
    let number = u64::try_from(number).unwrap_or_default();
    match way.as_str() {
        "tenant" => Ok(OpenResult::TenantExceeded(Duration::from_millis(number))),
        "caller" => Ok(OpenResult::CallerExceeded(Duration::from_millis(number))),
        "quota" => Ok(OpenResult::QuotaReached),
        id => StreamId::parse(id).map(|id| OpenResult::Appended(id, number)).ok_or(SHAPE),
    }
}

pub(super) fn record(value: Value) -> Result<Option<StoredRecord>, StoreError> {
    match from::<(Option<u64>, Option<Vec<u8>>)>(value)? {
        (Some(version), Some(body)) => Ok(Some(StoredRecord { version: RecordVersion::new(version), body })),
        (None, None) => Ok(None),
        (Some(_), None) | (None, Some(_)) => Err(StoreError::Corrupt { what: "half a record" }),
    }
}

fn entries(value: Value) -> Result<Vec<(StreamId, Vec<u8>)>, StoreError> {
    let entries: Vec<(String, Vec<Vec<u8>>)> = from(value)?;
    let entry = |(id, fields): (String, Vec<Vec<u8>>)| match <[Vec<u8>; 2]>::try_from(fields) {
        Ok([_, body]) => Ok((StreamId::parse(&id).ok_or(SHAPE)?, body)),
        Err(_) => Err(SHAPE),
    };
    entries.into_iter().map(entry).collect()
}

fn from<T: FromRedisValue>(value: Value) -> Result<T, StoreError> {
    T::from_redis_value(value).map_err(|_| SHAPE)
}
