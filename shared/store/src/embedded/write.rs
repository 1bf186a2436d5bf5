//! Changing things inside a write transaction: the compare-and-set, the steps of a batch, and the sweep.

use super::read;
use super::tables::{CLOCK, NEVER, Tables};
use crate::commit::Score;
use crate::ops::{
    EnterResult, EnterStep, EntryVerdict, Op, OpResult, RawBeside, RawCommit, RawPlacing, StreamId, StreamWalk, millis,
};
use crate::{Committed, RecordVersion};
use domain::Moment;
use redb::ReadableTable;
use std::time::Duration;

/// How much is swept beside one transaction, so that no call waits long for another's rubbish.
const SWEPT_AT_ONCE: usize = 1_000;

type RedbResult<T> = Result<T, redb::Error>;

/// Whether a slide is worth a synced write. Up to a sixteenth of the span (a minute at most) is left on the table, so
/// that mere reading does not wait for the disk; a session thus ends that much early at worst, never late.
pub(super) fn worth_moving(end: u64, now: Moment, span: Duration) -> bool {
    let slack = (span / 16).min(Duration::from_secs(60));
    now.plus(span - slack).millis() >= end
}

impl Tables<'_> {
    /// The one compare-and-set, judged completely before anything is written.
    pub(super) fn commit(&mut self, commit: &RawCommit, now: Moment) -> RedbResult<Committed> {
        let found = read::record(&self.records, &commit.record, now)?.map(|(record, _)| record);
        let version = found.as_ref().map_or(RecordVersion::NONE, |record| record.version);
        if version.number() != commit.expect {
            return Ok(Committed::Conflict(version, found.map(|record| record.body).unwrap_or_default()));
        }
        if commit.not_after.is_some_and(|last| now > last) {
            return Ok(Committed::Late(now));
        }
        if let Some(no_room) = self.no_room(commit, now)? {
            return Ok(no_room);
        }
        let result = match &commit.body {
            Some(body) => {
                let end = commit.expires.map_or(NEVER, |span| end(now, span));
                self.put_record(&commit.record, version.next(), end, body)?;
                version.next()
            }
            None => {
                self.drop_record(&commit.record)?;
                RecordVersion::NONE
            }
        };
        let mut grown = 0;
        for entry in &commit.append {
            self.append(&entry.stream, &entry.body, entry.lives, now)?;
            grown += signed(entry.body.len() as u64);
        }
        for place in &commit.index {
            let before = self.weight(place)?;
            if self.place(&place.index, &place.member, place.rank, now)? {
                self.prolong(&place.index, place.lives, now)?;
            }
            if let Some(sum) = &place.sum {
                let more = signed(self.weight(place)?) - signed(before);
                self.add(sum, more)?;
                grown += if place.used { more } else { 0 };
            }
        }
        for beside in &commit.beside {
            self.beside(beside, now)?;
            if let RawBeside::Trim { bytes, .. } = beside {
                grown -= signed(*bytes);
            }
        }
        if let Some(usage) = &commit.usage {
            self.add(usage, grown)?;
        }
        Ok(Committed::Done(result, now))
    }

    /// Which room a commit does not find, if any.
    fn no_room(&mut self, commit: &RawCommit, now: Moment) -> RedbResult<Option<Committed>> {
        if let (Some(usage), Some(most)) = (&commit.usage, commit.quota)
            && read::total(&self.counters, usage)? >= most
        {
            return Ok(Some(Committed::NoRoom(None)));
        }
        for (number, room) in commit.rooms.iter().enumerate() {
            let count =
                if room.sum { read::total(&self.counters, &room.key)? } else { self.count_members(&room.key, now)? };
            if count.saturating_add(room.added) > room.most {
                return Ok(Some(Committed::NoRoom(Some(number))));
            }
        }
        Ok(None)
    }

    /// How many members an index has. Walked once and counted along from then on, so that a look costs the same however
    /// many there are.
    fn count_members(&mut self, index: &str, now: Moment) -> RedbResult<u64> {
        self.clear_if_ended(index, now)?;
        let key = members_key(index);
        if let Some((count, _)) = read::counter(&self.counters, &key, now)? {
            return Ok(count);
        }
        let count = read::members(&self.ranks, index, (0, u64::MAX), usize::MAX)?.len() as u64;
        self.counters.insert(key.as_str(), (count, NEVER))?;
        Ok(count)
    }

    /// What a member of an index whose ranks are added up counts for.
    fn weight(&self, place: &RawPlacing) -> RedbResult<u64> {
        let member = (place.index.as_str(), place.member.as_str());
        Ok(match place.sum {
            Some(_) => self.places.get(member)?.map_or(0, |rank| rank.value()),
            None => 0,
        })
    }

    /// Adds to a number that has no end; never below nothing.
    fn add(&mut self, key: &str, more: i64) -> RedbResult<()> {
        if more != 0 {
            let total = read::total(&self.counters, key)?.saturating_add_signed(more);
            self.counters.insert(key, (total, NEVER))?;
        }
        Ok(())
    }

    /// One step of a batch. Wake-ups are sent by the writer, after the transaction.
    pub(super) fn step(&mut self, op: &Op, now: Moment) -> RedbResult<OpResult> {
        Ok(match op {
            Op::Get { key } => OpResult::Record(read::record(&self.records, key, now)?.map(|(record, _)| record)),
            Op::Touch { key, span, begins } => {
                let found = read::record(&self.records, key, now)?.map(|(record, _)| record);
                if let Some(record) = found.as_ref().filter(|record| record.body.starts_with(begins)) {
                    self.put_record(key, record.version, end(now, *span), &record.body)?;
                }
                OpResult::Record(found)
            }
            Op::Total { key } => OpResult::Count(read::total(&self.counters, key)?),
            Op::Rerank { index, members } => {
                for (member, rank) in members {
                    if self.places.get((index.as_str(), member.as_str()))?.is_some() {
                        self.place(index, member, Score::At(*rank), now)?;
                    }
                }
                OpResult::Done
            }
            Op::Place { index, members, lower } => {
                for (member, rank) in members {
                    let old = self.places.get((index.as_str(), member.as_str()))?.map(|old| old.value());
                    if !lower || old.is_none_or(|old| *rank < old) {
                        self.place(index, member, Score::At(*rank), now)?;
                    }
                }
                OpResult::Done
            }
            Op::Enter(step) => OpResult::Entered(self.enter(step, now)?),
            Op::Count { key, window } => OpResult::Count(self.count(key, *window, now)?),
            Op::Range { index, from, to, limit } => {
                let limit = if read::lives(&self.lives, index, now)? { *limit } else { 0 };
                OpResult::Members(read::members(&self.ranks, index, (*from, *to), limit)?)
            }
            Op::RangeBack { index, from, limit } => {
                let limit = if read::lives(&self.lives, index, now)? { *limit } else { 0 };
                OpResult::Members(read::members_back(&self.ranks, index, *from, limit)?)
            }
            Op::Read { stream, walk, limit } => {
                let limit = if read::lives(&self.lives, stream, now)? { *limit } else { 0 };
                OpResult::Entries(read::entries(&self.streams, stream, *walk, limit)?)
            }
            Op::Forget { keys } => {
                keys.iter().try_for_each(|key| self.forget(key))?;
                OpResult::Done
            }
            Op::TakeOut { index, members } => {
                members.iter().try_for_each(|member| self.place(index, member, Score::Out, now).map(drop))?;
                OpResult::Done
            }
            Op::Publish { .. } => OpResult::Done,
            Op::Now => OpResult::Now(now),
        })
    }

    /// Takes out some of what has ended.
    pub(super) fn sweep(&mut self, now: Moment) -> RedbResult<()> {
        let mut ended = Vec::new();
        for entry in self.ends.range::<(u64, &str)>((0, "")..(now.millis(), ""))?.take(SWEPT_AT_ONCE) {
            ended.push(entry?.0.value().1.to_owned());
        }
        ended.iter().try_for_each(|key| self.forget(key))
    }

    /// Writes down how late it is.
    pub(super) fn note_time(&mut self, now: Moment) -> RedbResult<()> {
        self.mark.insert(CLOCK, now.millis())?;
        Ok(())
    }

    fn put_record(&mut self, key: &str, version: RecordVersion, end: u64, body: &[u8]) -> RedbResult<()> {
        let old = self.records.insert(key, (version.number(), end, body))?.map(|old| old.value().1);
        self.move_end(key, old, end)
    }

    fn drop_record(&mut self, key: &str) -> RedbResult<()> {
        let old = self.records.remove(key)?.map(|old| old.value().1);
        self.move_end(key, old, NEVER)
    }

    fn move_end(&mut self, key: &str, old: Option<u64>, new: u64) -> RedbResult<()> {
        if let Some(old) = old.filter(|old| *old != NEVER) {
            self.ends.remove((old, key))?;
        }
        if new != NEVER {
            self.ends.insert((new, key), ())?;
        }
        Ok(())
    }

    fn append(&mut self, stream: &str, body: &[u8], lives: Option<Duration>, now: Moment) -> RedbResult<StreamId> {
        self.clear_if_ended(stream, now)?;
        let last = read::entries(&self.streams, stream, StreamWalk::Before(None), 1)?.pop().map(|(id, _)| id);
        let id = match last {
            Some(last) if last.at >= now => StreamId { at: last.at, seq: last.seq + 1 },
            Some(_) | None => StreamId { at: now, seq: 0 },
        };
        self.streams.insert((stream, id.at.millis(), id.seq), body)?;
        self.prolong(stream, lives, now)?;
        Ok(id)
    }

    /// Moves a member; tells whether it was given a place.
    fn place(&mut self, index: &str, member: &str, rank: Score, now: Moment) -> RedbResult<bool> {
        self.clear_if_ended(index, now)?;
        let old = self.places.get((index, member))?.map(|old| old.value());
        let rank = match rank {
            Score::At(rank) => Some(rank),
            Score::Last => Some(self.highest(index)?.map_or(0, |highest| highest + 1).max(now.millis())),
            Score::Out => None,
            Score::OutUpTo(most) if old.is_some_and(|old| old > most) => return Ok(false),
            Score::OutUpTo(_) => None,
        };
        if let Some(old) = old {
            self.ranks.remove((index, old, member))?;
        }
        match rank {
            Some(rank) => {
                self.places.insert((index, member), rank)?;
                self.ranks.insert((index, rank, member), ())?;
            }
            None => drop(self.places.remove((index, member))?),
        }
        if old.is_some() != rank.is_some() {
            let key = members_key(index);
            if read::counter(&self.counters, &key, now)?.is_some() {
                self.add(&key, if rank.is_some() { 1 } else { -1 })?;
            }
        }
        Ok(rank.is_some())
    }

    /// The highest rank in an index.
    fn highest(&self, index: &str) -> RedbResult<Option<u64>> {
        let last = self.ranks.range::<(&str, u64, &str)>((index, 0, "")..(index, u64::MAX, ""))?.next_back();
        Ok(last.transpose()?.map(|(key, _)| key.value().1))
    }

    fn beside(&mut self, beside: &RawBeside, now: Moment) -> RedbResult<()> {
        match beside {
            RawBeside::Write { key, body, expires } => {
                self.put_record(key, RecordVersion::NONE.next(), expires.map_or(NEVER, |span| end(now, span)), body)
            }
            RawBeside::Replace { key, body } => match read::record(&self.records, key, now)? {
                Some((record, end)) => self.put_record(key, record.version, end, body),
                None => Ok(()),
            },
            RawBeside::End { key, within } => match read::record(&self.records, key, now)? {
                Some((record, old)) => self.put_record(key, record.version, old.min(end(now, *within)), &record.body),
                None => Ok(()),
            },
            RawBeside::Forget { key } => self.forget(key),
            RawBeside::Trim { stream, through, .. } => {
                let gone = (stream.as_str(), 0, 0)..=(stream.as_str(), through.at.millis(), through.seq);
                Ok(self.streams.retain_in::<(&str, u64, u64), _>(gone, |_, _| false)?)
            }
        }
    }

    /// Writes entries together as one item, those of calls only if they are within rate and quota.
    fn enter(&mut self, step: &EnterStep, now: Moment) -> RedbResult<EnterResult> {
        let used = read::total(&self.counters, &step.usage)?;
        let (mut lines, mut verdicts) = (Vec::<&[u8]>::new(), Vec::with_capacity(step.entries.len()));
        let mut grown = 0;
        for entry in &step.entries {
            let verdict = match &entry.judged {
                None => EntryVerdict::Written(0),
                Some(allowed) => match read::refused(&self.counters, &step.minute, allowed, used + grown, now)? {
                    Some(refused) => refused,
                    None => EntryVerdict::Written(self.count_call(step, &allowed.caller, now)?),
                },
            };
            if let EntryVerdict::Written(_) = verdict {
                // With the line's end between two entries; the last one has none.
                grown += entry.body.len() as u64 + u64::from(!lines.is_empty());
                lines.push(&entry.body);
            }
            verdicts.push(verdict);
        }
        self.add(&step.usage, signed(grown))?;
        let left = read::left(&self.counters, &step.minute, now)?;
        let item = match lines.is_empty() {
            true => None,
            false => Some(self.append(&step.stream, &lines.join(&b'\n'), None, now)?),
        };
        Ok(EnterResult { item, left, verdicts })
    }

    /// Counts a call of the tenant and of its caller, whose window ends with the tenant's. Tells the tenant's number.
    fn count_call(&mut self, step: &EnterStep, caller: &str, now: Moment) -> RedbResult<u64> {
        let (calls, window) = read::counter(&self.counters, &step.minute, now)?.unwrap_or((0, end(now, step.window)));
        let caller = read::caller_counter(&step.minute, caller);
        let (callers, _) = read::counter(&self.counters, &caller, now)?.unwrap_or_default();
        self.put_counter(&step.minute, calls + 1, window)?;
        self.put_counter(&caller, callers + 1, window)?;
        Ok(calls + 1)
    }

    fn count(&mut self, key: &str, window: Duration, now: Moment) -> RedbResult<u64> {
        let (count, end) = read::counter(&self.counters, key, now)?.unwrap_or((0, end(now, window)));
        self.put_counter(key, count + 1, end)?;
        Ok(count + 1)
    }

    /// Writes a counter; the sweep takes it out after its end, so callers that are gone leave nothing behind.
    fn put_counter(&mut self, key: &str, count: u64, end: u64) -> RedbResult<()> {
        let old = self.counters.insert(key, (count, end))?.map(|old| old.value().1);
        if old == Some(end) { Ok(()) } else { self.move_end(key, old, end) }
    }

    fn prolong(&mut self, key: &str, lives: Option<Duration>, now: Moment) -> RedbResult<()> {
        if let Some(lives) = lives {
            let end = end(now, lives);
            let old = self.lives.insert(key, end)?.map(|old| old.value());
            self.move_end(key, old, end)?;
        }
        Ok(())
    }

    fn clear_if_ended(&mut self, key: &str, now: Moment) -> RedbResult<()> {
        if read::lives(&self.lives, key, now)? { Ok(()) } else { self.forget(key) }
    }

    /// Takes out whatever stands under a key. A key names one kind of thing only, so the others find nothing.
    fn forget(&mut self, key: &str) -> RedbResult<()> {
        self.drop_record(key)?;
        self.counters.remove(members_key(key).as_str())?;
        let counted = self.counters.remove(key)?.map(|old| old.value().1);
        self.move_end(key, counted, NEVER)?;
        let old = self.lives.remove(key)?.map(|old| old.value());
        self.move_end(key, old, NEVER)?;
        self.streams.retain_in::<(&str, u64, u64), _>((key, 0, 0)..=(key, u64::MAX, u64::MAX), |_, _| false)?;
        for (member, rank) in read::members(&self.ranks, key, (0, u64::MAX), usize::MAX)? {
            self.ranks.remove((key, rank, member.as_str()))?;
            self.places.remove((key, member.as_str()))?;
        }
        Ok(())
    }
}

/// Where the members of an index are counted, once somebody has asked.
fn members_key(index: &str) -> String {
    format!("{index}#")
}

/// Bytes as something that can be taken away from.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn end(now: Moment, span: Duration) -> u64 {
    now.plus(Duration::from_millis(millis(span))).millis()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::RawAppend;
    use redb::ReadableTableMetadata;

    #[test]
    fn a_slide_is_written_only_when_it_moves_the_end_noticeably() {
        let (now, hour) = (Moment::from_secs(10_000), Duration::from_secs(3600));
        let ends_in = |secs| now.plus(Duration::from_secs(secs)).millis();
        assert!(!worth_moving(ends_in(3600), now, hour));
        assert!(!worth_moving(ends_in(3600 - 59), now, hour));
        assert!(worth_moving(ends_in(3600 - 60), now, hour));
        assert!(worth_moving(ends_in(1), now, hour));
        assert!(!worth_moving(NEVER, now, hour), "what is kept for good is not given an end by reading it");
    }

    fn row_counts(tables: &Tables<'_>) -> [u64; 6] {
        let Tables { records, streams, places, ranks, lives, ends, .. } = tables;
        [records.len(), streams.len(), places.len(), ranks.len(), lives.len(), ends.len()].map(Result::unwrap)
    }

    #[test]
    fn the_sweep_takes_out_what_has_ended_and_nothing_else() {
        let database = redb::Database::builder().create_with_backend(redb::backends::InMemoryBackend::new()).unwrap();
        let transaction = database.begin_write().unwrap();
        let mut tables = Tables::open(&transaction).unwrap();
        let commit = |name: &str, lives: Option<Duration>| RawCommit {
            record: format!("record {name}"),
            expect: 0,
            body: Some(vec![1]),
            expires: lives,
            not_after: None,
            append: vec![RawAppend { stream: format!("stream {name}"), body: vec![2], lives }],
            index: vec![RawPlacing {
                index: format!("index {name}"),
                member: "m".into(),
                rank: Score::At(3),
                lives,
                sum: None,
                used: false,
            }],
            beside: vec![],
            wake: None,
            rooms: vec![],
            usage: None,
            quota: None,
        };
        let (then, minute) = (Moment::from_secs(1_000), Duration::from_secs(60));
        for (name, lives) in [("brief", Some(minute)), ("long", Some(minute * 3)), ("kept", None)] {
            assert!(matches!(tables.commit(&commit(name, lives), then).unwrap(), Committed::Done(..)));
        }
        assert_eq!(row_counts(&tables), [3, 3, 3, 3, 4, 6]);

        tables.sweep(then.plus(minute * 2)).unwrap();
        assert_eq!(row_counts(&tables), [2, 2, 2, 2, 2, 3]);
        tables.sweep(then.plus(minute * 4)).unwrap();
        assert_eq!(row_counts(&tables), [1, 1, 1, 1, 0, 0]);
    }
}
