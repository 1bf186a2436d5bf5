//! Starts logging and tracing for the whole process, once.
//!
//! Log lines go to stderr, since on the stdio surface stdout carries only protocol. Spans always have ids, so that a
//! line, an error and an audit entry name the same trace; they are recorded and sent only if a collector is set.
//! Sending happens on a thread of its own behind a bounded queue. A full queue drops spans and never makes a call wait.

use crate::callsites::CallsiteFilter;
use crate::config::Config;
use crate::config::{ConfigError, pairs};
use crate::layer::{SpanCollector, SpanLayer};
use crate::line::LineLayer;
use crate::metrics::TELEMETRY_DROPPED;
use crate::otlp::logs::LogQueue;
use crate::otlp::metrics::{MetricsExporter, pair};
use crate::otlp::queue::OtlpQueue;
use crate::otlp::{BadEndpoint, HttpSend, OtlpSender, Signal, spans};
use crate::record::SpanRecord;
use crate::step;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use std::time::Duration;
use tracing::Subscriber;
use tracing_subscriber::Registry;
use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// Spans that may wait to be sent; at a kilobyte each this is some megabytes at worst.
const QUEUE: usize = 8_192;

/// Why telemetry could not be started.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The log directives cannot be read.
    #[error("could not read the log directives `{log}`")]
    Log {
        /// The directives as configured.
        log: String,
        /// What is wrong with them.
        #[source]
        source: ParseError,
    },
    /// A setting cannot be used.
    #[error("could not use the settings of telemetry")]
    Config(#[source] ConfigError),
    /// The collector's address cannot be used.
    #[error("could not prepare sending to the collector")]
    Collector(#[source] BadEndpoint),
    /// Sending needs a runtime, and there is none here.
    #[error("could not prepare sending to the collector outside of an async runtime")]
    NoRuntime,
    /// Somebody in this process was first.
    #[error("telemetry was already started in this process")]
    AlreadyStarted,
}

/// Spans that were still waiting could not be sent in time.
#[derive(Debug, thiserror::Error)]
#[error("could not send the last spans")]
pub struct NotFlushed;

type SpanQueue = OtlpQueue<Box<SpanRecord>>;

/// Keeps telemetry going; whoever holds it ends it.
#[derive(Debug)]
#[must_use = "the last spans are sent by `shutdown`"]
pub struct TelemetryGuard {
    spans: Option<SpanQueue>,
    logs: Option<LogQueue>,
    metrics: Option<MetricsExporter>,
}

impl TelemetryGuard {
    /// Sends what is still waiting. It blocks, and while it does the runtime `start` was called in must go on: call it
    /// from a blocking task.
    pub fn shutdown(self, timeout: Duration) -> Result<(), NotFlushed> {
        if let Some(logs) = &self.logs
            && !logs.flush(timeout)
        {
            TELEMETRY_DROPPED.add([Signal::Logs.as_str()], 1);
        }
        match self.spans {
            Some(spans) if !spans.flush(timeout) => Err(NotFlushed),
            Some(_) | None => Ok(()),
        }
    }

    /// Sends metrics, if a collector takes them: whoever sets the gauges calls it afterwards, again and again.
    pub fn metrics(&self) -> Option<MetricsExporter> {
        self.metrics.clone()
    }
}

/// What other crates say of requests that we tell of ourselves: they would print addresses, and a refusal of a target as
/// a fault of ours. A directive in the settings has the last word.
const QUIET: &str = "kube_client=off,tower_http=off,rmcp=off";

/// Starts logging and sending for this process. `replica` signs every line and span; `http` posts to a collector.
pub fn start(config: &Config, replica: &str, http: &HttpSend) -> Result<TelemetryGuard, TelemetryError> {
    config.check().map_err(TelemetryError::Config)?;
    let [traces, metrics, logs] = Signal::ALL.map(|signal| sender(config, signal, http));
    let (traces, metrics, logs) = (traces?, metrics?, logs?);
    let about = resource(config, replica);
    // Without a collector nothing is recorded but what log lines carry.
    let spans = traces.map(|sender| {
        let about = about.clone();
        OtlpQueue::start(sender, QUEUE, move |records| spans::request(records, &about))
    });
    let logs = logs.map(|sender| LogQueue::start(sender, about.clone()));
    let metrics = metrics.map(|sender| MetricsExporter::new(sender, about));
    step::tell_from(config);
    let subscriber = subscriber(config, replica, spans.clone(), logs.clone(), std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| TelemetryError::AlreadyStarted)?;
    Ok(TelemetryGuard { spans, logs, metrics })
}

/// Lines to `writer` and to `logs` if it is there, spans to `spans` if it is.
pub(crate) fn subscriber<W>(
    config: &Config,
    replica: &str,
    spans: Option<SpanQueue>,
    logs: Option<LogQueue>,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let wanted = EnvFilter::try_new(format!("{QUIET},{}", config.log));
    let wanted = wanted.map_err(|source| TelemetryError::Log { log: config.log.clone(), source })?;
    let callsites = CallsiteFilter::new(wanted, &config.log, spans.is_some());
    let collector = spans.map(|spans| SpanCollector::new(config, spans));
    let lines = LineLayer { format: config.format, replica: replica.into(), writer };
    // No layer has a filter of its own: see `callsites`.
    Ok(Registry::default().with(callsites).with(SpanLayer::new(collector)).with(lines).with(logs))
}

/// Who sends; written out rather than detected, since the environment is read in one place only.
fn resource(config: &Config, replica: &str) -> Resource {
    let more = pairs(&config.resource_attributes, "resource_attributes").unwrap_or_default();
    let own = [
        ("service.name", config.service_name.as_str()),
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.instance.id", replica),
    ];
    // What the service knows of itself comes first: a name that is there twice is the service's own.
    let more = more.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let more = more.filter(|(name, _)| !own.iter().any(|(known, _)| known == name));
    let text = |(name, value): (&str, &str)| pair(name, Value::StringValue(value.to_owned()));
    let attributes = own.into_iter().chain(more).map(text).collect();
    Resource { attributes, ..Resource::default() }
}

/// What sends one kind of telemetry, if somebody takes it. It connects when it first has something to send.
fn sender(config: &Config, signal: Signal, http: &HttpSend) -> Result<Option<OtlpSender>, TelemetryError> {
    let Some(target) = config.target(signal).map_err(TelemetryError::Config)? else { return Ok(None) };
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
    OtlpSender::new(target, http, runtime).map(Some).map_err(TelemetryError::Collector)
}

#[cfg(test)]
mod tests;
