//! One connection, and the task that keeps it.
//!
//! Calls wait for the first dial. Later, while there is no connection, they fail at once instead of queueing up behind
//! another one. A call that times out or breaks only raises a doubt: the keeper then asks the server itself and dials
//! anew if there is no answer. That also ends connections whose other side vanished without a word.
//!
//! A new connection is handed out only when the node behind it has said who it is (see [`RedisNode`]). One that follows
//! another node is left again; whoever was sent away by it waits for the one dial that looks for the right one.

use super::address::NodeAddress;
use super::fault::wrong_node;
use super::links::LinkSettings;
use super::pause;
use super::server::RedisNode;
use super::target::DialTarget;
use crate::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, PushInfo, PushKind, RedisError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The word that the server is back, between the links of one store.
#[derive(Default)]
pub(super) struct ServerBack(Notify);

/// Where a link stands.
enum LinkStage {
    /// There will be a connection in a moment, or it is known that there is none.
    Dialling,
    Up(LiveConnection),
    Away(Unreachable),
}

/// Why there is no connection.
#[derive(Clone, Copy)]
enum Unreachable {
    Unreachable,
    /// Whoever answers follows another node.
    WrongNode,
}

impl Unreachable {
    fn error(self) -> StoreError {
        match self {
            Unreachable::Unreachable => StoreError::unavailable("not connected"),
            Unreachable::WrongNode => StoreError::ReadOnly,
        }
    }
}

/// A connection, and which one of this link it is.
#[derive(Clone)]
pub(super) struct LiveConnection {
    pub(super) connection: MultiplexedConnection,
    address: Arc<NodeAddress>,
    number: u64,
}

impl LiveConnection {
    /// The host it leads to.
    pub(super) fn host(&self) -> &str {
        &self.address.host
    }
}

pub(super) struct RedisLink {
    target: DialTarget,
    deadline: Duration,
    trouble: Arc<Notify>,
    stage: watch::Sender<LinkStage>,
    doubt: Arc<Notify>,
    leave: AtomicBool,
    back: Arc<ServerBack>,
    server: Arc<RedisNode>,
}

impl RedisLink {
    pub(super) fn new(
        target: DialTarget,
        settings: &LinkSettings,
        back: Arc<ServerBack>,
        server: Arc<RedisNode>,
    ) -> Arc<RedisLink> {
        let (stage, doubt) = (watch::Sender::new(LinkStage::Dialling), Arc::new(Notify::new()));
        let (deadline, trouble) = (settings.deadline, Arc::clone(&settings.trouble));
        let leave = AtomicBool::new(false);
        Arc::new(RedisLink { target, deadline, trouble, stage, doubt, leave, back, server })
    }

    /// The connection; waits only for a dial that is under way.
    pub(super) async fn connection(&self) -> Result<LiveConnection, StoreError> {
        match &*self.stage.borrow() {
            LinkStage::Up(connected) => return Ok(connected.clone()),
            LinkStage::Away(why) => return Err(why.error()),
            LinkStage::Dialling => {}
        }
        let mut stage = self.stage.subscribe();
        let ended = stage.wait_for(|stage| !matches!(stage, LinkStage::Dialling)).await;
        match ended.as_deref() {
            Ok(LinkStage::Up(connected)) => Ok(connected.clone()),
            Ok(LinkStage::Away(why)) => Err(why.error()),
            Ok(LinkStage::Dialling) | Err(_) => Err(Unreachable::Unreachable.error()),
        }
    }

    /// A call got no answer in time.
    pub(super) fn overdue(&self) {
        self.doubt.notify_one();
    }

    /// A call failed; the error tells whether the connection is to blame.
    pub(super) fn failed(&self, error: &RedisError) {
        if error.is_io_error() || error.is_unrecoverable_error() {
            self.doubt.notify_one();
        }
    }

    /// The node behind this connection is the wrong one: from here on it is given to nobody, and the address is looked
    /// up again. If that has happened already, nothing does.
    pub(super) fn wrong(&self, connected: &LiveConnection) {
        let left = self.stage.send_if_modified(|stage| match stage {
            LinkStage::Up(now) if now.number == connected.number => {
                *stage = LinkStage::Dialling;
                true
            }
            LinkStage::Up(_) | LinkStage::Dialling | LinkStage::Away(_) => false,
        });
        if left {
            self.leave.store(true, Ordering::Relaxed);
            self.doubt.notify_one();
        }
    }

    /// Gives nothing out any more.
    pub(super) fn end(&self) {
        self.stage.send_replace(LinkStage::Away(Unreachable::Unreachable));
    }

    /// Dials, watches over the connection, and dials again, until told to stop.
    pub(super) async fn keep(self: Arc<RedisLink>, stop: CancellationToken) {
        stop.run_until_cancelled(self.work()).await;
    }

    async fn work(&self) {
        let (mut failures, mut number) = (0, 0);
        loop {
            // Before the dial, so that no word is missed between its failure and the pause.
            let back = self.back.0.notified();
            let dialled = timeout(self.deadline, self.dial()).await;
            let why = match dialled {
                Ok(Ok((address, connection))) => {
                    number += 1;
                    self.leave.store(false, Ordering::Relaxed);
                    let address = Arc::new(address);
                    let up = LiveConnection { connection: connection.clone(), address: Arc::clone(&address), number };
                    self.stage.send_replace(LinkStage::Up(up));
                    if failures > 0 {
                        self.back.0.notify_waiters();
                    }
                    failures = 0;
                    tokio::select! {
                        () = self.until_broken(connection) => {
                            tracing::warn!(db.system.name = "redis", "the connection to the store was lost");
                        }
                        // Calls wait for the dial: another node is known to be there.
                        () = self.target.moved_from(&address) => {
                            tracing::info!(db.system.name = "redis", "another node is the primary");
                            self.leave.store(true, Ordering::Relaxed);
                            self.stage.send_replace(LinkStage::Dialling);
                        }
                    }
                    self.trouble.notify_one();
                    if !self.leave.load(Ordering::Relaxed) {
                        self.stage.send_replace(LinkStage::Away(Unreachable::Unreachable));
                    }
                    continue;
                }
                Ok(Err(error)) if wrong_node(&error) => Unreachable::WrongNode,
                Ok(Err(_)) | Err(_) => Unreachable::Unreachable,
            };
            self.stage.send_replace(LinkStage::Away(why));
            self.target.failed();
            self.trouble.notify_one();
            failures += 1;
            tokio::select! {
                () = pause(failures) => {}
                // Somebody has just got through: whoever calls now may wait for us.
                () = back => { self.stage.send_replace(LinkStage::Dialling); }
            }
        }
    }

    async fn dial(&self) -> Result<(NodeAddress, MultiplexedConnection), RedisError> {
        let (address, client) = self.target.resolve(ProtocolVersion::RESP3).await?;
        let doubt = Arc::clone(&self.doubt);
        let told = move |push: PushInfo| -> Result<(), ()> {
            if push.kind == PushKind::Disconnection {
                doubt.notify_one();
            }
            Ok(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.deadline))
            // The deadline is ours, around the whole call; a second clock beside it would only cost.
            .set_response_timeout(None)
            .set_push_sender(told);
        let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
        self.server.learn(&mut connection).await?;
        Ok((address, connection))
    }

    async fn until_broken(&self, mut connection: MultiplexedConnection) {
        loop {
            self.doubt.notified().await;
            if self.leave.load(Ordering::Relaxed) {
                return;
            }
            let ping = redis::cmd("PING");
            let answered = timeout(self.deadline, ping.exec_async(&mut connection)).await;
            if self.leave.load(Ordering::Relaxed) || !matches!(answered, Ok(Ok(()))) {
                return;
            }
        }
    }
}
