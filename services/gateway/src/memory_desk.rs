//! What people do with the documents of a tenant, whichever door they come in by: the REST API and the console call these.
//!
//! Only what belongs to the whole tenant is here: what is kept under `session/` or `user/` answers as if it never was. The
//! scan, the audit log and the versions are the same as for agents.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::memory::request::{author, extent, place, reader, reason};
use crate::http::memory::{DocumentListPage, DocumentSummary, DocumentVersions, DocumentView};
use domain::{Code, Failure};
use memory::documents::{DocPath, DocumentScope, ForgetRequest, Prefix};
use schemars::JsonSchema;
use serde::Serialize;

/// Documents on one page of a list.
const PAGE: usize = 100;
/// Versions on one page of a history.
const VERSIONS: usize = 20;

/// Documents by path, below a prefix.
pub(crate) async fn list(
    gateway: &Gateway,
    authed: &AuthedRequest,
    prefix: Option<&str>,
    cursor: Option<&str>,
) -> Result<DocumentListPage, Failure> {
    let reader = reader(authed)?;
    let under = prefix.map_or_else(|| Ok(Prefix::of(DocumentScope::Tenant)), Prefix::parse);
    let under = under.map_err(|error| Failure::new(Code::InvalidRequest, error.to_string()))?;
    if under.scope() != DocumentScope::Tenant {
        let failure = Failure::new(memory::codes::UNKNOWN_STORE, format!("there is no store {}", under.as_str()));
        return Err(failure.next("only documents under tenant/ are listed here"));
    }
    let after = cursor.map(DocPath::parse).transpose();
    let after = after.map_err(|_| Failure::new(Code::BadCursor, "the cursor is not one of this list"))?;
    let notebook = gateway.tenants.notebook(&authed.caller.tenant);
    let page = notebook.list(&reader, &under, after.as_ref().map(DocPath::as_str), PAGE).await?;
    Ok(DocumentListPage {
        documents: page.items.into_iter().map(DocumentSummary::from).collect(),
        next_cursor: page.next,
    })
}

/// One document, or one of its versions.
pub(crate) async fn show(
    gateway: &Gateway,
    authed: &AuthedRequest,
    path: &str,
    version: Option<u64>,
) -> Result<DocumentView, Failure> {
    let reader = reader(authed)?;
    let document = gateway.tenants.notebook(&authed.caller.tenant).read(&reader, &place(path)?, version).await?;
    Ok(DocumentView::from(document))
}

/// Its versions, newest first.
pub(crate) async fn history(
    gateway: &Gateway,
    authed: &AuthedRequest,
    path: &str,
    before: Option<u64>,
) -> Result<DocumentVersions, Failure> {
    let reader = reader(authed)?;
    let notebook = gateway.tenants.notebook(&authed.caller.tenant);
    Ok(DocumentVersions::from(notebook.history(&reader, &place(path)?, before, VERSIONS).await?))
}

/// A document that somebody wants gone.
pub(crate) struct DocumentRemoval<'a> {
    pub(crate) path: &'a str,
    pub(crate) reason: Option<&'a str>,
    /// `all`, or the number of a version, whose text is removed for good.
    pub(crate) redact: Option<&'a str>,
    /// The digest it must still have.
    pub(crate) if_sha256: Option<String>,
}

/// What was removed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RemovalResponse {
    pub(crate) path: String,
    pub(crate) deleted: bool,
    pub(crate) redacted_versions: Vec<u64>,
}

/// Checks that the caller is a person who may change documents.
pub(crate) fn may_change(authed: &AuthedRequest) -> Result<(), Failure> {
    author(authed).map(drop)
}

/// Removes a document.
pub(crate) async fn remove(
    gateway: &Gateway,
    authed: &AuthedRequest,
    removal: DocumentRemoval<'_>,
) -> Result<RemovalResponse, Failure> {
    let author = author(authed)?;
    let DocumentRemoval { path, reason: why, redact, if_sha256 } = removal;
    let (path, why, extent) = (place(path)?, reason(why)?, extent(redact)?);
    let notebook = gateway.tenants.notebook(&authed.caller.tenant);
    let gone = notebook.forget(&author, &ForgetRequest { path, reason: why, extent, if_sha256 }).await?;
    Ok(RemovalResponse { path: gone.path, deleted: gone.deleted, redacted_versions: gone.redacted })
}
