//! `GET /metrics`, on a listener of its own: for Prometheus, without a token.

use crate::app::Gateway;
use crate::measure::measure;
use actix_web::http::header::ACCEPT;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use telemetry::metrics::{self, TextFormat};

/// Everything that is measured, as it is now.
pub async fn scrape(request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    measure(&gateway).await;
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let format = TextFormat::accepted(accept);
    HttpResponse::Ok().content_type(format.content_type()).body(metrics::text(format))
}
