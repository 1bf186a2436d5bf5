//! `/v1/tenant/config`: what a tenant is configured by, for the people who administer it.
//!
//! The work is done by `config_desk`. A change names the version it was made for by `If-Match`.

mod request;

pub use crate::config_desk::{TenantChange, TenantCheck, TenantVersion, TenantVersions, TenantView, Warning};

use crate::app::Gateway;
use crate::config_desk;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, reply, sessions};
use actix_web::http::StatusCode;
use actix_web::http::header::ETAG;
use actix_web::web::{Data, Path, Payload, Query};
use actix_web::{HttpRequest, HttpResponse};
use domain::Failure;
pub use request::ChangeNote;
use request::{match_of, text_of};
use schemars::JsonSchema;
use serde::Deserialize;
use tracing::Instrument;

/// Says where the text in an answer comes from.
const SOURCE: &str = "x-quartermaster-source";

/// `GET /v1/tenant/config`: the text itself, or with `Accept: application/json` also its version, author and problems.
pub async fn show(authed: AuthedRequest, request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    let view = Box::pin(config_desk::show(&gateway, &authed)).instrument(reply::span(&authed, "config.show")).await;
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
        config_desk::may_change(&gateway, &authed)?;
        let named = match_of(request.headers())?;
        let text = text_of(&request, payload).await?;
        config_desk::set(&gateway, &authed, &named, text, query.note.as_deref()).await
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
        config_desk::may_change(&gateway, &authed)?;
        config_desk::remove(&gateway, &authed, &match_of(request.headers())?, query.note.as_deref()).await
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
        crate::http::caller::administers(&authed)?;
        config_desk::check(&gateway, &authed, &text_of(&request, payload).await?).await
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
    let answer = config_desk::history(&gateway, &authed, from.before);
    let answer = Box::pin(answer).instrument(reply::span(&authed, "config.history")).await;
    reply::answer(&gateway, &authed, StatusCode::OK, None, answer)
}

/// `GET /v1/tenant/config/history/{version}`: one version with its text.
pub async fn version(authed: AuthedRequest, number: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let answer = config_desk::version(&gateway, &authed, &number);
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
        config_desk::may_change(&gateway, &authed)?;
        let named = match_of(request.headers())?;
        let RollbackRequest { version, note } = sessions::read(&request, payload, &gateway).await?;
        config_desk::rollback(&gateway, &authed, &named, version, note.as_deref()).await
    };
    let set = Box::pin(set).instrument(reply::span(&authed, "config.rollback"));
    catch::on_rest(&authed, async { answer_set(&gateway, &authed, set.await) }).await
}

fn quoted(tag: &str) -> String {
    format!("\"{tag}\"")
}

fn answer_set(gateway: &Gateway, authed: &AuthedRequest, set: Result<TenantChange, Failure>) -> HttpResponse {
    let tag = set.as_ref().ok().map(|set| set.etag.clone());
    reply::answer(gateway, authed, StatusCode::OK, tag, set)
}
