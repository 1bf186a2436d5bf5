//! The settings of this crate.

use serde::Deserialize;

/// What is logged, how, and where spans go.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Which events are logged: a level, or directives such as `info,store=debug`.
    pub log: String,
    /// What a log line looks like.
    pub format: Format,
    /// The collector that takes spans by OTLP over gRPC; empty: spans go nowhere.
    pub otlp_endpoint: String,
    /// The share of traces that is kept: 0 for none, 1 for all. Gated calls and failures are kept beyond it.
    pub sample_ratio: f64,
    /// How many traces of one tenant are kept in a minute because its callers ask for it, beyond the share.
    pub caller_samples_per_minute: u32,
    /// Where Prometheus reads `/metrics`, such as `127.0.0.1:9464`; empty: nowhere.
    pub metrics_listen: String,
    /// Whether tenants are told apart in metrics: 50 of them by name, the others together.
    pub metrics_by_tenant: bool,
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

impl Default for Config {
    fn default() -> Config {
        Config {
            log: "info".to_owned(),
            format: Format::Json,
            otlp_endpoint: String::new(),
            sample_ratio: 1.0,
            caller_samples_per_minute: 60,
            metrics_listen: String::new(),
            metrics_by_tenant: false,
        }
    }
}

impl Config {
    /// Whether spans are sent to anybody.
    pub fn is_traced(&self) -> bool {
        !self.otlp_endpoint.is_empty()
    }
}
