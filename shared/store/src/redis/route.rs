//! Brings a call to the shard of its tenant, and sends again what a node refused: that has not happened. What got no answer
//! is never sent again, because it may have happened.
//!
//! In a batch each command is refused for itself: while a slot moves, some keys of a tenant are here and others there. So
//! only the refused ones go again, to the node that was named.

use super::address::NodeAddress;
use super::cluster::Cluster;
use super::fault::{self, Refusal};
use super::link::{LiveConnection, RedisLink};
use super::shard::{LinkUse, RedisShard};
use super::{RedisBackend, pause};
use crate::{StoreError, keys};
use redis::{Pipeline, RedisError, ServerError, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::time::timeout;

/// How often a call of one node may be told that the node is the wrong one.
const LEFT: u32 = 1;
/// How often a call may be sent elsewhere, or told to wait, in a cluster.
const TURNS: u32 = 8;

/// The primaries of a store.
pub(super) enum Shards {
    Single(Arc<RedisShard>),
    Sentinel(Arc<RedisShard>),
    Cluster(Arc<Cluster>),
}

impl Shards {
    /// The one that holds a key.
    pub(super) fn of(&self, key: &str) -> Result<Arc<RedisShard>, StoreError> {
        match self {
            Shards::Single(shard) | Shards::Sentinel(shard) => Ok(Arc::clone(shard)),
            Shards::Cluster(cluster) => cluster.shard_of(keys::slot(key)),
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<RedisShard>> {
        match self {
            Shards::Single(shard) | Shards::Sentinel(shard) => vec![Arc::clone(shard)],
            Shards::Cluster(cluster) => cluster.shards(),
        }
    }
}

/// Commands of one tenant.
pub(super) struct Batch<'a> {
    pipe: &'a Pipeline,
    key: &'a str,
    /// Whether all of them go again if one was refused, because they have to be taken by one node.
    whole: bool,
}

impl<'a> Batch<'a> {
    /// Each may be taken by itself. `key` is one of theirs.
    pub(super) fn parts(pipe: &'a Pipeline, key: &'a str) -> Batch<'a> {
        Batch { pipe, key, whole: false }
    }

    /// All are taken by one node, and any may be repeated.
    pub(super) fn whole(pipe: &'a Pipeline, key: &'a str) -> Batch<'a> {
        Batch { pipe, key, whole: true }
    }
}

/// What is still to be sent, and where.
struct Journey {
    shard: Arc<RedisShard>,
    /// The places of those that were refused; before the first answer all of them are to be sent.
    left: Vec<usize>,
    /// Whether they go to a node that does not serve the slot yet.
    asking: bool,
    /// Whether the scripts go along.
    scripts: bool,
    turns: u32,
}

impl RedisBackend {
    /// Sends commands to their shard, the wait for its connection included in the deadline. Gives one answer for each, none
    /// of them a failure.
    pub(super) async fn send(
        &self,
        used: LinkUse,
        operation: &'static str,
        batch: Batch<'_>,
    ) -> Result<Vec<Value>, StoreError> {
        let unanswered = AtomicBool::new(false);
        let shard = self.shards.of(batch.key)?;
        let error = match timeout(self.deadline, self.travel(shard, used, &batch, &unanswered)).await {
            Ok(Ok(answers)) => return Ok(answers),
            Ok(Err(error)) => error,
            Err(_) if unanswered.load(Ordering::Relaxed) => StoreError::Timeout,
            // Whatever was sent was refused, or nothing was.
            Err(_) => StoreError::unavailable("no node took the call in time"),
        };
        tracing::debug!(
            db.system.name = "redis",
            db.operation.name = operation,
            error.type = error.code().as_str(),
            "a call to the store failed"
        );
        Err(error)
    }

    /// Sends commands that touch no key to the shard of what belongs to no tenant, and to any other if that one is away.
    pub(super) async fn send_anywhere(
        &self,
        operation: &'static str,
        pipe: &Pipeline,
    ) -> Result<Vec<Value>, StoreError> {
        let key = self.service_key();
        let first = match self.shards.of(&key) {
            Ok(_) => self.send(LinkUse::Calls, operation, Batch::parts(pipe, &key)).await,
            Err(error) => Err(error),
        };
        let (Err(StoreError::Unavailable { .. } | StoreError::Timeout), Shards::Cluster(cluster)) =
            (&first, &self.shards)
        else {
            return first;
        };
        for shard in cluster.shards() {
            let unanswered = AtomicBool::new(false);
            let batch = Batch::parts(pipe, &key);
            if let Ok(Ok(answers)) =
                timeout(self.deadline, self.travel(shard, LinkUse::Calls, &batch, &unanswered)).await
            {
                return Ok(answers);
            }
        }
        first
    }

    async fn travel(
        &self,
        shard: Arc<RedisShard>,
        used: LinkUse,
        batch: &Batch<'_>,
        unanswered: &AtomicBool,
    ) -> Result<Vec<Value>, StoreError> {
        let mut journey = Journey { shard, left: Vec::new(), asking: false, scripts: false, turns: 0 };
        let mut answers = Vec::new();
        loop {
            let link = journey.shard.links(used).here()?;
            let connected = link.connection().await.inspect_err(|_| self.trouble())?;
            let overdue = OverdueGuard { link: &link, unanswered };
            unanswered.store(true, Ordering::Relaxed);
            let sent = self.dispatch(&connected, batch, &journey).await;
            unanswered.store(false, Ordering::Relaxed);
            drop(overdue);
            let received = sent.map_err(|error| {
                link.failed(&error);
                self.trouble();
                fault::fault(error)
            })?;
            if journey.turns == 0 {
                answers = received;
            } else {
                journey.left.iter().zip(received).for_each(|(place, answer)| answers[*place] = answer);
            }
            let Some(error) = answers.iter().find_map(refused) else {
                return settled(answers, batch.pipe.len());
            };
            let error = error.clone();
            let is_left = |place: &usize| batch.whole || refused(&answers[*place]).is_some();
            journey.left = (0..answers.len()).filter(is_left).collect();
            if !self.redirect(&mut journey, Refusal::of(&error), &link, &connected, batch.key).await {
                return Err(fault::fault(error.into()));
            }
        }
    }

    /// Sends what is left, in one go, so that nobody else's command comes in between.
    async fn dispatch(
        &self,
        connected: &LiveConnection,
        batch: &Batch<'_>,
        journey: &Journey,
    ) -> Result<Vec<Value>, RedisError> {
        let mut connection = connected.connection.clone();
        if journey.turns == 0 {
            return connection.send_packed_commands(batch.pipe, 0, batch.pipe.len()).await;
        }
        let (mut pipe, mut wanted) = (Pipeline::with_capacity(journey.left.len() * 2 + 2), Vec::new());
        if journey.scripts {
            for code in script_codes() {
                pipe.cmd("SCRIPT").arg("LOAD").arg(code);
            }
        }
        let commands: Vec<&redis::Cmd> = batch.pipe.cmd_iter().collect();
        for place in &journey.left {
            if journey.asking {
                // It holds for the next command only.
                pipe.cmd("ASKING");
            }
            wanted.push(pipe.len());
            pipe.add_command(commands[*place].clone());
        }
        let mut answers = connection.send_packed_commands(&pipe, 0, pipe.len()).await?;
        Ok(wanted.into_iter().map(|place| answers.get_mut(place).map(std::mem::take).unwrap_or_default()).collect())
    }

    /// Decides where the rest goes; no if it has gone far enough.
    async fn redirect(
        &self,
        journey: &mut Journey,
        refusal: Option<Refusal<'_>>,
        link: &RedisLink,
        connected: &LiveConnection,
        key: &str,
    ) -> bool {
        journey.turns += 1;
        let known = std::mem::take(&mut journey.scripts);
        match (refusal, &self.shards) {
            (None, _) => false,
            (Some(Refusal::NoScript), _) => {
                telemetry::metrics::STORE_ERRORS.add(["noscript"], 1);
                journey.scripts = true;
                // A server that forgets what it was told with the same breath is beyond us.
                !known
            }
            (Some(Refusal::WrongNode), Shards::Single(_) | Shards::Sentinel(_)) => {
                link.wrong(connected);
                journey.turns <= LEFT
            }
            (Some(_), Shards::Single(_) | Shards::Sentinel(_)) => false,
            (Some(_), Shards::Cluster(_)) if journey.turns > TURNS => false,
            (Some(refusal), Shards::Cluster(cluster)) => {
                follow(cluster, journey, &refusal, link, connected, key).await.is_some()
            }
        }
    }

    /// Has the cluster look which of its nodes are there.
    fn trouble(&self) {
        if let Shards::Cluster(cluster) = &self.shards {
            cluster.doubt();
        }
    }
}

/// Goes where the cluster says.
async fn follow(
    cluster: &Arc<Cluster>,
    journey: &mut Journey,
    refusal: &Refusal<'_>,
    link: &RedisLink,
    connected: &LiveConnection,
    key: &str,
) -> Option<()> {
    let asked = std::mem::take(&mut journey.asking);
    match refusal {
        Refusal::Moved(named) => {
            telemetry::metrics::STORE_ERRORS.add(["moved"], 1);
            journey.shard = cluster.node_at(&NodeAddress::parse(named, connected.host())?);
            cluster.doubt();
        }
        Refusal::Ask(named) => {
            telemetry::metrics::STORE_ERRORS.add(["ask"], 1);
            journey.shard = cluster.node_at(&NodeAddress::parse(named, connected.host())?);
            journey.asking = true;
        }
        Refusal::Wait => {
            telemetry::metrics::STORE_ERRORS.add(["tryagain"], 1);
            cluster.doubt();
            pause(journey.turns).await;
            // The other side of a slot that moves is asked again by way of the one that serves it.
            if !asked {
                journey.shard = cluster.shard_of(keys::slot(key)).ok()?;
            } else {
                journey.asking = true;
            }
        }
        Refusal::WrongNode => {
            link.wrong(connected);
            cluster.refreshed().await;
            journey.shard = cluster.shard_of(keys::slot(key)).ok()?;
        }
        Refusal::NoScript => {}
    }
    Some(())
}

fn script_codes() -> [&'static str; 2] {
    [include_str!("../commit.lua"), include_str!("../enter.lua")]
}

/// The refusal, if the answer is one.
fn refused(answer: &Value) -> Option<&ServerError> {
    if let Value::ServerError(error) = answer { Some(error).filter(|error| Refusal::of(error).is_some()) } else { None }
}

/// The first failure among the answers, or all of them.
fn settled(answers: Vec<Value>, expected: usize) -> Result<Vec<Value>, StoreError> {
    let error =
        answers.iter().find_map(|answer| if let Value::ServerError(error) = answer { Some(error) } else { None });
    match error {
        Some(error) => Err(fault::fault(error.clone().into())),
        None if answers.len() != expected => Err(super::pipeline::ODD),
        None => Ok(answers),
    }
}

/// Raises a doubt about a connection whose answer nobody waited for to the end.
struct OverdueGuard<'a> {
    link: &'a RedisLink,
    unanswered: &'a AtomicBool,
}

impl Drop for OverdueGuard<'_> {
    fn drop(&mut self) {
        if self.unanswered.load(Ordering::Relaxed) {
            self.link.overdue();
        }
    }
}
