//! Spans as OTLP has them. What is not in the names file stays here, and is counted.
//!
//! The last gate stands here instead of at each callsite, because a forgotten field can add an attribute that nobody
//! meant to send.

use super::OtlpRequest;
use super::metrics::{nanos, pair};
use crate::metrics::TELEMETRY_DROPPED;
use crate::names;
use crate::record::{AttributeValue, SpanAttributes, SpanPlace, SpanRecord};
use crate::trace_context::TraceContext;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

/// Whoever reads a span drops it unless it says that it is sampled.
const SAMPLED: u32 = 1;

/// The request that sends these spans.
#[expect(clippy::vec_box, reason = "records are handed on by pointer, from span to span and into the queue")]
pub(crate) fn request(records: Vec<Box<SpanRecord>>, resource: &Resource) -> OtlpRequest {
    let spans = records.into_iter().filter_map(|record| written(*record)).collect();
    let scope = InstrumentationScope { name: "quartermaster".to_owned(), ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, schema_url: String::new() }];
    let resource_spans =
        vec![ResourceSpans { resource: Some(resource.clone()), scope_spans, schema_url: String::new() }];
    OtlpRequest::Traces(ExportTraceServiceRequest { resource_spans })
}

/// One span; `None` if it stands in no trace.
pub(crate) fn written(record: SpanRecord) -> Option<Span> {
    let SpanRecord { name, attributes, place, links, .. } = record;
    let SpanPlace { context, parent, began, ended } = place?;
    let (listed, dropped) = listed(&attributes);
    Some(Span {
        trace_id: context.trace.to_be_bytes().to_vec(),
        span_id: context.span.to_be_bytes().to_vec(),
        trace_state: context.state.as_deref().unwrap_or_default().to_owned(),
        parent_span_id: parent.map_or_else(Vec::new, |parent| parent.to_be_bytes().to_vec()),
        flags: SAMPLED,
        name: name_of(name, &attributes),
        kind: kind_of(&attributes).into(),
        start_time_unix_nano: nanos(began),
        end_time_unix_nano: nanos(ended),
        attributes: listed,
        dropped_attributes_count: dropped,
        links: links.into_iter().map(link).collect(),
        status: status(&attributes),
        ..Span::default()
    })
}

/// The attributes that may leave, and the number of those that may not. What shapes a span is neither.
fn listed(attributes: &SpanAttributes) -> (Vec<KeyValue>, u32) {
    let is_attribute = |(name, _): &(&'static str, AttributeValue<'_>)| !names::SHAPES.contains(name);
    let (mut listed, mut dropped) = (Vec::new(), 0);
    for (name, value) in attributes.iter().filter(is_attribute) {
        match (names::may_leave(name), value) {
            (false, _) => dropped += 1,
            (true, AttributeValue::Text(text)) => listed.push(pair(name, Value::StringValue(text.to_owned()))),
            (true, AttributeValue::Bool(value)) => listed.push(pair(name, Value::BoolValue(value))),
            (true, AttributeValue::Int(value)) => listed.push(pair(name, Value::IntValue(value))),
            (true, AttributeValue::Float(value)) => listed.push(pair(name, Value::DoubleValue(value))),
        }
    }
    if dropped > 0 {
        TELEMETRY_DROPPED.add(["attributes"], u64::from(dropped));
    }
    (listed, dropped)
}

/// How a span is called: by the conventions for what it is, or as it says itself.
fn name_of(callsite: &'static str, attributes: &SpanAttributes) -> String {
    let text = |name| match attributes.find(name) {
        Some(AttributeValue::Text(text)) => Some(text),
        Some(AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Float(_)) | None => None,
    };
    let joined =
        |first: &str, second: Option<&str>| second.map_or_else(|| first.to_owned(), |s| format!("{first} {s}"));
    if let Some(name) = text(names::OTEL_NAME) {
        return name.to_owned();
    }
    if let Some(method) = text(names::MCP_METHOD_NAME) {
        return joined(method, text(names::GEN_AI_TOOL_NAME));
    }
    if let Some(method) = text(names::HTTP_REQUEST_METHOD) {
        return joined(method, text(names::HTTP_ROUTE));
    }
    match text(names::GEN_AI_OPERATION_NAME) {
        Some(names::SPAN_EXECUTE_TOOL) => joined(names::SPAN_EXECUTE_TOOL, text(names::GEN_AI_TOOL_NAME)),
        Some(operation) => operation.to_owned(),
        None => callsite.to_owned(),
    }
}

fn kind_of(attributes: &SpanAttributes) -> SpanKind {
    match attributes.find(names::OTEL_KIND) {
        Some(AttributeValue::Text("server")) => SpanKind::Server,
        Some(AttributeValue::Text("client")) => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}

/// A span has failed exactly if it names the type of its error. The sentence is fixed, with a word of a closed list.
fn status(attributes: &SpanAttributes) -> Option<Status> {
    let error = attributes.find(names::ERROR_TYPE)?;
    let message = match (attributes.find(names::CODE), error) {
        (Some(AttributeValue::Text(code)), _) => format!("it failed with {code}"),
        (_, AttributeValue::Text(error)) => format!("it failed with {error}"),
        _ => "it failed".to_owned(),
    };
    Some(Status { message, code: StatusCode::Error.into() })
}

fn link((other, what): (TraceContext, &'static str)) -> Link {
    Link {
        trace_id: other.trace.to_be_bytes().to_vec(),
        span_id: other.span.to_be_bytes().to_vec(),
        trace_state: other.state.as_deref().unwrap_or_default().to_owned(),
        attributes: vec![pair(names::LINK, Value::StringValue(what.to_owned()))],
        flags: u32::from(other.sampled),
        ..Link::default()
    }
}
