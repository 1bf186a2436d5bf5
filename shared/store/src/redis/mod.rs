//! The Redis backend: on one node, behind sentinels or on a cluster. A connection for each runtime that asks, one that
//! listens, a deadline on every call.
//!
//! Reading order: `address` says what the settings mean, `target` whom a `link` dials, `server` who answers there. A `shard`
//! is a primary with its links; `sentinel` and `cluster` find primaries; `route` brings a call to its shard and repeats what
//! a node refused, and nothing else. `replicas` says how many must have what counts, `confirm` asks whether they have.
//!
//! Not here: keys (see [`crate::keys`]), and what a record means.

mod address;
mod check;
mod cluster;
mod confirm;
mod epochs;
mod fault;
mod link;
mod links;
mod mark;
mod packed;
mod pipeline;
mod replicas;
mod route;
mod script;
mod sentinel;
mod server;
mod shard;
mod slides;
mod slots;
mod subscriber;
mod target;

use crate::error::{StoreError, StoreOpenError};
use crate::health::HealthReport;
use crate::hub::Notifier;
use crate::keys;
use crate::lineage::StoreEpochs;
use crate::ops::{Op, OpResult, RawCommit};
use crate::{Committed, Config};
use address::Topology;
use cluster::{Cluster, ClusterSettings};
use confirm::ConfirmQueues;
use epochs::EpochMemory;
use links::LinkSettings;
use packed::CrowdedLogs;
use pipeline::EnterScript;
use redis::{Pipeline, Script, Value};
use replicas::{ReplicaCensus, ReplicaCount};
use route::{Batch, Shards};
use sentinel::SentinelResolver;
use server::RedisNode;
use shard::{LinkUse, RedisShard};
use slides::TtlRefresh;
use std::sync::Arc;
use std::time::{Duration, Instant};
use target::DialTarget;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) struct RedisBackend {
    shards: Shards,
    memory: Arc<EpochMemory>,
    slides: TtlRefresh,
    confirming: ConfirmQueues,
    crowded: CrowdedLogs,
    hub: Arc<Notifier>,
    script: Script,
    enter: Script,
    prefix: String,
    deadline: Duration,
}

impl RedisBackend {
    /// Starts connecting and waits a moment for it. A server that is away is met later.
    pub(crate) async fn open(
        config: &Config,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<RedisBackend, StoreOpenError> {
        let topology = Topology::of(config)?;
        let (memory, hub, deadline) = (Arc::new(EpochMemory::new()), Notifier::remote(), config.deadline);
        let links = LinkSettings { deadline, tasks: tasks.clone(), stop: stop.clone(), trouble: Arc::default() };
        let alone = |target: &DialTarget, census: ReplicaCensus| {
            let replicas = ReplicaCount::new(config.confirm_replicas, census);
            RedisShard::new(target, RedisNode::alone(&config.prefix, replicas, Arc::clone(&memory)), &links)
        };
        let (shards, listening) = match topology {
            Topology::Single { address, nodes } => {
                let target = DialTarget::Fixed { address, nodes };
                (Shards::Single(alone(&target, ReplicaCensus::Unasked)), target)
            }
            Topology::Sentinel { sentinels, asked, master, nodes } => {
                let resolver = SentinelResolver::new(sentinels, asked, master, nodes, deadline);
                resolver.ask_all().await;
                tasks.spawn(Arc::clone(&resolver).watch(stop.clone()));
                let target = DialTarget::Sentinel(Arc::clone(&resolver));
                (Shards::Sentinel(alone(&target, ReplicaCensus::Sentinels(resolver))), target)
            }
            Topology::Cluster { seeds, nodes } => {
                let (prefix, confirm) = (config.prefix.clone(), config.confirm_replicas);
                let memory = Arc::clone(&memory);
                let cluster = Cluster::new(ClusterSettings { seeds, nodes, prefix, confirm, memory, links });
                cluster.refresh().await;
                tasks.spawn(Arc::clone(&cluster).watch(stop.clone()));
                let target = DialTarget::AnyPrimary(Arc::downgrade(&cluster));
                (Shards::Cluster(cluster), target)
            }
        };
        tasks.spawn(subscriber::listen(listening, Arc::clone(&hub), deadline, stop.clone()));
        let reached = shards.all().into_iter().filter_map(|shard| shard.links(LinkUse::Calls).here().ok());
        let met = reached.map(|link| async move { drop(link.connection().await) });
        // Without one, calls will say that the store is away.
        drop(timeout(deadline, futures_util::future::join_all(met)).await);
        let (slides, confirming, crowded) = (TtlRefresh::default(), ConfirmQueues::default(), CrowdedLogs::default());
        let (script, enter, prefix) = (script::load(), script::load_enter(), config.prefix.clone());
        Ok(RedisBackend { shards, memory, slides, confirming, crowded, hub, script, enter, prefix, deadline })
    }

    pub(crate) fn hub(&self) -> &Arc<Notifier> {
        &self.hub
    }

    /// One round trip, to one node: all steps of a batch are of one tenant. One more when the server has forgotten a script.
    pub(crate) async fn run(&self, ops: &[Op]) -> Result<Vec<OpResult>, StoreError> {
        let now = Instant::now();
        let enter = EnterScript { digest: self.enter.get_hash(), packs: &|stream| !self.crowded.holds(stream, now) };
        let (pipe, ignored, moved) = pipeline::encode(ops, &enter, |slide| self.slides.due(slide, now));
        let key = ops.iter().find_map(pipeline::routed_by);
        let mut answers = match key {
            Some(key) => self.send(LinkUse::Calls, "pipeline", Batch::parts(&pipe, key)).await?,
            None => self.send_anywhere("pipeline", &pipe).await?,
        };
        let mut place = 0;
        answers.retain(|_| {
            place += 1;
            !ignored.contains(&(place - 1))
        });
        moved.iter().for_each(|slide| self.slides.moved(slide, now));
        for (op, answer) in ops.iter().zip(&mut answers) {
            if let Op::Enter(step) = op
                && pipeline::wants_plain(answer)
            {
                // In a box, as is everything that most calls do not do: each of them would carry its size along.
                *answer = Box::pin(self.enter_plain(op, &step.stream, now)).await?;
            }
        }
        pipeline::decode(ops, answers)
    }

    /// Enters entries that were sent packed and not written, because each has to be judged by itself.
    async fn enter_plain(&self, op: &Op, stream: &str, now: Instant) -> Result<Value, StoreError> {
        self.crowded.add(stream, now);
        let enter = EnterScript { digest: self.enter.get_hash(), packs: &|_| false };
        let (pipe, ..) = pipeline::encode(std::slice::from_ref(op), &enter, |_| false);
        self.send(LinkUse::Calls, "pipeline", Batch::parts(&pipe, stream)).await?.pop().ok_or(pipeline::ODD)
    }

    /// One round trip; one more when the server has forgotten the script.
    pub(crate) async fn commit(&self, commit: &RawCommit) -> Result<Committed, StoreError> {
        let mut pipe = Pipeline::with_capacity(1);
        pipe.add_command(script::prepare(self.script.get_hash(), commit));
        let answers = self.send(LinkUse::Calls, "commit", Batch::parts(&pipe, &commit.record)).await;
        self.slides.forget(&commit.record);
        script::answer(answers?.pop().unwrap_or_default())
    }

    pub(crate) async fn health(&self, accept_unsafe: bool) -> HealthReport {
        check::check(self, accept_unsafe).await
    }

    /// Which server holds the records.
    pub(crate) fn lineages(&self) -> StoreEpochs {
        self.memory.lineages()
    }

    /// Where what belongs to no tenant is kept.
    fn service_key(&self) -> String {
        keys::probe(&self.prefix)
    }
}

/// Waits before dialling again, never in step with others.
async fn pause(failures: u32) {
    let mut dice = [0; 8];
    // Without randomness we only lose the jitter.
    let drawn = getrandom::fill(&mut dice).map_or(0, |()| u64::from_be_bytes(dice));
    tokio::time::sleep(rest(failures, drawn)).await;
}

/// How long to wait: longer with every failure, never above half a second, and half of it left to the dice.
fn rest(failures: u32, drawn: u64) -> Duration {
    let most = 25_u64.saturating_mul(1 << failures.min(5)).min(500);
    Duration::from_millis(most / 2 + drawn % (most / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_reconnects_are_spread_and_come_within_half_a_second() {
        for failures in 1..20 {
            let drawn: std::collections::HashSet<Duration> = (0..1_000).map(|drawn| rest(failures, drawn)).collect();
            assert!(drawn.len() > 20, "after {failures} failures they are in step");
            let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
            assert!(*most <= Duration::from_millis(500) && *least * 2 >= *most - Duration::from_millis(1));
        }
        assert!(rest(1, 0) < rest(5, 0));
    }
}
