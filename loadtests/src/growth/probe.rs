//! What one replica costs at this moment: a list, a call, and what processes hold.

use crate::contender::OwnRedis;
use crate::http::KeptConnection;
use crate::installation::{Installation, Replica};
use crate::load::{self, LoadExchange};
use crate::operations;
use crate::plan;
use anyhow::{Context, ensure};
use redis::aio::MultiplexedConnection;
use serde_json::Value;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 8;
/// How long the background may take to have done what was written.
const SETTLED_WITHIN: Duration = Duration::from_secs(60);
/// So few commands in a second are no work.
const QUIET: u64 = 300;

/// What was measured at one step.
#[derive(Debug, Clone, Default)]
pub(super) struct GrowthFigures {
    pub(super) list_ms: f64,
    pub(super) call_ms: f64,
    pub(super) calls: f64,
    /// CPU time of the service for each call, and of Redis.
    pub(super) service_us: f64,
    pub(super) redis_us: f64,
    /// Commands of Redis for each call.
    pub(super) commands: f64,
    pub(super) service_mib: f64,
    pub(super) redis_mib: f64,
}

pub(super) struct Probe<'a> {
    replica: &'a Replica,
    redis: &'a OwnRedis,
    asked: MultiplexedConnection,
    token: String,
    handle: String,
    /// A legacy session: lists of that era are its own.
    session: String,
}

impl<'a> Probe<'a> {
    pub(super) async fn new(
        installation: &Installation,
        replica: &'a Replica,
        redis: &'a OwnRedis,
        tenant: &str,
    ) -> anyhow::Result<Probe<'a>> {
        let token = installation.token(tenant, "agent", "tools:read tools:write")?;
        let mut connection = KeptConnection::open(replica.address).await?;
        let answer = connection.send(&operations::first_load(&token)).await?;
        let told: Value = serde_json::from_slice(answer.body).context("an answer is not JSON")?;
        let handle = told["result"]["structuredContent"]["session"].as_str();
        let handle = handle.with_context(|| format!("no session: {told}"))?.to_owned();
        let opened = connection.send(&operations::initialize(&token)).await?;
        let session = opened.header("mcp-session-id").context("no session was opened")?.to_owned();
        Ok(Probe { replica, redis, asked: connect(&redis.url).await?, token, handle, session })
    }

    /// Loads the tools of so many external servers into the session; they are discovered in the background.
    pub(super) async fn load_all(&mut self, servers: usize) -> anyhow::Result<()> {
        let mut connection = KeptConnection::open(self.replica.address).await?;
        let until = Instant::now() + SETTLED_WITHIN;
        for number in 0..servers {
            loop {
                let request = operations::load_to_write(&self.token, &self.handle, &format!("mcp_s{number}"));
                let told: Value = serde_json::from_slice(connection.send(&request).await?.body)?;
                let told = &told["result"];
                let added = told["structuredContent"]["added"].as_array().is_some_and(|added| !added.is_empty());
                if told["isError"] != true && added {
                    let request = operations::legacy_load(&self.token, &self.session, &format!("mcp_s{number}"));
                    connection.send(&request).await?;
                    break;
                }
                ensure!(Instant::now() < until, "the tools of a server are not there: {told}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        Ok(())
    }

    /// Waits until what the background does about what was written is done.
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        let until = Instant::now() + SETTLED_WITHIN;
        loop {
            let before = number(&self.info("stats").await?, "total_commands_processed");
            tokio::time::sleep(Duration::from_secs(1)).await;
            let after = number(&self.info("stats").await?, "total_commands_processed");
            if after - before < QUIET || Instant::now() > until {
                return Ok(());
            }
        }
    }

    /// How many bytes Redis holds.
    pub(super) async fn held(&self) -> anyhow::Result<f64> {
        Ok(number(&self.info("memory").await?, "used_memory") as f64)
    }

    pub(super) async fn measure(&self, span: Duration) -> anyhow::Result<GrowthFigures> {
        let address = self.replica.address;
        let list = operations::list_of(&self.token, &self.session);
        let call = operations::proxied(&self.token, &self.handle, "memory_list", &serde_json::json!({}));
        let mut connection = KeptConnection::open(address).await?;
        let list = plan::settled(&mut connection, &list).await.context("a list")?;
        let call = plan::settled(&mut connection, &call).await.context("a call")?;
        load::slice(address, &call, CONNECTIONS, Duration::from_millis(200)).await?;
        let listed = load::slice(address, &list, CONNECTIONS, span / 2).await.context("lists")?;
        self.calls(&call, span, listed.p50).await
    }

    async fn calls(&self, call: &LoadExchange, span: Duration, listed: Duration) -> anyhow::Result<GrowthFigures> {
        let ticks = || (self.replica.process.ticks().unwrap_or(0), self.redis.process.ticks().unwrap_or(0));
        let commands = async || Ok::<_, anyhow::Error>(number(&self.info("stats").await?, "total_commands_processed"));
        let (before, sent) = (ticks(), commands().await?);
        let called = load::slice(self.replica.address, call, CONNECTIONS, span).await.context("calls")?;
        let (after, all) = (ticks(), commands().await?);
        let each = |ticks: u64| ticks as f64 * 10_000.0 / called.answers as f64;
        let memory = self.replica.process.memory().context("no memory of the service")?.resident;
        Ok(GrowthFigures {
            list_ms: listed.as_secs_f64() * 1e3,
            call_ms: called.p50.as_secs_f64() * 1e3,
            calls: called.rate,
            service_us: each(after.0 - before.0),
            redis_us: each(after.1 - before.1),
            commands: (all - sent) as f64 / called.answers as f64,
            service_mib: memory as f64 / 1024.0,
            redis_mib: self.held().await? / f64::from(1 << 20),
        })
    }

    async fn info(&self, section: &str) -> anyhow::Result<String> {
        let mut asked = self.asked.clone();
        redis::cmd("INFO").arg(section).query_async(&mut asked).await.context("Redis does not tell of itself")
    }
}

/// All replicas under load at the same time.
pub(super) async fn together(
    installation: &Installation,
    replicas: &[Replica],
    redis: &OwnRedis,
    span: Duration,
) -> anyhow::Result<GrowthFigures> {
    let first = replicas.first().context("no replica")?;
    let probe = Probe::new(installation, first, redis, "dev").await?;
    let call = operations::proxied(&probe.token, &probe.handle, "memory_list", &serde_json::json!({}));
    let call = plan::settled(&mut KeptConnection::open(first.address).await?, &call).await?;
    let ticks = || {
        let service: u64 = replicas.iter().filter_map(|replica| replica.process.ticks()).sum();
        (service, redis.process.ticks().unwrap_or(0))
    };
    let commands = async || Ok::<_, anyhow::Error>(number(&probe.info("stats").await?, "total_commands_processed"));
    let (before, sent) = (ticks(), commands().await?);
    let slices = replicas.iter().map(|replica| load::slice(replica.address, &call, CONNECTIONS, span));
    let slices = futures_util::future::try_join_all(slices).await?;
    let (after, all) = (ticks(), commands().await?);
    let answers: usize = slices.iter().map(|slice| slice.answers).sum();
    let each = |ticks: u64| ticks as f64 * 10_000.0 / answers as f64;
    let memory: u64 = replicas.iter().filter_map(|replica| replica.process.memory()).map(|held| held.resident).sum();
    Ok(GrowthFigures {
        list_ms: 0.0,
        call_ms: slices.iter().map(|slice| slice.p50.as_secs_f64() * 1e3).sum::<f64>() / slices.len() as f64,
        calls: slices.iter().map(|slice| slice.rate).sum(),
        service_us: each(after.0 - before.0),
        redis_us: each(after.1 - before.1),
        commands: (all - sent) as f64 / answers as f64,
        service_mib: memory as f64 / 1024.0,
        redis_mib: probe.held().await? / f64::from(1 << 20),
    })
}

#[expect(clippy::disallowed_methods, reason = "the door: Redis is asked what it did, beside the service's store")]
async fn connect(url: &str) -> anyhow::Result<MultiplexedConnection> {
    redis::Client::open(url)?.get_multiplexed_async_connection().await.context("Redis does not answer")
}

/// A number in what Redis tells of itself.
fn number(info: &str, name: &str) -> u64 {
    let found = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    found.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_by_its_whole_name() {
        let info = "# Memory\r\nused_memory:1048576\r\nused_memory_rss:2\r\n";
        assert_eq!((number(info, "used_memory"), number(info, "used"), number(info, "gone")), (1_048_576, 0, 0));
    }
}
