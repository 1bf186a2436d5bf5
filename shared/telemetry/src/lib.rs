//! Tracing and OpenTelemetry set-up, and the one list of names.
//!
//! Reading order: [`names`] (every name that may leave), [`config`], [`setup`] (what is started), [`context`] (the
//! trace a call belongs to). Beneath them `line` writes log lines, `sampling` decides which
//! traces are kept, and `listed` keeps unlisted attributes inside.
//!
//! Telemetry never slows or fails a call: queues are bounded, and what does not fit is dropped.
//!
//! [`metrics`] counts, and is read by Prometheus. [`otlp`] sends traces, metrics and logs to a collector.
//!
//! Not here: the audit log, which is no log (see `store`).

pub mod config;
pub mod context;
mod fields;
mod line;
mod listed;
pub mod metrics;
pub mod names;
pub mod otlp;
mod sampling;
pub mod setup;

pub use config::{Config, ConfigError, Format, HeaderList, SignalConfig};
pub use context::{
    asks_to_be_kept, current_span, current_trace_id, link, link_to, set_parent, span_reference, trace_headers,
};
pub use otlp::metrics::MetricsExporter;
pub use otlp::{HttpPost, HttpSend, OtlpProtocol, otlp_down};
pub use setup::{NotFlushed, TelemetryError, TelemetryGuard, start};
