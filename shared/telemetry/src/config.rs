//! The settings of this crate.

use crate::otlp::{OtlpProtocol, OtlpTarget, Signal};
use serde::Deserialize;
use std::fmt;
use std::time::Duration;

/// What is logged, how, and where telemetry goes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which events are logged: a level, or directives such as `info,store=debug`.
    pub log: String,
    /// What a log line looks like.
    pub format: Format,
    /// Whether anything is sent to a collector at all.
    pub otlp_enabled: bool,
    /// The collector that takes traces, metrics and logs by OTLP; empty: nothing is sent.
    pub otlp_endpoint: String,
    /// How they are sent.
    pub otlp_protocol: OtlpProtocol,
    /// Headers that go along: `name=value,name=value`, values percent-encoded.
    pub otlp_headers: HeaderList,
    /// How long one sending may take, in milliseconds.
    pub otlp_timeout_ms: u64,
    /// What is different for traces.
    pub otlp_traces: SignalConfig,
    /// What is different for metrics.
    pub otlp_metrics: SignalConfig,
    /// What is different for logs.
    pub otlp_logs: SignalConfig,
    /// How often metrics are sent, in milliseconds.
    pub metrics_every_ms: u64,
    /// The name under which the service is known to a collector.
    pub service_name: String,
    /// What else a collector is told about this process: `name=value,name=value`, values percent-encoded.
    pub resource_attributes: String,
    /// The share of traces that is kept: 0 for none, 1 for all. Gated calls and failures are kept beyond it.
    pub sample_ratio: f64,
    /// How many traces of one tenant are kept in a minute because its callers ask for it, beyond the share.
    pub caller_samples_per_minute: u32,
    /// Steps of a call that took less milliseconds have no span, unless they failed.
    pub slow_step_ms: u64,
    /// Round trips to the store that took less have none.
    pub slow_store_ms: u64,
    /// Where Prometheus reads `/metrics`, such as `127.0.0.1:9464`; empty: nowhere.
    pub metrics_listen: String,
    /// Whether tenants are told apart in metrics: 50 of them by name, the others together.
    pub metrics_by_tenant: bool,
}

/// What is different for one kind of telemetry; what is not set is as it is for all.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SignalConfig {
    /// Whether it is sent; it is by default.
    pub export: Option<bool>,
    /// Where to, with the whole path over HTTP.
    pub endpoint: Option<String>,
    /// How.
    pub protocol: Option<OtlpProtocol>,
    /// With which headers.
    pub headers: Option<HeaderList>,
    /// How long one sending may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// Headers for a collector. They may hold a token, so they are never printed.
#[derive(Clone, PartialEq, Default, Deserialize)]
#[serde(transparent)]
pub struct HeaderList(pub String);

impl fmt::Debug for HeaderList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "none" } else { "some" })
    }
}

/// What a log line looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One JSON object per line, for machines.
    Json,
    /// One line for people.
    Text,
}

/// Why settings of telemetry cannot be used.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ConfigError {
    /// The sample ratio is no share.
    #[error("the sample ratio {0} is not between 0 and 1")]
    Ratio(f64),
    /// An address of the collector has no scheme that is known.
    #[error("the collector's address `{0}` must begin with http:// or https://")]
    Endpoint(String),
    /// A list of pairs cannot be read.
    #[error("{0} must be name=value,name=value with values percent-encoded")]
    Pairs(&'static str),
    /// Nothing can be sent in no time.
    #[error("a timeout or interval of telemetry is zero")]
    Zero,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            log: "info".to_owned(),
            format: Format::Json,
            otlp_enabled: true,
            otlp_endpoint: String::new(),
            otlp_protocol: OtlpProtocol::Grpc,
            otlp_headers: HeaderList::default(),
            otlp_timeout_ms: 10_000,
            otlp_traces: SignalConfig::default(),
            otlp_metrics: SignalConfig::default(),
            otlp_logs: SignalConfig::default(),
            metrics_every_ms: 60_000,
            service_name: "quartermaster".to_owned(),
            resource_attributes: String::new(),
            sample_ratio: 1.0,
            caller_samples_per_minute: 60,
            slow_step_ms: 1,
            slow_store_ms: 5,
            metrics_listen: String::new(),
            metrics_by_tenant: false,
        }
    }
}

impl Config {
    /// Whether spans are sent to anybody.
    pub fn is_traced(&self) -> bool {
        matches!(self.target(Signal::Traces), Ok(Some(_)))
    }

    /// Checks what can be checked without sending anything.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(ConfigError::Ratio(self.sample_ratio));
        }
        if self.metrics_every_ms == 0 {
            return Err(ConfigError::Zero);
        }
        pairs(&self.resource_attributes, "resource_attributes")?;
        Signal::ALL.into_iter().try_for_each(|signal| self.target(signal).map(drop))
    }

    /// Where one kind of telemetry goes; `None`: nowhere.
    pub(crate) fn target(&self, signal: Signal) -> Result<Option<OtlpTarget>, ConfigError> {
        let own = match signal {
            Signal::Traces => &self.otlp_traces,
            Signal::Metrics => &self.otlp_metrics,
            Signal::Logs => &self.otlp_logs,
        };
        let protocol = own.protocol.unwrap_or(self.otlp_protocol);
        let endpoint = match &own.endpoint {
            Some(endpoint) => endpoint.clone(),
            None if protocol == OtlpProtocol::HttpProtobuf && !self.otlp_endpoint.is_empty() => {
                format!("{}{}", self.otlp_endpoint.trim_end_matches('/'), signal.path())
            }
            None => self.otlp_endpoint.clone(),
        };
        if endpoint.is_empty() || !self.otlp_enabled || own.export == Some(false) {
            return Ok(None);
        }
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            return Err(ConfigError::Endpoint(endpoint));
        }
        let headers = pairs(&own.headers.as_ref().unwrap_or(&self.otlp_headers).0, "otlp_headers")?;
        let timeout = Duration::from_millis(own.timeout_ms.unwrap_or(self.otlp_timeout_ms));
        if timeout.is_zero() {
            return Err(ConfigError::Zero);
        }
        Ok(Some(OtlpTarget { signal, protocol, endpoint, headers, timeout }))
    }
}

/// Reads `name=value,name=value`.
pub(crate) fn pairs(text: &str, what: &'static str) -> Result<Vec<(String, String)>, ConfigError> {
    let pair = |part: &str| {
        let (name, value) = part.split_once('=').ok_or(ConfigError::Pairs(what))?;
        let (name, value) = (name.trim(), decoded(value.trim()).ok_or(ConfigError::Pairs(what))?);
        if name.is_empty() { Err(ConfigError::Pairs(what)) } else { Ok((name.to_owned(), value)) }
    };
    text.split(',').filter(|part| !part.trim().is_empty()).map(pair).collect()
}

/// A value without its percent-encoding.
fn decoded(value: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), value.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collector(change: impl FnOnce(&mut Config)) -> Config {
        let mut config = Config { otlp_endpoint: "http://collector:4318/".to_owned(), ..Config::default() };
        change(&mut config);
        config
    }

    #[test]
    fn over_http_each_kind_has_a_path_unless_it_names_its_own() {
        let config = collector(|config| {
            config.otlp_protocol = OtlpProtocol::HttpProtobuf;
            config.otlp_logs.endpoint = Some("https://logs.example/in".to_owned());
            config.otlp_metrics.export = Some(false);
        });
        let endpoint = |signal| config.target(signal).unwrap().map(|target| target.endpoint);
        assert_eq!(endpoint(Signal::Traces).as_deref(), Some("http://collector:4318/v1/traces"));
        assert_eq!(endpoint(Signal::Logs).as_deref(), Some("https://logs.example/in"));
        assert_eq!(endpoint(Signal::Metrics), None);
        assert!(collector(|config| config.otlp_enabled = false).target(Signal::Traces).unwrap().is_none());
    }

    #[test]
    fn headers_are_read_and_never_printed() {
        let config =
            collector(|config| config.otlp_headers = HeaderList("authorization=Bearer%20a%3D, x-a = 1".to_owned()));
        let target = config.target(Signal::Traces).unwrap().unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(target.headers, [pair("authorization", "Bearer a="), pair("x-a", "1")]);
        assert!(!format!("{config:?} {target:?}").contains("Bearer"));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let wrong = |change: fn(&mut Config)| collector(change).check().unwrap_err();
        assert_eq!(wrong(|config| config.sample_ratio = 1.5), ConfigError::Ratio(1.5));
        assert_eq!(
            wrong(|config| config.otlp_endpoint = "collector:4317".into()),
            ConfigError::Endpoint("collector:4317".into())
        );
        assert_eq!(
            wrong(|config| config.otlp_headers = HeaderList("nonsense".into())),
            ConfigError::Pairs("otlp_headers")
        );
        assert_eq!(
            wrong(|config| config.otlp_headers = HeaderList("a=%zz".into())),
            ConfigError::Pairs("otlp_headers")
        );
        assert_eq!(wrong(|config| config.resource_attributes = "=a".into()), ConfigError::Pairs("resource_attributes"));
        assert_eq!(wrong(|config| config.otlp_timeout_ms = 0), ConfigError::Zero);
        assert_eq!(collector(|_| {}).check(), Ok(()));
    }
}
