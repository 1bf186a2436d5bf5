//! `/v1/switches`: kill switches in the hands of people, as they travel. What is done is in `switch_desk`.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{reply, sessions};
use crate::openapi::shapes;
use crate::switch_desk;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use domain::{SwitchMode, SwitchOwner};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// The switches that a caller may see.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SwitchList {
    pub(crate) switches: Vec<SwitchView>,
    /// Whether the record of all switches is what this service wrote. If not, only reads are let through.
    pub(crate) authentic: bool,
}

/// One switch, as it travels.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SwitchView {
    pub(crate) id: String,
    /// The tenant, or `*`.
    pub(crate) tenant: String,
    pub(crate) on: String,
    #[schemars(with = "shapes::SwitchMode")]
    pub(crate) mode: SwitchMode,
    pub(crate) reason: String,
    #[schemars(with = "shapes::SwitchOwner")]
    pub(crate) by: SwitchOwner,
    /// Who set it; a tenant is not told who of the operator's people did.
    pub(crate) set_by: Option<String>,
    pub(crate) set_at: String,
    pub(crate) until: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<&'static str>,
}

/// What is to be switched.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchRequest {
    pub(crate) on: String,
    #[schemars(with = "shapes::SwitchMode")]
    pub(crate) mode: SwitchMode,
    pub(crate) reason: String,
    /// For the operator: a tenant, or `*`. Absent: the tenant of the token.
    #[serde(default)]
    pub(crate) tenant: Option<String>,
    /// When it ends, in RFC 3339.
    #[serde(default)]
    pub(crate) until: Option<String>,
    /// How long it lasts, such as `2h`.
    #[serde(default, rename = "for", deserialize_with = "span")]
    #[schemars(with = "Option<String>")]
    pub(crate) lasts: Option<Duration>,
}

fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    store::span(from).map(Some)
}

/// `GET /v1/switches`.
pub async fn list(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let listed = Box::pin(switch_desk::list(&gateway, &authed));
    reply::operation(&gateway, &authed, "list_switches", listed).await
}

/// `POST /v1/switches`: sets a switch, in the place of the caller's own on the same thing.
pub async fn set(
    authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    gateway: Data<Gateway>,
) -> HttpResponse {
    let set = async {
        // Before the body is read, so that a caller without the scope is refused whatever it sent.
        switch_desk::may_set(&authed)?;
        let wanted: SwitchRequest = sessions::read(&request, payload, &gateway).await?;
        switch_desk::set(&gateway, &authed, wanted).await
    };
    reply::operation(&gateway, &authed, "set_switch", Box::pin(set)).await
}

/// `DELETE /v1/switches/{id}`: lifts a switch.
pub async fn lift(authed: AuthedRequest, id: Path<String>, gateway: Data<Gateway>) -> HttpResponse {
    let lifted = Box::pin(switch_desk::lift(&gateway, &authed, &id));
    reply::operation(&gateway, &authed, "lift_switch", lifted).await
}
