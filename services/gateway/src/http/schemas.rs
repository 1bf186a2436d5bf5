//! `/v1/schemas`: what editors check configuration against.

use crate::http::caller::Known;
use crate::http::reply;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;

/// `GET /v1/schemas/tenant.json`: the JSON Schema of a tenant's configuration.
pub async fn tenant(known: Known) -> HttpResponse {
    reply::json(StatusCode::OK, &known.trace_id, tenancy::json_schema().to_string())
}
