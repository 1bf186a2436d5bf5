//! The trace of a request: the caller's own where it sent one, so that both sides' logs and spans meet.

use crate::http::caller;
use crate::protocol::exchange::fresh_trace_id;
use actix_web::HttpRequest;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::HeaderName;
use actix_web::middleware::Next;
use domain::Tenant;
use tracing::Instrument;

/// The header with the trace id.
pub const HEADER: HeaderName = HeaderName::from_static("x-trace-id");

/// The trace id of this request: 32 hex digits.
pub fn id_of(request: &HttpRequest) -> String {
    let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    header.and_then(parent).map(str::to_owned).or_else(telemetry::current_trace_id).unwrap_or_else(fresh_trace_id)
}

/// Answers a request in a span of its own, named by the template of its route. Everything done for it is below that span.
pub async fn in_span<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, actix_web::Error> {
    let (method, route) = (known_method(request.method()), request.match_pattern());
    // A debug span, which only a collector asks for: without one it is not even made.
    let span = tracing::debug_span!(
        "http request",
        otel.kind = "server",
        http.request.method = method,
        http.route = route,
        http.response.status_code = tracing::field::Empty,
        // Set once it is known who asks. A span without it is a stranger's, and there are few of those.
        quartermaster.tenant = tracing::field::Empty,
        error.type = tracing::field::Empty,
    );
    let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if let Some(parent) = header("traceparent") {
        let tenant = match telemetry::asks_to_be_kept(parent) {
            true => caller::known_tenant(request.request()).await,
            false => None,
        };
        telemetry::set_parent(&span, parent, header("tracestate"), tenant.as_ref().map(Tenant::as_str));
    }
    let response = next.call(request).instrument(span.clone()).await?;
    let status = response.status();
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("error.type", status.as_str());
    }
    Ok(response)
}

/// The method, unless somebody made one up: that is free text of the caller.
fn known_method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}

/// The trace id inside a `traceparent`; malformed means none, never an error.
pub fn parent(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (version.len() == 2 && hex(version) && trace.len() == 32 && hex(trace) && trace.bytes().any(|b| b != b'0'))
        .then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_parent_is_no_parent() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(parent(good), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        for bad in ["", "00", "00-xyz-1-1", "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "0-4BF9-"] {
            assert_eq!(parent(bad), None, "{bad}");
        }
    }
}
