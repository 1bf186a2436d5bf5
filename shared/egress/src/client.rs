//! The clients for addresses that an operator configured or the user of a command named: no redirects, bounded time.

use crate::address;
use reqwest::redirect::Policy;
use std::time::Duration;

/// How long the client waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// For a connection, TLS included.
    pub connect_within: Duration,
    /// For the whole exchange, from the first byte sent to the last one read.
    pub answer_within: Duration,
    /// Certificates (PEM) that are trusted besides the public ones, for a target with an authority of its own.
    pub authorities: Option<String>,
}

impl Default for Config {
    fn default() -> Config {
        Config { connect_within: Duration::from_secs(5), answer_within: Duration::from_secs(10), authorities: None }
    }
}

/// A built client. Cheap to clone; clones share their connections.
///
/// What is inside stays inside, so that nobody sends a request past the checks of [`get_capped`](crate::get_capped).
#[derive(Debug, Clone)]
pub struct HttpClient(pub(crate) reqwest::Client);

/// The client could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("could not set up the HTTP client")]
pub struct ClientError(#[from] reqwest::Error);

/// Builds the client for addresses from the settings.
///
/// A redirect is an answer like any other, since the operator vouched for one address and not for where it points.
/// Proxy variables are ignored for the same reason.
pub fn operator_client(config: &Config) -> Result<HttpClient, ClientError> {
    Ok(HttpClient(base(config)?.build()?))
}

/// Builds the client with which a command or a runner reaches the service at the address its user named.
///
/// The network it is started in may have no way out but a proxy, so `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` hold. They
/// do not hold for this very machine: a token for it is no proxy's business.
pub fn service_client(url: &str, config: &Config) -> Result<HttpClient, ClientError> {
    let client = if address::is_on_this_machine(url) { base(config)? } else { bare(config)? };
    Ok(HttpClient(client.build()?))
}

/// What every client inside the service has in common: the proxy variables of its environment are not for it.
pub(crate) fn base(config: &Config) -> Result<reqwest::ClientBuilder, ClientError> {
    Ok(bare(config)?.no_proxy())
}

fn bare(config: &Config) -> Result<reqwest::ClientBuilder, ClientError> {
    #[expect(clippy::disallowed_methods, reason = "egress is the door: every reqwest client is built here")]
    let builder = reqwest::Client::builder();
    let builder = builder
        .redirect(Policy::none())
        .connect_timeout(config.connect_within)
        .timeout(config.answer_within)
        .user_agent(concat!("quartermaster/", env!("CARGO_PKG_VERSION")));
    match &config.authorities {
        Some(pem) => Ok(builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(pem.as_bytes())?)),
        None => Ok(builder),
    }
}
