//! A panic in a handler of the REST API ends that request and nothing else; for `/mcp` the protocol itself sees to it.
//!
//! Not a middleware: the framework wants to be the only holder of a request while it looks for the route.

use crate::http::caller::AuthedRequest;
use crate::http::reply;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use domain::{Code, Failure};
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;

/// Answers on the REST API: a panic is our fault, and says so.
pub async fn on_rest(authed: &AuthedRequest, work: impl Future<Output = HttpResponse>) -> HttpResponse {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_| {
        let body = reply::error_body(&failure(authed), &authed.trace_id);
        reply::json(StatusCode::INTERNAL_SERVER_ERROR, &authed.trace_id, body)
    })
}

fn failure(authed: &AuthedRequest) -> Failure {
    tracing::error!(trace_id = authed.trace_id, "a handler panicked");
    Failure::new(Code::Internal, "the request failed inside the service")
}
