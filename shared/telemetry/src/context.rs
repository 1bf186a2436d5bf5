//! The trace a piece of work belongs to, and how a caller's trace is joined.
//!
//! Only `traceparent` and `tracestate` are understood. Baggage is neither taken nor handed on.

use crate::config::Config;
use crate::names;
use crate::sampling::{CallersWord, KeepSampler};
use opentelemetry::propagation::{Extractor, TextMapPropagator};
use opentelemetry::trace::{SpanContext, TraceContextExt, TraceId};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use std::sync::OnceLock;
use std::time::Instant;
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
    let Some(parent) = reference(&span) else { return Vec::new() };
    let state = span.trace_state().header();
    let state = (!state.is_empty()).then_some(("tracestate", state));
    [("traceparent", parent)].into_iter().chain(state).collect()
}

/// Which traces are kept on whose word; there is none without a collector.
static KEEPING: OnceLock<Keeping> = OnceLock::new();

struct Keeping {
    share: KeepSampler,
    words: CallersWord,
    most: u32,
}

/// Learns from the settings which traces are kept.
pub(crate) fn begin(config: &Config) {
    let share = KeepSampler::new(config.sample_ratio);
    // A second start fails elsewhere.
    KEEPING.set(Keeping { share, words: CallersWord::default(), most: config.caller_samples_per_minute }).ok();
}

/// Whether a caller asks for its trace to be kept, and it would not be anyway: only then it matters who the caller is.
pub fn asks_to_be_kept(traceparent: &str) -> bool {
    let Some(keeping) = KEEPING.get() else { return false };
    parse(traceparent, None).is_some_and(|parent| parent.is_sampled() && !keeping.share.in_share(parent.trace_id()))
}

/// Makes a span that was not entered yet a part of the caller's trace, and tells whether it is. What is malformed or too
/// long is ignored: a caller's mistake in telemetry never costs the call. That the trace is to be kept is believed of the
/// callers of a tenant, up to a rate, and of nobody else.
pub fn set_parent(span: &tracing::Span, traceparent: &str, tracestate: Option<&str>, tenant: Option<&str>) -> bool {
    join(span, traceparent, tracestate, |trace| {
        let keeping = KEEPING.get();
        let counts = |keeping: &Keeping, tenant| keeping.words.counts(tenant, keeping.most, Instant::now());
        keeping.is_some_and(|keeping| {
            keeping.share.in_share(trace) || tenant.is_some_and(|tenant| counts(keeping, tenant))
        })
    })
}

/// The same, for whoever knows whether a trace is kept.
pub(crate) fn join(
    span: &tracing::Span,
    traceparent: &str,
    tracestate: Option<&str>,
    keep: impl FnOnce(TraceId) -> bool,
) -> bool {
    let Some(parent) = parse(traceparent, tracestate) else { return false };
    let kept = parent.is_sampled() && keep(parent.trace_id());
    let flags = parent.trace_flags().with_sampled(kept);
    let parent = SpanContext::new(parent.trace_id(), parent.span_id(), flags, true, parent.trace_state().clone());
    // Refused when the span is switched off or already entered; then it keeps the parent it has.
    span.set_parent(Context::new().with_remote_span_context(parent)).is_ok()
}

fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    if traceparent.len() > MOST_PARENT_BYTES || tracestate.is_some_and(|state| state.len() > MOST_STATE_BYTES) {
        return None;
    }
    let headers = TraceHeaders { traceparent, tracestate };
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let parent = parent.span().span_context().clone();
    parent.is_valid().then_some(parent)
}

/// The span of this moment as one line, to be kept with what is recorded now; `None` without a collector.
pub fn current_span() -> Option<String> {
    reference(Context::current().span().span_context())
}

/// A span as one line.
pub fn span_reference(span: &tracing::Span) -> Option<String> {
    reference(span.context().span().span_context())
}

fn reference(span: &SpanContext) -> Option<String> {
    let flags = span.trace_flags().to_u8();
    span.is_valid().then(|| format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id()))
}

/// Links a span to one that was kept as a line: see [`names::LINK`]. What cannot be read is no link.
pub fn link_to(span: &tracing::Span, other: &str, what: &'static str) {
    if let Some(other) = parse(other, None) {
        span.add_link_with_attributes(other, vec![KeyValue::new(names::LINK, what)]);
    }
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
