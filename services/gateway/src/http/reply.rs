//! Answers of the REST API, and the challenge that goes with a refused token.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{catch, trace};
use actix_web::http::StatusCode;
use actix_web::http::header::{ETAG, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, HttpResponseBuilder};
use domain::{Code, Failure};
use serde::Serialize;
use serde_json::json;
use tracing::Instrument;

/// A JSON answer.
pub fn json(status: StatusCode, trace_id: &str, body: impl Into<String>) -> HttpResponse {
    start(status, trace_id).content_type("application/json").body(body.into())
}

/// The result of a request, as JSON with its ETag, if it has one. Only the client may cache it.
pub fn answer<T: Serialize>(
    gateway: &Gateway,
    authed: &AuthedRequest,
    status: StatusCode,
    tag: Option<String>,
    result: Result<T, Failure>,
) -> HttpResponse {
    let text = result.and_then(|body| {
        serde_json::to_string(&body).map_err(|_| Failure::new(Code::Internal, "the answer cannot be written"))
    });
    match text {
        Ok(text) => {
            let mut response = start(status, &authed.trace_id);
            if let Some(tag) = tag {
                response.insert_header((ETAG, format!("\"{tag}\"")));
            }
            response.insert_header(("Cache-Control", "private, no-cache"));
            response.content_type("application/json").body(text)
        }
        Err(failure) => self::failure(gateway, &failure, &authed.trace_id),
    }
}

/// Does an operation of the REST API under its span, and answers with its result. A panic in it ends this request alone.
pub async fn operation<T: Serialize>(
    gateway: &Gateway,
    authed: &AuthedRequest,
    name: &'static str,
    work: impl Future<Output = Result<T, Failure>>,
) -> HttpResponse {
    let work = work.instrument(span(authed, name));
    catch::on_rest(authed, async { answer(gateway, authed, StatusCode::OK, None, work.await) }).await
}

/// The span of an operation of the REST API.
pub fn span(authed: &AuthedRequest, operation: &'static str) -> tracing::Span {
    tracing::info_span!(
        "rest",
        otel.name = operation,
        quartermaster.tenant = %authed.caller.tenant,
        quartermaster.entry = "rest",
    )
}

/// The beginning of every answer.
pub fn start(status: StatusCode, trace_id: &str) -> HttpResponseBuilder {
    let mut builder = HttpResponse::build(status);
    builder.insert_header((trace::HEADER, trace_id));
    builder
}

/// `{"error":{…}}` with the status of its code.
pub fn failure(gateway: &Gateway, failure: &Failure, trace_id: &str) -> HttpResponse {
    let status =
        StatusCode::from_u16(mcp::codes::rest_status(failure.code)).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, trace_id, error_body(failure, trace_id));
    dress(gateway, &mut response, failure);
    response
}

/// The body of a failure.
pub fn error_body(failure: &Failure, trace_id: &str) -> String {
    let mut error = json!({
        "code": failure.code.as_str(),
        "message": failure.message,
        "retryable": failure.code.retryable(),
        "trace_id": trace_id,
    });
    if let Some(next) = &failure.next {
        error["hint"] = json!(next);
    }
    if !failure.did_you_mean.is_empty() {
        error["did_you_mean"] = json!(failure.did_you_mean);
    }
    if let Some(details) = &failure.details {
        error["details"] = details.clone();
    }
    json!({ "error": error }).to_string()
}

/// The headers a failure brings along: a challenge, or when to come back.
pub fn dress(gateway: &Gateway, response: &mut HttpResponse, failure: &Failure) {
    if let Some(value) = gateway.challenge_for(failure).and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    let too_soon = matches!(response.status().as_u16(), 429 | 503);
    if let (true, Some(millis)) = (too_soon, failure.retry_after_ms) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(millis.div_ceil(1000)));
    }
}
