//! The shared connection, and the task that keeps it.
//!
//! While there is no connection, calls fail at once instead of queueing up behind a dial. A call that times out or
//! breaks only raises a doubt: the keeper then asks the server itself and dials anew if there is no answer.
//! That also ends connections whose other side vanished without a word.

use super::fault::wrong_node;
use super::pause;
use crate::StoreError;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, PushInfo, PushKind, RedisError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub(super) struct Link {
    client: Client,
    deadline: Duration,
    connection: watch::Sender<Option<MultiplexedConnection>>,
    doubt: Arc<Notify>,
    leave: AtomicBool,
}

impl Link {
    pub(super) fn new(client: Client, deadline: Duration) -> Arc<Link> {
        let doubt = Arc::new(Notify::new());
        Arc::new(Link { client, deadline, connection: watch::Sender::new(None), doubt, leave: AtomicBool::new(false) })
    }

    /// The connection, if there is one at this moment.
    pub(super) fn get(&self) -> Result<MultiplexedConnection, StoreError> {
        self.connection.borrow().clone().ok_or_else(|| StoreError::unavailable("not connected"))
    }

    /// Waits for the first connection, but no longer than the deadline.
    pub(super) async fn first(&self) {
        let mut connection = self.connection.subscribe();
        // Both ways of not getting one mean the same here: calls will say that the store is away.
        drop(timeout(self.deadline, connection.wait_for(Option::is_some)).await);
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

    /// Dials, watches over the connection, and dials again, until told to stop.
    pub(super) async fn keep(self: Arc<Link>, stop: CancellationToken) {
        let work = async {
            let mut failures = 0;
            loop {
                match timeout(self.deadline, self.dial()).await {
                    Ok(Ok(connection)) => {
                        failures = 0;
                        self.leave.store(false, Ordering::Relaxed);
                        self.connection.send_replace(Some(connection.clone()));
                        self.until_broken(connection).await;
                        self.connection.send_replace(None);
                        tracing::warn!(db.system.name = "redis", "the connection to the store was lost");
                    }
                    Ok(Err(_)) | Err(_) => {
                        failures += 1;
                        pause(failures).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(work).await;
        self.connection.send_replace(None);
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
            .set_response_timeout(Some(self.deadline))
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
