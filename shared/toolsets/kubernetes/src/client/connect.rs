//! The clients of one cluster, built in one place.
//!
//! The library's own stack is not taken. It would retry: a write too, after a 504 that leaves open what happened; so what
//! may be repeated is repeated by [`crate::client::cluster`], which knows that it only reads. It would wait for ever. And
//! it would dial whatever a name resolves to.

use crate::client::connection::ClientLane;
use crate::client::reach::{ClusterReach, VettedResolver};
use http::HeaderValue;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use std::time::Duration;
use tower::ServiceBuilder;

/// One client for reads, one for writes, and one that bears silence.
pub(in crate::client) struct Clients {
    reads: kube::Client,
    writes: kube::Client,
    pub(in crate::client) streams: kube::Client,
}

impl Clients {
    pub(in crate::client) fn of(&self, lane: ClientLane) -> &kube::Client {
        match lane {
            ClientLane::Read => &self.reads,
            ClientLane::Write => &self.writes,
            ClientLane::Stream => &self.streams,
        }
    }
}

/// By this the owner of a cluster finds us in its audit log.
const USER_AGENT: HeaderValue = HeaderValue::from_static(concat!("quartermaster/", env!("CARGO_PKG_VERSION")));

/// Builds the clients of one cluster: the only place that does. They dial what is within reach; without one, anything.
pub(in crate::client) fn connect(config: &kube::Config, reach: Option<&ClusterReach>) -> Result<Clients, kube::Error> {
    let mut config = config.clone();
    config.headers.push((http::header::USER_AGENT, USER_AGENT));
    let config = &config;
    let silence = Some(Duration::from_secs(60));
    Ok(Clients {
        reads: client(config, reach, silence)?,
        writes: client(config, reach, silence)?,
        streams: client(config, reach, None)?,
    })
}

fn client(
    config: &kube::Config,
    reach: Option<&ClusterReach>,
    silence: Option<Duration>,
) -> Result<kube::Client, kube::Error> {
    let mut tcp = HttpConnector::new_with_resolver(VettedResolver(reach.cloned()));
    tcp.enforce_http(false);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(tcp)?);
    connector.set_connect_timeout(Some(Duration::from_secs(5)));
    connector.set_read_timeout(silence);
    // Otherwise the idle time of a pooled connection counts against the next answer.
    connector.set_reset_reader_on_write(true);
    let http = hyper_util::client::legacy::Builder::new(TokioExecutor::new()).build::<_, Body>(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(http);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

/// Whether an error proves that nothing was sent.
pub(in crate::client) fn is_unconnected(error: &kube::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(client) = error.downcast_ref::<hyper_util::client::legacy::Error>() {
            return client.is_connect();
        }
        cause = error.source();
    }
    false
}
