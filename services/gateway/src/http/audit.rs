//! `/v1/audit`: the tenant's audit log, oldest entry first, each with its link once it is sealed.
//!
//! Entries are handed out byte for byte as they are stored, because that is what the links are computed over.
//! Reading does not seal and does not verify; whoever doubts computes the chain again from what is here.
//! A search reads as many entries as a page without one and leaves out what does not fit, so it costs no more; it has a
//! next page even where nothing fitted.

pub(crate) mod checkpoints;
mod filter;

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, audits};
use crate::http::reply;
use crate::openapi::shapes::AnyObject;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Query};
use domain::{Code, Failure, Moment};
use filter::AuditFilter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use store::{AuditLogPage, AuditLogPosition, ChainLink, EntryLink, LinkedEntry, OpenedContents, TenantStore};

/// Entries on one page, unless the query says otherwise.
const PAGE: usize = 100;
/// Entries on the longest page.
pub(crate) const LONGEST_PAGE: usize = 1_000;

/// The query of a page.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditQuery {
    after: Option<String>,
    limit: Option<usize>,
    since: Option<String>,
    until: Option<String>,
    tool: Option<String>,
    target: Option<String>,
    principal: Option<String>,
    run: Option<String>,
    session: Option<String>,
    call: Option<String>,
    code: Option<String>,
    text: Option<String>,
}

/// One page of the audit log, as it travels.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditPage {
    /// The tenant; the hash chain begins with this name.
    pub tenant: String,
    /// The link behind which the audit log begins, if older entries have left the store.
    #[schemars(with = "Option<AnyObject>")]
    pub start: Option<ChainLink>,
    /// The newest link, whole, as it was before the page was read.
    #[schemars(with = "Option<AnyObject>")]
    pub seal: Option<ChainLink>,
    /// The entries, oldest first.
    pub entries: Vec<AuditItem>,
    /// Links whose entry is not there; none unless somebody meddled.
    #[schemars(with = "Vec<Value>")]
    pub loose: Vec<EntryLink>,
    /// What to ask for next, as `after`; none on the last page.
    pub next_cursor: Option<String>,
    /// What to ask for, as `after`, to get what is written from now on; none if there is nothing before it.
    pub end_cursor: Option<String>,
}

/// One entry, as it travels.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct AuditItem {
    /// Its place.
    pub id: String,
    /// When it was written, by the store's clock.
    pub at: String,
    /// What was written.
    #[schemars(with = "AnyObject")]
    pub entry: Box<RawValue>,
    /// The contents it was sealed with, opened; none if it has none that this service sealed for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    #[schemars(with = "Option<Value>")]
    pub contents: Option<OpenedContents>,
    /// Its link, whole or its beginning; none as long as it is not sealed.
    #[schemars(with = "Option<Value>")]
    pub link: Option<EntryLink>,
}

/// `GET /v1/audit?after=&limit=&since=&until=&tool=&target=&principal=&run=&session=&call=&code=&text=`.
pub async fn list(authed: AuthedRequest, query: Query<AuditQuery>, gateway: Data<Gateway>) -> HttpResponse {
    match page(&authed, query.into_inner(), &gateway).await {
        Ok(text) => reply::json(StatusCode::OK, &authed.trace_id, text),
        Err(failure) => reply::failure(&gateway, &failure, &authed.trace_id),
    }
}

async fn page(authed: &AuthedRequest, query: AuditQuery, gateway: &Gateway) -> Result<String, Failure> {
    audits(authed)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Failure::new(Code::InvalidRequest, format!("limit is a number from 1 to {LONGEST_PAGE}")));
    }
    let unknown = || Failure::new(Code::BadCursor, "after is no next_cursor of an earlier page");
    let after = query.after.as_deref().map(|text| AuditLogPosition::parse(text).ok_or_else(unknown)).transpose()?;
    // On later pages the cursor is beyond it.
    let since = moment("since", query.since.as_deref())?.map(AuditLogPosition::before);
    let filter = AuditFilter {
        until: moment("until", query.until.as_deref())?,
        tool: query.tool,
        target: query.target,
        principal: query.principal,
        run: query.run,
        session: query.session,
        call: query.call,
        code: query.code,
        text: query.text,
    };
    let tenant = &authed.caller.tenant;
    let shelf = gateway.store.of(tenant);
    let page = shelf.audit_log(after.or(since), limit).await.map_err(|error| {
        Failure::new(error.code(), "the audit log cannot be read at the moment").retry_after_ms(1_000)
    })?;
    body(&shelf, fitting(&shelf, page, &filter))
        .map_err(|_| Failure::new(Code::Internal, "the audit log cannot be shown"))
}

fn moment(name: &str, text: Option<&str>) -> Result<Option<Moment>, Failure> {
    let wrong = || Failure::new(Code::InvalidRequest, format!("{name} is a time such as 2026-01-31T12:00:00Z"));
    text.map(|text| Moment::parse(text).ok_or_else(wrong)).transpose()
}

/// The page without what is not looked for. Behind the last moment there is no next page.
fn fitting(shelf: &TenantStore, mut page: AuditLogPage, filter: &AuditFilter) -> AuditLogPage {
    let last = page.entries.last().map(|entry| entry.id.item.at);
    if filter.until.is_some() && last > filter.until {
        page.next = None;
    }
    page.entries.retain(|entry| {
        let early = filter.until.is_none_or(|until| entry.id.item.at <= until);
        early && {
            // What is no JSON has no parts.
            let parsed: Value = serde_json::from_slice(&entry.body).unwrap_or_default();
            filter.fits(&parsed, &entry.body, || shelf.open_contents(&entry.body).map(|contents| contents.text))
        }
    });
    page
}

fn body(shelf: &TenantStore, page: AuditLogPage) -> serde_json::Result<String> {
    let AuditLogPage { start, seal, entries, loose, next, end } = page;
    let entries = entries.into_iter().map(|entry| item(shelf, entry)).collect::<serde_json::Result<_>>()?;
    let (next_cursor, end_cursor) = (next.map(|next| next.to_string()), end.map(|end| end.to_string()));
    let tenant = shelf.tenant().to_string();
    serde_json::to_string(&AuditPage { tenant, start, seal, entries, loose, next_cursor, end_cursor })
}

fn item(shelf: &TenantStore, LinkedEntry { id, body, link }: LinkedEntry) -> serde_json::Result<AuditItem> {
    let contents = shelf.open_contents(&body);
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
