//! `/console/assets/{name}`: files that are named by their contents, so that browsers keep them for good.

use super::reply;
use crate::http::trace;
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, VARY};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};

/// `GET /console/assets/{name}`.
pub(super) async fn show(request: HttpRequest, name: Path<String>) -> HttpResponse {
    let trace_id = trace::id_of(&request);
    let Some(asset) = console::assets::find(&name) else {
        return reply::start(StatusCode::NOT_FOUND, &trace_id).finish();
    };
    let accepted = request.headers().get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let packed = accepted.split(',').any(|word| word.split(';').next().is_some_and(|word| word.trim() == "gzip"));
    let mut answer = reply::start(StatusCode::OK, &trace_id);
    answer.insert_header((CACHE_CONTROL, "public, max-age=31536000, immutable"));
    answer.insert_header((VARY, "Accept-Encoding")).content_type(asset.kind);
    match packed {
        true => answer.insert_header((CONTENT_ENCODING, "gzip")).body(asset.gzip),
        false => answer.body(asset.plain),
    }
}
