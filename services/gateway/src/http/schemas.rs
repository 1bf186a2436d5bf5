//! `/v1/schemas` and `/v1/openapi.json`: what editors check configuration against, and what clients are made from.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::reply;
use crate::openapi;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;

/// `GET /v1/schemas/tenant.json`: the JSON Schema of a tenant's configuration.
pub async fn tenant(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let schema = tenancy::json_schema(&gateway.tenants.sections());
    reply::json(StatusCode::OK, &authed.trace_id, schema.to_string())
}

/// `GET /v1/openapi.json`: the description of this API, for a service at the address that tokens are for.
pub async fn openapi(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let resource = &gateway.settings.identity.resource;
    let server = resource.strip_suffix("/mcp").unwrap_or(resource);
    let document = openapi::document(Some(server), &gateway.tenants.codes());
    reply::json(StatusCode::OK, &authed.trace_id, document.to_string())
}
