//! The compare-and-set as a call of `commit.lua`.

use super::fault::no_script;
use crate::commit::Score;
use crate::ops::{RawBeside, RawCommit, StreamId, millis};
use crate::{Committed, RecordVersion, StoreError};
use domain::Moment;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue, RedisError, Script, ToRedisArgs, Value};
use std::time::Duration;

const SHAPE: StoreError = StoreError::Corrupt { what: "an answer of commit.lua" };

/// The script; by its digest first, and whole when the server does not know it (any more).
pub(super) fn load() -> Script {
    Script::new(include_str!("../commit.lua"))
}

/// The writing of audit entries, which is one step of a batch.
pub(super) fn load_enter() -> Script {
    Script::new(include_str!("../enter.lua"))
}

/// A call of a script by its digest: keys and arguments gather apart, because all keys stand before all arguments.
#[derive(Default)]
struct ScriptCall {
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl ScriptCall {
    fn key(&mut self, key: &str) -> &mut ScriptCall {
        self.keys.push(key.as_bytes().to_owned());
        self
    }

    fn arg(&mut self, arg: impl ToRedisArgs) -> &mut ScriptCall {
        self.args.extend(arg.to_redis_args());
        self
    }

    fn command(self, digest: &str) -> Cmd {
        let bytes = self.keys.iter().chain(&self.args).map(Vec::len).sum::<usize>();
        let mut cmd = Cmd::with_capacity(3 + self.keys.len() + self.args.len(), bytes + digest.len() + 16);
        cmd.arg("EVALSHA").arg(digest).arg(self.keys.len());
        self.keys.iter().chain(&self.args).for_each(|word| {
            cmd.arg(word.as_slice());
        });
        cmd
    }
}

/// The call that makes a change. `digest` is that of `commit.lua`.
pub(super) fn prepare(digest: &str, commit: &RawCommit) -> Cmd {
    let mut call = ScriptCall::default();
    // A commit of no tenant counts nothing; its record stands in for the counter.
    call.key(&commit.record).key(commit.usage.as_ref().unwrap_or(&commit.record));
    call.arg(commit.expect).arg(u8::from(commit.body.is_some())).arg(commit.body.as_deref().unwrap_or_default());
    call.arg(span(commit.expires)).arg(number(commit.not_after.map(Moment::millis)));
    call.arg(commit.append.len()).arg(commit.index.len());
    let (channel, text) = commit.wake.as_ref().map_or(("", ""), |(channel, text)| (channel, text));
    call.arg(channel).arg(text);
    call.arg(commit.rooms.len()).arg(commit.beside.len());
    call.arg(if commit.usage.is_some() { "1" } else { "" }).arg(number(commit.quota));
    for entry in &commit.append {
        call.key(&entry.stream).arg(entry.body.as_slice()).arg(span(entry.lives));
    }
    for place in &commit.index {
        call.key(&place.index).arg(&place.member).arg(rank(place.rank)).arg(span(place.lives));
        call.arg(match (&place.sum, place.used) {
            (None, _) => "",
            (Some(_), false) => "apart",
            (Some(_), true) => "used",
        });
        if let Some(sum) = &place.sum {
            call.key(sum);
        }
    }
    for beside in &commit.beside {
        match beside {
            RawBeside::Write { key, body, expires } => {
                call.key(key).arg("write").arg(body.as_slice()).arg(span(*expires))
            }
            RawBeside::Replace { key, body } => call.key(key).arg("replace").arg(body.as_slice()).arg(""),
            RawBeside::End { key, within } => call.key(key).arg("end").arg("").arg(span(Some(*within))),
            RawBeside::Forget { key } => call.key(key).arg("forget").arg("").arg(""),
            RawBeside::Trim { stream, through, bytes } => {
                let first_kept = StreamId { seq: through.seq.saturating_add(1), ..*through };
                call.key(stream).arg("trim").arg(first_kept.to_string()).arg(*bytes)
            }
        };
    }
    for room in &commit.rooms {
        call.key(&room.key).arg(if room.sum { "sum" } else { "members" }).arg(room.most).arg(room.added);
    }
    call.command(digest)
}

/// Makes a change on this very connection; two more round trips when the server has forgotten the script.
pub(super) async fn invoke(
    script: &Script,
    commit: &RawCommit,
    connection: &mut MultiplexedConnection,
) -> Result<ScriptReply, RedisError> {
    let call = prepare(script.get_hash(), commit);
    match call.query_async(connection).await {
        Err(error) if no_script(&error) => {
            script.prepare_invoke().load_async(connection).await?;
            call.query_async(connection).await
        }
        answered => answered,
    }
}

/// What the script answers: which way it went, and two texts whose meaning depends on that.
pub(super) type ScriptReply = (u8, Vec<u8>, Vec<u8>);

/// Reads what the script answered.
pub(super) fn answer(value: Value) -> Result<Committed, StoreError> {
    read(ScriptReply::from_redis_value(value).map_err(|_| SHAPE)?)
}

pub(super) fn read((way, first, second): ScriptReply) -> Result<Committed, StoreError> {
    match way {
        1 => Ok(Committed::Done(RecordVersion::new(parse(&first)?), Moment::from_millis(parse(&second)?))),
        2 => Ok(Committed::Conflict(RecordVersion::new(parse(&first)?), second)),
        3 => Ok(Committed::Late(Moment::from_millis(parse(&second)?))),
        4 if first.is_empty() => Ok(Committed::NoRoom(None)),
        4 => Ok(Committed::NoRoom(Some(usize::try_from(parse(&first)?).map_err(|_| SHAPE)?))),
        _ => Err(SHAPE),
    }
}

fn parse(digits: &[u8]) -> Result<u64, StoreError> {
    std::str::from_utf8(digits).ok().and_then(|text| text.parse().ok()).ok_or(SHAPE)
}

fn span(span: Option<Duration>) -> String {
    number(span.map(millis))
}

/// How the script reads a place; see there.
fn rank(rank: Score) -> String {
    match rank {
        Score::At(rank) => rank.to_string(),
        Score::Last => "last".to_owned(),
        Score::Out => String::new(),
        Score::OutUpTo(most) => format!("<{most}"),
    }
}

fn number(number: Option<u64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}
