//! `/v1/catalog`: every tool the tenant could load, for people who choose and for programs that show them the choice.
//!
//! It is built from the tenant's own catalog, so it has every new tool of the product and of external servers, and no tool
//! that a rule denies. A tenant in mode read gets no write lists.

mod filter;
mod standings;
mod view;

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply};
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, IF_NONE_MATCH};
use actix_web::web::{Data, Query};
use actix_web::{HttpRequest, HttpResponse};
use catalog::ToolSheet;
use domain::{Code, Failure, TokenScope, json};
use filter::CatalogFilter;
use schemars::JsonSchema;
use serde::Deserialize;
use standings::ServerStandings;
pub(crate) use view::CatalogPage;
use view::{CatalogTool, totals};

/// Tools on one page; a schema is at most a few kilobytes.
const PAGE: usize = 100;

/// The query of a page.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CatalogQuery {
    toolset: Option<String>,
    source: Option<String>,
    cursor: Option<String>,
}

impl CatalogQuery {
    /// A page of one toolset.
    pub(crate) fn of_toolset(toolset: String, cursor: Option<String>) -> CatalogQuery {
        CatalogQuery { toolset: Some(toolset), source: None, cursor }
    }
}

/// `GET /v1/catalog?toolset=&source=&cursor=`.
pub async fn list(
    authed: AuthedRequest,
    request: HttpRequest,
    query: Query<CatalogQuery>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let answer = async {
        match Box::pin(page(&authed, &query, &gateway)).await {
            Ok(text) => tagged(&authed, &request, text),
            Err(failure) => reply::failure(&gateway, &failure, &authed.trace_id),
        }
    };
    catch::on_rest(&authed, answer).await
}

/// One tool, as a page has it; `None` if the tenant has none of this name or is read-only and it is a write tool.
pub(crate) async fn tool(authed: &AuthedRequest, name: &str, gateway: &Gateway) -> Result<Option<String>, Failure> {
    may_look(authed)?;
    let (catalog, policy) = (&authed.snapshot.catalog, &authed.snapshot.policy);
    let standings = ServerStandings::read(gateway, authed).await?;
    let sheet = catalog.sheets().find(|sheet| sheet.name == name && sheet.modes.contains(&policy.mode));
    let tool = sheet.map(|sheet| serde_json::to_string(&CatalogTool::of(sheet, policy, &standings)));
    tool.transpose().map_err(|_| Failure::new(Code::Internal, "the catalog cannot be shown"))
}

/// A page of the catalog, as JSON.
pub(crate) async fn page(authed: &AuthedRequest, query: &CatalogQuery, gateway: &Gateway) -> Result<String, Failure> {
    may_look(authed)?;
    let (catalog, policy) = (&authed.snapshot.catalog, &authed.snapshot.policy);
    let standings = ServerStandings::read(gateway, authed).await?;
    let names = catalog.toolsets().iter().map(|set| set.name.as_str()).chain(standings.toolsets());
    let filter = CatalogFilter::read(query.toolset.as_deref(), query.source.as_deref(), &names.collect::<Vec<_>>())?;
    let (key, set) = (gateway.keys.cursor(), filter.key());
    let page = match query.cursor.as_deref() {
        None => 0,
        Some(text) => mcp::cursor::check(key, catalog.digest(), &set, text).ok_or_else(|| {
            Failure::new(Code::BadCursor, "the cursor is not one of this list").next("list again without a cursor")
        })?,
    };
    let all: Vec<ToolSheet<'_>> =
        catalog.sheets().filter(|sheet| sheet.modes.contains(&policy.mode) && filter.covers(sheet)).collect();
    let first = page == 0;
    let from = usize::try_from(page).unwrap_or(usize::MAX).saturating_mul(PAGE);
    let more = all.len() > from.saturating_add(PAGE);
    let body = CatalogPage {
        digest: catalog.digest(),
        mode: policy.mode,
        toolsets: first.then(|| totals(catalog, &all)),
        virtual_tools: first.then(|| catalog.virtual_sheets().collect()),
        quarantine: first.then(|| standings.waiting(&filter)).flatten(),
        tools: all.into_iter().skip(from).take(PAGE).map(|sheet| CatalogTool::of(sheet, policy, &standings)).collect(),
        next_cursor: more.then(|| mcp::cursor::make(key, catalog.digest(), &set, page + 1)),
    };
    serde_json::to_string(&body).map_err(|_| Failure::new(Code::Internal, "the catalog cannot be shown"))
}

/// Callers of tools and administrators of the tenant may see the catalog.
fn may_look(authed: &AuthedRequest) -> Result<(), Failure> {
    let scopes = &authed.caller.scopes;
    if scopes.allow(TokenScope::ToolsRead) || scopes.allow(TokenScope::TenantAdmin) {
        return Ok(());
    }
    let message = format!("the token has neither the scope {} nor {}", TokenScope::ToolsRead, TokenScope::TenantAdmin);
    let failure = Failure::new(Code::InsufficientScope, message);
    Err(failure.details(serde_json::json!({ "scope": TokenScope::ToolsRead.as_str() })))
}

/// The answer, or that nothing changed since. The tag names the very bytes: rules and pins are in them and not in the
/// catalog's digest.
fn tagged(authed: &AuthedRequest, request: &HttpRequest, text: String) -> HttpResponse {
    let digest = json::sha256_hex(text.as_bytes());
    let tag = format!("\"{}\"", &digest[..32]);
    let seen = request.headers().get_all(IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
    let unchanged = seen.flat_map(|list| list.split(',')).any(|seen| seen.trim() == tag);
    let mut response =
        reply::start(if unchanged { StatusCode::NOT_MODIFIED } else { StatusCode::OK }, &authed.trace_id);
    response.insert_header((ETAG, tag)).insert_header(("Cache-Control", "private, no-cache"));
    if unchanged { response.finish() } else { response.content_type("application/json").body(text) }
}
