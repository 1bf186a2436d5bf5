//! Verifying an audit log from its lines: entries, links and checkpoints, and the first thing that does not fit, by name.
//!
//! Pure: the live audit log and exported files are judged by the same lines. Entries and links are walked by
//! [`Walker`]; beside it the whole chain is computed once more, so that a checkpoint is compared with what the entries lead
//! to and not with what a link claims. Signatures are checked last, with public keys alone, because whoever reads the
//! lines only then knows whether keys are needed.

use crate::checkpoint::{Checkpoint, CheckpointBreak, CheckpointChain, CheckpointFlaw};
use crate::keys::PublicKeys;
use crate::lines::{ExportEntry, ExportHead, ExportLine};
use domain::Tenant;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;
use store::{AuditLogFlaw, Chain, ChainBreak, ChainLink, EntryPlace, VerifiedAuditLog, Walker};

/// How many links are remembered for checkpoints that come later than the entries they sign.
const REMEMBERED: usize = 65_536;
/// From so many sealed entries on, and this time after one was written, a checkpoint must be there: twice what the
/// service takes by default.
const SIGNED_WITHIN: (u64, Duration) = (2_000, Duration::from_secs(2 * 60 * 60));

/// What is wrong with an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArchiveFlaw {
    /// A line is of no kind.
    Unreadable {
        /// Which one, counted from 1.
        line: u64,
    },
    /// An entry or a link.
    Entry(ChainBreak),
    /// A checkpoint.
    Checkpoint(CheckpointBreak),
    /// It does not go on where the lines before it ended.
    Gap {
        /// The first entry that is not there.
        seq: u64,
    },
    /// It holds entries that were there already, or those of another history.
    Forked {
        /// The entry at which it parts.
        seq: u64,
    },
    /// It is of another tenant than the lines before it.
    Foreign,
    /// It begins behind an entry that no checkpoint vouches for.
    Unfounded {
        /// That entry.
        seq: u64,
    },
}

impl ArchiveFlaw {
    /// In one word, for programs.
    pub fn word(&self) -> &'static str {
        match self {
            ArchiveFlaw::Unreadable { .. } => "unreadable",
            ArchiveFlaw::Entry(flaw) => flaw.what.as_str(),
            ArchiveFlaw::Checkpoint(flaw) => flaw.what.as_str(),
            ArchiveFlaw::Gap { .. } => "missing",
            ArchiveFlaw::Forked { .. } => "forked",
            ArchiveFlaw::Foreign => "foreign",
            ArchiveFlaw::Unfounded { .. } => "unfounded",
        }
    }
}

impl fmt::Display for ArchiveFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArchiveFlaw::Unreadable { line } => write!(f, "line {line} is not a line of an exported audit log"),
            ArchiveFlaw::Entry(flaw) => flaw.fmt(f),
            ArchiveFlaw::Checkpoint(flaw) => flaw.fmt(f),
            ArchiveFlaw::Gap { seq } => {
                write!(f, "entry {seq} is missing, and everything up to where this file begins")
            }
            ArchiveFlaw::Forked { seq } => write!(f, "entry {seq} is forked: this file holds another history"),
            ArchiveFlaw::Foreign => write!(f, "this file is of another tenant"),
            ArchiveFlaw::Unfounded { seq } => {
                write!(f, "the audit log begins behind entry {seq}, and no checkpoint vouches for that")
            }
        }
    }
}

/// How much was found to be in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedArchive {
    /// Whose audit log it is.
    pub tenant: Tenant,
    /// The entry behind which it begins; 0 for the beginning.
    pub after: u64,
    /// Entries seen.
    pub entries: u64,
    /// Of these, how many are sealed.
    pub sealed: u64,
    /// And how many came after, which nothing vouches for yet.
    pub unsealed: u64,
    /// Checkpoints seen.
    pub checkpoints: u64,
    /// The last entry that a checkpoint signs; 0 if there is none.
    pub signed: u64,
}

/// What an archive is held to besides itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expectations<'a> {
    /// The keys that checkpoints are signed with.
    pub keys: Option<&'a PublicKeys>,
    /// Checkpoints that were kept elsewhere and must be among those of the archive.
    pub known: &'a [Checkpoint],
    /// Whether this is all there is: what it begins behind must be signed, and so must all checkpoints be there.
    pub whole: bool,
}

/// An archive that is being read, line by line. Several files are read one after the other.
#[derive(Default)]
pub struct ArchiveReader {
    start: Option<Start>,
    walker: Option<Walker>,
    chain: Option<Chain>,
    /// The link of the last entry, as it was computed.
    end: Option<ChainLink>,
    /// Those behind the last checkpoint.
    unsigned: VecDeque<ChainLink>,
    checkpoints: Vec<Checkpoint>,
    /// Checkpoints whose last entry is still to come.
    ahead: BTreeMap<u64, Checkpoint>,
    contradicted: Option<Checkpoint>,
    seen: (u64, u64, u64),
    lines: u64,
}

/// Where an archive begins.
struct Start {
    tenant: Tenant,
    after: Option<ChainLink>,
    /// Whether whoever wrote it made checkpoints.
    signs: bool,
}

impl ArchiveReader {
    /// Whether there are checkpoints, for which keys are needed.
    pub fn has_checkpoints(&self) -> bool {
        !self.checkpoints.is_empty()
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.start.is_none()
    }

    /// Reads the next line.
    pub fn line(&mut self, text: &str) -> Result<(), ArchiveFlaw> {
        self.lines += 1;
        let unreadable = ArchiveFlaw::Unreadable { line: self.lines };
        let Some(walker) = &mut self.walker else {
            let head = ExportHead::read(text).and_then(|head| Some((Tenant::parse(&head.tenant).ok()?, head)));
            return head.ok_or(unreadable).and_then(|(tenant, head)| self.head(tenant, &head));
        };
        match ExportLine::read(text) {
            Some(ExportLine::Link(link)) => walker.link(link).map_err(|flaw| self.first(flaw)),
            Some(ExportLine::Checkpoint(checkpoint)) => {
                self.checkpoint(*checkpoint);
                Ok(())
            }
            Some(ExportLine::Entry(ExportEntry { id, contents, entry })) => match EntryPlace::parse(&id) {
                Some(place) => {
                    self.entry(place, entry.get().as_bytes())?;
                    let fits = contents.is_none_or(|contents| contents.fit(entry.get().as_bytes()));
                    if fits { Ok(()) } else { Err(self.bent_contents(place)) }
                }
                None => Err(unreadable),
            },
            None => Err(unreadable),
        }
    }

    /// The file has ended; the next line is the head of another one.
    pub fn end_of_file(&mut self) -> Result<(), ArchiveFlaw> {
        self.lines = 0;
        let Some(walker) = self.walker.take() else { return Ok(()) };
        let VerifiedAuditLog { entries, sealed, unsealed } = walker.finish().map_err(|flaw| self.first(flaw))?;
        self.seen = (self.seen.0 + entries, self.seen.1 + sealed, self.seen.2 + unsealed);
        Ok(())
    }

    /// There is no more; tells how much was found to be in order. `None` if there was nothing.
    pub fn finish(mut self, expected: Expectations<'_>) -> Result<Option<VerifiedArchive>, ArchiveFlaw> {
        self.end_of_file()?;
        let Some(Start { tenant, after, signs }) = self.start.take() else { return Ok(None) };
        let bad =
            |checkpoint: u64, what: CheckpointFlaw| Err(ArchiveFlaw::Checkpoint(CheckpointBreak { checkpoint, what }));
        if let Some(checkpoint) = &self.contradicted {
            return bad(checkpoint.checkpoint, CheckpointFlaw::Contradicted);
        }
        if !self.ahead.is_empty() {
            let seq = self.end.or(after).map_or(0, |end| end.seq) + 1;
            return Err(ArchiveFlaw::Entry(ChainBreak { seq, entry: None, what: AuditLogFlaw::Truncated }));
        }
        let mut signed = None;
        if let Some(keys) = expected.keys {
            let mut chain = CheckpointChain::new(&tenant, keys, after.is_some() && !expected.whole);
            for checkpoint in &self.checkpoints {
                signed = Some(chain.take(checkpoint.clone()).map_err(ArchiveFlaw::Checkpoint)?.clone());
            }
        }
        for known in expected.known {
            match self.checkpoints.iter().find(|checkpoint| checkpoint.checkpoint == known.checkpoint) {
                Some(checkpoint) if checkpoint == known => {}
                Some(_) => return bad(known.checkpoint, CheckpointFlaw::Forked),
                None => return bad(known.checkpoint, CheckpointFlaw::Missing),
            }
        }
        if let Some(after) = after.filter(|_| expected.whole)
            && !self.checkpoints.iter().any(|checkpoint| checkpoint.ends_at(&after))
        {
            return Err(ArchiveFlaw::Unfounded { seq: after.seq });
        }
        if signs && self.lacks_a_checkpoint() {
            return bad(self.checkpoints.last().map_or(0, |last| last.checkpoint) + 1, CheckpointFlaw::Absent);
        }
        let (entries, sealed, unsealed) = self.seen;
        let (after, signed) = (after.map_or(0, |after| after.seq), signed.map_or(0, |signed| signed.last));
        let checkpoints = self.checkpoints.len() as u64;
        Ok(Some(VerifiedArchive { tenant, after, entries, sealed, unsealed, checkpoints, signed }))
    }

    fn head(&mut self, tenant: Tenant, head: &ExportHead) -> Result<(), ArchiveFlaw> {
        match &self.start {
            None => {
                self.chain = Some(head.after.as_ref().map_or_else(|| Chain::of(&tenant), Chain::behind));
                self.start = Some(Start { tenant: tenant.clone(), after: head.after, signs: head.signs() });
            }
            Some(start) if start.tenant != tenant => return Err(ArchiveFlaw::Foreign),
            Some(start) => {
                let (ended, begins) = (self.end.or(start.after), head.after);
                let (last, seq) = (ended.map_or(0, |end| end.seq), begins.map_or(0, |after| after.seq));
                match seq.cmp(&last) {
                    Ordering::Greater => return Err(ArchiveFlaw::Gap { seq: last + 1 }),
                    Ordering::Equal if ended == begins => {}
                    Ordering::Less | Ordering::Equal => return Err(ArchiveFlaw::Forked { seq: seq + 1 }),
                }
            }
        }
        self.walker = Some(Walker::behind(&tenant, head.after, head.seal));
        Ok(())
    }

    fn entry(&mut self, place: EntryPlace, body: &[u8]) -> Result<(), ArchiveFlaw> {
        if let Some(chain) = &mut self.chain {
            let link = chain.add(place, body);
            self.end = Some(link);
            self.unsigned.push_back(link);
            if self.unsigned.len() > REMEMBERED {
                self.unsigned.pop_front();
            }
            if let Some(checkpoint) = self.ahead.remove(&link.seq) {
                self.compare(checkpoint, &link);
            }
        }
        let walker = self.walker.as_mut().ok_or(ArchiveFlaw::Unreadable { line: self.lines })?;
        let walked = walker.entry(place, body.to_vec());
        walked.map_err(|flaw| self.first(flaw))
    }

    fn checkpoint(&mut self, checkpoint: Checkpoint) {
        let after = self.start.as_ref().and_then(|start| start.after);
        let (begin, last) = (after.map_or(0, |after| after.seq), checkpoint.last);
        self.checkpoints.push(checkpoint.clone());
        let computed = match after.filter(|after| after.seq == last) {
            Some(after) => Some(after),
            None => self.unsigned.iter().find(|link| link.seq == last).copied(),
        };
        match computed {
            Some(link) => self.compare(checkpoint, &link),
            // The entries that it signs were before the first one here.
            None if last < begin => {}
            None if last > self.end.map_or(begin, |end| end.seq) => {
                self.ahead.insert(last, checkpoint);
            }
            None => self.contradicted = self.contradicted.take().or(Some(checkpoint)),
        }
    }

    fn compare(&mut self, checkpoint: Checkpoint, link: &ChainLink) {
        if checkpoint.ends_at(link) && checkpoint.entry == link.entry.to_string() {
            while self.unsigned.front().is_some_and(|early| early.seq <= link.seq) {
                self.unsigned.pop_front();
            }
        } else {
            self.contradicted = self.contradicted.take().or(Some(checkpoint));
        }
    }

    /// What stands beside an entry is not what its digest says.
    fn bent_contents(&self, place: EntryPlace) -> ArchiveFlaw {
        let seq = self.end.map_or(0, |end| end.seq);
        ArchiveFlaw::Entry(ChainBreak { seq, entry: Some(place), what: AuditLogFlaw::Edited })
    }

    /// Which of two flaws comes first: that of an entry, or that of a checkpoint over entries before it.
    fn first(&self, flaw: ChainBreak) -> ArchiveFlaw {
        match self.contradicted.as_ref().filter(|checkpoint| checkpoint.last < flaw.seq) {
            Some(checkpoint) => ArchiveFlaw::Checkpoint(CheckpointBreak {
                checkpoint: checkpoint.checkpoint,
                what: CheckpointFlaw::Contradicted,
            }),
            None => ArchiveFlaw::Entry(flaw),
        }
    }

    /// Whether sealed entries have waited longer for a checkpoint than the service lets them.
    fn lacks_a_checkpoint(&self) -> bool {
        let sealed = self.unsigned.len() as u64 - self.seen.2.min(self.unsigned.len() as u64);
        let waited = match (self.unsigned.front(), self.end) {
            (Some(oldest), Some(newest)) => newest.entry.item.at.since(oldest.entry.item.at),
            (None, _) | (_, None) => Duration::ZERO,
        };
        sealed > SIGNED_WITHIN.0 || waited > SIGNED_WITHIN.1
    }
}
