//! Whether the process lives, and whether it may serve.

use crate::app::Gateway;
use actix_web::HttpResponse;
use actix_web::web::Data;
use serde_json::json;

/// `GET /livez`: the process runs.
pub async fn livez() -> HttpResponse {
    HttpResponse::Ok().content_type("application/json").body(r#"{"status":"ok"}"#)
}

/// `GET /health`: exactly what a LanguageTool promises, 200 when ready and 503 when not.
pub async fn health(gateway: Data<Gateway>) -> HttpResponse {
    if gateway.readiness.now().ready() {
        HttpResponse::Ok().content_type("application/json").body(r#"{"status":"ok"}"#)
    } else {
        HttpResponse::ServiceUnavailable().content_type("application/json").body(r#"{"status":"unready"}"#)
    }
}

/// `GET /readyz`: the same with the reasons, as codes without addresses.
pub async fn readyz(gateway: Data<Gateway>) -> HttpResponse {
    let now = gateway.readiness.now();
    let status = if now.ready() { "ok" } else { "unready" };
    let mut body = json!({ "status": status, "ready": now.ready(), "reasons": now.reasons, "warnings": now.warnings });
    if !now.shards_down.is_empty() {
        body["shards_down"] = json!(now.shards_down);
    }
    let mut response = if now.ready() { HttpResponse::Ok() } else { HttpResponse::ServiceUnavailable() };
    response.content_type("application/json").body(body.to_string())
}
