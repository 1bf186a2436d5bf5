//! Whether this Redis may hold an audit log: it answers, takes writes, evicts nothing and keeps an append-only file.
//!
//! Every shard of a cluster is asked. One that is away stops its own tenants and nobody else; one that may forget what it
//! holds stops the replica, because nobody can tell beforehand whose records it will hold.

use super::RedisBackend;
use super::link::LiveConnection;
use super::replicas::online;
use super::route::Shards;
use super::server::field;
use super::shard::{LinkUse, RedisShard};
use super::{fault, keys};
use crate::StoreError;
use crate::health::{HealthFinding, HealthReport};
use redis::{FromRedisValue, Pipeline, RedisError, Value};
use std::collections::HashMap;
use std::time::Duration;
use telemetry::metrics;
use tokio::time::timeout;

/// What this store is called in metrics: the one that holds the truth.
const LEDGER: &str = "ledger";
/// How long the probe's key stays. Only writing it matters.
const PROBE: Duration = Duration::from_secs(1);

pub(super) async fn check(redis: &RedisBackend, accept_unsafe: bool) -> HealthReport {
    let mut health = HealthReport::default();
    if redis.memory.lost_lately() {
        health.warn(HealthFinding::StoreLost);
    }
    let shards = redis.shards.all();
    let asked = futures_util::future::join_all(shards.iter().map(|shard| one(redis, shard, accept_unsafe))).await;
    let (reports, loads): (Vec<HealthReport>, Vec<Option<ServerLoad>>) = asked.into_iter().unzip();
    measure(loads.into_iter().flatten());
    let is_down = |report: &HealthReport| {
        let down = |finding| matches!(finding, &HealthFinding::StoreUnreachable | &HealthFinding::StoreReadonly);
        report.reasons.iter().any(down)
    };
    let some_up = reports.iter().any(|report| !is_down(report));
    for (shard, report) in shards.iter().zip(&reports) {
        if some_up && is_down(report) {
            health.warn(HealthFinding::StoreShardUnreachable);
            health.shards_down.push(shard.name());
            continue;
        }
        report.reasons.iter().for_each(|finding| health.refuse(*finding));
        report.warnings.iter().for_each(|finding| health.warn(*finding));
    }
    if let Shards::Cluster(cluster) = &redis.shards {
        if shards.is_empty() {
            health.refuse(HealthFinding::StoreUnreachable);
        } else if !cluster.is_covered() {
            health.warn(HealthFinding::StoreShardUnreachable);
            health.shards_down.push("slots without a node".to_owned());
        }
    }
    if redis.memory.is_misfit() {
        health.refuse(HealthFinding::StoreWrongTopology);
    }
    health
}

/// What a server says of its memory and its replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ServerLoad {
    /// How much of its memory is used, if it has a limit.
    used: Option<f64>,
    replicas: Option<u64>,
    /// How many more would have to follow it before anything is confirmed.
    missing: u64,
}

/// The fullest shard and the one with the fewest replicas count: those are the ones to look at.
fn measure(loads: impl Iterator<Item = ServerLoad> + Clone) {
    if let Some(fullest) = loads.clone().filter_map(|load| load.used).max_by(f64::total_cmp) {
        metrics::STORE_MEMORY_RATIO.set([LEDGER], fullest);
    }
    let missing = loads.clone().map(|load| load.missing).max();
    if let Some(fewest) = loads.filter_map(|load| load.replicas).min() {
        metrics::STORE_REPLICAS.set([LEDGER], fewest as f64);
    }
    if let Some(most) = missing {
        metrics::STORE_REPLICAS_MISSING.set([LEDGER], most as f64);
    }
}

/// One shard.
async fn one(redis: &RedisBackend, shard: &RedisShard, accept_unsafe: bool) -> (HealthReport, Option<ServerLoad>) {
    let (mut health, mut load) = (HealthReport::default(), None);
    let ask = |connected: LiveConnection| async move {
        let mut connection = connected.connection;
        shard.server().learn(&mut connection).await
    };
    match on_shard(redis, shard, ask).await {
        Ok(Some(info)) => {
            let needed = usize::from(shard.server().replicas().needed());
            let missing = needed.saturating_sub(online(&info).count()) as u64;
            load = Some(ServerLoad { missing, ..judge(&info, accept_unsafe, &mut health) });
            judge_failover(&info, &redis.shards, &mut health);
            if missing > 0 {
                health.warn(HealthFinding::StoreReplicasMissing);
            }
        }
        Ok(None) => health.warn(HealthFinding::StoreSettingsUnreadable),
        Err(StoreError::ReadOnly) => {
            health.refuse(HealthFinding::StoreReadonly);
            return (health, load);
        }
        Err(
            StoreError::Unavailable { .. }
            | StoreError::Timeout
            | StoreError::Full
            | StoreError::QuotaReached(_)
            | StoreError::Corrupt { .. }
            | StoreError::NotAuthentic { .. },
        ) => return (HealthReport::unreachable(), load),
    }
    let is_shard = matches!(redis.shards, Shards::Cluster(_));
    let probe = match shard.lowest_slot() {
        Some(slot) if is_shard => keys::probe_of_slot(&redis.prefix, slot),
        _ => redis.service_key(),
    };
    match on_shard(redis, shard, |connected| write(connected, &probe, is_shard)).await {
        Ok(true) => health.warn(HealthFinding::StoreRequiresFullCoverage),
        Ok(false) => {}
        Err(StoreError::Full) if health.warnings.contains(&HealthFinding::StoreFull) => {}
        Err(StoreError::Full) => health.warn(HealthFinding::StoreFull),
        Err(StoreError::ReadOnly) => health.refuse(HealthFinding::StoreReadonly),
        Err(
            StoreError::Unavailable { .. }
            | StoreError::Timeout
            | StoreError::QuotaReached(_)
            | StoreError::Corrupt { .. }
            | StoreError::NotAuthentic { .. },
        ) => health.refuse(HealthFinding::StoreUnreachable),
    }
    (health, load)
}

/// Asks this very shard, whatever its slots are.
async fn on_shard<T, W: Future<Output = Result<T, RedisError>>>(
    redis: &RedisBackend,
    shard: &RedisShard,
    work: impl FnOnce(LiveConnection) -> W,
) -> Result<T, StoreError> {
    let link = shard.links(LinkUse::Calls).here()?;
    let asked = timeout(redis.deadline, async {
        let connected = link.connection().await?;
        work(connected.clone()).await.map_err(|error| {
            if fault::wrong_node(&error) {
                link.wrong(&connected);
            } else {
                link.failed(&error);
            }
            fault::fault(error)
        })
    });
    asked.await.unwrap_or_else(|_| {
        link.overdue();
        Err(StoreError::Timeout)
    })
}

/// Writes the probe. Tells whether a cluster stops as a whole when one shard is away, if it lets us ask.
async fn write(connected: LiveConnection, probe: &str, is_shard: bool) -> Result<bool, RedisError> {
    let (mut connection, mut pipe) = (connected.connection, Pipeline::with_capacity(2));
    pipe.cmd("SET").arg(probe).arg(1).arg("PX").arg(crate::ops::millis(PROBE));
    if is_shard {
        pipe.cmd("CONFIG").arg("GET").arg("cluster-require-full-coverage");
    }
    let mut answers = connection.send_packed_commands(&pipe, 0, pipe.len()).await?.into_iter();
    match answers.next() {
        // A slot that is being moved takes writes elsewhere; that is no fault of this node.
        Some(Value::ServerError(error)) if !matches!(error.code(), "ASK" | "TRYAGAIN" | "MOVED") => {
            return Err(error.into());
        }
        Some(_) | None => {}
    }
    let told = answers.next().and_then(|answer| HashMap::<String, String>::from_redis_value(answer).ok());
    Ok(told.is_some_and(|settings| settings.values().any(|value| value == "yes")))
}

/// What matters only where another node can be promoted.
fn judge_failover(info: &str, shards: &Shards, health: &mut HealthReport) {
    // Told only while a least number of replicas is set.
    let alone = field(info, "min_slaves_good_slaves").is_none() && field(info, "role").is_some();
    match shards {
        Shards::Single(_) => {}
        Shards::Sentinel(_) | Shards::Cluster(_) if alone => health.warn(HealthFinding::StoreAcceptsWritesAlone),
        Shards::Sentinel(_) | Shards::Cluster(_) => {}
    }
}

fn judge(info: &str, accept_unsafe: bool, health: &mut HealthReport) -> ServerLoad {
    let number = |name: &str| field(info, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let (used, most) = (number("used_memory"), number("maxmemory"));
    let load = ServerLoad {
        used: (most > 0).then(|| used as f64 / most as f64),
        replicas: field(info, "connected_slaves").map(|_| number("connected_slaves")),
        missing: 0,
    };
    // A tenth is kept in reserve, so that decisions and outcomes can still be written when nothing new is taken.
    if most > 0 && used.saturating_mul(10) >= most.saturating_mul(9) {
        health.warn(HealthFinding::StoreFull);
    }
    let (policy, aof) = (field(info, "maxmemory_policy"), field(info, "aof_enabled"));
    let (Some(policy), Some(aof)) = (policy, aof) else {
        health.warn(HealthFinding::StoreSettingsUnreadable);
        return load;
    };
    for (wrong, finding) in
        [(policy != "noeviction", HealthFinding::StoreEvicts), (aof != "1", HealthFinding::StoreNotPersistent)]
    {
        match (wrong, accept_unsafe) {
            (true, true) => health.warn(finding),
            (true, false) => health.refuse(finding),
            (false, _) => {}
        }
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(info: &str, accept_unsafe: bool) -> HealthReport {
        let mut health = HealthReport::default();
        judge(info, accept_unsafe, &mut health);
        health
    }

    #[test]
    fn a_server_that_evicts_and_forgets_is_refused_unless_accepted_in_writing() {
        let info = "# Memory\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\naof_enabled:0\r\n";
        let wrong = [HealthFinding::StoreEvicts, HealthFinding::StoreNotPersistent];
        assert_eq!(judged(info, false).reasons, wrong);
        assert_eq!(judged(info, true).reasons, []);
        assert_eq!(judged(info, true).warnings, wrong);
    }

    #[test]
    fn s5_nine_tenths_of_the_memory_are_enough_to_stop_new_work() {
        let info = |used: u64, most: u64| {
            format!("used_memory:{used}\r\nmaxmemory:{most}\r\nmaxmemory_policy:noeviction\r\naof_enabled:1\r\n")
        };
        assert_eq!(judged(&info(899, 1_000), false).warnings, []);
        assert_eq!(judged(&info(900, 1_000), false).warnings, [HealthFinding::StoreFull]);
        assert_eq!(judged(&info(900, 0), false).warnings, [], "no limit, no mark");
    }

    #[test]
    fn a_server_that_hides_its_settings_is_only_warned_about() {
        let health = judged("# Server\r\nredis_version:7.0.15\r\n", false);
        assert_eq!((health.reasons, health.warnings), (vec![], vec![HealthFinding::StoreSettingsUnreadable]));
    }
}
