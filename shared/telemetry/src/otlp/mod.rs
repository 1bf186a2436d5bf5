//! Sending to a collector: traces, metrics and logs by OTLP, over gRPC or over HTTP.
//!
//! Everything is sent by tasks of the runtime this was started in, and nothing is sent twice. What cannot be sent is
//! dropped and counted; whether the last sending of each kind failed is remembered for the readiness page.
//! The HTTP client is whoever's who starts this: see [`HttpSend`].

pub(crate) mod logs;
pub(crate) mod metrics;
pub(crate) mod queue;
pub mod records;
pub(crate) mod spans;

use crate::metrics::TELEMETRY_DROPPED;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use prost::Message;
use serde::Deserialize;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;

/// How telemetry is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum OtlpProtocol {
    /// OTLP over gRPC.
    #[serde(rename = "grpc")]
    Grpc,
    /// OTLP over HTTP, as protobuf.
    #[serde(rename = "http/protobuf")]
    HttpProtobuf,
}

/// One kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    pub(crate) const ALL: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Signal::Traces => "traces",
            Signal::Metrics => "metrics",
            Signal::Logs => "logs",
        }
    }

    /// Where a collector takes it over HTTP.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Signal::Traces => "/v1/traces",
            Signal::Metrics => "/v1/metrics",
            Signal::Logs => "/v1/logs",
        }
    }
}

/// Where one kind of telemetry goes.
#[derive(Clone)]
pub(crate) struct OtlpTarget {
    pub(crate) signal: Signal,
    pub(crate) protocol: OtlpProtocol,
    pub(crate) endpoint: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout: Duration,
}

impl fmt::Debug for OtlpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers may hold a token.
        f.debug_struct("OtlpTarget")
            .field("signal", &self.signal)
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

/// What is posted to a collector.
#[derive(Debug)]
pub struct HttpPost {
    /// Where to.
    pub url: String,
    /// The headers, the type of the body among them.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long it may take.
    pub timeout: Duration,
}

/// Posts to a collector and gives the status of the answer; `None` if there was none. Whoever owns the process's HTTP
/// client provides it, since this crate is below that one.
pub type HttpSend = Arc<dyn Fn(HttpPost) -> Pin<Box<dyn Future<Output = Option<u16>> + Send>> + Send + Sync>;

/// What is sent.
pub(crate) enum OtlpRequest {
    Traces(ExportTraceServiceRequest),
    Metrics(ExportMetricsServiceRequest),
    Logs(ExportLogsServiceRequest),
}

/// Whether the last sending of each kind failed.
static DOWN: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Whether the collector did not take what was last sent to it.
pub fn otlp_down() -> bool {
    DOWN.iter().any(|down| down.load(Ordering::Relaxed))
}

/// It was not taken.
#[derive(Debug, thiserror::Error)]
#[error("the collector did not take it")]
pub(crate) struct NotTaken;

/// The collector's address cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the collector's address cannot be used")]
pub struct BadEndpoint(#[source] tonic::transport::Error);

/// Sends one kind of telemetry. A clone is another handle to the same connection.
#[derive(Clone)]
pub(crate) struct OtlpSender(Arc<SenderParts>);

struct SenderParts {
    target: OtlpTarget,
    wire: OtlpWire,
    runtime: Handle,
}

enum OtlpWire {
    Grpc(Channel),
    Http(HttpSend),
}

impl fmt::Debug for OtlpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.target.fmt(f)
    }
}

impl OtlpSender {
    /// A sender that connects when it first has something to send, by tasks of this runtime.
    pub(crate) fn new(target: OtlpTarget, http: &HttpSend, runtime: Handle) -> Result<OtlpSender, BadEndpoint> {
        let wire = match target.protocol {
            OtlpProtocol::HttpProtobuf => OtlpWire::Http(Arc::clone(http)),
            OtlpProtocol::Grpc => {
                let endpoint = Endpoint::from_shared(target.endpoint.clone()).map_err(BadEndpoint)?;
                let endpoint = endpoint.connect_timeout(target.timeout).timeout(target.timeout);
                let endpoint = match target.endpoint.starts_with("https://") {
                    true => endpoint.tls_config(ClientTlsConfig::new().with_enabled_roots()).map_err(BadEndpoint)?,
                    false => endpoint,
                };
                let _entered = runtime.enter();
                OtlpWire::Grpc(endpoint.connect_lazy())
            }
        };
        Ok(OtlpSender(Arc::new(SenderParts { target, wire, runtime })))
    }

    pub(crate) fn signal(&self) -> Signal {
        self.0.target.signal
    }

    pub(crate) fn runtime(&self) -> Handle {
        self.0.runtime.clone()
    }

    /// Sends once. What was not taken is gone: it is counted as so many items.
    pub(crate) async fn send(&self, request: OtlpRequest, items: usize) -> Result<(), NotTaken> {
        let parts = Arc::clone(&self.0);
        let sending = async move {
            let sent = tokio::time::timeout(parts.target.timeout, parts.transmit(request)).await;
            sent.unwrap_or(false)
        };
        // What is logged about sending logs would have to be sent too.
        let sent = self.0.runtime.spawn(sending.with_subscriber(NoSubscriber::new())).await;
        let (signal, taken) = (self.0.target.signal, sent.unwrap_or(false));
        DOWN[signal as usize].store(!taken, Ordering::Relaxed);
        if taken {
            return Ok(());
        }
        TELEMETRY_DROPPED.add([signal.as_str()], u64::try_from(items).unwrap_or(u64::MAX));
        Err(NotTaken)
    }
}

impl SenderParts {
    async fn transmit(&self, request: OtlpRequest) -> bool {
        match &self.wire {
            OtlpWire::Http(post) => {
                let body = match request {
                    OtlpRequest::Traces(request) => request.encode_to_vec(),
                    OtlpRequest::Metrics(request) => request.encode_to_vec(),
                    OtlpRequest::Logs(request) => request.encode_to_vec(),
                };
                let kind = ("content-type".to_owned(), "application/x-protobuf".to_owned());
                let headers = self.target.headers.iter().cloned().chain([kind]).collect();
                let (url, timeout) = (self.target.endpoint.clone(), self.target.timeout);
                post(HttpPost { url, headers, body, timeout }).await.is_some_and(|status| (200..300).contains(&status))
            }
            OtlpWire::Grpc(channel) => match request {
                OtlpRequest::Traces(request) => {
                    TraceServiceClient::new(channel.clone()).export(self.with_metadata(request)).await.is_ok()
                }
                OtlpRequest::Metrics(request) => {
                    MetricsServiceClient::new(channel.clone()).export(self.with_metadata(request)).await.is_ok()
                }
                OtlpRequest::Logs(request) => {
                    LogsServiceClient::new(channel.clone()).export(self.with_metadata(request)).await.is_ok()
                }
            },
        }
    }

    /// The request with the configured headers. What cannot be a header is left out.
    fn with_metadata<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        for (name, value) in &self.target.headers {
            let name = MetadataKey::<Ascii>::from_bytes(name.to_ascii_lowercase().as_bytes());
            if let (Ok(name), Ok(value)) = (name, MetadataValue::try_from(value.as_str())) {
                request.metadata_mut().insert(name, value);
            }
        }
        request
    }
}
