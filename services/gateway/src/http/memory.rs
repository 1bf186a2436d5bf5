//! `/v1/memory`: the documents of a tenant, for people.
//!
//! A person has a token that administers the tenant and calls no tools; an agent has its own tools for the same
//! documents, and a gate before them. Only what belongs to the whole tenant is here: what is kept under `session/` or
//! `user/` answers as if it never was. The scan, the audit log and the versions are the same for both.

pub(crate) mod request;
mod view;

pub(crate) use crate::memory_desk::RemovalResponse;
pub use view::{DocumentListPage, DocumentSummary, DocumentVersions, DocumentView, WriteResponse};

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use crate::memory_desk;
use ::memory::documents::{DocumentKind, Write};
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use request::{author, bounded, place, tag};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::Instrument;

/// The query of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentsQuery {
    prefix: Option<String>,
    cursor: Option<String>,
}

/// `GET /v1/memory/documents?prefix=&cursor=`: by path.
pub async fn list(authed: AuthedRequest, query: Query<DocumentsQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let listed = memory_desk::list(&gateway, &authed, query.prefix.as_deref(), query.cursor.as_deref());
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
    let view = memory_desk::show(&gateway, &authed, &path, which.version);
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
    let versions = memory_desk::history(&gateway, &authed, &path, from.before);
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

/// `DELETE /v1/memory/documents/{path}?reason=&redact=`.
pub async fn remove(
    authed: AuthedRequest,
    request: HttpRequest,
    path: Path<String>,
    removing: Query<RemovalQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let removed = async {
        memory_desk::may_change(&authed)?;
        let if_sha256 = tag(request.headers())?;
        let removal = memory_desk::DocumentRemoval {
            path: &path,
            reason: removing.reason.as_deref(),
            redact: removing.redact.as_deref(),
            if_sha256,
        };
        memory_desk::remove(&gateway, &authed, removal).await
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
