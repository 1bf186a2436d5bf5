//! What people do with the audit log, whichever door they come in by: the REST API and the console call these and nothing
//! else.
//!
//! Reading does not seal. A search oldest first reads as many entries as a page without one and leaves out what does not fit;
//! a search newest first goes on until its page is full, within a bound. Verifying reads the whole audit log, and so
//! happens once at a time on a replica.

pub(crate) mod export;
mod filter;

pub(crate) use filter::AuditFilter;

use crate::app::Gateway;
use crate::http::audit::{AuditItem, AuditPage};
use crate::http::caller::{AuthedRequest, audits};
use archive::{ArchiveFlaw, ArchiveReader, Expectations, VerifiedArchive};
use domain::{Code, Failure};
use export::StoredExport;
use serde_json::value::{RawValue, to_raw_value};
use std::time::Duration;
use store::{
    AuditLogPage, AuditLogPageBack, AuditLogPosition, EntryPlace, LinkedEntry, StoreError, StreamId, TenantStore,
};

/// Entries that a search newest first reads at once.
const READ_AT_ONCE: usize = 200;
/// Entries that such a search looks through for one page.
const MOST_SCANNED: usize = 2_000;
/// How long one verification may take; whoever has a longer audit log verifies an export.
const VERIFIED_WITHIN: Duration = Duration::from_secs(30);

/// A page of the audit log, oldest entry first. Behind the last moment there is no next page.
pub(crate) async fn oldest_first(
    gateway: &Gateway,
    authed: &AuthedRequest,
    filter: &AuditFilter,
    after: Option<AuditLogPosition>,
    limit: usize,
) -> Result<AuditPage, Failure> {
    audits(authed)?;
    let log = gateway.store.of(&authed.caller.tenant);
    // On later pages the cursor is beyond the first moment.
    let after = after.or(filter.since.map(AuditLogPosition::before));
    let mut page = log.audit_log(after, limit).await.map_err(|error| unread(&error))?;
    let last = page.entries.last().map(|entry| entry.id.item.at);
    if filter.until.is_some() && last > filter.until {
        page.next = None;
    }
    page.entries.retain(|entry| fits(&log, entry, filter));
    whole_page(&log, page).map_err(|_| unshown())
}

/// A page of what was looked for, newest entry first.
pub(crate) struct NewestEntries {
    /// The page; its cursor is the place of an entry.
    pub(crate) page: AuditPage,
    /// Whether the search stopped before the page was full.
    pub(crate) in_part: bool,
}

/// A page of the audit log, newest entry first.
pub(crate) async fn newest_first(
    gateway: &Gateway,
    authed: &AuthedRequest,
    filter: &AuditFilter,
    before: Option<EntryPlace>,
    limit: usize,
) -> Result<NewestEntries, Failure> {
    audits(authed)?;
    let log = gateway.store.of(&authed.caller.tenant);
    let behind =
        |until: domain::Moment| EntryPlace::from(StreamId { at: until.plus(Duration::from_millis(1)), seq: 0 });
    let mut before = before.or(filter.until.map(behind));
    let (mut fitting, mut scanned) = (Vec::new(), 0);
    let (mut loose, mut ends) = (Vec::new(), None);
    loop {
        let page = log.audit_log_back(before, READ_AT_ONCE.max(limit)).await.map_err(|error| unread(&error))?;
        let AuditLogPageBack { start, seal, entries, loose: some, next } = page;
        ends.get_or_insert((start, seal));
        loose.extend(some);
        scanned += entries.len();
        let (mut full, mut early) = (None, false);
        for entry in entries {
            early = filter.since.is_some_and(|since| entry.id.item.at < since);
            if early || full.is_some() {
                break;
            }
            if fits(&log, &entry, filter) {
                let place = entry.id;
                fitting.push(entry);
                full = (fitting.len() == limit).then_some(place);
            }
        }
        before = if early { None } else { full.or(next) };
        if before.is_none() || full.is_some() || scanned >= MOST_SCANNED {
            break;
        }
    }
    let in_part = before.is_some() && fitting.len() < limit;
    let (start, seal) = ends.unwrap_or_default();
    let entries = fitting.into_iter().map(|entry| item(&log, entry)).collect::<serde_json::Result<_>>();
    let page = AuditPage {
        tenant: log.tenant().to_string(),
        start,
        seal,
        entries: entries.map_err(|_| unshown())?,
        loose,
        next_cursor: before.map(|place| place.to_string()),
        end_cursor: None,
    };
    Ok(NewestEntries { page, in_part })
}

/// One entry, by its place.
pub(crate) async fn entry(gateway: &Gateway, authed: &AuthedRequest, id: &str) -> Result<AuditItem, Failure> {
    audits(authed)?;
    let absent = || Failure::new(Code::NotFound, "the audit log has no such entry");
    let place = EntryPlace::parse(id).ok_or_else(absent)?;
    let log = gateway.store.of(&authed.caller.tenant);
    let after = AuditLogPosition::before_entry(place);
    let page = log.audit_log(Some(after), 1).await.map_err(|error| unread(&error))?;
    let entry = page.entries.into_iter().find(|entry| entry.id == place).ok_or_else(absent)?;
    item(&log, entry).map_err(|_| unshown())
}

/// Computes the whole chain again, holds it to the signed checkpoints, and names the first thing that does not fit.
pub(crate) async fn verify(
    gateway: &Gateway,
    authed: &AuthedRequest,
) -> Result<Result<VerifiedArchive, ArchiveFlaw>, Failure> {
    audits(authed)?;
    let busy = || Failure::new(Code::RateLimited, "another audit log is being verified").retry_after_ms(5_000);
    let _turn = gateway.verifying.try_acquire().map_err(|_| busy())?;
    let too_long = |_| {
        let message = format!("the audit log could not be verified within {} seconds", VERIFIED_WITHIN.as_secs());
        Failure::new(Code::Deadline, message).next("verify an export of it with the command quartermaster audit verify")
    };
    let log = gateway.store.of(&authed.caller.tenant);
    let checked = tokio::time::timeout(VERIFIED_WITHIN, Box::pin(read_and_verify(gateway, &log)));
    checked.await.map_err(too_long)?
}

/// The whole audit log as the lines of an export.
pub(crate) async fn export(gateway: &Gateway, authed: &AuthedRequest) -> Result<StoredExport, Failure> {
    audits(authed)?;
    StoredExport::of(gateway.store.of(&authed.caller.tenant)).await
}

async fn read_and_verify(
    gateway: &Gateway,
    log: &TenantStore,
) -> Result<Result<VerifiedArchive, ArchiveFlaw>, Failure> {
    let mut export = StoredExport::of(log.clone()).await?;
    let mut reader = ArchiveReader::default();
    while let Some(lines) = export.next().await? {
        for line in lines.lines() {
            if let Err(flaw) = reader.line(line) {
                return Ok(Err(flaw));
            }
        }
    }
    let keys = &gateway.archive.keys.public;
    let expected = Expectations { keys: Some(keys), known: export.newest().as_slice(), whole: true };
    match reader.finish(expected) {
        Ok(verified) => Ok(Ok(verified.ok_or_else(unshown)?)),
        Err(flaw) => Ok(Err(flaw)),
    }
}

fn fits(log: &TenantStore, entry: &LinkedEntry, filter: &AuditFilter) -> bool {
    let contents = || log.open_contents(&entry.body).map(|contents| contents.text);
    filter.fits_stored(entry.id.item.at, &entry.body, contents)
}

fn whole_page(log: &TenantStore, page: AuditLogPage) -> serde_json::Result<AuditPage> {
    let AuditLogPage { start, seal, entries, loose, next, end } = page;
    let entries = entries.into_iter().map(|entry| item(log, entry)).collect::<serde_json::Result<_>>()?;
    let (next_cursor, end_cursor) = (next.map(|next| next.to_string()), end.map(|end| end.to_string()));
    Ok(AuditPage { tenant: log.tenant().to_string(), start, seal, entries, loose, next_cursor, end_cursor })
}

fn item(log: &TenantStore, LinkedEntry { id, body, link }: LinkedEntry) -> serde_json::Result<AuditItem> {
    let contents = log.open_contents(&body);
    Ok(AuditItem { id: id.to_string(), at: id.item.at.to_string(), entry: raw(&body)?, contents, link })
}

/// The entry as it is stored. What is not one line of JSON was not written by us; it is shown as a text, which no link
/// of ours fits.
fn raw(body: &[u8]) -> serde_json::Result<Box<RawValue>> {
    let line = std::str::from_utf8(body).ok().filter(|text| !text.contains(['\n', '\r']));
    match line.map(|line| RawValue::from_string(line.to_owned())) {
        Some(Ok(entry)) if entry.get().len() == body.len() => Ok(entry),
        Some(Ok(_) | Err(_)) | None => to_raw_value(&String::from_utf8_lossy(body)),
    }
}

fn unread(error: &StoreError) -> Failure {
    Failure::new(error.code(), "the audit log cannot be read at the moment").retry_after_ms(1_000)
}

fn unshown() -> Failure {
    Failure::new(Code::Internal, "the audit log cannot be shown")
}

#[cfg(test)]
mod tests {
    use super::raw;

    #[test]
    fn an_entry_travels_byte_for_byte() {
        for line in [r#"{"b":1,"a":2.50,"c":"\u0041\u001b é"}"#, r#"{"a": 1}"#, "{}"] {
            assert_eq!(raw(line.as_bytes()).unwrap().get(), line);
        }
    }

    #[test]
    fn what_is_not_one_line_of_json_travels_as_a_text() {
        for bad in [&b""[..], b"{", b"{\n}", b"{} ", b"{}\r", b"{} {}", b"\xff"] {
            assert!(raw(bad).unwrap().get().starts_with('"'), "{bad:?}");
        }
    }
}
