//! The trace a piece of work belongs to, how a caller's trace is joined, and what is noted on the span of this moment.
//!
//! Only `traceparent` and `tracestate` are understood. Baggage is neither taken nor handed on.

use crate::layer::{at_current, at_span, collects_spans, context_of, parts};
use crate::record::{SpanAttributes, SpanRecord};
use crate::trace_context::TraceContext;
use std::time::Instant;

/// The id of the trace this thread is working in, as 32 hex digits.
pub fn current_trace_id() -> Option<String> {
    current().map(|context| format!("{:032x}", context.trace))
}

/// The headers under which whoever is asked now continues the trace of this moment; none without a trace.
pub fn trace_headers() -> Vec<(&'static str, String)> {
    let Some(context) = current() else { return Vec::new() };
    let state = context.state.as_ref().map(|state| ("tracestate", state.to_string()));
    [("traceparent", context.traceparent())].into_iter().chain(state).collect()
}

/// The span of this moment as one line, to be kept with what is recorded now; `None` without a collector.
pub fn current_span() -> Option<String> {
    current().map(|context| context.traceparent())
}

fn current() -> Option<TraceContext> {
    if !collects_spans() {
        return None;
    }
    at_current(|_, span| context_of(&span))
}

/// A span as one line.
pub fn span_reference(span: &tracing::Span) -> Option<String> {
    place_of(span).map(|context| context.traceparent())
}

fn place_of(span: &tracing::Span) -> Option<TraceContext> {
    at_span(span, |_, span| context_of(&span))
}

/// Whether a caller asks for its trace to be kept, and it would not be anyway: only then it matters who the caller is.
pub fn asks_to_be_kept(traceparent: &str) -> bool {
    let asks = |parent: TraceContext| {
        let in_share = tracing::dispatcher::get_default(|dispatch| {
            let share = parts(dispatch)?.0.collector()?.share;
            Some(share.contains(parent.trace))
        });
        parent.sampled && in_share == Some(false)
    };
    collects_spans() && TraceContext::parse(traceparent, None).is_some_and(asks)
}

/// Makes a span that was not entered yet a part of the caller's trace, and tells whether it is. What is malformed or too
/// long is ignored: a caller's mistake in telemetry never costs the call. That the trace is to be kept is believed of the
/// callers of a tenant, up to a rate, and of nobody else.
pub fn set_parent(span: &tracing::Span, traceparent: &str, tracestate: Option<&str>, tenant: Option<&str>) -> bool {
    let joined = at_span(span, |layer, span| {
        let collector = layer.collector()?;
        let parent = TraceContext::parse(traceparent, tracestate)?;
        let mut extensions = span.extensions_mut();
        let place = extensions.get_mut::<Box<SpanRecord>>()?.place.as_mut()?;
        let has_word = || tenant.is_some_and(|tenant| collector.words.counts(tenant, Instant::now()));
        let sampled = parent.sampled && (collector.share.contains(parent.trace) || has_word());
        place.parent = Some(parent.span);
        place.context = TraceContext { sampled, ..parent }.child();
        Some(())
    });
    joined.is_some()
}

/// Links a span to one that was kept as a line: see [`names::LINK`](crate::names::LINK). What cannot be read is no link.
pub fn link_to(span: &tracing::Span, other: &str, what: &'static str) {
    if let Some(other) = TraceContext::parse(other, None) {
        add_link(span, other, what);
    }
}

/// Notes on a span that another one belongs to it, and what that one is: see [`names::LINK`](crate::names::LINK).
pub fn link(span: &tracing::Span, other: &tracing::Span, what: &'static str) {
    if let Some(other) = place_of(other) {
        add_link(span, other, what);
    }
}

fn add_link(span: &tracing::Span, other: TraceContext, what: &'static str) {
    at_span(span, |_, span| {
        span.extensions_mut().get_mut::<Box<SpanRecord>>()?.links.push((other, what));
        Some(())
    });
}

/// Notes attributes on the span of this moment. They need not be fields of the span, of which there may be 32 at most.
pub fn note(set: impl FnOnce(&mut SpanAttributes)) {
    at_current(|layer, span| note_on_record(layer, &span, set));
}

/// The same on a span that is at hand.
pub fn note_on(span: &tracing::Span, set: impl FnOnce(&mut SpanAttributes)) {
    at_span(span, |layer, span| note_on_record(layer, &span, set));
}

fn note_on_record<'a, R: tracing_subscriber::registry::LookupSpan<'a>>(
    layer: &crate::layer::SpanLayer,
    span: &tracing_subscriber::registry::SpanRef<'a, R>,
    set: impl FnOnce(&mut SpanAttributes),
) -> Option<()> {
    let mut extensions = span.extensions_mut();
    if let Some(record) = extensions.get_mut::<Box<SpanRecord>>() {
        set(&mut record.attributes);
        return Some(());
    }
    let mut attributes = SpanAttributes::with_capacity(0, layer.collector().is_none()).filled();
    set(&mut attributes);
    if !attributes.is_empty() {
        extensions.insert(Box::new(SpanRecord::new(span.name(), attributes, None)));
    }
    Some(())
}
