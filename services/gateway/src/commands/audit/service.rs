//! Reads the audit log from a running service, page by page, and turns it into the lines of an export.
//!
//! Checkpoints are read first, so everything they sign is there when the entries are read. The first page of entries
//! says how far the audit log is sealed. Links that are added while the pages are read are left out, so that the export
//! shows one moment, with some unsealed entries at its end.

use crate::commands::api_client::{ApiClient, ApiRefusal, ApiRequest};
use crate::http::audit::checkpoints::CheckpointPage;
use crate::http::audit::{AuditItem, AuditPage, LONGEST_PAGE};
use anyhow::Context;
use archive::{Checkpoint, ExportEntry, ExportHead, write_line};
use std::collections::{HashSet, VecDeque};
use store::{ChainLink, EntryLink, EntryPlace};

/// Hands the lines of the whole audit log to `take`, a page at a time, unless the service refuses. Gives the newest
/// checkpoint that the service knew of before.
pub(super) async fn export(
    client: &ApiClient,
    mut take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Result<Option<Checkpoint>, ApiRefusal>> {
    let (newest, mut checkpoints) = match checkpoints(client).await? {
        Ok(found) => found,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let (mut cursor, mut seal) = (None::<String>, None);
    loop {
        let after = cursor.as_ref().map(|cursor| format!("&after={cursor}")).unwrap_or_default();
        let path = format!("/v1/audit?limit={LONGEST_PAGE}{after}");
        let page: AuditPage = match client.send(ApiRequest::get(&path)).await? {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut out = String::new();
        if cursor.is_none() {
            seal = page.seal;
            write_line(&mut out, &ExportHead::new(page.tenant, page.start, seal))?;
            write_due(&mut out, &mut checkpoints, page.start.map_or(0, |start| start.seq));
        }
        write_page(&mut out, page.entries, page.loose, seal, &mut checkpoints)?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            // Those whose entries are not there, which whoever verifies has to know of.
            write_due(&mut out, &mut checkpoints, u64::MAX);
        }
        take(&out)?;
        if cursor.is_none() {
            return Ok(Ok(newest));
        }
    }
}

type KnownCheckpoints = (Option<Checkpoint>, VecDeque<Checkpoint>);

async fn checkpoints(client: &ApiClient) -> anyhow::Result<Result<KnownCheckpoints, ApiRefusal>> {
    let (mut newest, mut found, mut after) = (None, VecDeque::new(), String::new());
    loop {
        let path = format!("/v1/audit/checkpoints?limit={LONGEST_PAGE}{after}");
        let page: CheckpointPage = match client.send(ApiRequest::get(&path)).await? {
            Ok(page) => page,
            Err(refusal) => return Ok(Err(refusal)),
        };
        if after.is_empty() {
            newest = page.newest;
        }
        for line in page.checkpoints {
            found.push_back(
                Checkpoint::read(line.get()).context("the service returned a checkpoint that cannot be read")?,
            );
        }
        match page.next_cursor {
            Some(next) => after = format!("&after={next}"),
            None => return Ok(Ok((newest, found))),
        }
    }
}

/// Entries and links in the order of their places, each link behind its entry, and checkpoints behind the last entry
/// they sign.
fn write_page(
    out: &mut String,
    entries: Vec<AuditItem>,
    loose: Vec<EntryLink>,
    seal: Option<ChainLink>,
    checkpoints: &mut VecDeque<Checkpoint>,
) -> anyhow::Result<()> {
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
            write_due(out, checkpoints, link.seq);
        }
    }
    Ok(loose.chain(displaced).try_for_each(|link| write_line(out, &link))?)
}

fn write_due(out: &mut String, checkpoints: &mut VecDeque<Checkpoint>, seq: u64) {
    while checkpoints.front().is_some_and(|checkpoint| checkpoint.last <= seq)
        && let Some(checkpoint) = checkpoints.pop_front()
    {
        out.push_str(&checkpoint.to_line());
        out.push('\n');
    }
}
