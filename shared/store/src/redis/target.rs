//! Where a link dials: an address that stays, the primary that sentinels name, or any primary of a cluster.

use super::address::{NodeAddress, NodeSettings};
use super::cluster::Cluster;
use super::sentinel::SentinelResolver;
use redis::{Client, ErrorKind, ProtocolVersion, RedisError};
use std::sync::{Arc, Weak};

#[derive(Clone)]
pub(super) enum DialTarget {
    Fixed {
        address: NodeAddress,
        nodes: NodeSettings,
    },
    Sentinel(Arc<SentinelResolver>),
    /// For whoever listens: a message that was sent to one node of a cluster reaches all.
    AnyPrimary(Weak<Cluster>),
}

impl DialTarget {
    /// Whom to dial now.
    pub(super) async fn resolve(&self, protocol: ProtocolVersion) -> Result<(NodeAddress, Client), RedisError> {
        let (address, nodes) = match self {
            DialTarget::Fixed { address, nodes } => (address.clone(), nodes.clone()),
            DialTarget::Sentinel(resolver) => (resolver.resolve().await?, resolver.nodes().clone()),
            DialTarget::AnyPrimary(cluster) => {
                let cluster = cluster.upgrade().ok_or_else(|| unknown("the store is closed"))?;
                let address = cluster.some_primary().ok_or_else(|| unknown("no node of the cluster is known yet"))?;
                (address, cluster.nodes().clone())
            }
        };
        let client = nodes.client(&address, protocol)?;
        Ok((address, client))
    }

    /// Whoever was named did not answer, or was no primary: another one should be asked next time.
    pub(super) fn failed(&self) {
        match self {
            DialTarget::Fixed { .. } => {}
            DialTarget::Sentinel(resolver) => resolver.ask_another(),
            DialTarget::AnyPrimary(cluster) => {
                if let Some(cluster) = cluster.upgrade() {
                    cluster.try_another();
                }
            }
        }
    }

    /// Resolves once this address is known to be no longer the right one.
    pub(super) async fn moved_from(&self, address: &NodeAddress) {
        match self {
            DialTarget::Fixed { .. } => std::future::pending().await,
            DialTarget::Sentinel(resolver) => resolver.moved_from(address).await,
            DialTarget::AnyPrimary(cluster) => {
                let Some(watch) = cluster.upgrade().map(|cluster| cluster.versions()) else {
                    return std::future::pending().await;
                };
                Cluster::left_by(cluster, watch, address).await;
            }
        }
    }
}

fn unknown(what: &'static str) -> RedisError {
    (ErrorKind::Io, what).into()
}
