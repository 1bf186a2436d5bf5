//! One primary and the connections to it: all there is of a store on one node, and one of several in a cluster.

use super::links::{LinkSettings, RedisLinks};
use super::server::RedisNode;
use super::slots;
use super::target::DialTarget;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};

pub(super) struct RedisShard {
    links: Arc<RedisLinks>,
    /// Those that wait for replicas: `WAIT` stands still on the server's side, and would hold up every call behind it.
    confirming: Arc<RedisLinks>,
    server: Arc<RedisNode>,
    /// The slots it serves in a cluster.
    slots: Mutex<Vec<(u16, u16)>>,
    /// Ends its links with the last who knows it.
    stop: DropGuard,
}

/// What a call wants of a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkUse {
    Calls,
    Confirming,
}

impl RedisShard {
    pub(super) fn new(target: &DialTarget, server: RedisNode, settings: &LinkSettings) -> Arc<RedisShard> {
        let (server, stop) = (Arc::new(server), settings.stop.child_token());
        let settings = LinkSettings { stop: stop.clone(), ..settings.clone() };
        let links = || RedisLinks::new(target.clone(), settings.clone(), Arc::clone(&server));
        let (links, confirming, slots) = (links(), links(), Mutex::default());
        Arc::new(RedisShard { links, confirming, server, slots, stop: stop.drop_guard() })
    }

    pub(super) fn links(&self, used: LinkUse) -> &Arc<RedisLinks> {
        match used {
            LinkUse::Calls => &self.links,
            LinkUse::Confirming => &self.confirming,
        }
    }

    pub(super) fn server(&self) -> &RedisNode {
        &self.server
    }

    /// Notes which slots it serves.
    pub(super) fn serve(&self, ranges: &[(u16, u16)]) {
        *self.slots.lock().unwrap_or_else(PoisonError::into_inner) = ranges.to_vec();
    }

    /// The lowest slot it serves.
    pub(super) fn lowest_slot(&self) -> Option<u16> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).first().map(|(from, _)| *from)
    }

    /// Its slots, as an operator reads them. Not its address: anybody may read the readiness page.
    pub(super) fn name(&self) -> String {
        slots::written(&self.slots.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets go of its connections.
    pub(super) fn end(&self) {
        let stop: &CancellationToken = self.stop.token();
        stop.cancel();
    }
}
