//! Starts logging and tracing for the whole process, once.
//!
//! Log lines go to stderr, since on the stdio surface stdout carries only protocol. Spans always have ids, so that a
//! line, an error and an audit entry name the same trace; they are recorded and sent only if a collector is set.
//! Sending happens on a thread of its own behind a bounded queue. A full queue drops spans and never makes a call wait.

use crate::config::Config;
use crate::config::{ConfigError, pairs};
use crate::context;
use crate::fields::SpanFieldsLayer;
use crate::line::LineFormat;
use crate::listed::{AllowListExporter, DroppedCount};
use crate::metrics::TELEMETRY_DROPPED;
use crate::otlp::logs::{LogQueue, resource_of};
use crate::otlp::metrics::MetricsExporter;
use crate::otlp::spans::OtlpSpans;
use crate::otlp::{BadEndpoint, HttpSend, OtlpSender, Signal};
use crate::sampling::{KeepProcessor, KeepSampler, WaitingCount};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{KeyValue, global};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkError;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider, SpanExporter, TracerProviderBuilder,
};
use std::time::Duration;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::filter::{EnvFilter, FilterExt, LevelFilter, ParseError, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry};

/// Spans that may wait to be sent; at a few hundred bytes each this is some megabytes at worst.
const QUEUE: usize = 8_192;
/// Spans that are sent at once.
const BATCH: usize = 512;
/// How long a finished span may wait for company.
const SEND_EVERY: Duration = Duration::from_secs(2);

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
pub struct NotFlushed(#[source] OTelSdkError);

/// Keeps telemetry going; whoever holds it ends it.
#[derive(Debug)]
#[must_use = "the last spans are sent by `shutdown`"]
pub struct TelemetryGuard {
    provider: Option<SdkTracerProvider>,
    logs: Option<LogQueue>,
    metrics: Option<MetricsExporter>,
    dropped: DroppedCount,
}

impl TelemetryGuard {
    /// Sends what is still waiting and stops sending. It blocks, and while it does the runtime `start` was called in
    /// must go on: call it from a blocking task.
    pub fn shutdown(self, timeout: Duration) -> Result<(), NotFlushed> {
        if let Some(logs) = &self.logs
            && !logs.flush(timeout)
        {
            TELEMETRY_DROPPED.add([Signal::Logs.as_str()], 1);
        }
        self.provider.map_or(Ok(()), |provider| provider.shutdown_with_timeout(timeout)).map_err(NotFlushed)
    }

    /// Sends metrics, if a collector takes them: whoever sets the gauges calls it afterwards, again and again.
    pub fn metrics(&self) -> Option<MetricsExporter> {
        self.metrics.clone()
    }

    /// How many attributes and span events were kept from leaving because no list names them.
    pub fn dropped(&self) -> u64 {
        self.dropped.count()
    }
}

/// What other crates say of requests that we tell of ourselves: they would print addresses, and a refusal of a target as
/// a fault of ours. A directive in the settings has the last word.
const QUIET: &str = "kube_client=off,tower_http=off,rmcp=off";

/// Starts logging and sending for this process. `replica` signs every line and span; `http` posts to a collector.
pub fn start(config: &Config, replica: &str, http: &HttpSend) -> Result<TelemetryGuard, TelemetryError> {
    config.check().map_err(TelemetryError::Config)?;
    let dropped = DroppedCount::default();
    let [traces, metrics, logs] = Signal::ALL.map(|signal| sender(config, signal, http));
    let (traces, metrics, logs) = (traces?, metrics?, logs?);
    let about = resource_of(&resource(config, replica));
    context::begin(config);
    // Without a collector nothing is recorded: a span that nobody will see should cost next to nothing.
    let provider = traces.map(|sender| sending(config, replica, OtlpSpans::new(sender), &dropped));
    let logs = logs.map(|sender| LogQueue::start(sender, about.clone()));
    let metrics = metrics.map(|sender| MetricsExporter::new(sender, about));
    let subscriber = subscriber(config, replica, provider.as_ref(), logs.clone(), std::io::stderr)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| TelemetryError::AlreadyStarted)?;
    global::set_text_map_propagator(TraceContextPropagator::new());
    Ok(TelemetryGuard { provider, logs, metrics, dropped })
}

/// Lines to `writer` and to `logs` if it is there, spans to `provider` if there is one.
pub(crate) fn subscriber<W>(
    config: &Config,
    replica: &str,
    provider: Option<&SdkTracerProvider>,
    logs: Option<LogQueue>,
    writer: W,
) -> Result<impl Subscriber + Send + Sync + use<W>, TelemetryError>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let wanted = |quiet: &str| {
        let wanted = EnvFilter::try_new(format!("{quiet},{}", config.log));
        wanted.map_err(|source| TelemetryError::Log { log: config.log.clone(), source })
    };
    // Spans are kept whatever the log level, because a warning without its tenant helps nobody.
    let spans = || filter_fn(is_span).with_max_level_hint(LevelFilter::INFO);
    let line = LineFormat { format: config.format, replica: replica.into() };
    let lines = tracing_subscriber::fmt::layer().fmt_fields(SpanFieldsLayer).event_format(line).with_writer(writer);
    let traces = provider.map(|provider| {
        tracing_opentelemetry::layer()
            .with_tracer(provider.tracer("quartermaster"))
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_target(false)
            .with_filter(filter_fn(is_step).with_max_level_hint(LevelFilter::DEBUG))
    });
    let (to_writer, to_collector) = (wanted(QUIET)?, wanted(QUIET)?.and(filter_fn(|event| !is_senders(event))));
    let logs = logs.map(|logs| logs.with_filter(to_collector.or(spans())));
    Ok(Registry::default().with(traces).with(lines.with_filter(to_writer.or(spans()))).with(logs))
}

/// A provider that records the configured share of traces and sends them by way of the list.
pub(crate) fn sending<E: SpanExporter + 'static>(
    config: &Config,
    replica: &str,
    exporter: E,
    dropped: &DroppedCount,
) -> SdkTracerProvider {
    let batches = BatchConfigBuilder::default()
        .with_max_queue_size(QUEUE)
        .with_max_export_batch_size(BATCH)
        .with_scheduled_delay(SEND_EVERY)
        .build();
    let waiting = WaitingCount::default();
    let exporter = AllowListExporter::new(exporter, dropped.clone(), WaitingCount::clone(&waiting));
    let batches = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
    TracerProviderBuilder::default()
        .with_sampler(KeepSampler::new(config.sample_ratio))
        .with_resource(resource(config, replica))
        .with_span_processor(KeepProcessor::new(batches, waiting, QUEUE))
        .build()
}

/// A provider that gives out ids and records nothing.
#[cfg(test)]
pub(crate) fn silent() -> SdkTracerProvider {
    TracerProviderBuilder::default().with_sampler(opentelemetry_sdk::trace::Sampler::AlwaysOff).build()
}

/// Who sends; written out rather than detected, since the environment is read in one place only.
fn resource(config: &Config, replica: &str) -> Resource {
    let more = pairs(&config.resource_attributes, "resource_attributes").unwrap_or_default();
    Resource::builder_empty()
        .with_attributes(more.into_iter().map(|(name, value)| KeyValue::new(name, value)))
        .with_service_name(config.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.instance.id", replica.to_owned()))
        .build()
}

/// What sends one kind of telemetry, if somebody takes it. It connects when it first has something to send.
fn sender(config: &Config, signal: Signal, http: &HttpSend) -> Result<Option<OtlpSender>, TelemetryError> {
    let Some(target) = config.target(signal).map_err(TelemetryError::Config)? else { return Ok(None) };
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
    OtlpSender::new(target, http, runtime).map(Some).map_err(TelemetryError::Collector)
}

/// Whether an event is told by what sends: a collector would be sent lines about the sending of lines.
fn is_senders(metadata: &Metadata<'_>) -> bool {
    const SENDERS: [&str; 7] = ["h2", "hyper", "hyper_util", "reqwest", "rustls", "tonic", "tower"];
    metadata.is_event() && metadata.target().split("::").next().is_some_and(|name| SENDERS.contains(&name))
}

/// Spans for a collector: the same, and the steps of a call, which only our own crates tell.
fn is_step(metadata: &Metadata<'_>) -> bool {
    let ours = || metadata.file().is_some_and(is_ours);
    is_span(metadata) || (metadata.is_span() && *metadata.level() <= Level::DEBUG && ours())
}

/// Whether a file is of this workspace. The compiler names its files by where they stand in the checkout, and those of
/// third parties by where they stand on the machine, so a new toolset is ours without being named here.
fn is_ours(file: &str) -> bool {
    file.starts_with("shared/") || file.starts_with("services/")
}

fn is_span(metadata: &Metadata<'_>) -> bool {
    metadata.is_span() && *metadata.level() <= Level::INFO
}

#[cfg(test)]
mod tests;
