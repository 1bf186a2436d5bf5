//! Reads the audit log from a running service, page by page, and turns it into the lines of an export.
//!
//! The first page says how far the audit log is sealed. Links that are added while the pages are read are left out, so
//! that the export shows one moment, with some unsealed entries at its end.

use super::lines::{self, ExportEntry, ExportHead};
use crate::commands::api_client::{ApiClient, ApiRefusal, ApiRequest};
use crate::http::audit::{AuditItem, AuditPage, LONGEST_PAGE};
use anyhow::Context;
use store::{ChainLink, EntryLink, EntryPlace};

/// Hands the lines of the whole audit log to `take`, a page at a time, unless the service refuses.
pub(super) async fn export(
    client: &ApiClient,
    mut take: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<Result<(), ApiRefusal>> {
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
            lines::write(&mut out, &ExportHead::new(page.tenant, seal))?;
        }
        write_page(&mut out, page.entries, page.loose, seal)?;
        take(&out)?;
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(Ok(()));
        }
    }
}

/// Entries and links in the order of their places, each link behind its entry.
fn write_page(
    out: &mut String,
    entries: Vec<AuditItem>,
    loose: Vec<EntryLink>,
    seal: Option<ChainLink>,
) -> anyhow::Result<()> {
    let sealed = |link: &EntryLink| seal.is_some_and(|seal| link.seq <= seal.seq);
    let mut loose = loose.into_iter().filter(sealed).peekable();
    for AuditItem { id, entry, link, .. } in entries {
        let here = EntryPlace::parse(&id).context("the service returned an entry with an unreadable position")?;
        while let Some(early) = loose.next_if(|link| link.entry < here) {
            lines::write(out, &early)?;
        }
        lines::write(out, &ExportEntry { id, entry })?;
        link.filter(sealed).map_or(Ok(()), |link| lines::write(out, &link))?;
    }
    Ok(loose.try_for_each(|link| lines::write(out, &link))?)
}
