//! The lines of an export: entries and links in the order of their places, and checkpoints behind the last entry they sign.
//!
//! [`ExportLines`] makes them of pages, wherever those were read; [`StoredExport`] reads the pages from the store. Checkpoints
//! are read first, so everything they sign is there when the entries are read. The first page of entries says how far
//! the audit log is sealed. Links that are added while the pages are read are left out, so that the export shows one
//! moment, with some unsealed entries at its end.

use super::{unread, unshown, whole_page};
use crate::http::audit::{AuditItem, AuditPage, LONGEST_PAGE};
use anyhow::Context;
use archive::{Checkpoint, ExportEntry, ExportHead, write_line};
use domain::Failure;
use std::collections::{HashSet, VecDeque};
use store::{AuditLogPosition, ChainLink, EntryLink, EntryPlace, StreamName, TenantStore};

/// Makes lines of pages.
pub(crate) struct ExportLines {
    checkpoints: VecDeque<Checkpoint>,
    seal: Option<ChainLink>,
    begun: bool,
}

impl ExportLines {
    /// Lines with these checkpoints among them.
    pub(crate) fn new(checkpoints: VecDeque<Checkpoint>) -> ExportLines {
        ExportLines { checkpoints, seal: None, begun: false }
    }

    /// The lines of the next page.
    pub(crate) fn page(&mut self, page: AuditPage) -> anyhow::Result<String> {
        let mut out = String::new();
        if !self.begun {
            (self.begun, self.seal) = (true, page.seal);
            write_line(&mut out, &ExportHead::new(page.tenant, page.start, self.seal))?;
            self.write_due(&mut out, page.start.map_or(0, |start| start.seq));
        }
        self.write_entries(&mut out, page.entries, page.loose)?;
        if page.next_cursor.is_none() {
            // Those whose entries are not there, which whoever verifies has to know of.
            self.write_due(&mut out, u64::MAX);
        }
        Ok(out)
    }

    fn write_entries(
        &mut self,
        out: &mut String,
        entries: Vec<AuditItem>,
        loose: Vec<EntryLink>,
    ) -> anyhow::Result<()> {
        let seal = self.seal;
        let sealed = |link: &EntryLink| seal.is_some_and(|seal| link.seq <= seal.seq);
        // A link whose entry is here stands out of order; it is written behind all others, where nothing sets it right.
        let here: HashSet<EntryPlace> = entries.iter().filter_map(|item| EntryPlace::parse(&item.id)).collect();
        let (displaced, loose): (Vec<EntryLink>, Vec<EntryLink>) =
            loose.into_iter().filter(sealed).partition(|link| here.contains(&link.entry));
        let mut loose = loose.into_iter().peekable();
        for AuditItem { id, entry, link, .. } in entries {
            let here = EntryPlace::parse(&id).context("the service returned an entry with an unreadable position")?;
            while let Some(early) = loose.next_if(|link| link.entry < here) {
                write_line(out, &early)?;
            }
            write_line(out, &ExportEntry { id, contents: None, entry })?;
            if let Some(link) = link.filter(sealed) {
                write_line(out, &link)?;
                self.write_due(out, link.seq);
            }
        }
        Ok(loose.chain(displaced).try_for_each(|link| write_line(out, &link))?)
    }

    fn write_due(&mut self, out: &mut String, seq: u64) {
        while self.checkpoints.front().is_some_and(|checkpoint| checkpoint.last <= seq)
            && let Some(checkpoint) = self.checkpoints.pop_front()
        {
            out.push_str(&checkpoint.to_line());
            out.push('\n');
        }
    }
}

/// The whole audit log of a tenant as it is stored, a page of lines at a time. Whoever makes one has checked the right to it.
pub(crate) struct StoredExport {
    log: TenantStore,
    lines: ExportLines,
    newest: Option<Checkpoint>,
    after: Option<AuditLogPosition>,
    over: bool,
}

impl StoredExport {
    /// Begins with the checkpoints.
    pub(super) async fn of(log: TenantStore) -> Result<StoredExport, Failure> {
        let newest = archive::newest_checkpoint(&log).await.map_err(|error| unread(&error))?;
        let (mut checkpoints, mut after) = (VecDeque::new(), None);
        loop {
            let found = log.read(&StreamName::checkpoints(), after, LONGEST_PAGE).await;
            let found = found.map_err(|error| unread(&error))?;
            let more = found.len() == LONGEST_PAGE;
            for (id, body) in found {
                after = Some(id);
                // One that cannot be read is missing from the chain of checkpoints, which is found.
                checkpoints.extend(Checkpoint::read(&String::from_utf8_lossy(&body)));
            }
            if !more {
                break;
            }
        }
        Ok(StoredExport { log, lines: ExportLines::new(checkpoints), newest, after: None, over: false })
    }

    /// The newest checkpoint by a record of its own, which the list has to reach.
    pub(super) fn newest(&self) -> &Option<Checkpoint> {
        &self.newest
    }

    /// The next lines; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, Failure> {
        if self.over {
            return Ok(None);
        }
        let page = self.log.audit_log(self.after, LONGEST_PAGE).await.map_err(|error| unread(&error))?;
        self.after = page.next;
        self.over = page.next.is_none();
        let page = whole_page(&self.log, page).map_err(|_| unshown())?;
        self.lines.page(page).map(Some).map_err(|_| unshown())
    }
}
