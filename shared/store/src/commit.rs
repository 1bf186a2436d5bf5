//! One all-or-nothing change inside one tenant, and how it ended.
//!
//! The record, what is appended or kept beside it, its place in indexes and the wake-up cannot disagree, because they
//! are written together or not at all. What a change means is pure Rust elsewhere; here are only versions and the clock.

use crate::{IndexName, RecordKey, StreamId, StreamName, Topic};
use domain::Moment;
use std::time::Duration;

/// Counts the changes of one record. A record that was deleted and made anew starts again at 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordVersion(u64);

impl RecordVersion {
    /// No record.
    pub const NONE: RecordVersion = RecordVersion(0);

    /// From its number.
    pub const fn new(number: u64) -> RecordVersion {
        RecordVersion(number)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }

    pub(crate) const fn next(self) -> RecordVersion {
        RecordVersion(self.0.saturating_add(1))
    }
}

/// A record as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// How often it was changed.
    pub version: RecordVersion,
    /// What it holds.
    pub body: Vec<u8>,
}

/// One member's new place in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexUpdate {
    /// The index.
    pub index: IndexName,
    /// The member.
    pub member: String,
    /// Where it will stand.
    pub rank: Score,
}

/// Where a member of an index will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// Here: usually a moment's milliseconds, at most 2^53.
    At(u64),
    /// Above every other member, at the store's milliseconds or later. Chosen inside the change, so whoever has read up
    /// to some rank misses nothing by asking for what stands above it.
    Last,
    /// Nowhere.
    Out,
    /// Nowhere, unless it stands above this by now.
    OutUpTo(u64),
}

impl From<Option<u64>> for Score {
    fn from(rank: Option<u64>) -> Score {
        rank.map_or(Score::Out, Score::At)
    }
}

/// What happens to something that has no version of its own, because it only changes together with the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SideWrite {
    /// A record is written, whatever was there, to be forgotten that long after.
    Write(RecordKey, Vec<u8>, Option<Duration>),
    /// A record gets another body and keeps its end, if it is there at all.
    Replace(RecordKey, Vec<u8>),
    /// A record will be forgotten that long after, or sooner if it was to be; if it is there at all.
    End(RecordKey, Duration),
    /// A record is deleted.
    Forget(RecordKey),
    /// A stream is deleted.
    ForgetStream(StreamName),
    /// A stream loses everything up to this entry, this one included, and the tenant's bytes go down by so many.
    Trim(StreamName, StreamId, u64),
}

/// One all-or-nothing change inside one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The versioned record.
    pub record: RecordKey,
    /// The version it must have; [`RecordVersion::NONE`] if it must not exist yet.
    pub expect: RecordVersion,
    /// What it will hold; `None` deletes it.
    pub body: Option<Vec<u8>>,
    /// When it is forgotten, counted from this change; `None` keeps it for good.
    pub expires: Option<Duration>,
    /// The last moment, by the store's own clock, at which the change still counts.
    pub not_after: Option<Moment>,
    /// What is appended beside it.
    pub append: Vec<(StreamName, Vec<u8>)>,
    /// What moves in indexes beside it.
    pub index: Vec<IndexUpdate>,
    /// What else changes beside it.
    pub beside: Vec<SideWrite>,
    /// Whom to wake.
    pub wake: Option<Topic>,
    /// What must have room for the change.
    pub rooms: Vec<Room>,
    /// Whether the change is refused once the tenant's part of the store is used up.
    pub held_to_quota: bool,
}

/// What must have room for a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Room {
    /// An index that must hold fewer members than this before the change.
    Members(IndexName, u64),
    /// An index whose ranks are added up, and may together be at most this.
    Sum {
        /// The index.
        index: IndexName,
        /// How much the change adds.
        added: u64,
        /// The most.
        most: u64,
    },
}

impl Commit {
    /// Writes a record and nothing beside it.
    pub fn write(record: RecordKey, expect: RecordVersion, body: Vec<u8>) -> Commit {
        Commit { body: Some(body), ..Commit::delete(record, expect) }
    }

    /// Deletes a record and does nothing beside it.
    pub fn delete(record: RecordKey, expect: RecordVersion) -> Commit {
        let (append, index, beside) = (Vec::new(), Vec::new(), Vec::new());
        let (body, expires, not_after, wake) = (None, None, None, None);
        let (rooms, held_to_quota) = (Vec::new(), false);
        Commit { record, expect, body, expires, not_after, append, index, beside, wake, rooms, held_to_quota }
    }
}

/// How a commit ended. Only [`Committed::Done`] changed anything.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a conflict or a late change wrote nothing"]
pub enum Committed {
    /// Written, as this version, at this moment. A deletion ends in [`RecordVersion::NONE`].
    Done(RecordVersion, Moment),
    /// The record had another version: this one, with this body, so the caller can fold again without asking.
    /// [`RecordVersion::NONE`] and no bytes when there is no record.
    Conflict(RecordVersion, Vec<u8>),
    /// It was already later than `not_after`; this is the store's time.
    Late(Moment),
    /// This one of the `rooms` was full; none of them, if it was the tenant's part of the store.
    NoRoom(Option<usize>),
}
