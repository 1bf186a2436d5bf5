//! The small steps a round trip is made of, below tenants and above the backends.
//!
//! A batch of them is one pipeline on Redis and one transaction in the embedded store. The compare-and-set is not
//! among them: it must be alone, because a script that Redis has forgotten is sent a second time.

use crate::commit::Score;
use crate::{StoreError, StoredRecord};
use domain::Moment;
use std::time::Duration;

/// The place of an entry in its stream: the store's milliseconds, and a number within them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId {
    /// When it was appended, by the store's clock.
    pub at: Moment,
    /// Which of the entries of that millisecond it is.
    pub seq: u64,
}

impl StreamId {
    /// The place right before this one, so that reading behind it begins here.
    pub(crate) fn before(self) -> StreamId {
        match (self.at.millis(), self.seq) {
            (0, 0) => self,
            (at, 0) => StreamId { at: Moment::from_millis(at - 1), seq: u64::MAX },
            (_, seq) => StreamId { at: self.at, seq: seq - 1 },
        }
    }

    /// The place right behind this one, so that reading before it begins here.
    pub(crate) fn behind(self) -> StreamId {
        match (self.at.millis(), self.seq) {
            (u64::MAX, u64::MAX) => self,
            (at, u64::MAX) => StreamId { at: Moment::from_millis(at + 1), seq: 0 },
            (_, seq) => StreamId { at: self.at, seq: seq + 1 },
        }
    }

    /// Reads the text form `<milliseconds>-<number>`.
    pub fn parse(text: &str) -> Option<StreamId> {
        let (at, seq) = text.split_once('-')?;
        Some(StreamId { at: Moment::from_millis(at.parse().ok()?), seq: seq.parse().ok()? })
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.at.millis(), self.seq)
    }
}

/// Which way a stream is read, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum StreamWalk {
    /// Oldest first, beginning behind this entry.
    After(Option<StreamId>),
    /// Newest first, beginning before this entry.
    Before(Option<StreamId>),
}

impl StreamWalk {
    /// Whether the walk begins at the very end of all places. Places come back from clients as cursors, and an empty
    /// interval is an error on Redis.
    pub(crate) fn leads_nowhere(self) -> bool {
        let end = |at: u64, seq: u64| Some(StreamId { at: Moment::from_millis(at), seq });
        match self {
            StreamWalk::After(id) => id == end(u64::MAX, u64::MAX),
            StreamWalk::Before(id) => id == end(0, 0),
        }
    }
}

/// A record as a server holds it, and whether enough of its replicas have all it was told before.
#[derive(Debug, Clone)]
pub(crate) struct HeldRecord {
    pub(crate) record: Option<StoredRecord>,
    pub(crate) enough: bool,
}

/// One step. Keys are full keys, made by `keys`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    Get {
        key: String,
    },
    /// Reads a record, and moves its expiry if it is there and begins with these bytes: whoever may not use a record
    /// does not prolong it.
    Touch {
        key: String,
        span: Duration,
        begins: Vec<u8>,
    },
    /// Appends entries of the audit log as one item, each unless its call is over the rate or the quota.
    Enter(EnterStep),
    /// Adds one to a counter that ends that long after it began.
    Count {
        key: String,
        window: Duration,
    },
    Range {
        index: String,
        from: u64,
        to: u64,
        limit: usize,
    },
    /// Members of at least this rank, highest first.
    RangeBack {
        index: String,
        from: u64,
        limit: usize,
    },
    Read {
        stream: String,
        walk: StreamWalk,
        limit: usize,
    },
    /// Reads a number that only ever grows and shrinks by what is written.
    Total {
        key: String,
    },
    /// Moves members that are in an index to another rank.
    Rerank {
        index: String,
        members: Vec<(String, u64)>,
    },
    /// Gives members a rank in an index, whether they are in it or not; with `lower`, none gets a higher one.
    Place {
        index: String,
        members: Vec<(String, u64)>,
        lower: bool,
    },
    /// Takes members out of an index.
    TakeOut {
        index: String,
        members: Vec<String>,
    },
    /// Deletes whatever stands under the keys.
    Forget {
        keys: Vec<String>,
    },
    Publish {
        channel: String,
        text: String,
    },
    Now,
}

/// Entries of one tenant's audit log that are written together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EnterStep {
    pub(crate) stream: String,
    /// Where the tenant's calls of the window are counted; those of the callers stand beside them.
    pub(crate) minute: String,
    pub(crate) window: Duration,
    /// Where the tenant's bytes are counted.
    pub(crate) usage: String,
    pub(crate) entries: Vec<EntryStep>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EntryStep {
    pub(crate) body: Vec<u8>,
    /// What the opening of a call is judged by; any other entry is written in any case.
    pub(crate) judged: Option<CallAllowance>,
}

/// The most there may have been before a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CallAllowance {
    /// The field of the caller.
    pub(crate) caller: String,
    pub(crate) tenant_most: u64,
    pub(crate) caller_most: u64,
    /// How many bytes there may be.
    pub(crate) quota: Option<u64>,
}

/// What became of entries that were written together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnterResult {
    /// Where the item stands; `None` if every call was refused.
    pub(crate) item: Option<StreamId>,
    /// For how long the calls of the window stay used up, if they are.
    pub(crate) left: Duration,
    /// What became of each, in their order.
    pub(crate) verdicts: Vec<EntryVerdict>,
}

/// What became of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryVerdict {
    /// It was written; the opening of a call was the tenant's so manieth of the window, and of anything else it is 0.
    Written(u64),
    /// The tenant's calls are used up.
    TenantExceeded,
    /// The caller's calls are used up.
    CallerExceeded,
    /// The tenant's part of the store is used up.
    QuotaReached,
}

/// What a step gave, in the order of the steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OpResult {
    Entered(EnterResult),
    Record(Option<StoredRecord>),
    Count(u64),
    Members(Vec<(String, u64)>),
    Entries(Vec<(StreamId, Vec<u8>)>),
    Done,
    Now(Moment),
    /// The answer to this step alone could not be read.
    Unreadable(&'static str),
}

/// The answers of one batch, taken one by one.
pub(crate) struct OpResults(std::vec::IntoIter<OpResult>);

const MIXED_UP: StoreError = StoreError::Corrupt { what: "an answer of another kind than asked for" };

impl OpResults {
    pub(crate) fn new(answers: Vec<OpResult>) -> OpResults {
        OpResults(answers.into_iter())
    }

    fn next(&mut self) -> Result<OpResult, StoreError> {
        match self.0.next() {
            Some(OpResult::Unreadable(what)) => Err(StoreError::Corrupt { what }),
            Some(answer) => Ok(answer),
            None => Err(MIXED_UP),
        }
    }

    pub(crate) fn record(&mut self) -> Result<Option<StoredRecord>, StoreError> {
        let OpResult::Record(record) = self.next()? else { return Err(MIXED_UP) };
        Ok(record)
    }

    pub(crate) fn entered(&mut self) -> Result<EnterResult, StoreError> {
        let OpResult::Entered(entered) = self.next()? else { return Err(MIXED_UP) };
        Ok(entered)
    }

    pub(crate) fn done(&mut self) -> Result<(), StoreError> {
        let OpResult::Done = self.next()? else { return Err(MIXED_UP) };
        Ok(())
    }

    pub(crate) fn count(&mut self) -> Result<u64, StoreError> {
        let OpResult::Count(count) = self.next()? else { return Err(MIXED_UP) };
        Ok(count)
    }

    pub(crate) fn members(&mut self) -> Result<Vec<(String, u64)>, StoreError> {
        let OpResult::Members(members) = self.next()? else { return Err(MIXED_UP) };
        Ok(members)
    }

    pub(crate) fn entries(&mut self) -> Result<Vec<(StreamId, Vec<u8>)>, StoreError> {
        let OpResult::Entries(entries) = self.next()? else { return Err(MIXED_UP) };
        Ok(entries)
    }

    pub(crate) fn now(&mut self) -> Result<Moment, StoreError> {
        let OpResult::Now(now) = self.next()? else { return Err(MIXED_UP) };
        Ok(now)
    }

    /// Those that were not taken yet.
    pub(crate) fn rest(self) -> Vec<OpResult> {
        self.0.collect()
    }
}

/// A commit with its keys written out, as the backends take it.
#[derive(Debug, Clone)]
pub(crate) struct RawCommit {
    pub(crate) record: String,
    pub(crate) expect: u64,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) expires: Option<Duration>,
    pub(crate) not_after: Option<Moment>,
    pub(crate) append: Vec<RawAppend>,
    pub(crate) index: Vec<RawPlacing>,
    pub(crate) beside: Vec<RawBeside>,
    pub(crate) wake: Option<(String, String)>,
    pub(crate) rooms: Vec<RawRoom>,
    /// Where the tenant's bytes are counted.
    pub(crate) usage: Option<String>,
    /// How many there may be before the change.
    pub(crate) quota: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct RawRoom {
    pub(crate) key: String,
    /// Whether the key is a sum, and not an index whose members count.
    pub(crate) sum: bool,
    pub(crate) added: u64,
    pub(crate) most: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct RawAppend {
    pub(crate) stream: String,
    pub(crate) body: Vec<u8>,
    pub(crate) lives: Option<Duration>,
}

#[derive(Debug, Clone)]
pub(crate) struct RawPlacing {
    pub(crate) index: String,
    pub(crate) member: String,
    pub(crate) rank: Score,
    pub(crate) lives: Option<Duration>,
    /// Where the ranks of this index are added up, if they are.
    pub(crate) sum: Option<String>,
    /// Whether that sum is a part of the bytes stored for the tenant.
    pub(crate) used: bool,
}

#[derive(Debug, Clone)]
pub(crate) enum RawBeside {
    Write { key: String, body: Vec<u8>, expires: Option<Duration> },
    Replace { key: String, body: Vec<u8> },
    End { key: String, within: Duration },
    Forget { key: String },
    Trim { stream: String, through: StreamId, bytes: u64 },
}

/// Whole milliseconds, at least one: an expiry of nothing would be an error on Redis.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX).clamp(1, LONGEST_MILLIS)
}

/// A thousand years. Redis refuses spans whose end does not fit its clock.
const LONGEST_MILLIS: u64 = 31_557_600_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_stream_reads_back_as_itself() {
        let id = StreamId { at: Moment::from_millis(1_763_280_000_000), seq: 7 };
        assert_eq!(StreamId::parse(&id.to_string()), Some(id));
        for bad in ["", "-", "1", "1-", "-1", "1-2-3", "a-b", "99999999999999999999-0", "1 -2"] {
            assert_eq!(StreamId::parse(bad), None, "{bad}");
        }
    }
}
