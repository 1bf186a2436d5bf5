//! One connection, and the task that keeps it.
//!
//! Calls wait for the first dial. Later, while there is no connection, they fail at once instead of queueing up behind
//! another one. A call that times out or breaks only raises a doubt: the keeper then asks the server itself and dials
//! anew if there is no answer. That also ends connections whose other side vanished without a word.

use super::fault::wrong_node;
use super::pause;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind, RedisError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The word that the server is back, between the links of one store.
#[derive(Default)]
pub(super) struct Back(Notify);

/// Where a link stands.
enum Stage {
    /// There will be a connection in a moment, or it is known that there is none.
    Dialling,
    Up(MultiplexedConnection),
    Away,
}

pub(super) struct Link {
    client: Client,
    deadline: Duration,
    stage: watch::Sender<Stage>,
    doubt: Arc<Notify>,
    leave: AtomicBool,
    back: Arc<Back>,
}

impl Link {
    pub(super) fn new(client: Client, deadline: Duration, back: Arc<Back>) -> Arc<Link> {
        let (stage, doubt) = (watch::Sender::new(Stage::Dialling), Arc::new(Notify::new()));
        Arc::new(Link { client, deadline, stage, doubt, leave: AtomicBool::new(false), back })
    }

    /// The connection; waits only for a dial that is under way.
    pub(super) async fn connection(&self) -> Option<MultiplexedConnection> {
        match &*self.stage.borrow() {
            Stage::Up(connection) => return Some(connection.clone()),
            Stage::Away => return None,
            Stage::Dialling => {}
        }
        let mut stage = self.stage.subscribe();
        match &*stage.wait_for(|stage| !matches!(stage, Stage::Dialling)).await.ok()? {
            Stage::Up(connection) => Some(connection.clone()),
            Stage::Away | Stage::Dialling => None,
        }
    }

    /// A call got no answer in time.
    pub(super) fn overdue(&self) {
        self.doubt.notify_one();
    }

    /// A call failed; the error tells whether the connection is to blame.
    pub(super) fn failed(&self, error: &RedisError) {
        if wrong_node(error) {
            self.leave.store(true, Ordering::Relaxed);
            self.doubt.notify_one();
        } else if error.is_io_error() || error.is_unrecoverable_error() {
            self.doubt.notify_one();
        }
    }

    /// Gives nothing out any more.
    pub(super) fn end(&self) {
        self.stage.send_replace(Stage::Away);
    }

    /// Dials, watches over the connection, and dials again, until told to stop.
    pub(super) async fn keep(self: Arc<Link>, stop: CancellationToken) {
        stop.run_until_cancelled(self.work()).await;
    }

    async fn work(&self) {
        let mut failures = 0;
        loop {
            // Before the dial, so that no word is missed between its failure and the pause.
            let back = self.back.0.notified();
            if let Ok(Ok(connection)) = timeout(self.deadline, self.dial()).await {
                self.leave.store(false, Ordering::Relaxed);
                self.stage.send_replace(Stage::Up(connection.clone()));
                if failures > 0 {
                    self.back.0.notify_waiters();
                }
                failures = 0;
                self.until_broken(connection).await;
                self.stage.send_replace(Stage::Away);
                tracing::warn!(db.system.name = "redis", "the connection to the store was lost");
            } else {
                self.stage.send_replace(Stage::Away);
                failures += 1;
                tokio::select! {
                    () = pause(failures) => {}
                    // Somebody has just got through: whoever calls now may wait for us.
                    () = back => { self.stage.send_replace(Stage::Dialling); }
                }
            }
        }
    }

    async fn dial(&self) -> Result<MultiplexedConnection, RedisError> {
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
        self.client.get_multiplexed_async_connection_with_config(&config).await
    }

    async fn until_broken(&self, mut connection: MultiplexedConnection) {
        loop {
            self.doubt.notified().await;
            let ping = redis::cmd("PING");
            let answered = timeout(self.deadline, ping.exec_async(&mut connection)).await;
            if self.leave.load(Ordering::Relaxed) || !matches!(answered, Ok(Ok(()))) {
                return;
            }
        }
    }
}
