//! Which node the sentinels name as the primary.
//!
//! They are asked in turn, each with a time limit, on every dial and every few seconds. Which answer is the newest they say
//! themselves: a sentinel that was cut off still names the primary of an earlier epoch, and is passed over while another
//! one knows better. `+switch-master` is only a hint to ask again. Whether the node named is one, the link asks the node.
//!
//! Each of them also says how many replicas it knows, those that are away included. Any of them may lead the next failover
//! and choose among those that it knows, so all are asked and the greatest number counts.

use super::address::{NodeAddress, NodeSettings};
use super::pause;
use super::replicas::clamped;
use futures_util::StreamExt;
use futures_util::future::join_all;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, RedisError};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// How often they are asked without a hint.
const ASK_EVERY: Duration = Duration::from_secs(5);

pub(super) struct SentinelResolver {
    sentinels: Vec<NodeAddress>,
    asked: NodeSettings,
    master: String,
    nodes: NodeSettings,
    /// How long one of them may take.
    limit: Duration,
    /// Whom to ask first.
    first: AtomicUsize,
    newest: watch::Sender<Option<NamedPrimary>>,
    /// How many replicas each of them knew when it last answered.
    replicas: Mutex<Vec<Option<u8>>>,
}

/// The primary, as of one epoch of the sentinels.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedPrimary {
    address: NodeAddress,
    epoch: u64,
}

impl SentinelResolver {
    pub(super) fn new(
        sentinels: Vec<NodeAddress>,
        asked: NodeSettings,
        master: String,
        nodes: NodeSettings,
        deadline: Duration,
    ) -> Arc<SentinelResolver> {
        // All of them together, and the dial that follows, must fit into what a call may wait.
        let share = u32::try_from(sentinels.len()).unwrap_or(u32::MAX).saturating_add(1);
        let (limit, first, newest) = (deadline / share, AtomicUsize::new(0), watch::Sender::new(None));
        let replicas = Mutex::new(vec![None; sentinels.len()]);
        Arc::new(SentinelResolver { sentinels, asked, master, nodes, limit, first, newest, replicas })
    }

    pub(super) fn nodes(&self) -> &NodeSettings {
        &self.nodes
    }

    /// Asks until one names a primary that is not older than the newest known. If all know only older ones, the newest of
    /// these counts: sentinels that were set up anew count from the beginning.
    pub(super) async fn resolve(&self) -> Result<NodeAddress, RedisError> {
        let known = self.newest.borrow().as_ref().map_or(0, |named| named.epoch);
        let first = self.first.load(Ordering::Relaxed);
        let (mut older, mut last_error): (Option<NamedPrimary>, Option<RedisError>) = (None, None);
        for turn in 0..self.sentinels.len() {
            let at = first.wrapping_add(turn) % self.sentinels.len();
            match timeout(self.limit, self.ask(at)).await {
                Ok(Ok(named)) if named.epoch >= known => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(self.adopt(named));
                }
                Ok(Ok(named)) => {
                    if older.as_ref().is_none_or(|best| best.epoch < named.epoch) {
                        older = Some(named);
                    }
                }
                Ok(Err(error)) => last_error = Some(error),
                Err(_) => {}
            }
        }
        if let Some(named) = older {
            return Ok(self.adopt(named));
        }
        tracing::warn!(
            db.system.name = "redis",
            error = last_error.as_ref().map(tracing::field::display),
            "no sentinel names a primary; check store.url and the name of the master in it"
        );
        Err(last_error.unwrap_or_else(|| (ErrorKind::Io, "no sentinel answered in time").into()))
    }

    /// Asks all of them at once, for how many replicas each knows.
    pub(super) async fn ask_all(&self) {
        join_all((0..self.sentinels.len()).map(|at| timeout(self.limit, self.ask(at)))).await;
    }

    /// How many replicas any of them may promote; `None` before most of them have told.
    pub(super) fn replicas(&self) -> Option<u8> {
        let told = self.replicas.lock().unwrap_or_else(PoisonError::into_inner);
        let heard = told.iter().flatten().count();
        told.iter().flatten().max().copied().filter(|_| heard * 2 > told.len())
    }

    async fn ask(&self, at: usize) -> Result<NamedPrimary, RedisError> {
        let client = self.asked.client(&self.sentinels[at], ProtocolVersion::RESP2)?;
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("MASTER").arg(&self.master);
        let told: HashMap<String, String> = ask.query_async(&mut connection).await?;
        let odd = || RedisError::from((ErrorKind::UnexpectedReturnType, "a sentinel named no address"));
        let port = told.get("port").and_then(|port| port.parse().ok()).filter(|port: &u16| *port != 0);
        let (host, port) = (told.get("ip").filter(|host| !host.is_empty()).ok_or_else(odd)?, port.ok_or_else(odd)?);
        let replicas = told.get("num-slaves").and_then(|many| many.parse().ok()).map(clamped);
        self.replicas.lock().unwrap_or_else(PoisonError::into_inner)[at] = replicas;
        let epoch = told.get("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
        Ok(NamedPrimary { address: NodeAddress { host: host.clone(), port }, epoch })
    }

    fn adopt(&self, named: NamedPrimary) -> NodeAddress {
        let address = named.address.clone();
        self.newest.send_if_modified(|newest| {
            let moved = newest.as_ref() != Some(&named);
            *newest = Some(named);
            moved
        });
        address
    }

    /// Asks another one first from now on.
    pub(super) fn ask_another(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    /// Resolves once another address is the primary's.
    pub(super) async fn moved_from(&self, address: &NodeAddress) {
        let mut newest = self.newest.subscribe();
        let moved = |named: &Option<NamedPrimary>| named.as_ref().is_some_and(|named| named.address != *address);
        if newest.wait_for(moved).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Listens for hints and asks now and then, until told to stop.
    pub(super) async fn watch(self: Arc<SentinelResolver>, stop: CancellationToken) {
        let work = async {
            let mut turn = 0_usize;
            loop {
                let sentinel = &self.sentinels[turn % self.sentinels.len()];
                if let Err(error) = self.listen(sentinel).await {
                    tracing::debug!(db.system.name = "redis", %error, "a sentinel does not let us listen");
                }
                turn = turn.wrapping_add(1);
                pause(u32::try_from(turn).unwrap_or(u32::MAX)).await;
                self.ask_all().await;
                drop(self.resolve().await);
            }
        };
        stop.run_until_cancelled(work).await;
    }

    async fn listen(&self, sentinel: &NodeAddress) -> Result<(), RedisError> {
        let client = self.asked.client(sentinel, ProtocolVersion::RESP2)?;
        let late = |_| RedisError::from((ErrorKind::Io, "a sentinel did not answer in time"));
        let (mut sink, mut hints) = timeout(self.limit, client.get_async_pubsub()).await.map_err(late)??.split();
        timeout(self.limit, sink.subscribe("+switch-master")).await.map_err(late)??;
        let ours = format!("{} ", self.master);
        loop {
            match timeout(ASK_EVERY, hints.next()).await {
                Ok(Some(hint)) => {
                    if hint.get_payload::<String>().is_ok_and(|text| text.starts_with(&ours)) {
                        drop(self.resolve().await);
                    }
                }
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.ask_all().await;
                    drop(self.resolve().await);
                    timeout(self.limit, sink.ping::<redis::Value>()).await.map_err(late)??;
                }
            }
        }
    }
}
