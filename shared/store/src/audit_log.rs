//! Reading an audit log together with its links: page by page for whoever wants to see it, whole for whoever doubts it.
//!
//! The seal is read first and bounds what is read after it. So an audit log that is sealed meanwhile never looks broken:
//! an entry under the seal was there before the seal was, and so was its link.
//!
//! Not here: what makes an audit log a good one (see [`Walker`]).

use crate::chain::ChainLink;
use crate::ops::{Op, StreamId, StreamWalk};
use crate::seal::{link_of, seal_of};
use crate::walker::{AuditLogFlaw, ChainBreak, VerifiedAuditLog, Walker};
use crate::{StoreError, StreamName, TenantStore};
use domain::Moment;
use std::fmt;

/// Entries and links that are read at once while verifying.
const PAGE: usize = 512;

/// Where a page of the audit log ended, in both streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLogPosition {
    entry: StreamId,
    link: StreamId,
}

/// Before everything; no entry stands here, because the store's clock is far beyond it.
const START: StreamId = StreamId { at: Moment::from_millis(0), seq: 0 };

impl AuditLogPosition {
    const START: AuditLogPosition = AuditLogPosition { entry: START, link: START };

    /// Reads what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Option<AuditLogPosition> {
        let (entry, link) = text.split_once('.')?;
        let place = AuditLogPosition { entry: StreamId::parse(entry)?, link: StreamId::parse(link)? };
        let nowhere =
            StreamWalk::After(Some(place.entry)).leads_nowhere() || StreamWalk::After(Some(place.link)).leads_nowhere();
        (!nowhere).then_some(place)
    }
}

impl fmt::Display for AuditLogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.entry, self.link)
    }
}

/// One entry, byte for byte, and its link if it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedEntry {
    /// Its place.
    pub id: StreamId,
    /// What was written.
    pub body: Vec<u8>,
    /// Its link; `None` as long as it is not sealed.
    pub link: Option<ChainLink>,
}

/// A stretch of the audit log, oldest entry first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLogPage {
    /// How far the audit log was sealed before this page was read.
    pub seal: Option<ChainLink>,
    /// The entries.
    pub entries: Vec<LinkedEntry>,
    /// Links of this stretch that belong to no entry in it. There are none unless somebody meddled.
    pub loose: Vec<ChainLink>,
    /// Where the next page begins; `None` if there was nothing behind this one.
    pub next: Option<AuditLogPosition>,
}

/// Why an audit log was not found to be in order.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It is not.
    #[error("the audit log is not as it was sealed")]
    Broken(#[source] ChainBreak),
    /// It could not be read.
    #[error("the audit log could not be read to its end")]
    Unread(#[source] StoreError),
}

impl TenantStore {
    /// Entries of the audit log behind `after`, with their links.
    pub async fn audit_log(&self, after: Option<AuditLogPosition>, limit: usize) -> Result<AuditLogPage, StoreError> {
        let (after, limit) = (after.unwrap_or(AuditLogPosition::START), limit.max(1));
        // One more than asked for tells whether there is more, of entries and of links.
        let asked = limit.saturating_add(1);
        let (entries, links) = (
            self.behind(&StreamName::audit(), after.entry, asked),
            self.behind(&StreamName::links(), after.link, asked),
        );
        let mut answers = self.run(&[self.read_seal(), entries, links]).await?;
        let seal = answers.record()?.map(|record| seal_of(&record)).transpose()?;
        let (mut entries, mut links) = (answers.entries()?, answers.entries()?);
        let more = entries.len() > limit;
        entries.truncate(limit);
        let entries = entries.into_iter().map(|(id, body)| LinkedEntry { id, body, link: None }).collect();
        let mut page = LinkedPage { after, seal, entries, loose: Vec::new(), more, link: after.link };
        // Links of entries on earlier pages, sealed since then, come first; there may be many.
        while page.take(&links) && links.len() == asked {
            links = self.read(&StreamName::links(), Some(page.link), asked).await?;
        }
        let next = page.last().filter(|_| more).map(|entry| AuditLogPosition { entry, link: page.link });
        Ok(AuditLogPage { seal, entries: page.entries, loose: page.loose, next })
    }

    /// Computes the whole chain again and names the first entry that is not as it was sealed.
    pub async fn verify(&self) -> Result<VerifiedAuditLog, VerifyError> {
        let seal = self.find_seal().await.map_err(VerifyError::Unread)?;
        let mut walker = Walker::new(self.tenant(), seal);
        let (mut entries_at, mut links_at, mut beyond) = (Some(START), Some(START), None);
        while let (Some(_), _) | (_, Some(_)) = (entries_at, links_at) {
            let links = self.next(&StreamName::links(), &mut links_at).await?;
            for link in links.iter().filter_map(link_of) {
                if seal.is_some_and(|seal| link.seq <= seal.seq) {
                    walker.link(link).map_err(VerifyError::Broken)?;
                } else {
                    // Written since the seal was read, or by somebody who is no sealer.
                    (links_at, beyond) = (None, Some(link));
                    break;
                }
            }
            for (id, body) in self.next(&StreamName::audit(), &mut entries_at).await? {
                walker.entry(id, body).map_err(VerifyError::Broken)?;
            }
        }
        let verified = walker.finish().map_err(VerifyError::Broken)?;
        match beyond {
            Some(link) => self.is_under_seal(&link).await.map(|()| verified),
            None => Ok(verified),
        }
    }

    /// A link is written together with the seal, so a seal read after the link must reach as far.
    async fn is_under_seal(&self, link: &ChainLink) -> Result<(), VerifyError> {
        let seal = self.find_seal().await.map_err(VerifyError::Unread)?;
        if seal.is_some_and(|seal| link.seq <= seal.seq) {
            return Ok(());
        }
        Err(VerifyError::Broken(ChainBreak { seq: link.seq, entry: Some(link.entry), what: AuditLogFlaw::Inserted }))
    }

    /// The next page of a stream; at its end the place becomes `None`.
    async fn next(
        &self,
        stream: &StreamName,
        place: &mut Option<StreamId>,
    ) -> Result<Vec<(StreamId, Vec<u8>)>, VerifyError> {
        let Some(after) = *place else { return Ok(Vec::new()) };
        let page = self.read(stream, Some(after), PAGE).await.map_err(VerifyError::Unread)?;
        *place = page.last().map(|(id, _)| *id).filter(|_| page.len() == PAGE);
        Ok(page)
    }

    fn behind(&self, stream: &StreamName, place: StreamId, limit: usize) -> Op {
        Op::Read { stream: self.space.stream(stream), walk: StreamWalk::After(Some(place)), limit }
    }
}

/// A page that is being given its links.
struct LinkedPage {
    after: AuditLogPosition,
    seal: Option<ChainLink>,
    entries: Vec<LinkedEntry>,
    loose: Vec<ChainLink>,
    more: bool,
    /// The last link that was looked at.
    link: StreamId,
}

impl LinkedPage {
    fn last(&self) -> Option<StreamId> {
        self.entries.last().map(|entry| entry.id)
    }

    /// Takes the links of this page; `false` once one belongs to a later page, or is not under the seal.
    fn take(&mut self, links: &[(StreamId, Vec<u8>)]) -> bool {
        let end = self.last().filter(|_| self.more);
        for stored in links {
            if let Some(link) = link_of(stored) {
                let early = self.seal.is_none_or(|seal| link.seq > seal.seq);
                if early || end.is_some_and(|end| link.entry > end) {
                    return false;
                }
                if link.entry > self.after.entry {
                    self.pair(link);
                }
            }
            self.link = stored.0;
        }
        true
    }

    fn pair(&mut self, link: ChainLink) {
        let found = self.entries.binary_search_by_key(&link.entry, |entry| entry.id);
        match found.ok().map(|at| &mut self.entries[at].link) {
            Some(free @ None) => *free = Some(link),
            Some(Some(_)) | None => self.loose.push(link),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_itself_and_nothing_else_reads_as_one() {
        let text = "1763280000000-3.1763280000999-0";
        assert_eq!(AuditLogPosition::parse(text).map(|place| place.to_string()).as_deref(), Some(text));
        let end = "18446744073709551615-18446744073709551615";
        for bad in ["", ".", "1-0", "1-0.", ".1-0", "1-0.1", "1-0.1-0.1-0", "a.b", &format!("{end}.0-0")] {
            assert_eq!(AuditLogPosition::parse(bad), None, "{bad}");
        }
        assert_eq!(AuditLogPosition::parse(&format!("0-0.{end}")), None);
    }
}
