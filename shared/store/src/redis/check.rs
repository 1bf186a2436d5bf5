//! Whether this Redis may hold a ledger: it answers, takes writes, evicts nothing and keeps an append-only file.

use super::{Redis, fault};
use crate::StoreError;
use crate::health::{Finding, Health};
use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value};
use std::time::Duration;

/// How long the probe's key stays. Only writing it matters.
const PROBE: Duration = Duration::from_secs(1);

pub(super) async fn check(
    redis: &Redis,
    mut connection: MultiplexedConnection,
    probe: &str,
    accept_unsafe: bool,
) -> Health {
    let mut health = Health::default();
    let info = match redis.timed("info", info(&mut connection)).await {
        Ok(info) => info,
        Err(_) => return Health::unreachable(),
    };
    match info {
        Some(info) => judge(&info, accept_unsafe, &mut health),
        None => health.warn(Finding::StoreSettingsUnreadable),
    }
    match redis.timed("probe", write(&mut connection, probe)).await {
        Ok(()) => {}
        Err(StoreError::Full) => health.warn(Finding::StoreFull),
        Err(StoreError::ReadOnly) => health.refuse(Finding::StoreReadonly),
        Err(StoreError::Unavailable { .. } | StoreError::Timeout | StoreError::Corrupt { .. }) => {
            health.refuse(Finding::StoreUnreachable);
        }
    }
    health
}

/// The server's own account of itself; `None` where it answers but does not let us ask.
async fn info(connection: &mut MultiplexedConnection) -> Result<Option<String>, RedisError> {
    match redis::cmd("INFO").query_async::<String>(connection).await {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.code().is_some() && !unready(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn unready(error: &RedisError) -> bool {
    matches!(error.code(), Some("LOADING" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS"))
        || matches!(fault::fault(error.clone()), StoreError::Timeout)
}

async fn write(connection: &mut MultiplexedConnection, probe: &str) -> Result<(), RedisError> {
    let mut set = redis::cmd("SET");
    set.arg(probe).arg(1).arg("PX").arg(crate::ops::millis(PROBE));
    set.query_async::<Value>(connection).await.map(|_| ())
}

fn judge(info: &str, accept_unsafe: bool, health: &mut Health) {
    let field = |name: &str| {
        info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(|value| value.trim().to_owned())
    };
    let (policy, aof) = (field("maxmemory_policy"), field("aof_enabled"));
    let (Some(policy), Some(aof)) = (policy, aof) else {
        health.warn(Finding::StoreSettingsUnreadable);
        return;
    };
    for (wrong, finding) in [(policy != "noeviction", Finding::StoreEvicts), (aof != "1", Finding::StoreNotPersistent)]
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

    fn judged(info: &str, accept_unsafe: bool) -> Health {
        let mut health = Health::default();
        judge(info, accept_unsafe, &mut health);
        health
    }

    #[test]
    fn a_server_that_evicts_and_forgets_is_refused_unless_accepted_in_writing() {
        let info = "# Memory\r\nmaxmemory_policy:allkeys-lru\r\n# Persistence\r\naof_enabled:0\r\n";
        let wrong = [Finding::StoreEvicts, Finding::StoreNotPersistent];
        assert_eq!(judged(info, false).reasons, wrong);
        assert_eq!(judged(info, true).reasons, []);
        assert_eq!(judged(info, true).warnings, wrong);
    }

    #[test]
    fn a_server_that_hides_its_settings_is_only_warned_about() {
        let health = judged("# Server\r\nredis_version:7.0.15\r\n", false);
        assert_eq!((health.reasons, health.warnings), (vec![], vec![Finding::StoreSettingsUnreadable]));
    }
}
