//! The trace a piece of work belongs to, and how a caller's trace is joined.
//!
//! Only `traceparent` and `tracestate` are understood. Baggage is neither taken nor handed on.

use crate::names;
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The longest `tracestate` that is taken over.
const MOST_STATE_BYTES: usize = 512;
/// The longest `traceparent` that is looked at: today's form has 55 characters, a later one may have more.
const MOST_PARENT_BYTES: usize = 256;

/// The id of the trace this thread is working in, as 32 hex digits.
pub fn current_trace_id() -> Option<String> {
    let context = Context::current();
    let span = context.span();
    let span = span.span_context();
    span.is_valid().then(|| span.trace_id().to_string())
}

/// The headers under which whoever is asked now continues the trace of this moment; none without a trace.
pub fn trace_headers() -> Vec<(&'static str, String)> {
    let context = Context::current();
    let span = context.span().span_context().clone();
    if !span.is_valid() {
        return Vec::new();
    }
    let flags = span.trace_flags().to_u8();
    let parent = format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id());
    let state = span.trace_state().header();
    let state = (!state.is_empty()).then_some(("tracestate", state));
    [("traceparent", parent)].into_iter().chain(state).collect()
}

/// Makes a span that was not entered yet a part of the caller's trace, and tells whether it is. What is malformed or too
/// long is ignored: a caller's mistake in telemetry never costs the call.
pub fn set_parent(span: &tracing::Span, traceparent: &str, tracestate: Option<&str>) -> bool {
    if traceparent.len() > MOST_PARENT_BYTES || tracestate.is_some_and(|state| state.len() > MOST_STATE_BYTES) {
        return false;
    }
    let headers = TraceHeaders { traceparent, tracestate };
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    // Refused when the span is switched off or already entered; then it keeps the parent it has.
    parent.span().span_context().is_valid() && span.set_parent(parent).is_ok()
}

/// Notes on a span that another one belongs to it, and what that one is: see [`names::LINK`].
pub fn link(span: &tracing::Span, other: &tracing::Span, what: &'static str) {
    let other = other.context().span().span_context().clone();
    if other.is_valid() {
        span.add_link_with_attributes(other, vec![KeyValue::new(names::LINK, what)]);
    }
}

struct TraceHeaders<'h> {
    traceparent: &'h str,
    tracestate: Option<&'h str>,
}

impl Extractor for TraceHeaders<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(self.traceparent),
            "tracestate" => self.tracestate,
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}
