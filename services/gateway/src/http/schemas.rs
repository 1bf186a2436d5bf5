//! `/v1/schemas`: what editors check configuration against.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::reply;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;

/// `GET /v1/schemas/tenant.json`: the JSON Schema of a tenant's configuration.
pub async fn tenant(authed: AuthedRequest, gateway: Data<Gateway>) -> HttpResponse {
    let schema = tenancy::json_schema(&gateway.tenants.sections());
    reply::json(StatusCode::OK, &authed.trace_id, schema.to_string())
}
