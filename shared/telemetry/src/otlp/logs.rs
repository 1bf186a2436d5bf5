//! Log lines for a collector: what a line says, with the ids of its trace and span, and nothing else.
//!
//! A full queue drops lines, which stand on stderr all the same.

use super::metrics::{nanos_now, pair};
use super::queue::OtlpQueue;
use super::{OtlpRequest, OtlpSender};
use crate::line::{LineFacts, gathered};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::time::Duration;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Lines that may wait to be sent.
const QUEUE: usize = 4_096;

/// A layer that hands lines over to be sent.
#[derive(Debug, Clone)]
pub(crate) struct LogQueue(OtlpQueue<LogRecord>);

impl LogQueue {
    /// Starts to send. The lines come from a layer that is made from the queue.
    pub(crate) fn start(sender: OtlpSender, resource: Resource) -> LogQueue {
        LogQueue(OtlpQueue::start(sender, QUEUE, move |records| request(records, &resource)))
    }

    /// Waits until everything that was queued is sent or dropped. It blocks.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        self.0.flush(timeout)
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogQueue {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !is_senders(event.metadata()) {
            self.0.push(record(*event.metadata().level(), gathered(event, &context)));
        }
    }
}

/// Whether an event is told by what sends: a collector would be sent lines about the sending of lines.
fn is_senders(event: &Metadata<'_>) -> bool {
    const SENDERS: [&str; 7] = ["h2", "hyper", "hyper_util", "reqwest", "rustls", "tonic", "tower"];
    event.target().split("::").next().is_some_and(|name| SENDERS.contains(&name))
}

fn record(level: Level, LineFacts { fields, trace }: LineFacts) -> LogRecord {
    let mut record = LogRecord {
        time_unix_nano: nanos_now(),
        observed_time_unix_nano: nanos_now(),
        severity_number: severity(level).into(),
        severity_text: level.as_str().to_owned(),
        ..LogRecord::default()
    };
    for (key, value) in fields.in_order() {
        match key {
            "msg" => record.body = Some(AnyValue { value: Some(written(value)) }),
            _ => record.attributes.push(pair(key, written(value))),
        }
    }
    if let Some(trace) = trace {
        record.trace_id = trace.trace.to_be_bytes().to_vec();
        record.span_id = trace.span.to_be_bytes().to_vec();
        record.flags = trace.sampled.into();
    }
    record
}

fn severity(level: Level) -> SeverityNumber {
    match level {
        Level::ERROR => SeverityNumber::Error,
        Level::WARN => SeverityNumber::Warn,
        Level::INFO => SeverityNumber::Info,
        Level::DEBUG => SeverityNumber::Debug,
        Level::TRACE => SeverityNumber::Trace,
    }
}

fn written(value: serde_json::Value) -> Value {
    use serde_json::Value as Json;
    match value {
        Json::Bool(value) => Value::BoolValue(value),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::IntValue(number),
            None => Value::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::StringValue(text),
        Json::Array(values) => {
            let values = values.into_iter().map(|value| AnyValue { value: Some(written(value)) }).collect();
            Value::ArrayValue(ArrayValue { values })
        }
        Json::Null | Json::Object(_) => Value::StringValue(value.to_string()),
    }
}

fn request(log_records: Vec<LogRecord>, resource: &Resource) -> OtlpRequest {
    let scope = InstrumentationScope { name: "quartermaster".to_owned(), ..InstrumentationScope::default() };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records, schema_url: String::new() }];
    let resource_logs = vec![ResourceLogs { resource: Some(resource.clone()), scope_logs, schema_url: String::new() }];
    OtlpRequest::Logs(ExportLogsServiceRequest { resource_logs })
}
