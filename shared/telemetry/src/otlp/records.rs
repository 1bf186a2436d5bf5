//! Texts of others as OTLP log records, byte for byte, for whoever sends them: the audit log has a sink for collectors.
//!
//! Nothing is queued and nothing dropped here, other than with the log lines of this process (see `logs`).

use super::metrics::{nanos_now, pair};
use domain::Moment;
use opentelemetry_proto::tonic::collector::logs::v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

/// What the records are called.
const SCOPE: &str = "quartermaster.audit";
const SERVICE: &str = "quartermaster";

/// One text that becomes a log record.
#[derive(Debug, Clone)]
pub struct RecordText<'a> {
    /// When it was written.
    pub at: Moment,
    /// The trace it belongs to, in hex.
    pub trace: Option<String>,
    /// The text itself.
    pub body: &'a str,
    /// What else is told of it; the keys are names of [`names`](crate::names).
    pub attributes: Vec<(&'static str, String)>,
}

/// The texts as the body of one request to a collector (`application/x-protobuf`).
pub fn encode_records(texts: Vec<RecordText<'_>>) -> Vec<u8> {
    let log_records = texts.into_iter().map(record).collect();
    let scope = InstrumentationScope { name: SCOPE.to_owned(), ..InstrumentationScope::default() };
    let scope_logs = vec![ScopeLogs { scope: Some(scope), log_records, schema_url: String::new() }];
    let service = vec![pair("service.name", Value::StringValue(SERVICE.to_owned()))];
    let resource = Some(Resource { attributes: service, ..Resource::default() });
    let resource_logs = vec![ResourceLogs { resource, scope_logs, schema_url: String::new() }];
    ExportLogsServiceRequest { resource_logs }.encode_to_vec()
}

fn record(text: RecordText<'_>) -> LogRecord {
    let attributes = text.attributes.into_iter().map(|(key, value)| pair(key, Value::StringValue(value))).collect();
    LogRecord {
        time_unix_nano: text.at.millis().saturating_mul(1_000_000),
        observed_time_unix_nano: nanos_now(),
        severity_number: SeverityNumber::Info.into(),
        severity_text: "INFO".to_owned(),
        body: Some(AnyValue { value: Some(Value::StringValue(text.body.to_owned())) }),
        attributes,
        trace_id: text.trace.as_deref().and_then(bytes_of_hex).unwrap_or_default(),
        ..LogRecord::default()
    }
}

/// The sixteen bytes of a trace id.
fn bytes_of_hex(text: &str) -> Option<Vec<u8>> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (text.len() == 32).then(|| (0..32).step_by(2).map(byte).collect()).flatten()
}

/// How many records a collector says it did not take, in the answer to a request that it took otherwise. `None` if the
/// answer cannot be read.
pub fn rejected_records(answer: &[u8]) -> Option<u64> {
    let answer = ExportLogsServiceResponse::decode(answer).ok()?;
    let rejected = answer.partial_success.map_or(0, |partial| partial.rejected_log_records);
    Some(u64::try_from(rejected).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsPartialSuccess;

    #[test]
    fn a_text_is_read_back_byte_for_byte() {
        let at = Moment::from_millis(1_763_280_000_123);
        let trace = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
        let body = "{\"b\": 1.50,\"a\":\"\\u0041\"}";
        let attributes = vec![(crate::names::TENANT, "acme".to_owned())];
        let encoded = encode_records(vec![RecordText { at, trace, body, attributes }]);
        let read = ExportLogsServiceRequest::decode(encoded.as_slice()).unwrap();
        let record = &read.resource_logs[0].scope_logs[0].log_records[0];
        assert_eq!(record.body.clone().unwrap().value, Some(Value::StringValue(body.to_owned())));
        assert_eq!((record.time_unix_nano, record.trace_id.len()), (1_763_280_000_123_000_000, 16));
        assert_eq!(record.attributes[0].key, crate::names::TENANT);
        for odd in ["", "4bf9", "zzf92f3577b34da6a3ce929d0e0e4736", "4bf92f3577b34da6a3ce929d0e0e473\u{e9}"] {
            assert_eq!(bytes_of_hex(odd), None, "{odd}");
        }
    }

    #[test]
    fn records_that_a_collector_leaves_out_are_counted() {
        assert_eq!(rejected_records(b""), Some(0));
        let partial = ExportLogsPartialSuccess { rejected_log_records: 3, error_message: "too old".to_owned() };
        let answer = ExportLogsServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(rejected_records(&answer), Some(3));
        assert_eq!(rejected_records(b"<html>"), None);
    }
}
