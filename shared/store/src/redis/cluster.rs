//! The shards of a cluster: which node serves which slot, asked on opening, when a node says otherwise or does not answer,
//! and every few seconds.
//!
//! Several nodes are asked at once and the one with the highest epoch is believed: a node that was cut off from the others
//! does not know that it lost its slots. Each primary has links of its own, so one that is away holds up nobody else.

use super::address::{NodeAddress, NodeSettings};
use super::epochs::EpochMemory;
use super::fault;
use super::links::LinkSettings;
use super::replicas::{ReplicaCensus, ReplicaCount};
use super::server::RedisNode;
use super::shard::{LinkUse, RedisShard};
use super::slots::{self, SlotRanges};
use super::target::DialTarget;
use crate::StoreError;
use crate::config::Confirm;
use crate::keys::{self, SLOTS};
use futures_util::future::join_all;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, RedisError, Value};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How often nodes are asked without a reason.
const ASK_EVERY: Duration = Duration::from_secs(5);
/// The least time between two questions, so that a cluster in trouble is not asked by every call.
const APART: Duration = Duration::from_millis(50);
/// How many nodes are asked at once.
const ASKED: usize = 6;
/// How long a node without slots is kept, such as one that slots are being moved to.
const KEEP: Duration = Duration::from_secs(60);

/// What every node of the cluster has in common.
pub(super) struct ClusterSettings {
    pub(super) seeds: Vec<NodeAddress>,
    pub(super) nodes: NodeSettings,
    pub(super) prefix: String,
    pub(super) confirm: Confirm,
    pub(super) memory: Arc<EpochMemory>,
    /// Their trouble is what makes the cluster ask again.
    pub(super) links: LinkSettings,
}

pub(super) struct Cluster {
    settings: ClusterSettings,
    map: RwLock<Arc<SlotMap>>,
    /// Every node that is known, also one that a redirection named a moment ago.
    known: Mutex<HashMap<NodeAddress, KnownNode>>,
    /// Counts the answers, so that whoever waits for one sees it come.
    versions: watch::Sender<u64>,
    turn: AtomicUsize,
}

struct KnownNode {
    shard: Arc<RedisShard>,
    /// When it was last named.
    named: Instant,
}

/// Which shard serves which slot.
#[derive(Default)]
struct SlotMap {
    shards: Vec<(NodeAddress, Arc<RedisShard>)>,
    /// For each slot the place of its shard in `shards`; empty while nothing is known.
    owners: Vec<Option<u16>>,
}

impl SlotMap {
    /// The node that serves a slot.
    fn owner(&self, slot: u16) -> Option<&NodeAddress> {
        let place = self.owners.get(usize::from(slot)).copied().flatten()?;
        self.shards.get(usize::from(place)).map(|(address, _)| address)
    }
}

impl Cluster {
    pub(super) fn new(settings: ClusterSettings) -> Arc<Cluster> {
        let (map, known, versions) = (RwLock::default(), Mutex::default(), watch::Sender::new(0));
        Arc::new(Cluster { settings, map, known, versions, turn: AtomicUsize::new(0) })
    }

    /// The shard that serves a slot.
    pub(super) fn shard_of(&self, slot: u16) -> Result<Arc<RedisShard>, StoreError> {
        let map = self.map();
        let place = map.owners.get(usize::from(slot)).copied().flatten();
        match place.and_then(|place| map.shards.get(usize::from(place))) {
            Some((_, shard)) => Ok(Arc::clone(shard)),
            None => {
                self.doubt();
                Err(StoreError::unavailable("no node of the cluster serves this slot"))
            }
        }
    }

    /// The node at an address that another one named.
    pub(super) fn node_at(&self, address: &NodeAddress) -> Arc<RedisShard> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let node = known
            .entry(address.clone())
            .or_insert_with(|| KnownNode { shard: self.dial(address), named: Instant::now() });
        node.named = Instant::now();
        Arc::clone(&node.shard)
    }

    fn dial(&self, address: &NodeAddress) -> Arc<RedisShard> {
        let ClusterSettings { nodes, confirm, memory, links, .. } = &self.settings;
        let target = DialTarget::Fixed { address: address.clone(), nodes: nodes.clone() };
        let replicas = ReplicaCount::new(*confirm, ReplicaCensus::Cluster(Mutex::default()));
        RedisShard::new(&target, RedisNode::shard(replicas, Arc::clone(memory)), links)
    }

    /// All shards, by their slots.
    pub(super) fn shards(&self) -> Vec<Arc<RedisShard>> {
        let mut shards: Vec<Arc<RedisShard>> = self.map().shards.iter().map(|(_, shard)| Arc::clone(shard)).collect();
        shards.sort_by_key(|shard| shard.lowest_slot());
        shards
    }

    /// Whether every slot has a node.
    pub(super) fn is_covered(&self) -> bool {
        let map = self.map();
        !map.owners.is_empty() && map.owners.iter().all(Option::is_some)
    }

    pub(super) fn nodes(&self) -> &NodeSettings {
        &self.settings.nodes
    }

    /// A primary to listen at: another one after each failure.
    pub(super) fn some_primary(&self) -> Option<NodeAddress> {
        let map = self.map();
        let turn = self.turn.load(Ordering::Relaxed);
        map.shards.get(turn.checked_rem(map.shards.len())?).map(|(address, _)| address.clone())
    }

    pub(super) fn try_another(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
        self.doubt();
    }

    pub(super) fn versions(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// Resolves once an address is no primary's any more.
    pub(super) async fn left_by(cluster: &Weak<Cluster>, mut versions: watch::Receiver<u64>, address: &NodeAddress) {
        let is_primary = |cluster: &Cluster| cluster.map().shards.iter().any(|(known, _)| known == address);
        while cluster.upgrade().is_some_and(|cluster| is_primary(&cluster)) {
            if versions.changed().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    /// Has the nodes asked again soon.
    pub(super) fn doubt(&self) {
        self.settings.links.trouble.notify_one();
    }

    /// Has them asked again, and waits until they were.
    pub(super) async fn refreshed(&self) {
        let mut versions = self.versions.subscribe();
        versions.mark_unchanged();
        self.doubt();
        drop(versions.changed().await);
    }

    /// Asks again and again, until told to stop.
    pub(super) async fn watch(self: Arc<Cluster>, stop: CancellationToken) {
        let trouble: Arc<Notify> = Arc::clone(&self.settings.links.trouble);
        let work = async {
            loop {
                tokio::select! {
                    () = trouble.notified() => {}
                    () = sleep(ASK_EVERY) => {}
                }
                self.refresh().await;
                sleep(APART).await;
            }
        };
        stop.run_until_cancelled(work).await;
        self.shards().iter().for_each(|shard| shard.end());
    }

    /// Asks the nodes and takes the newest answer. Without any, everything stays as it is.
    pub(super) async fn refresh(&self) {
        let mut asked: Vec<NodeAddress> = self.map().shards.iter().map(|(address, _)| address.clone()).collect();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if !asked.is_empty() {
            let first = turn % asked.len();
            asked.rotate_left(first);
            asked.truncate(ASKED - 1);
        }
        let seeds = self.settings.seeds.iter().cycle().skip(turn).take(self.settings.seeds.len());
        for seed in seeds {
            if asked.len() < ASKED && !asked.contains(seed) {
                asked.push(seed.clone());
            }
        }
        let limit = self.settings.links.deadline / 2;
        let answers = join_all(asked.iter().map(|node| timeout(limit, self.ask(node)))).await;
        let mut newest: Option<(bool, u64, SlotRanges)> = None;
        for answer in answers {
            match answer {
                Ok(Ok((well, epoch, ranges))) => {
                    if newest.as_ref().is_none_or(|(is_well, highest, _)| (epoch, well) > (*highest, *is_well)) {
                        newest = Some((well, epoch, ranges));
                    }
                }
                Ok(Err(error)) => {
                    if fault::says(&error, "cluster support disabled") {
                        self.settings.memory.is_of_kind(false, "standalone");
                    }
                    tracing::debug!(db.system.name = "redis", %error, "a node does not tell the cluster's slots");
                }
                Err(_) => {}
            }
        }
        if let Some((_, _, ranges)) = newest {
            self.take(&ranges);
        }
        self.versions.send_modify(|version| *version += 1);
    }

    async fn ask(&self, node: &NodeAddress) -> Result<(bool, u64, SlotRanges), RedisError> {
        let client = self.settings.nodes.client(node, ProtocolVersion::RESP2)?;
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        let mut pipe = redis::pipe();
        pipe.cmd("CLUSTER").arg("INFO").cmd("CLUSTER").arg("SLOTS");
        let (info, slots): (String, Value) = pipe.query_async(&mut connection).await?;
        let odd = || RedisError::from((ErrorKind::UnexpectedReturnType, "the slots of the cluster cannot be read"));
        let mut ranges = SlotRanges::parse(slots, &node.host).ok_or_else(odd)?;
        match redis::cmd("CLUSTER").arg("NODES").query_async::<String>(&mut connection).await {
            Ok(nodes) => ranges = ranges.with_nodes(&nodes),
            // An account that may not ask: `auto` then confirms nothing, and the readiness page says so.
            Err(error) if error.code().is_some() => {}
            Err(error) => return Err(error),
        }
        Ok((super::server::field(&info, "cluster_state") == Some("ok"), slots::epoch(&info), ranges))
    }

    /// Takes over an answer: new primaries are dialled, those without slots are let go of after a while.
    fn take(&self, told: &SlotRanges) {
        let (ranges, before) = (&told.ranges, self.map());
        let mut map = SlotMap { shards: Vec::with_capacity(ranges.len()), owners: vec![None; usize::from(SLOTS)] };
        for (place, (address, of_node)) in (0_u16..).zip(ranges) {
            let shard = self.node_at(address);
            shard.serve(of_node);
            let lowest = of_node.first().map(|(from, _)| *from);
            let took_over = lowest.and_then(|slot| before.owner(slot)).is_some_and(|owner| owner != address);
            shard.server().replicas().tell(told.replicas(address), took_over);
            shard.server().place_mark(lowest.map(|slot| keys::mark_of_slot(&self.settings.prefix, slot)));
            for (from, to) in of_node {
                map.owners[usize::from(*from)..=usize::from(*to)].fill(Some(place));
            }
            // Begins to dial, so that the first call finds a connection and a failover is noticed without one.
            drop(shard.links(LinkUse::Calls).here());
            map.shards.push((address.clone(), shard));
        }
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(map);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|address, node| {
            let kept = ranges.contains_key(address) || node.named.elapsed() < KEEP;
            if !kept {
                node.shard.end();
            } else if !ranges.contains_key(address) {
                node.shard.serve(&[]);
                node.shard.server().place_mark(None);
            }
            kept
        });
    }

    fn map(&self) -> Arc<SlotMap> {
        Arc::clone(&self.map.read().unwrap_or_else(PoisonError::into_inner))
    }
}
