//! The compare-and-set as a call of `commit.lua`.

use crate::commit::Score;
use crate::ops::{RawBeside, RawCommit, StreamId, millis};
use crate::{Committed, RecordVersion, StoreError};
use domain::Moment;
use redis::{Script, ScriptInvocation};
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

pub(super) fn prepare<'s>(script: &'s Script, commit: &RawCommit) -> ScriptInvocation<'s> {
    let mut call = script.prepare_invoke();
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
    call
}

/// What the script answers: which way it went, and two texts whose meaning depends on that.
pub(super) type ScriptReply = (u8, Vec<u8>, Vec<u8>);

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
