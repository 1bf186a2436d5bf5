//! `/v1/tenant/config`: what a tenant is configured by, for the people who administer it.
//!
//! A text that is set here holds instead of the tenant's file, whole, until it is removed. It passes the validator of
//! files and is refused whole with every mistake. Each change is a version of its own and names the one it was made for
//! by `If-Match`; an earlier one comes back by being written anew. An answer shows what the
//! store has; the replica that answers may not serve it yet.

mod request;
mod view;

pub use view::{TenantChange, TenantCheck, TenantVersion, TenantVersions, TenantView, Warning};

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use crate::http::{catch, reply, sessions};
use crate::tenants::ConfigOrigin;
use actix_web::http::StatusCode;
use actix_web::http::header::ETAG;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use domain::{Code, Failure, Tenant};
pub use request::ChangeNote;
use request::{TenantStanding, entry, match_of, note_of, standing, stored, text_of};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::{TenantText, TextChange};
use tenancy::{Problem, TenantConfig};
use tracing::Instrument;
use view::{SOURCE, warnings};

/// Versions on one page of a history.
const PAGE: usize = 20;

/// `GET /v1/tenant/config`: the text itself, or with `Accept: application/json` also its version, author and problems.
pub async fn show(authed: AuthedRequest, request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    let view = async {
        administers(&authed)?;
        Ok(TenantView::of(&gateway, &authed.caller.tenant, standing(&gateway, &authed.caller.tenant).await?))
    };
    let view: Result<TenantView, Failure> = Box::pin(view).instrument(reply::span(&authed, "config.show")).await;
    match view {
        Ok(view) if !request::wants_json(&request) => {
            let mut response = reply::start(StatusCode::OK, &authed.trace_id);
            response.insert_header((ETAG, quoted(&view.etag))).insert_header((SOURCE, view.source));
            response.insert_header(("Cache-Control", "private, no-cache"));
            response.content_type("text/yaml; charset=utf-8").body(view.text)
        }
        view => {
            let tag = view.as_ref().ok().map(|view| view.etag.clone());
            reply::answer(&gateway, &authed, StatusCode::OK, tag, view)
        }
    }
}

/// `PUT /v1/tenant/config?note=`: sets a text.
pub async fn put(
    authed: AuthedRequest,
    request: HttpRequest,
    query: Query<ChangeNote>,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let set = async {
        may_change(&gateway, &authed)?;
        let (named, note) = (match_of(request.headers())?, note_of(query.note.as_deref())?);
        let text = text_of(&request, payload).await?;
        let config = good(&gateway, &authed.caller.tenant, &text).await?;
        write(&gateway, &authed, &named, text, note, &config).await
    };
    let set = Box::pin(set).instrument(reply::span(&authed, "config.put"));
    catch::on_rest(&authed, async { answer_set(&gateway, &authed, set.await) }).await
}

/// `DELETE /v1/tenant/config?note=`: back to the file.
pub async fn remove(
    authed: AuthedRequest,
    request: HttpRequest,
    query: Query<ChangeNote>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let removed = async {
        may_change(&gateway, &authed)?;
        let (named, note) = (match_of(request.headers())?, note_of(query.note.as_deref())?);
        let tenant = &authed.caller.tenant;
        let current = standing(&gateway, tenant).await?;
        let TenantStanding::Http(TenantText { version, .. }) = &current else {
            return Err(Failure::new(Code::NotFound, "nothing is set over HTTP; the tenant's file holds already"));
        };
        current.must_be(&named)?;
        let (texts, entry) = (gateway.store.of(tenant).tenant_text(), entry(&gateway, &authed, None));
        let change = texts.remove(*version, note, &authed.caller.principal, &entry).await.map_err(stored)?;
        let text = done(&gateway, tenant, change).await?;
        Ok(TenantChange::removed(&gateway, tenant, text))
    };
    let removed = Box::pin(removed).instrument(reply::span(&authed, "config.remove"));
    catch::on_rest(&authed, async { answer_set(&gateway, &authed, removed.await) }).await
}

/// `POST /v1/tenant/config/check`: what setting this text would say.
pub async fn check(
    authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let checked = async {
        administers(&authed)?;
        let text = text_of(&request, payload).await?;
        let tenant = &authed.caller.tenant;
        Ok(match judged(&gateway, tenant, &text).await? {
            Ok(config) => {
                TenantCheck { valid: true, problems: Vec::new(), warnings: warnings(&gateway, tenant, &config) }
            }
            Err(problems) => TenantCheck { valid: false, problems, warnings: Vec::new() },
        })
    };
    reply::operation(&gateway, &authed, "config.check", Box::pin(checked)).await
}

/// The query of a history.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantHistoryQuery {
    before: Option<u64>,
}

/// `GET /v1/tenant/config/history?before=`: versions, newest first, without their text.
pub async fn history(authed: AuthedRequest, from: Query<TenantHistoryQuery>, gateway: Data<Gateway>) -> HttpResponse {
    let answer = async {
        administers(&authed)?;
        let texts = gateway.store.of(&authed.caller.tenant).tenant_text();
        // One more than fits on the page shows whether there is another page.
        let versions = texts.history(from.before, PAGE + 1).await.map_err(stored)?;
        Ok(TenantVersions::page(&versions, PAGE))
    };
    let answer = Box::pin(answer).instrument(reply::span(&authed, "config.history")).await;
    reply::answer(&gateway, &authed, StatusCode::OK, None, answer)
}

/// `GET /v1/tenant/config/history/{version}`: one version with its text.
pub async fn version(authed: AuthedRequest, number: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let answer = async {
        administers(&authed)?;
        find_version(&gateway, &authed.caller.tenant, number.parse().ok()).await.map(|text| TenantVersion::whole(&text))
    };
    let answer = Box::pin(answer).instrument(reply::span(&authed, "config.history")).await;
    reply::answer(&gateway, &authed, StatusCode::OK, None, answer)
}

/// Which version is to hold again.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RollbackRequest {
    version: u64,
    #[serde(default)]
    note: Option<String>,
}

/// `POST /v1/tenant/config/rollback`: writes an earlier text anew, if it is good by today's rules.
pub async fn rollback(
    authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let set = async {
        may_change(&gateway, &authed)?;
        let named = match_of(request.headers())?;
        let RollbackRequest { version, note } = sessions::read(&request, payload, &gateway).await?;
        let note = note_of(note.as_deref())?.or_else(|| Some(format!("as version {version}")));
        let Some(text) = find_version(&gateway, &authed.caller.tenant, Some(version)).await?.text else {
            return Err(Failure::new(Code::NotFound, format!("version {version} is a removal and has no text"))
                .next("DELETE the configuration to go back to the file"));
        };
        let config = good(&gateway, &authed.caller.tenant, &text).await?;
        write(&gateway, &authed, &named, text, note, &config).await
    };
    let set = Box::pin(set).instrument(reply::span(&authed, "config.rollback"));
    catch::on_rest(&authed, async { answer_set(&gateway, &authed, set.await) }).await
}

/// Writes a text that is good in the place of the one that was named.
async fn write(
    gateway: &Data<Gateway>,
    authed: &AuthedRequest,
    named: &str,
    text: String,
    note: Option<String>,
    config: &TenantConfig,
) -> Result<TenantChange, Failure> {
    let tenant = &authed.caller.tenant;
    let current = standing(gateway, tenant).await?;
    current.must_be(named)?;
    let (texts, entry) = (gateway.store.of(tenant).tenant_text(), entry(gateway, authed, Some(&text)));
    let change = texts.put(current.base(), text, note, &authed.caller.principal, &entry).await.map_err(stored)?;
    let text = done(gateway, tenant, change).await?;
    Ok(TenantChange::made(gateway, tenant, text, warnings(gateway, tenant, config)))
}

/// What was changed, once this replica has taken note of it. Should that not work, it will hear of it like all others.
async fn done(gateway: &Gateway, tenant: &Tenant, change: TextChange) -> Result<TenantText, Failure> {
    match change {
        TextChange::Done(text) => {
            if let Err(error) = gateway.tenants.refresh(tenant).await {
                tracing::warn!(%tenant, %error, "what was just set cannot be read back yet");
            }
            Ok(text)
        }
        TextChange::Conflict(_) => Err(standing(gateway, tenant).await?.is_another()),
        TextChange::TooLarge => Err(request::too_large()),
    }
}

/// The configuration a text makes, or every mistake in it.
async fn good(gateway: &Data<Gateway>, tenant: &Tenant, text: &str) -> Result<TenantConfig, Failure> {
    judged(gateway, tenant, text).await?.map_err(|problems| {
        let message = match problems.len() {
            1 => "there is a mistake in the configuration, so nothing was changed".to_owned(),
            many => format!("there are {many} mistakes in the configuration, so nothing was changed"),
        };
        Failure::new(Code::ConfigInvalid, message).details(json!({ "problems": problems }))
    })
}

async fn judged(
    gateway: &Data<Gateway>,
    tenant: &Tenant,
    text: &str,
) -> Result<Result<TenantConfig, Vec<Problem>>, Failure> {
    let (tenants, tenant, text) = (std::sync::Arc::clone(&gateway.tenants), tenant.clone(), text.to_owned());
    let judged = tokio::task::spawn_blocking(move || tenants.check(&tenant, &text)).await;
    judged.map_err(|_| Failure::new(Code::Internal, "the configuration could not be checked"))
}

async fn find_version(gateway: &Gateway, tenant: &Tenant, number: Option<u64>) -> Result<TenantText, Failure> {
    let version = match number {
        Some(number) => gateway.store.of(tenant).tenant_text().version(number).await.map_err(stored)?,
        None => None,
    };
    version.ok_or_else(|| {
        Failure::new(Code::NotFound, "there is no such version").next("the history lists those that are kept")
    })
}

/// Wants somebody who may change the configuration, where that can be done over HTTP at all.
fn may_change(gateway: &Gateway, authed: &AuthedRequest) -> Result<(), Failure> {
    administers(authed)?;
    if gateway.tenants.over_http() {
        return Ok(());
    }
    Err(Failure::new(Code::ConfigLocked, "tenants are configured by files only; nothing was changed")
        .next("ask the operator to change the tenant's file"))
}

/// Whether this replica already serves the tenant by what the store says.
fn in_force(gateway: &Gateway, tenant: &Tenant, origin: ConfigOrigin) -> bool {
    // A file that was refused leaves the one before in use, and that one has the same origin.
    gateway.tenants.origin_of(tenant) == Some(origin) && !gateway.tenants.refused().contains_key(tenant)
}

fn quoted(tag: &str) -> String {
    format!("\"{tag}\"")
}

fn answer_set(gateway: &Gateway, authed: &AuthedRequest, set: Result<TenantChange, Failure>) -> HttpResponse {
    let tag = set.as_ref().ok().map(|set| set.etag.clone());
    reply::answer(gateway, authed, StatusCode::OK, tag, set)
}
