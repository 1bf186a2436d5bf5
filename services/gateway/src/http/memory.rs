//! `/v1/memory`: the documents of a tenant, for people.
//!
//! A person has a token that administers the tenant and calls no tools; an agent has its own tools for the same
//! documents, and a gate before them. Only what belongs to the whole tenant is here: what is kept under `session/` or
//! `user/` answers as if it never was. The scan, the audit log and the versions are the same for both.

mod request;
mod view;

pub use view::{DocumentListPage, DocumentSummary, DocumentVersions, DocumentView, WriteResponse};

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use ::memory::documents::{DocPath, DocumentKind, DocumentScope, ForgetRequest, Prefix, Write};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use domain::{Code, Failure};
use request::{author, bounded, extent, place, reader, reason, tag};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracing::Instrument;

/// Documents on one page of a list.
const PAGE: usize = 100;
/// Versions on one page of a history.
const VERSIONS: usize = 20;

/// The query of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentsQuery {
    prefix: Option<String>,
    cursor: Option<String>,
}

/// `GET /v1/memory/documents?prefix=&cursor=`: by path.
pub async fn list(authed: AuthedRequest, query: Query<DocumentsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let listed = async {
        let reader = reader(&authed)?;
        let under = query.prefix.as_deref().map_or_else(|| Ok(Prefix::of(DocumentScope::Tenant)), Prefix::parse);
        let under = under.map_err(|error| Failure::new(Code::InvalidRequest, error.to_string()))?;
        if under.scope() != DocumentScope::Tenant {
            let failure = Failure::new(memory::codes::UNKNOWN_STORE, format!("there is no store {}", under.as_str()));
            return Err(failure.next("only documents under tenant/ are listed here"));
        }
        let after = query.cursor.as_deref().map(DocPath::parse).transpose();
        let after = after.map_err(|_| Failure::new(Code::BadCursor, "the cursor is not one of this list"))?;
        let page = gateway
            .tenants
            .notebook(&authed.caller.tenant)
            .list(&reader, &under, after.as_ref().map(DocPath::as_str), PAGE)
            .await?;
        Ok(DocumentListPage {
            documents: page.items.into_iter().map(DocumentSummary::from).collect(),
            next_cursor: page.next,
        })
    };
    let span = span(&authed, "search_memory");
    reply::answer(&gateway, &authed, StatusCode::OK, None, Box::pin(listed).instrument(span).await)
}

/// The query of one document.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentVersionQuery {
    version: Option<u64>,
}

/// `GET /v1/memory/documents/{path}?version=`.
pub async fn show(
    authed: AuthedRequest,
    path: Path<String>,
    which: Query<DocumentVersionQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let view = async {
        let reader = reader(&authed)?;
        let document =
            gateway.tenants.notebook(&authed.caller.tenant).read(&reader, &place(&path)?, which.version).await?;
        Ok(DocumentView::from(document))
    };
    let view = Box::pin(view).instrument(span(&authed, "search_memory")).await;
    let tag = view.as_ref().ok().map(|view: &DocumentView| view.sha256.clone());
    reply::answer(&gateway, &authed, StatusCode::OK, tag, view)
}

/// The query of a history.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentHistoryQuery {
    before: Option<u64>,
}

/// `GET /v1/memory/history/{path}?before=`: versions, newest first.
pub async fn history(
    authed: AuthedRequest,
    path: Path<String>,
    from: Query<DocumentHistoryQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let versions = async {
        let reader = reader(&authed)?;
        let past = gateway
            .tenants
            .notebook(&authed.caller.tenant)
            .history(&reader, &place(&path)?, from.before, VERSIONS)
            .await?;
        Ok(DocumentVersions::from(past))
    };
    let span = span(&authed, "search_memory");
    reply::answer(&gateway, &authed, StatusCode::OK, None, Box::pin(versions).instrument(span).await)
}

/// What a person writes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentPutBody {
    content: String,
    #[serde(rename = "type")]
    #[schemars(with = "crate::openapi::shapes::DocumentKind")]
    kind: DocumentKind,
    evidence: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
}

/// `PUT /v1/memory/documents/{path}`: overwrites only what `If-Match` names.
pub async fn put(
    authed: AuthedRequest,
    request: HttpRequest,
    path: Path<String>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let written = async {
        let author = author(&authed)?;
        let (path, if_sha256) = (place(&path)?, tag(request.headers())?);
        let putting: DocumentPutBody = sessions::read(&request, payload, &gateway).await?;
        bounded(&putting)?;
        let DocumentPutBody { content, kind, evidence, title, tags } = putting;
        let write = Write { path, kind, title, content, evidence, tags, if_sha256 };
        gateway.tenants.notebook(&authed.caller.tenant).write(&author, &write).await.map(WriteResponse::from)
    };
    let written = Box::pin(written).instrument(span(&authed, "upsert_memory"));
    let response = async {
        let written = written.await;
        let tag = written.as_ref().ok().map(|written: &WriteResponse| written.sha256.clone());
        let created = written.as_ref().is_ok_and(|written| written.created);
        let status = if created { StatusCode::CREATED } else { StatusCode::OK };
        reply::answer(&gateway, &authed, status, tag, written)
    };
    catch::on_rest(&authed, response).await
}

/// The query of a removal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RemovalQuery {
    reason: Option<String>,
    redact: Option<String>,
}

/// What was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RemovalResponse {
    path: String,
    deleted: bool,
    redacted_versions: Vec<u64>,
}

/// `DELETE /v1/memory/documents/{path}?reason=&redact=`.
pub async fn remove(
    authed: AuthedRequest,
    request: HttpRequest,
    path: Path<String>,
    removing: Query<RemovalQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let removed = async {
        let author = author(&authed)?;
        let (path, if_sha256) = (place(&path)?, tag(request.headers())?);
        let (reason, extent) = (reason(removing.reason.as_deref())?, extent(removing.redact.as_deref())?);
        let gone = gateway
            .tenants
            .notebook(&authed.caller.tenant)
            .forget(&author, &ForgetRequest { path, reason, extent, if_sha256 })
            .await?;
        Ok(RemovalResponse { path: gone.path, deleted: gone.deleted, redacted_versions: gone.redacted })
    };
    let removed = Box::pin(removed).instrument(span(&authed, "delete_memory"));
    catch::on_rest(&authed, async { reply::answer(&gateway, &authed, StatusCode::OK, None, removed.await) }).await
}

fn span(authed: &AuthedRequest, operation: &'static str) -> tracing::Span {
    tracing::info_span!(
        "memory",
        gen_ai.operation.name = operation,
        quartermaster.tenant = %authed.caller.tenant,
        quartermaster.entry = "rest",
    )
}
