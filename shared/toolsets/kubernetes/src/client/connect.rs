//! The clients of one cluster, built in one place.
//!
//! Two defaults of the library are changed. It would retry: a write too, after a 504 that leaves open what happened;
//! so what may be repeated is repeated by [`crate::client::cluster`], which knows that it only reads. And it would wait for
//! ever.

use crate::client::connection::ClientLane;
use std::time::Duration;

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

/// Builds the clients of one cluster: the only place that does.
pub(in crate::client) fn connect(config: &kube::Config) -> Result<Clients, kube::Error> {
    let mut config = config.clone();
    // On by default, for every method: it would send a write again after a 504.
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    config.read_timeout = Some(Duration::from_secs(60));
    // Otherwise the idle time of a pooled connection counts against the next answer.
    config.reset_reader_on_write = true;
    let mut streams = config.clone();
    streams.read_timeout = None;
    Ok(Clients {
        reads: kube::Client::try_from(config.clone())?,
        writes: kube::Client::try_from(config)?,
        streams: kube::Client::try_from(streams)?,
    })
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
