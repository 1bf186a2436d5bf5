//! The trace id of a request: the caller's own where it sent one, so that both sides' logs meet.

use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;

/// The header with the trace id.
pub const HEADER: HeaderName = HeaderName::from_static("x-trace-id");

/// The trace id of this request: 32 hex digits.
pub fn id_of(request: &HttpRequest) -> String {
    let header = request.headers().get("traceparent").and_then(|value| value.to_str().ok());
    header.and_then(parent).map(str::to_owned).or_else(telemetry::current_trace_id).unwrap_or_else(fresh)
}

/// The trace id inside a `traceparent`; malformed means none, never an error.
pub fn parent(traceparent: &str) -> Option<&str> {
    let mut parts = traceparent.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    (version.len() == 2 && hex(version) && trace.len() == 32 && hex(trace) && trace.bytes().any(|b| b != b'0'))
        .then_some(trace)
}

fn fresh() -> String {
    // Without randomness the id is all zeros: useless for finding a trace, harmless for everything else.
    domain::json::hex(&store::random_bits().unwrap_or_default())
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
