//! Whether this Redis may hold an audit log: it answers, takes writes, evicts nothing and keeps an append-only file.

use super::RedisBackend;
use super::server::field;
use crate::StoreError;
use crate::health::{HealthFinding, HealthReport};
use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value};
use std::time::Duration;
use telemetry::metrics;

/// What this store is called in metrics: the one that holds the truth.
const LEDGER: &str = "ledger";
/// How long the probe's key stays. Only writing it matters.
const PROBE: Duration = Duration::from_secs(1);

pub(super) async fn check(redis: &RedisBackend, probe: &str, accept_unsafe: bool) -> HealthReport {
    let mut health = HealthReport::default();
    if redis.server.lost_lately() {
        health.warn(HealthFinding::StoreLost);
    }
    let ask = |mut connection| async move { redis.server.learn(&mut connection).await };
    match redis.timed(&redis.links, "info", ask).await {
        Ok(Some(info)) => judge(&info, accept_unsafe, &mut health),
        Ok(None) => health.warn(HealthFinding::StoreSettingsUnreadable),
        Err(StoreError::ReadOnly) => {
            health.refuse(HealthFinding::StoreReadonly);
            return health;
        }
        Err(
            StoreError::Unavailable { .. }
            | StoreError::Timeout
            | StoreError::Full
            | StoreError::QuotaReached(_)
            | StoreError::Corrupt { .. }
            | StoreError::NotAuthentic { .. },
        ) => return HealthReport::unreachable(),
    }
    match redis.timed(&redis.links, "probe", |connection| write(connection, probe)).await {
        Ok(()) => {}
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
    health
}

async fn write(mut connection: MultiplexedConnection, probe: &str) -> Result<(), RedisError> {
    let mut set = redis::cmd("SET");
    set.arg(probe).arg(1).arg("PX").arg(crate::ops::millis(PROBE));
    set.query_async::<Value>(&mut connection).await.map(|_| ())
}

fn judge(info: &str, accept_unsafe: bool, health: &mut HealthReport) {
    let number = |name: &str| field(info, name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let (used, most) = (number("used_memory"), number("maxmemory"));
    if most > 0 {
        metrics::STORE_MEMORY_RATIO.set([LEDGER], used as f64 / most as f64);
    }
    if field(info, "connected_slaves").is_some() {
        metrics::STORE_REPLICAS.set([LEDGER], number("connected_slaves") as f64);
    }
    // A tenth is kept in reserve, so that decisions and outcomes can still be written when nothing new is taken.
    if most > 0 && used.saturating_mul(10) >= most.saturating_mul(9) {
        health.warn(HealthFinding::StoreFull);
    }
    let (policy, aof) = (field(info, "maxmemory_policy"), field(info, "aof_enabled"));
    let (Some(policy), Some(aof)) = (policy, aof) else {
        health.warn(HealthFinding::StoreSettingsUnreadable);
        return;
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
