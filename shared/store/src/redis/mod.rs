//! The Redis backend: a connection for each runtime that asks, one that listens, a deadline on every call.
//!
//! Whoever wants to know whether the server's replicas have something asks on a connection of its own: `WAIT` stands still
//! on the server's side, and would hold up every call behind it.
//!
//! Not here: keys (see [`keys`](crate::keys)), and what a record means.

mod check;
mod fault;
mod link;
mod links;
mod mark;
mod pipeline;
mod script;
mod server;
mod slides;
mod subscriber;

use crate::error::{StoreError, StoreOpenError};
use crate::health::HealthReport;
use crate::hub::Notifier;
use crate::lineage::StoreEpochs;
use crate::ops::{HeldRecord, Op, OpResult, RawCommit};
use crate::{Committed, Config};
use fault::{no_script, wrong_node};
use links::RedisLinks;
use redis::aio::MultiplexedConnection;
use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisError, Script, Value};
use server::RedisNode;
use slides::TtlRefresh;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long what is written for them to catch up with stays.
const ACK: Duration = Duration::from_secs(1);

pub(crate) struct RedisBackend {
    links: Arc<RedisLinks>,
    /// Those that wait for replicas.
    confirming: Arc<RedisLinks>,
    server: Arc<RedisNode>,
    slides: TtlRefresh,
    hub: Arc<Notifier>,
    script: Script,
    enter: Script,
    deadline: Duration,
}

impl RedisBackend {
    /// Starts connecting and waits a moment for it. A server that is away is met later.
    pub(crate) async fn open(
        config: &Config,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<RedisBackend, StoreOpenError> {
        let calling = client(&config.url, ProtocolVersion::RESP3)?;
        let server = Arc::new(RedisNode::new(&config.prefix, config.confirm_replicas));
        let links =
            || RedisLinks::new(calling.clone(), config.deadline, tasks.clone(), stop.clone(), Arc::clone(&server));
        let (links, confirming) = (links(), links());
        let hub = Notifier::remote();
        // The listening connection is the client's older kind: RESP2, made for nothing else.
        let listening = client(&config.url, ProtocolVersion::RESP2)?;
        tasks.spawn(subscriber::listen(listening, Arc::clone(&hub), config.deadline, stop.clone()));
        if let Ok(link) = links.here() {
            // Without one, calls will say that the store is away.
            drop(timeout(config.deadline, link.connection()).await);
        }
        let (slides, script, enter) = (TtlRefresh::default(), script::load(), script::load_enter());
        Ok(RedisBackend { links, confirming, server, slides, hub, script, enter, deadline: config.deadline })
    }

    pub(crate) fn hub(&self) -> &Arc<Notifier> {
        &self.hub
    }

    /// One round trip; two more when the server has forgotten a script.
    pub(crate) async fn run(&self, ops: &[Op]) -> Result<Vec<OpResult>, StoreError> {
        let now = Instant::now();
        let (pipe, moved) = pipeline::encode(ops, self.enter.get_hash(), |slide| self.slides.due(slide, now));
        let (pipe, enter) = (&pipe, &self.enter);
        let query = |mut connection: MultiplexedConnection| async move {
            match pipe.query_async(&mut connection).await {
                // Nothing was appended; what stands beside the entries in such a batch only looks, or moves an end.
                Err(error) if no_script(&error) => {
                    telemetry::metrics::STORE_ERRORS.add(["noscript"], 1);
                    enter.prepare_invoke().load_async(&mut connection).await?;
                    pipe.query_async(&mut connection).await
                }
                answered => answered,
            }
        };
        let values: Vec<Value> = self.timed(&self.links, "pipeline", query).await?;
        moved.iter().for_each(|slide| self.slides.moved(slide, now));
        pipeline::decode(ops, values)
    }

    /// One round trip; two more when the server has forgotten the script.
    pub(crate) async fn commit(&self, commit: &RawCommit) -> Result<Committed, StoreError> {
        let call = &script::prepare(&self.script, commit);
        let invoke = |mut connection: MultiplexedConnection| async move { call.invoke_async(&mut connection).await };
        let reply = self.timed(&self.links, "commit", invoke).await;
        self.slides.forget(&commit.record);
        script::read(reply?)
    }

    pub(crate) async fn health(&self, probe: &str, accept_unsafe: bool) -> HealthReport {
        check::check(self, probe, accept_unsafe).await
    }

    /// Which server holds the records.
    pub(crate) fn lineages(&self) -> StoreEpochs {
        self.server.lineages()
    }

    /// Whether anybody but the server itself has to have what it was told.
    pub(crate) fn confirms(&self) -> bool {
        self.server.confirmations() > 0
    }

    /// Reads a record, and asks whether enough replicas have all that was written before; the server waits that long for
    /// them to catch up.
    ///
    /// Replicas follow in order, so one that has the later `ack` has everything before it, by whichever connection that
    /// came; and the record is read at the same server, so nothing is confirmed that it has forgotten.
    pub(crate) async fn confirm(&self, record: &str, ack: &str, within: Duration) -> Result<HeldRecord, StoreError> {
        let wanted = self.server.confirmations();
        let mut pipe = redis::pipe();
        pipe.add_command(pipeline::fetch(record));
        pipe.cmd("SET").arg(ack).arg(1).arg("PX").arg(crate::ops::millis(ACK)).ignore();
        pipe.cmd("WAIT").arg(wanted).arg(crate::ops::millis(within).max(1));
        let pipe = &pipe;
        let query = |mut connection: MultiplexedConnection| async move { pipe.query_async(&mut connection).await };
        let (record, have): (Value, u64) = self.timed(&self.confirming, "confirm", query).await?;
        Ok(HeldRecord { record: pipeline::record(record)?, enough: have >= u64::from(wanted) })
    }

    /// A call on this runtime's connection, the wait for which counts as well. A node that takes no changes is left, and
    /// the right one asked once: what was refused there has not happened. (A server takes a batch in one go, so the writes
    /// of one are refused together.)
    async fn timed<T, W: Future<Output = Result<T, RedisError>>>(
        &self,
        links: &Arc<RedisLinks>,
        operation: &'static str,
        work: impl Fn(MultiplexedConnection) -> W,
    ) -> Result<T, StoreError> {
        let link = links.here()?;
        let answered = timeout(self.deadline, async {
            let mut again = false;
            loop {
                let connected = link.connection().await?;
                match work(connected.connection.clone()).await {
                    Err(error) if wrong_node(&error) => {
                        link.wrong(&connected);
                        if std::mem::replace(&mut again, true) {
                            return Err(fault::fault(error));
                        }
                    }
                    Err(error) => {
                        link.failed(&error);
                        return Err(fault::fault(error));
                    }
                    Ok(answer) => return Ok(answer),
                }
            }
        });
        let error = match answered.await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => StoreError::Timeout,
        };
        if matches!(error, StoreError::Timeout) {
            link.overdue();
        }
        tracing::debug!(
            db.system.name = "redis",
            db.operation.name = operation,
            error.type = error.code().as_str(),
            "a call to the store failed"
        );
        Err(error)
    }
}

#[expect(clippy::disallowed_methods, reason = "the door: every Redis connection of the service begins here")]
fn client(url: &str, protocol: ProtocolVersion) -> Result<Client, StoreOpenError> {
    let refused = |error: RedisError| StoreOpenError::RedisAddress(error.into());
    let address = url.into_connection_info().map_err(refused)?;
    let settings = address.redis_settings().clone().set_protocol(protocol);
    Client::open(address.set_redis_settings(settings)).map_err(refused)
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
