//! A panic in a handler ends that request and nothing else.
//!
//! Not a middleware: the framework wants to be the only holder of a request while it looks for the route.

use crate::http::caller::Known;
use crate::http::reply;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use domain::{Code, Failure};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Answers on `/mcp`, where there is never a 5xx: a panic becomes a JSON-RPC error.
pub async fn on_mcp(known: &Known, work: impl Future<Output = HttpResponse>) -> HttpResponse {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        let refusal = mcp::Refusal::before_call(mcp::Era::Modern, None, &failure(known));
        let body = refusal.body(Some(&known.trace_id));
        reply::start(StatusCode::OK, &known.trace_id).content_type("application/json").body(body)
    })
}

/// Answers on the REST API: a panic is our fault, and says so.
pub async fn on_rest(known: &Known, work: impl Future<Output = HttpResponse>) -> HttpResponse {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        let body = reply::error_body(&failure(known), &known.trace_id);
        reply::json(StatusCode::INTERNAL_SERVER_ERROR, &known.trace_id, body)
    })
}

fn failure(known: &Known) -> Failure {
    tracing::error!(trace_id = known.trace_id, "a handler panicked");
    Failure::new(Code::Internal, "the request failed inside the service")
}
