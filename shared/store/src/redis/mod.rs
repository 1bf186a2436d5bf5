//! The Redis backend: one shared connection, one that listens, a deadline on every call.
//!
//! Not here: keys (see [`keys`](crate::keys)), and what a record means.

mod check;
mod fault;
mod link;
mod pipeline;
mod script;
mod subscriber;

use crate::error::{OpenError, StoreError};
use crate::health::Health;
use crate::hub::Hub;
use crate::ops::{Answer, Op, RawCommit};
use crate::{Committed, Config};
use link::Link;
use redis::{Client, IntoConnectionInfo, ProtocolVersion, RedisError, Script, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) struct Redis {
    link: Arc<Link>,
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
        let link = Link::new(client(&config.url, ProtocolVersion::RESP3)?, config.deadline);
        let hub = Hub::remote();
        tasks.spawn(Arc::clone(&link).keep(stop.clone()));
        // The listening connection is the client's older kind: RESP2, made for nothing else.
        let listening = client(&config.url, ProtocolVersion::RESP2)?;
        tasks.spawn(subscriber::listen(listening, Arc::clone(&hub), config.deadline, stop.clone()));
        link.first().await;
        Ok(Redis { link, hub, script: script::load(), deadline: config.deadline })
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.hub
    }

    /// One round trip.
    pub(crate) async fn run(&self, ops: &[Op]) -> Result<Vec<Answer>, StoreError> {
        let mut connection = self.link.get()?;
        let pipe = pipeline::encode(ops);
        let values: Vec<Value> = self.timed("pipeline", pipe.query_async(&mut connection)).await?;
        pipeline::decode(ops, values)
    }

    /// One round trip; two more when the server has forgotten the script.
    pub(crate) async fn commit(&self, commit: &RawCommit) -> Result<Committed, StoreError> {
        let mut connection = self.link.get()?;
        let call = script::prepare(&self.script, commit);
        script::read(self.timed("commit", call.invoke_async(&mut connection)).await?)
    }

    pub(crate) async fn health(&self, probe: &str, accept_unsafe: bool) -> Health {
        match self.link.get() {
            Ok(connection) => check::check(self, connection, probe, accept_unsafe).await,
            Err(_) => Health::unreachable(),
        }
    }

    async fn timed<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, RedisError>>,
    ) -> Result<T, StoreError> {
        let error = match timeout(self.deadline, work).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => {
                self.link.failed(&error);
                fault::fault(error)
            }
            Err(_) => StoreError::Timeout,
        };
        if matches!(error, StoreError::Timeout) {
            self.link.overdue();
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
