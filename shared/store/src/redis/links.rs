//! One connection for each runtime that asks.
//!
//! A worker of the server is a thread with a runtime of its own. If its calls went over a connection that is driven
//! elsewhere, each of them would wake another thread and be woken by it: that costs more than the round trip. So the
//! connection is driven where it is used. The runtime of the background work is another one, and has one for all its
//! threads. A runtime that ends takes its connection along.

use super::link::{RedisLink, ServerBack};
use super::server::RedisNode;
use super::target::DialTarget;
use crate::StoreError;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::runtime::{Handle, Id};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What all links of a store have in common.
#[derive(Clone)]
pub(super) struct LinkSettings {
    pub(super) deadline: Duration,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
    /// Told when a node does not answer, or is none to write to.
    pub(super) trouble: Arc<Notify>,
}

pub(super) struct RedisLinks {
    target: DialTarget,
    settings: LinkSettings,
    server: Arc<RedisNode>,
    /// Told by the first link that finds the server again, so that the others do not sit out their pauses.
    back: Arc<ServerBack>,
    /// Few, so looking through them is the quickest way.
    held: RwLock<Vec<(Id, Arc<RedisLink>)>>,
}

impl RedisLinks {
    pub(super) fn new(target: DialTarget, settings: LinkSettings, server: Arc<RedisNode>) -> Arc<RedisLinks> {
        Arc::new(RedisLinks { target, settings, server, back: Arc::default(), held: RwLock::default() })
    }

    /// The link of the runtime that this is called on, made when it asks for the first time.
    pub(super) fn here(self: &Arc<RedisLinks>) -> Result<Arc<RedisLink>, StoreError> {
        let id = Handle::current().id();
        let find =
            |held: &[(Id, Arc<RedisLink>)]| held.iter().find(|(of, _)| *of == id).map(|(_, link)| Arc::clone(link));
        if let Some(link) = find(&self.held.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(link);
        }
        if self.settings.stop.is_cancelled() {
            return Err(StoreError::unavailable("the store is closed"));
        }
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread of the same runtime may have been faster.
        if let Some(link) = find(&held) {
            return Ok(link);
        }
        let link =
            RedisLink::new(self.target.clone(), &self.settings, Arc::clone(&self.back), Arc::clone(&self.server));
        held.push((id, Arc::clone(&link)));
        let stop = self.settings.stop.clone();
        let kept = LinkGuard { links: Arc::downgrade(self), link: Arc::clone(&link) };
        self.settings.tasks.spawn(async move {
            let kept = kept;
            Arc::clone(&kept.link).keep(stop).await;
        });
        Ok(link)
    }
}

/// Held by the task that keeps a link, and dropped with it: on closing, or when its runtime ends.
struct LinkGuard {
    links: Weak<RedisLinks>,
    link: Arc<RedisLink>,
}

impl Drop for LinkGuard {
    fn drop(&mut self) {
        self.link.end();
        if let Some(links) = self.links.upgrade() {
            let mut held = links.held.write().unwrap_or_else(PoisonError::into_inner);
            held.retain(|(_, link)| !Arc::ptr_eq(link, &self.link));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::address::Topology;
    use super::super::epochs::EpochMemory;
    use super::super::replicas::{ReplicaCensus, ReplicaCount};
    use super::*;
    use testkit::redis::RedisServer;
    use tokio::runtime::{Builder, Runtime};

    fn links(url: &str) -> Arc<RedisLinks> {
        let Topology::Single { address, nodes } = Topology::of(&crate::Config::at(url)).unwrap() else {
            panic!("one node")
        };
        let replicas = ReplicaCount::new(crate::config::Confirm::Auto, ReplicaCensus::Unasked);
        let server = RedisNode::alone("qm", replicas, Arc::new(EpochMemory::new()));
        let (deadline, tasks, stop) = (Duration::from_secs(10), TaskTracker::new(), CancellationToken::new());
        let settings = LinkSettings { deadline, tasks, stop, trouble: Arc::default() };
        RedisLinks::new(DialTarget::Fixed { address, nodes }, settings, Arc::new(server))
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    async fn asks(links: &Arc<RedisLinks>) -> Arc<RedisLink> {
        let link = links.here().unwrap();
        let mut connection = link.connection().await.unwrap().connection;
        redis::cmd("PING").exec_async(&mut connection).await.unwrap();
        link
    }

    #[test]
    fn each_runtime_has_a_connection_of_its_own_and_takes_it_along() {
        let server = RedisServer::start();
        let links = links(&server.url());
        let (one, two) = (runtime(), runtime());
        let first = one.block_on(asks(&links));
        assert!(Arc::ptr_eq(&first, &one.block_on(asks(&links))), "asked again, it is the same");
        assert!(!Arc::ptr_eq(&first, &two.block_on(asks(&links))));
        assert_eq!(links.held.read().unwrap().len(), 2);

        drop(one);
        assert_eq!(links.held.read().unwrap().len(), 1);
        assert!(two.block_on(first.connection()).is_err(), "a link whose runtime is gone gives nothing out");
        two.block_on(asks(&links));
        runtime().block_on(asks(&links));
        assert_eq!(links.held.read().unwrap().len(), 1, "the third one is gone already");
    }

    #[tokio::test]
    async fn a_burst_of_first_calls_waits_for_the_one_dial_and_none_fails() {
        let server = RedisServer::start();
        let links = links(&server.url());
        futures_util::future::join_all((0..50).map(|_| asks(&links))).await;
        assert_eq!(links.held.read().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn after_closing_nobody_gets_a_connection() {
        let server = RedisServer::start();
        let links = links(&server.url());
        asks(&links).await;
        links.settings.stop.cancel();
        links.settings.tasks.close();
        links.settings.tasks.wait().await;
        assert!(links.here().is_err());
        assert!(links.held.read().unwrap().is_empty());
    }

    #[test]
    fn every_runtime_finds_a_server_that_comes_back() {
        let mut server = RedisServer::start();
        let links = links(&server.url());
        let (one, two) = (runtime(), runtime());
        one.block_on(asks(&links));
        two.block_on(asks(&links));
        server.stop();
        for runtime in [&one, &two] {
            let link = runtime.block_on(async { links.here().unwrap() });
            link.overdue();
            runtime.block_on(async {
                while link.connection().await.is_ok() {
                    tokio::task::yield_now().await;
                }
            });
        }
        server.restart();
        for runtime in [&one, &two] {
            runtime.block_on(async {
                let link = links.here().unwrap();
                while link.connection().await.is_err() {
                    tokio::task::yield_now().await;
                }
            });
            runtime.block_on(asks(&links));
        }
        assert_eq!(links.held.read().unwrap().len(), 2, "the links are the same, with new connections");
    }
}
