//! Reading an audit log together with its links: page by page for whoever wants to see it, whole for whoever doubts it.
//!
//! The seal is read first and bounds what is read after it. So an audit log that is sealed meanwhile never looks broken:
//! an entry under the seal was there before the seal was, and so was its link.
//!
//! Not here: what makes an audit log a good one (see [`Walker`]).

use crate::chain::{ChainLink, EntryLink, LinkBatch};
use crate::ops::{Op, StreamId, StreamWalk};
use crate::place::entries_of;
use crate::seal::seal_of;
use crate::walker::{AuditLogFlaw, ChainBreak, VerifiedAuditLog, Walker};
use crate::{EntryPlace, StoreError, StreamName, TenantStore};
use domain::Moment;
use std::collections::VecDeque;
use std::fmt;

/// Items that are read at once: each may hold many entries.
const ITEMS: usize = 64;
/// Batches of links that are read at once.
const BATCHES: usize = 64;
/// A page ends once it holds so many bytes, however few entries that are.
const PAGE_BYTES: usize = 4 << 20;

/// Where a page of the audit log ended, in both streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditLogPosition {
    entry: EntryPlace,
    link: StreamId,
}

/// Before everything; no entry stands here, because the store's clock is far beyond it.
const START: StreamId = StreamId { at: Moment::from_millis(0), seq: 0 };

impl AuditLogPosition {
    /// Before everything that was written at this moment or later. What seals an entry is written after it.
    pub fn before(at: Moment) -> AuditLogPosition {
        let item = StreamId { at, seq: 0 }.before();
        AuditLogPosition { entry: EntryPlace { item, index: u32::MAX }, link: item }
    }

    /// Right before this entry, so that a page from here begins with it.
    pub fn before_entry(place: EntryPlace) -> AuditLogPosition {
        let item = place.item.before();
        let entry = match place.index.checked_sub(1) {
            Some(index) => EntryPlace { item: place.item, index },
            None => EntryPlace { item, index: u32::MAX },
        };
        AuditLogPosition { entry, link: item }
    }

    const START: AuditLogPosition = AuditLogPosition { entry: EntryPlace { item: START, index: 0 }, link: START };

    /// Reads what [`Display`](fmt::Display) wrote.
    pub fn parse(text: &str) -> Option<AuditLogPosition> {
        // The place of the entry may hold a dot of its own.
        let (entry, link) = text.rsplit_once('.')?;
        let place = AuditLogPosition { entry: EntryPlace::parse(entry)?, link: StreamId::parse(link)? };
        let nowhere = |id| StreamWalk::After(Some(id)).leads_nowhere();
        (!nowhere(place.entry.item) && !nowhere(place.link)).then_some(place)
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
    pub id: EntryPlace,
    /// What was written.
    pub body: Vec<u8>,
    /// Its link; `None` as long as it is not sealed.
    pub link: Option<EntryLink>,
}

/// A stretch of the audit log, oldest entry first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLogPage {
    /// The link behind which the audit log begins, if older entries have left the store.
    pub start: Option<ChainLink>,
    /// How far the audit log was sealed before this page was read.
    pub seal: Option<ChainLink>,
    /// The entries.
    pub entries: Vec<LinkedEntry>,
    /// Links of this stretch that belong to no entry in it. There are none unless somebody meddled.
    pub loose: Vec<EntryLink>,
    /// Where the next page begins; `None` if there was nothing behind this one.
    pub next: Option<AuditLogPosition>,
    /// Where this page ended, to read on once there is more; where it began if it is empty.
    pub end: Option<AuditLogPosition>,
}

/// A stretch of the audit log, newest entry first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditLogPageBack {
    /// The link behind which the audit log begins, if older entries have left the store.
    pub start: Option<ChainLink>,
    /// How far the audit log was sealed before this page was read.
    pub seal: Option<ChainLink>,
    /// The entries.
    pub entries: Vec<LinkedEntry>,
    /// Links of this stretch that belong to no entry in it. There are none unless somebody meddled.
    pub loose: Vec<EntryLink>,
    /// Before which entry the next page ends; `None` if there was nothing before this one.
    pub next: Option<EntryPlace>,
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
    /// Entries of the audit log behind `after`, with their links: at most `limit`, and fewer where they are large.
    pub async fn audit_log(&self, after: Option<AuditLogPosition>, limit: usize) -> Result<AuditLogPage, StoreError> {
        let (asked_after, limit) = (after, limit.max(1));
        let after = after.unwrap_or(AuditLogPosition::START);
        let asked = limit.saturating_add(1);
        // The item in which the last page ended may hold more, so it is read again; that is one item more.
        let ops = [
            self.read_seal(),
            self.read_trim(),
            self.behind(&StreamName::audit(), after.entry.item.before(), items_for(limit)),
            self.behind(&StreamName::links(), after.link, asked.min(BATCHES)),
        ];
        let mut answers = self.run(&ops).await?;
        let seal = answers.record()?.map(|record| seal_of(&record)).transpose()?;
        let start = self.trim_of(answers.record()?)?.map(|trim| trim.link);
        let (items, mut links) = (answers.entries()?, answers.entries()?);
        let (entries, more) = self.page_of(after.entry, items, limit).await?;
        let entries = entries.into_iter().map(|(id, body)| LinkedEntry { id, body, link: None }).collect();
        let mut page =
            LinkedPage { after, seal, entries, loose: Vec::new(), more, link: after.link, newest: after.entry };
        // Links of entries on earlier pages, sealed since then, come first; there may be many.
        while page.take(&links) && links.len() == asked.min(BATCHES) {
            links = self.read(&StreamName::links(), Some(page.link), asked.min(BATCHES)).await?;
        }
        let end = page.last().map(|entry| AuditLogPosition { entry, link: page.link }).or(asked_after);
        Ok(AuditLogPage { start, seal, entries: page.entries, loose: page.loose, next: end.filter(|_| more), end })
    }

    /// Entries of the audit log before `before`, with their links, newest first: at most `limit`, and fewer where they are
    /// large. Their places are found from the end; then they are read in order, because links stand in order.
    pub async fn audit_log_back(
        &self,
        before: Option<EntryPlace>,
        limit: usize,
    ) -> Result<AuditLogPageBack, StoreError> {
        let (places, more) = self.places_before(before, limit.max(1)).await?;
        let after = places.last().map(|first| AuditLogPosition::before_entry(*first));
        let page = self.audit_log(after, places.len()).await?;
        let AuditLogPage { start, seal, mut entries, loose, .. } = page;
        // What was written since stands behind the page.
        entries.retain(|entry| places.contains(&entry.id));
        entries.reverse();
        Ok(AuditLogPageBack { start, seal, entries, loose, next: places.last().copied().filter(|_| more) })
    }

    /// The places of the entries of a page, newest first, and whether there are more.
    async fn places_before(
        &self,
        before: Option<EntryPlace>,
        limit: usize,
    ) -> Result<(Vec<EntryPlace>, bool), StoreError> {
        let (mut places, mut bytes, asked) = (Vec::new(), 0, items_for(limit));
        // The item of `before` may hold more, so it is read again.
        let mut from = before.map(|before| before.item.behind());
        loop {
            let items = self.read_back(&StreamName::audit(), from, asked).await?;
            let ended = items.len() < asked;
            from = items.last().map(|(id, _)| *id);
            let entries = items.into_iter().flat_map(|item| entries_of(item).into_iter().rev());
            for (place, body) in entries.filter(|(place, _)| before.is_none_or(|before| *place < before)) {
                bytes += body.len();
                if places.len() == limit || (bytes > PAGE_BYTES && !places.is_empty()) {
                    return Ok((places, true));
                }
                places.push(place);
            }
            if ended {
                return Ok((places, false));
            }
        }
    }

    /// The entries of a page, and whether there are more; the first items are there already.
    async fn page_of(
        &self,
        after: EntryPlace,
        mut items: Vec<(StreamId, Vec<u8>)>,
        limit: usize,
    ) -> Result<(Vec<(EntryPlace, Vec<u8>)>, bool), StoreError> {
        let (mut page, mut bytes, asked) = (Vec::new(), 0, items_for(limit));
        loop {
            let (count, last) = (items.len(), items.last().map(|(id, _)| *id));
            for (place, body) in items.into_iter().flat_map(entries_of).filter(|(place, _)| *place > after) {
                if page.len() == limit || bytes >= PAGE_BYTES {
                    return Ok((page, true));
                }
                bytes += body.len();
                page.push((place, body));
            }
            if count < asked {
                return Ok((page, false));
            }
            items = self.read(&StreamName::audit(), last, asked).await?;
        }
    }

    /// Computes the whole chain again and names the first entry that is not as it was sealed.
    pub async fn verify(&self) -> Result<VerifiedAuditLog, VerifyError> {
        let seal = self.find_seal().await.map_err(VerifyError::Unread)?;
        let start = self.trimmed().await.map_err(VerifyError::Unread)?.map(|trim| trim.link);
        let mut walker = Walker::behind(self.tenant(), start, seal);
        let (mut entries, mut links, mut beyond) = (StreamReader::new(ITEMS), StreamReader::new(BATCHES), None);
        loop {
            let link = match beyond {
                None => links.next(self, &StreamName::links(), links_of).await?,
                Some(_) => None,
            };
            let entry = entries.next(self, &StreamName::audit(), entries_of).await?;
            match link {
                Some(link) if seal.is_some_and(|seal| link.seq <= seal.seq) => {
                    walker.link(link).map_err(VerifyError::Broken)?;
                }
                // Written since the seal was read, or by somebody who is no sealer.
                Some(link) => beyond = Some(link),
                None if entry.is_none() => break,
                None => {}
            }
            if let Some((place, body)) = entry {
                walker.entry(place, body).map_err(VerifyError::Broken)?;
            }
        }
        let verified = walker.finish().map_err(VerifyError::Broken)?;
        match beyond {
            Some(link) => self.is_under_seal(&link).await.map(|()| verified),
            None => Ok(verified),
        }
    }

    /// A link is written together with the seal, so a seal read after the link must reach as far.
    async fn is_under_seal(&self, link: &EntryLink) -> Result<(), VerifyError> {
        let seal = self.find_seal().await.map_err(VerifyError::Unread)?;
        if seal.is_some_and(|seal| link.seq <= seal.seq) {
            return Ok(());
        }
        Err(VerifyError::Broken(ChainBreak { seq: link.seq, entry: Some(link.entry), what: AuditLogFlaw::Inserted }))
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
    loose: Vec<EntryLink>,
    more: bool,
    /// The last link that was looked at.
    link: StreamId,
    /// The entry of the last link that was given away: links stand in the order of their entries.
    newest: EntryPlace,
}

impl LinkedPage {
    fn last(&self) -> Option<EntryPlace> {
        self.entries.last().map(|entry| entry.id)
    }

    /// Takes the links of this page; `false` once one belongs to a later page, or is not under the seal.
    fn take(&mut self, links: &[(StreamId, Vec<u8>)]) -> bool {
        let end = self.last().filter(|_| self.more);
        for (id, body) in links {
            // A batch that reaches into the next page is read again with that one.
            for link in LinkBatch::read(body).iter().flat_map(LinkBatch::links) {
                let early = self.seal.is_none_or(|seal| link.seq > seal.seq);
                if early || end.is_some_and(|end| link.entry > end) {
                    return false;
                }
                if link.entry > self.after.entry {
                    self.pair(link);
                }
            }
            self.link = *id;
        }
        true
    }

    fn pair(&mut self, link: EntryLink) {
        if link.entry <= self.newest {
            self.loose.push(link);
            return;
        }
        self.newest = link.entry;
        let found = self.entries.binary_search_by_key(&link.entry, |entry| entry.id);
        match found.ok().map(|at| &mut self.entries[at].link) {
            Some(free @ None) => *free = Some(link),
            Some(Some(_)) | None => self.loose.push(link),
        }
    }
}

/// How many items may be needed for a page: one that is read again, and one behind the page that tells of more.
fn items_for(limit: usize) -> usize {
    limit.saturating_add(2).min(ITEMS)
}

/// The links of a batch; none if that is not one of ours.
fn links_of((_, body): (StreamId, Vec<u8>)) -> Vec<EntryLink> {
    LinkBatch::read(&body).iter().flat_map(LinkBatch::links).collect()
}

/// Reads a stream to its end, item by item, and hands out what the items hold.
struct StreamReader<T> {
    /// Behind which item to read on; `None` at the end.
    after: Option<StreamId>,
    items: VecDeque<(StreamId, Vec<u8>)>,
    held: VecDeque<T>,
    at_once: usize,
}

impl<T> StreamReader<T> {
    fn new(at_once: usize) -> StreamReader<T> {
        StreamReader { after: Some(START), items: VecDeque::new(), held: VecDeque::new(), at_once }
    }

    async fn next(
        &mut self,
        shelf: &TenantStore,
        stream: &StreamName,
        split: impl Fn((StreamId, Vec<u8>)) -> Vec<T>,
    ) -> Result<Option<T>, VerifyError> {
        loop {
            if let Some(next) = self.held.pop_front() {
                return Ok(Some(next));
            }
            if let Some(item) = self.items.pop_front() {
                self.held = split(item).into();
                continue;
            }
            let Some(after) = self.after else { return Ok(None) };
            let page = shelf.read(stream, Some(after), self.at_once).await.map_err(VerifyError::Unread)?;
            self.after = page.last().map(|(id, _)| *id).filter(|_| page.len() == self.at_once);
            self.items = page.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_back_as_itself_and_nothing_else_reads_as_one() {
        for text in ["1763280000000-3.1763280000999-0", "1763280000000-3.7.1763280000999-0"] {
            assert_eq!(AuditLogPosition::parse(text).map(|place| place.to_string()).as_deref(), Some(text));
        }
        let end = "18446744073709551615-18446744073709551615";
        for bad in ["", ".", "1-0", "1-0.", ".1-0", "1-0.1", "1-0.1-0.1-0", "a.b", &format!("{end}.0-0")] {
            assert_eq!(AuditLogPosition::parse(bad), None, "{bad}");
        }
        assert_eq!(AuditLogPosition::parse(&format!("0-0.{end}")), None);
    }
}
