//! `/v1/audit`: the tenant's audit log, each entry with its link once it is sealed.
//!
//! Entries are handed out byte for byte as they are stored, because that is what the links are computed over. Reading does
//! not verify; whoever doubts the service computes the chain again from what is here. A search has a next page even
//! where nothing fitted. What is searched and verified is in `audit_desk`.

pub(crate) mod checkpoints;

use crate::app::Gateway;
use crate::audit_desk::{self, AuditFilter};
use crate::http::caller::{AuthedRequest, audits};
use crate::http::reply;
use crate::openapi::shapes::AnyObject;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Query};
use archive::{ArchiveFlaw, VerifiedArchive};
use domain::{Code, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use store::{AuditLogPosition, ChainLink, EntryLink, EntryPlace, OpenedContents};

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
    /// `oldest` first unless it is given.
    order: Option<AuditOrder>,
}

/// In which order entries are listed.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AuditOrder {
    /// As they were written; `after` is a `next_cursor` or an `end_cursor`.
    Oldest,
    /// The other way round; `after` is a `next_cursor`.
    Newest,
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

/// `GET /v1/audit?after=&limit=&since=&until=&tool=&target=&principal=&run=&session=&call=&code=&text=&order=`.
pub async fn list(authed: AuthedRequest, query: Query<AuditQuery>, gateway: Data<Gateway>) -> HttpResponse {
    match page(&authed, query.into_inner(), &gateway).await {
        Ok(text) => reply::json(StatusCode::OK, &authed.trace_id, text),
        Err(failure) => reply::failure(&gateway, &failure, &authed.trace_id),
    }
}

async fn page(authed: &AuthedRequest, query: AuditQuery, gateway: &Gateway) -> Result<String, Failure> {
    audits(authed)?;
    let limit = query.limit.unwrap_or(PAGE);
    let filter = AuditFilter {
        since: moment("since", query.since.as_deref())?,
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
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Failure::new(Code::InvalidRequest, format!("limit is a number from 1 to {LONGEST_PAGE}")));
    }
    let unknown = || Failure::new(Code::BadCursor, "after is no next_cursor of an earlier page");
    let page = match query.order.unwrap_or(AuditOrder::Oldest) {
        AuditOrder::Oldest => {
            let after = query.after.as_deref().map(|text| AuditLogPosition::parse(text).ok_or_else(unknown));
            audit_desk::oldest_first(gateway, authed, &filter, after.transpose()?, limit).await?
        }
        AuditOrder::Newest => {
            let before = query.after.as_deref().map(|text| EntryPlace::parse(text).ok_or_else(unknown));
            audit_desk::newest_first(gateway, authed, &filter, before.transpose()?, limit).await?.page
        }
    };
    serde_json::to_string(&page).map_err(|_| Failure::new(Code::Internal, "the audit log cannot be shown"))
}

/// Whether the audit log is as it was sealed and signed, as it travels.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct AuditVerdict {
    /// Whether it is.
    pub(crate) ok: bool,
    /// The first thing that does not fit, in words.
    pub(crate) flaw: Option<String>,
    /// The same in one word.
    pub(crate) what: Option<&'static str>,
    /// Which entry that is, counted from 1.
    pub(crate) seq: Option<u64>,
    /// The place of that entry, as far as it is known.
    pub(crate) entry: Option<String>,
    /// The entry behind which the audit log begins; 0 for the beginning.
    pub(crate) after: u64,
    /// Entries that were read.
    pub(crate) entries: u64,
    /// Of these, how many are sealed.
    pub(crate) sealed: u64,
    /// And how many came after, which nothing vouches for yet.
    pub(crate) unsealed: u64,
    /// Signed checkpoints that were read.
    pub(crate) checkpoints: u64,
    /// The last entry that a checkpoint signs; 0 if there is none.
    pub(crate) signed: u64,
}

impl From<Result<VerifiedArchive, ArchiveFlaw>> for AuditVerdict {
    fn from(checked: Result<VerifiedArchive, ArchiveFlaw>) -> AuditVerdict {
        match checked {
            Ok(VerifiedArchive { tenant: _, after, entries, sealed, unsealed, checkpoints, signed }) => {
                AuditVerdict { ok: true, after, entries, sealed, unsealed, checkpoints, signed, ..Self::default() }
            }
            Err(flaw) => {
                let (seq, entry) = match &flaw {
                    ArchiveFlaw::Entry(found) => (Some(found.seq), found.entry.map(|entry| entry.to_string())),
                    ArchiveFlaw::Gap { seq } | ArchiveFlaw::Forked { seq } | ArchiveFlaw::Unfounded { seq } => {
                        (Some(*seq), None)
                    }
                    ArchiveFlaw::Unreadable { .. } | ArchiveFlaw::Checkpoint(_) | ArchiveFlaw::Foreign => (None, None),
                };
                AuditVerdict { flaw: Some(flaw.to_string()), what: Some(flaw.word()), seq, entry, ..Self::default() }
            }
        }
    }
}

/// `POST /v1/audit/verify`.
pub async fn verify(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let verified = async { audit_desk::verify(&gateway, &authed).await.map(AuditVerdict::from) };
    reply::operation(&gateway, &authed, "verify_audit", Box::pin(verified)).await
}

fn moment(name: &str, text: Option<&str>) -> Result<Option<Moment>, Failure> {
    let wrong = || Failure::new(Code::InvalidRequest, format!("{name} is a time such as 2026-01-31T12:00:00Z"));
    text.map(|text| Moment::parse(text).ok_or_else(wrong)).transpose()
}
