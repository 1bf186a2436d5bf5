//! The service's settings: compiled-in defaults, then a file, then the environment. Read once, checked once.
//!
//! Each crate owns its section; this file only nests them and merges the layers.

mod console;
mod limits;
mod otel;
mod tokenless;

pub use console::{ConsoleIssuer, ConsoleSettings, GroupGrant};
pub use limits::LimitSettings;
pub use tokenless::{ISSUER as TOKENLESS_ISSUER, TokenlessListener, TokenlessSettings};

use crate::network::ProxyNetwork;
use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::{Table, Value};

/// Every key with its default and its reason.
pub const DEFAULTS: &str = include_str!("../defaults.toml");
const PREFIX: &str = "QM_";
/// The one variable without our prefix: an operator of the cluster puts the addresses of servers there.
const MCP_SERVERS: &str = "MCP_SERVERS";
/// Documents in session scope are kept for this long, so no session may last longer.
const LONGEST_SESSION: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// All settings of one process.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The HTTP listener.
    pub listen: Listen,
    /// The second listener, which asks for no token.
    pub tokenless: TokenlessSettings,
    /// The state store.
    pub store: store::Config,
    /// The issuers of tokens.
    pub identity: identity::Config,
    /// How long sessions live.
    pub sessions: SessionSettings,
    /// Limits of calls in this process.
    pub calls: Calls,
    /// What one caller and one tenant may use.
    pub limits: LimitSettings,
    /// How replicas share the execution of runs.
    pub approvals: ApprovalSettings,
    /// The web console.
    pub console: ConsoleSettings,
    /// How runners and the service work together.
    pub runners: RunnerSettings,
    /// Where tenants are configured.
    pub tenants: TenantSettings,
    /// What tenants may reach.
    pub upstreams: UpstreamSettings,
    /// What tenants' runbooks may do.
    pub runbooks: RunbookSettings,
    /// Checkpoints and exports of the audit logs.
    pub audit: archive::ArchiveConfig,
    /// Logs and traces.
    pub telemetry: telemetry::Config,
}

/// The HTTP listener.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// Where to listen.
    pub address: SocketAddr,
    /// Host names answered to besides those of the resource and loopback.
    pub hosts: Vec<String>,
    /// Origins answered to besides the service's own.
    pub origins: Vec<String>,
    /// Threads that serve requests; 0 means one per core.
    pub workers: usize,
    /// The largest request body.
    pub body_bytes: usize,
    /// How long a client may take to send its request.
    #[serde(deserialize_with = "span")]
    pub request_timeout: Duration,
    /// How long requests may go on after SIGTERM.
    #[serde(deserialize_with = "span")]
    pub drain: Duration,
    /// Requests without a good token that one address may send in a minute.
    pub refused_per_address: u64,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<ProxyNetwork>,
}

/// How long sessions live.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSettings {
    /// Without being used.
    #[serde(deserialize_with = "span")]
    pub idle: Duration,
    /// In all.
    #[serde(deserialize_with = "span")]
    pub longest: Duration,
    /// How long what a session has read and was refused binds new ones of the same principal.
    #[serde(deserialize_with = "span")]
    pub carry_over: Duration,
}

/// Limits of calls in this process.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calls {
    /// Memory for finished tool lists.
    pub list_cache_bytes: u64,
    /// How many bytes the audit log keeps of arguments, and of a result.
    pub audit_contents_bytes: u32,
    /// The secret all replicas share.
    pub key_file: PathBuf,
    /// Earlier secrets; values that are encrypted with them can still be read.
    pub older_key_files: Vec<PathBuf>,
}

/// How replicas share the execution of runs.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalSettings {
    /// How long a replica keeps a run without renewing its lease.
    #[serde(deserialize_with = "span")]
    pub lease: Duration,
    /// How often it renews the lease.
    #[serde(deserialize_with = "span")]
    pub renew_every: Duration,
    /// How often the service looks for due runs.
    #[serde(deserialize_with = "span")]
    pub sweep_every: Duration,
    /// Where run events are posted.
    pub webhook_url: String,
    /// The secret that signs them.
    pub webhook_secret_file: PathBuf,
    /// Their format.
    pub webhook_format: WebhookFormat,
    /// The address of the console in them.
    pub console_url: String,
}

/// How runners and the service work together.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunnerSettings {
    /// How long a runner need not be heard of while it has a job.
    #[serde(deserialize_with = "span")]
    pub lease: Duration,
}

/// The format of run events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// Everything about the run.
    Json,
    /// A text for chats.
    Slack,
}

/// Where tenants are configured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantSettings {
    /// One YAML file per tenant.
    pub dir: PathBuf,
    /// The tenants' secrets: one folder per tenant, one file per secret.
    pub secrets: PathBuf,
    /// Where the service reports which texts it serves; empty: nowhere.
    pub report: PathBuf,
    /// Whether a tenant's kubeconfig may lead to this very machine.
    pub clusters_on_loopback: bool,
    /// Whether a kubeconfig may be set over HTTP.
    pub clusters_over_http: bool,
    /// Whether tenants may be configured over HTTP as well.
    pub over_http: bool,
    /// How often the service looks at the folder if nothing tells it to.
    #[serde(deserialize_with = "span")]
    pub reload_every: Duration,
    /// After how long without use a tenant is dormant.
    #[serde(deserialize_with = "span")]
    pub idle: Duration,
}

/// What tenants may reach.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamSettings {
    /// Private networks and plain http.
    pub private: bool,
    /// The ports addresses may name.
    pub ports: Vec<u16>,
    /// The hosts charts may come from.
    pub chart_hosts: Vec<String>,
    /// The helm binary.
    pub helm: PathBuf,
    /// How many helm processes may run at once.
    pub helm_slots: usize,
    /// How many of them may be one tenant's.
    pub helm_slots_per_tenant: usize,
    /// The memory of one helm process.
    pub helm_memory_bytes: u64,
    /// The CPU time of one helm process.
    #[serde(deserialize_with = "span")]
    pub helm_cpu: Duration,
    /// The folder helm works in.
    pub cache: PathBuf,
    /// The folder with the operator's catalog of external servers.
    pub catalog: PathBuf,
    /// A file with a map of tools, as an operator of the cluster mounts it.
    pub config: PathBuf,
    /// Addresses of servers, as an operator of the cluster puts them into the environment.
    pub mcp_servers: String,
    /// The tenants that may name external servers of their own.
    pub own_servers: Vec<String>,
}

/// What tenants' runbooks may do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunbookSettings {
    /// Those that only read, as `TENANT/GROUP/NAME` with an optional `*` at the end.
    pub reads: Vec<String>,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot read the settings {path}; `quartermaster init` writes a folder with settings to begin with")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The text is not TOML.
    #[error("{place} is not TOML: {why}")]
    NotToml {
        /// Which layer.
        place: String,
        /// The parser's message, with line and column.
        why: String,
    },
    /// A key is unknown, missing or has a wrong value.
    #[error("{0}")]
    Wrong(String),
}

/// How a command tells about itself that serves nobody and has no settings file: the defaults, `OTEL_*` and
/// `QM_TELEMETRY__*`.
pub(crate) fn telemetry_of(
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<telemetry::Config, SettingsError> {
    let environment: Vec<(String, String)> = environment.into_iter().collect();
    let mut layers = parse("defaults.toml", DEFAULTS)?;
    merge(&mut layers, otel::layer(&environment)?);
    for (key, text) in environment {
        if let Some(path) = key.strip_prefix(PREFIX).filter(|path| path.starts_with("TELEMETRY__")) {
            merge(&mut layers, from_environment(path, &text));
        }
    }
    Ok(of_layers(layers)?.telemetry)
}

impl Settings {
    /// Reads the defaults, `OTEL_*`, the file and `QM_*`; a later one overrides an earlier one.
    pub fn read(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Settings, SettingsError> {
        let environment: Vec<(String, String)> = environment.into_iter().collect();
        let mut layers = parse("defaults.toml", DEFAULTS)?;
        merge(&mut layers, otel::layer(&environment)?);
        if let Some(path) = file {
            let text = std::fs::read_to_string(path)
                .map_err(|source| SettingsError::Unreadable { path: path.to_owned(), source })?;
            merge(&mut layers, parse(&path.display().to_string(), &text)?);
        }
        for (key, text) in environment {
            if let Some(path) = key.strip_prefix(PREFIX) {
                merge(&mut layers, from_environment(path, &text));
            } else if key == MCP_SERVERS {
                merge(&mut layers, from_environment("UPSTREAMS__MCP_SERVERS", &text));
            }
        }
        let settings = of_layers(layers)?;
        settings.check()?;
        Ok(settings)
    }

    /// The defaults alone, for commands that serve nobody: they name no issuer, so no service could start with them.
    pub(crate) fn defaults() -> Result<Settings, SettingsError> {
        of_layers(parse("defaults.toml", DEFAULTS)?)
    }

    /// What no single section can see.
    fn check(&self) -> Result<(), SettingsError> {
        let wrong = |why: &str| Err(SettingsError::Wrong(why.to_owned()));
        self.identity.check().map_err(|error| SettingsError::Wrong(format!("identity: {error}")))?;
        if self.tenants.idle.is_zero() || self.tenants.reload_every.is_zero() {
            return wrong("tenants.idle and tenants.reload_every are longer than nothing");
        }
        if self.sessions.idle > self.sessions.longest {
            return wrong("sessions.idle is longer than sessions.longest");
        }
        if self.sessions.longest > LONGEST_SESSION {
            return wrong("sessions.longest is over 30d, which is how long a session's documents are kept");
        }
        if self.sessions.carry_over > LONGEST_SESSION {
            return wrong("sessions.carry_over is over 30d, which is longer than it is kept");
        }
        if self.approvals.renew_every * 3 > self.approvals.lease || self.approvals.renew_every.is_zero() {
            return wrong("approvals.renew_every must fit three times into approvals.lease");
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(600)).contains(&self.runners.lease) {
            return wrong("runners.lease must be from 1s to 10m");
        }
        if !self.approvals.webhook_url.is_empty() {
            egress::check_operator_address(&self.approvals.webhook_url)
                .map_err(|error| SettingsError::Wrong(format!("approvals.webhook_url: {error}")))?;
            if self.approvals.webhook_secret_file.as_os_str().is_empty() {
                return wrong("approvals.webhook_url needs approvals.webhook_secret_file: events must be signed");
            }
        }
        self.telemetry.check().map_err(|error| SettingsError::Wrong(format!("telemetry: {error}")))?;
        let metrics = &self.telemetry.metrics_listen;
        if !metrics.is_empty() && metrics.parse::<SocketAddr>().is_err() {
            return wrong("telemetry.metrics_listen is no address with a port, such as 127.0.0.1:9464");
        }
        if self.listen.body_bytes == 0 {
            return wrong("listen.body_bytes is zero, so no request could be read");
        }
        if self.tokenless.listener()?.is_some() && self.identity.issuers.iter().any(|i| i.issuer == TOKENLESS_ISSUER) {
            return wrong("identity.issuers has one called like those who come without a token; rename it");
        }
        if self.listen.refused_per_address == 0 {
            return wrong("listen.refused_per_address is zero, so no request could be let in");
        }
        self.limits.check()?;
        self.console.check(self)?;
        self.audit.check().map_err(SettingsError::Wrong)?;
        if !(1..self.upstreams.helm_slots.max(2)).contains(&self.upstreams.helm_slots_per_tenant) {
            return wrong("upstreams.helm_slots_per_tenant must be at least 1 and below upstreams.helm_slots");
        }
        Ok(())
    }
}

fn of_layers(layers: Table) -> Result<Settings, SettingsError> {
    layers.try_into().map_err(|error: toml::de::Error| SettingsError::Wrong(error.message().to_owned()))
}

fn parse(place: &str, text: &str) -> Result<Table, SettingsError> {
    text.parse()
        .map_err(|error: toml::de::Error| SettingsError::NotToml { place: place.to_owned(), why: error.to_string() })
}

/// `STORE__URL=redis://…` becomes `[store] url`. What reads as a TOML value is one; everything else is text.
fn from_environment(path: &str, text: &str) -> Table {
    let value = format!("v = {text}").parse::<Table>().ok().and_then(|mut t| t.remove("v"));
    let value = value.unwrap_or_else(|| Value::String(text.to_owned()));
    let mut keys = path.split("__").map(str::to_lowercase).collect::<Vec<_>>();
    let last = keys.pop().unwrap_or_default();
    let leaf = Table::from_iter([(last, value)]);
    keys.into_iter().rev().fold(leaf, |inner, key| Table::from_iter([(key, Value::Table(inner))]))
}

fn merge(base: &mut Table, over: Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

fn span<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    store::span(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = r#"
        [[identity.issuers]]
        issuer = "https://login.example.com"
        algorithms = ["EdDSA"]
        jwks_url = "https://login.example.com/keys"
    "#;

    fn read(text: &str, environment: &[(&str, &str)]) -> Result<Settings, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("qm.toml");
        std::fs::write(&file, text).unwrap();
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Settings::read(Some(&file), environment).map_err(|error| error.to_string())
    }

    #[test]
    fn the_environment_overrides_the_file_and_the_file_overrides_the_defaults() {
        let text = format!("{ISSUER}\n[sessions]\nidle = \"2h\"\n[store]\nprefix = \"a\"");
        let settings = read(&text, &[("QM_STORE__PREFIX", "b"), ("QM_LISTEN__WORKERS", "3"), ("HOME", "x")]).unwrap();
        assert_eq!(settings.sessions.idle, Duration::from_secs(7200));
        assert_eq!((settings.store.prefix.as_str(), settings.listen.workers), ("b", 3));
        assert_eq!(settings.listen.body_bytes, 4 << 20);
    }

    #[test]
    fn the_standard_variables_lie_below_what_was_written_for_this_service() {
        let otel = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4317"), ("OTEL_SERVICE_NAME", "tools")];
        let settings = read(ISSUER, &otel).unwrap().telemetry;
        assert_eq!((settings.otlp_endpoint.as_str(), settings.service_name.as_str()), ("http://a:4317", "tools"));
        let text = format!("{ISSUER}\n[telemetry]\notlp_endpoint = \"http://b:4317\"");
        assert_eq!(read(&text, &otel).unwrap().telemetry.otlp_endpoint, "http://b:4317");
        let more = [otel.as_slice(), &[("QM_TELEMETRY__OTLP_ENDPOINT", "http://c:4317")]].concat();
        assert_eq!(read(&text, &more).unwrap().telemetry.otlp_endpoint, "http://c:4317");
        assert!(read(ISSUER, &[("OTEL_TRACES_SAMPLER", "x")]).unwrap_err().contains("OTEL_TRACES_SAMPLER"));
        assert!(read(ISSUER, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "a:4317")]).unwrap_err().contains("a:4317"));
    }

    #[test]
    fn an_unknown_key_is_an_error_wherever_it_stands() {
        assert!(read(&format!("{ISSUER}\n[store]\nurll = \"x\""), &[]).unwrap_err().contains("urll"));
        assert!(read(&format!("{ISSUER}\n[stoer]\nurl = \"x\""), &[]).unwrap_err().contains("stoer"));
        assert!(read(ISSUER, &[("QM_LISTEN__ADRESS", "x")]).unwrap_err().contains("adress"));
    }

    #[test]
    fn without_an_issuer_nothing_starts() {
        let error = Settings::read(None, []).unwrap_err().to_string();
        assert!(error.contains("issuer"), "{error}");
    }

    #[test]
    fn contradictions_are_found_before_anything_listens() {
        let text = format!("{ISSUER}\n[sessions]\nidle = \"31d\"");
        assert!(read(&text, &[]).unwrap_err().contains("longest"));
        let text = format!("{ISSUER}\n[sessions]\nlongest = \"31d\"");
        assert!(read(&text, &[]).unwrap_err().contains("documents"));
        let text = format!("{ISSUER}\n[sessions]\ncarry_over = \"31d\"");
        assert!(read(&text, &[]).unwrap_err().contains("carry_over"));
        let text = format!("{ISSUER}\n[approvals]\nrenew_every = \"11s\"");
        assert!(read(&text, &[]).unwrap_err().contains("three times"));
        assert!(read("not toml", &[]).unwrap_err().contains("not TOML"));
        let text = format!("{ISSUER}\n[telemetry]\nmetrics_listen = \"9464\"");
        assert!(read(&text, &[]).unwrap_err().contains("metrics_listen"));
    }
}
