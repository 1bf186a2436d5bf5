//! Log lines for a collector: what a line says, with the ids of its trace and span, and nothing else.
//!
//! They wait in a bounded queue. A full one drops lines, which stand on stderr all the same, and counts them.

use super::metrics::{nanos_now, pair};
use super::{OtlpRequest, OtlpSender};
use crate::fields::LogFields;
use crate::line::gathered;
use crate::metrics::TELEMETRY_DROPPED;
use opentelemetry::Context as TraceContext;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::sync::mpsc as blocking;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Lines that may wait to be sent.
const QUEUE: usize = 4_096;
/// Lines that are sent at once.
const BATCH: usize = 512;
/// How long a line may wait for company.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// A layer that hands lines over to be sent.
#[derive(Debug, Clone)]
pub(crate) struct LogQueue(mpsc::Sender<Queued>);

#[derive(Debug)]
enum Queued {
    Line(Box<LogRecord>),
    /// Everything before it is to be sent now; then whoever waits hears of it.
    Flush(blocking::Sender<()>),
}

impl LogQueue {
    /// Starts to send. The lines come from a layer that is made from the queue.
    pub(crate) fn start(sender: OtlpSender, resource: Resource) -> LogQueue {
        let (queue, lines) = mpsc::channel(QUEUE);
        let runtime = sender.0.runtime.clone();
        runtime.spawn(send_all(lines, sender, resource));
        LogQueue(queue)
    }

    /// Waits until everything that was queued is sent or dropped. It blocks.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let (done, heard) = blocking::channel();
        self.0.blocking_send(Queued::Flush(done)).is_ok() && heard.recv_timeout(timeout).is_ok()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for LogQueue {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let fields = gathered(context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()), event);
        let record = record(*event.metadata().level(), fields);
        if self.0.try_send(Queued::Line(Box::new(record))).is_err() {
            TELEMETRY_DROPPED.add(["logs"], 1);
        }
    }
}

fn record(level: Level, fields: LogFields) -> LogRecord {
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
    let context = TraceContext::current();
    let span = context.span();
    let span = span.span_context();
    if span.is_valid() {
        record.trace_id = span.trace_id().to_bytes().to_vec();
        record.span_id = span.span_id().to_bytes().to_vec();
        record.flags = span.trace_flags().to_u8().into();
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

/// Sends batch by batch until nobody is left who could log.
async fn send_all(mut lines: mpsc::Receiver<Queued>, sender: OtlpSender, resource: Resource) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(first) = lines.recv().await {
        let mut waiting = take(first, &mut batch);
        let until = tokio::time::Instant::now() + SEND_EVERY;
        while waiting.is_none() && batch.len() < BATCH {
            match tokio::time::timeout_at(until, lines.recv()).await {
                Ok(Some(next)) => waiting = take(next, &mut batch),
                Ok(None) | Err(_) => break,
            }
        }
        if !batch.is_empty() {
            let (records, lines) = (std::mem::take(&mut batch), batch.capacity());
            batch.reserve(lines);
            send(&sender, &resource, records).await;
        }
        if let Some(waiting) = waiting {
            waiting.send(()).ok();
        }
    }
}

fn take(queued: Queued, batch: &mut Vec<LogRecord>) -> Option<blocking::Sender<()>> {
    match queued {
        Queued::Line(line) => {
            batch.push(*line);
            None
        }
        Queued::Flush(done) => Some(done),
    }
}

async fn send(sender: &OtlpSender, resource: &Resource, log_records: Vec<LogRecord>) {
    let lines = log_records.len();
    let scope = InstrumentationScope { name: "quartermaster".to_owned(), ..InstrumentationScope::default() };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records, schema_url: String::new() }];
    let resource_logs = vec![ResourceLogs { resource: Some(resource.clone()), scope_logs, schema_url: String::new() }];
    // Counted where it fails.
    sender.send(OtlpRequest::Logs(ExportLogsServiceRequest { resource_logs }), lines).await.ok();
}

/// What a collector is told of who sends, in its own words.
pub(crate) fn resource_of(resource: &opentelemetry_sdk::Resource) -> Resource {
    let attributes: Vec<KeyValue> =
        resource.iter().map(|(key, value)| pair(key.as_str(), Value::StringValue(value.to_string()))).collect();
    Resource { attributes, ..Resource::default() }
}
