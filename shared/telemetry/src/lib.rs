//! Tracing and OpenTelemetry set-up, and the one list of names.
//!
//! Reading order: [`names`] (every name that may leave), [`config`], [`setup`] (what is started), [`context`] (the
//! trace a call belongs to), [`step`] (spans of what was slow or failed). Beneath them `callsites` decides what is of
//! interest, `layer` keeps a `record` of each open span and decides at its end whether it is sent, `sampling` which
//! traces are kept from the beginning, and `line` writes log lines.
//!
//! Telemetry never slows or fails a call: queues are bounded, and what does not fit is dropped.
//!
//! [`metrics`] counts, and is read by Prometheus. [`otlp`] sends traces, metrics and logs to a collector.
//!
//! Not here: the audit log, which is no log (see `store`).

mod callsites;
pub mod config;
pub mod context;
mod fields;
mod layer;
mod line;
pub mod metrics;
pub mod names;
pub mod otlp;
mod record;
mod sampling;
pub mod setup;
pub mod step;
mod trace_context;

pub use config::{Config, ConfigError, Format, HeaderList, SignalConfig};
pub use context::{
    asks_to_be_kept, current_span, current_trace_id, link, link_to, note, note_on, set_parent, span_reference,
    trace_headers,
};
pub use layer::collects_spans;
pub use otlp::metrics::MetricsExporter;
pub use otlp::{HttpPost, HttpSend, OtlpProtocol, otlp_down};
pub use record::{AttributeValue, SpanAttributes};
pub use setup::{NotFlushed, TelemetryError, TelemetryGuard, start};
pub use step::{Step, store_round_trip};
