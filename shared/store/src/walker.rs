//! Verifying an audit log: entries and links walked side by side, and the first thing that does not fit, by name.
//!
//! Pure, so the store's own streams and an exported file are judged by the same lines. What comes next is held back for
//! a stretch, because whether something is missing or only elsewhere shows in what follows.
//!
//! Not here: where entries and links come from.

use crate::EntryPlace;
use crate::chain::{Chain, ChainLink, EntryLink};
use domain::Tenant;
use std::collections::VecDeque;
use std::fmt;

/// How far ahead is looked for something that is not where it should be.
const AHEAD: usize = 256;
/// If one side is this far ahead, the other one has ended.
const FAR_AHEAD: usize = 4 * AHEAD;

/// What is wrong with an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditLogFlaw {
    /// The entry, or its link, is not what was sealed.
    Edited,
    /// An entry that was sealed is gone, and later ones are there.
    Missing,
    /// The entry is there and its link is gone.
    Unlinked,
    /// It stands elsewhere than when it was sealed.
    Reordered,
    /// Everything from here to the seal is gone.
    Truncated,
    /// It stands where nothing was sealed.
    Inserted,
}

impl AuditLogFlaw {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            AuditLogFlaw::Edited => "edited",
            AuditLogFlaw::Missing => "missing",
            AuditLogFlaw::Unlinked => "unlinked",
            AuditLogFlaw::Reordered => "reordered",
            AuditLogFlaw::Truncated => "truncated",
            AuditLogFlaw::Inserted => "inserted",
        }
    }
}

/// The first bad entry of an audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct ChainBreak {
    /// Which entry of the audit log it is, counted from 1.
    pub seq: u64,
    /// Its place, as far as it is known.
    pub entry: Option<EntryPlace>,
    /// What is wrong with it.
    pub what: AuditLogFlaw,
}

impl fmt::Display for ChainBreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {}", self.seq)?;
        if let Some(entry) = self.entry {
            write!(f, " ({entry})")?;
        }
        write!(f, " is {}", self.what.as_str())
    }
}

/// How much of an audit log was found to be as it was sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedAuditLog {
    /// Entries seen.
    pub entries: u64,
    /// Of these, how many the seal holds.
    pub sealed: u64,
    /// And how many came after it, which nothing vouches for yet.
    pub unsealed: u64,
}

/// Walks an audit log from its first entry to its last.
#[derive(Debug)]
pub struct Walker {
    chain: Chain,
    seal: Option<ChainLink>,
    entries: VecDeque<(EntryPlace, Vec<u8>)>,
    links: VecDeque<EntryLink>,
    newest: Option<EntryPlace>,
    /// How many entries are before the first one.
    before: u64,
    unsealed: u64,
}

impl Walker {
    /// At the beginning of a tenant's audit log, which is sealed as far as `seal`.
    pub fn new(tenant: &Tenant, seal: Option<ChainLink>) -> Walker {
        Walker::behind(tenant, None, seal)
    }

    /// The same behind this link, if there is one; nothing here vouches for it.
    pub fn behind(tenant: &Tenant, start: Option<ChainLink>, seal: Option<ChainLink>) -> Walker {
        let (entries, links) = (VecDeque::new(), VecDeque::new());
        let chain = start.as_ref().map_or_else(|| Chain::of(tenant), Chain::behind);
        let (newest, before) = (start.map(|start| start.entry), chain.len());
        Walker { chain, seal, entries, links, newest, before, unsealed: 0 }
    }

    /// Hands over the next entry, in the order in which they stand.
    pub fn entry(&mut self, id: EntryPlace, body: Vec<u8>) -> Result<(), ChainBreak> {
        self.entries.push_back((id, body));
        self.advance()
    }

    /// Hands over the next link, in the order in which they stand.
    pub fn link(&mut self, link: EntryLink) -> Result<(), ChainBreak> {
        self.links.push_back(link);
        self.advance()
    }

    /// There is no more; tells how much was found to be in order.
    pub fn finish(mut self) -> Result<VerifiedAuditLog, ChainBreak> {
        while self.under_seal() {
            self.step()?;
        }
        if let Some(extra) = self.links.front() {
            return Err(ChainBreak { seq: extra.seq, entry: Some(extra.entry), what: AuditLogFlaw::Inserted });
        }
        self.pass_unsealed()?;
        let sealed = self.chain.len() - self.before;
        Ok(VerifiedAuditLog { entries: sealed + self.unsealed, sealed, unsealed: self.unsealed })
    }

    fn advance(&mut self) -> Result<(), ChainBreak> {
        while self.under_seal() && self.sees_enough() {
            self.step()?;
        }
        if self.under_seal() { Ok(()) } else { self.pass_unsealed() }
    }

    fn under_seal(&self) -> bool {
        self.seal.is_some_and(|seal| self.chain.len() < seal.seq)
    }

    fn sees_enough(&self) -> bool {
        let (entries, links) = (self.entries.len(), self.links.len());
        entries.min(links) > AHEAD || entries.max(links) > FAR_AHEAD
    }

    /// Takes one entry with its link, or tells why that cannot be.
    fn step(&mut self) -> Result<(), ChainBreak> {
        let seq = self.chain.len() + 1;
        let found = |entry: Option<EntryPlace>, what: AuditLogFlaw| Err(ChainBreak { seq, entry, what });
        let present = self.entries.front().map(|(id, _)| *id);
        let Some(link) = self.links.front().copied() else { return found(present, AuditLogFlaw::Truncated) };
        if link.seq != seq {
            let (entry, what) = self.out_of_turn(seq, &link, present);
            return found(entry, what);
        }
        let Some((id, body)) = self.entries.front() else { return found(Some(link.entry), AuditLogFlaw::Truncated) };
        if *id != link.entry {
            let (entry, what) = self.elsewhere(*id, &link);
            return found(Some(entry), what);
        }
        let (last, computed) = (self.seal.filter(|seal| seal.seq == seq), self.chain.link(*id, body));
        if !link.kept.fits(&computed.link) || last.is_some_and(|seal| seal != computed) {
            let fits = |body: &[u8]| link.kept.fits(&self.chain.link(*id, body).link);
            let moved = self.entries.iter().skip(1).take(AHEAD).any(|(_, body)| fits(body));
            return found(Some(*id), if moved { AuditLogFlaw::Reordered } else { AuditLogFlaw::Edited });
        }
        self.chain = Chain::behind(&computed);
        self.newest = Some(link.entry);
        self.entries.pop_front();
        self.links.pop_front();
        Ok(())
    }

    /// The link in front has another number than the next one.
    fn out_of_turn(
        &self,
        seq: u64,
        link: &EntryLink,
        present: Option<EntryPlace>,
    ) -> (Option<EntryPlace>, AuditLogFlaw) {
        if let Some(later) = self.links.iter().take(AHEAD).find(|later| later.seq == seq) {
            return (Some(later.entry), AuditLogFlaw::Reordered);
        }
        if link.seq < seq {
            return (Some(link.entry), AuditLogFlaw::Inserted);
        }
        // If entry and link in front belong together, both of the one before are gone.
        if present == Some(link.entry) { (None, AuditLogFlaw::Missing) } else { (present, AuditLogFlaw::Unlinked) }
    }

    /// The entry in front is another one than the link in front is about.
    fn elsewhere(&self, id: EntryPlace, link: &EntryLink) -> (EntryPlace, AuditLogFlaw) {
        if !self.entries.iter().take(AHEAD).any(|(later, _)| *later == link.entry) {
            return (link.entry, AuditLogFlaw::Missing);
        }
        let known = self.links.iter().take(AHEAD).any(|later| later.entry == id);
        (id, if known { AuditLogFlaw::Reordered } else { AuditLogFlaw::Inserted })
    }

    /// Nothing vouches for these but their own order.
    fn pass_unsealed(&mut self) -> Result<(), ChainBreak> {
        while let Some((id, _)) = self.entries.pop_front() {
            if self.newest.is_some_and(|newest| id <= newest) {
                let seq = self.chain.len() + self.unsealed + 1;
                return Err(ChainBreak { seq, entry: Some(id), what: AuditLogFlaw::Reordered });
            }
            self.newest = Some(id);
            self.unsealed += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
