//! The Redis backend: a connection for each runtime that asks, one that listens, a deadline on every call.
//!
//! Not here: keys (see [`keys`](crate::keys)), and what a record means.

mod check;
mod fault;
mod link;
mod links;
mod pipeline;
mod script;
mod slides;
mod subscriber;

use crate::error::{OpenError, StoreError};
use crate::health::Health;
use crate::hub::Hub;
use crate::ops::{Answer, Op, RawCommit};
use crate::{Committed, Config};
use links::Links;
use redis::aio::MultiplexedConnection;
use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisError, Script, Value};
use slides::Slides;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) struct Redis {
    links: Arc<Links>,
    slides: Slides,
    hub: Arc<Hub>,
    script: Script,
    deadline: Duration,
}

impl Redis {
    /// Starts connecting and waits a moment for it. A server that is away is met later.
    pub(crate) async fn open(
        config: &Config,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Redis, OpenError> {
        let calling = client(&config.url, ProtocolVersion::RESP3)?;
        let links = Links::new(calling, config.deadline, tasks.clone(), stop.clone());
        let hub = Hub::remote();
        // The listening connection is the client's older kind: RESP2, made for nothing else.
        let listening = client(&config.url, ProtocolVersion::RESP2)?;
        tasks.spawn(subscriber::listen(listening, Arc::clone(&hub), config.deadline, stop.clone()));
        if let Ok(link) = links.here() {
            // Without one, calls will say that the store is away.
            drop(timeout(config.deadline, link.connection()).await);
        }
        Ok(Redis { links, slides: Slides::default(), hub, script: script::load(), deadline: config.deadline })
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// One round trip.
    pub(crate) async fn run(&self, ops: &[Op]) -> Result<Vec<Answer>, StoreError> {
        let now = Instant::now();
        let (pipe, moved) = pipeline::encode(ops, |key, span| self.slides.due(key, span, now));
        let query = async |mut connection: MultiplexedConnection| pipe.query_async(&mut connection).await;
        let values: Vec<Value> = self.timed("pipeline", query).await?;
        moved.into_iter().for_each(|(key, span)| self.slides.moved(key, span, now));
        pipeline::decode(ops, values)
    }

    /// One round trip; two more when the server has forgotten the script.
    pub(crate) async fn commit(&self, commit: &RawCommit) -> Result<Committed, StoreError> {
        let call = script::prepare(&self.script, commit);
        let invoke = async |mut connection: MultiplexedConnection| call.invoke_async(&mut connection).await;
        let reply = self.timed("commit", invoke).await;
        self.slides.forget(&commit.record);
        script::read(reply?)
    }

    pub(crate) async fn health(&self, probe: &str, accept_unsafe: bool) -> Health {
        check::check(self, probe, accept_unsafe).await
    }

    /// A call on this runtime's connection, the wait for which counts as well.
    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl AsyncFnOnce(MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        let link = self.links.here()?;
        let answered = timeout(self.deadline, async {
            match link.connection().await {
                Some(connection) => Some(work(connection).await),
                None => None,
            }
        });
        let error = match answered.await {
            Ok(Some(Ok(answer))) => return Ok(answer),
            Ok(None) => return Err(StoreError::unavailable("not connected")),
            Ok(Some(Err(error))) => {
                link.failed(&error);
                fault::fault(error)
            }
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
fn client(url: &str, protocol: ProtocolVersion) -> Result<Client, OpenError> {
    let refused = |error: RedisError| OpenError::RedisAddress(error.into());
    let address = url.into_connection_info().map_err(refused)?;
    let settings = address.redis_settings().clone().set_protocol(protocol);
    Client::open(address.set_redis_settings(settings)).map_err(refused)
}

/// Waits before dialling again: longer with every failure, never above half a second, and never in step with others.
async fn pause(failures: u32) {
    let most = 25_u64.saturating_mul(1 << failures.min(5)).min(500);
    let mut dice = [0; 8];
    // Without randomness we only lose the jitter.
    let drawn = getrandom::fill(&mut dice).map_or(most / 2, |()| u64::from_be_bytes(dice) % (most / 2 + 1));
    tokio::time::sleep(Duration::from_millis(most / 2 + drawn)).await;
}
