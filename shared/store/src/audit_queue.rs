//! The queue of closing entries that nobody waits for.
//!
//! They gather for a moment before they are written, so that many go at once: on Redis in one pipeline, in the embedded
//! store with the sync of others that do wait. A process that dies loses what has gathered, and its calls stay open in
//! the audit log; so does a call whose process dies before it ends.
//! Bounded: when it is full, whoever closes a call waits, so a slow store slows callers instead of filling memory.
//! A batch is repeated until the store takes it. A batch whose answer got lost may thus stand in the audit log twice, each
//! entry under its own id; a missing entry would be worse.

use crate::StoreError;
use crate::ops::Op;
use crate::store::Backend;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// How many entries may wait.
const LENGTH: usize = 4_096;
/// How many are written at once.
const BATCH: usize = 512;
/// How long to wait before a batch is tried again.
const AGAIN_AFTER: Duration = Duration::from_millis(200);

pub(crate) struct AuditQueue {
    sender: Mutex<Option<mpsc::Sender<Op>>>,
    drained: Mutex<Option<JoinHandle<()>>>,
    /// Tells the task that a batch gets only one more try.
    closing: DropGuard,
    deadline: Duration,
}

impl AuditQueue {
    pub(crate) fn start(backend: Arc<Backend>, deadline: Duration, tasks: &TaskTracker) -> AuditQueue {
        let (sender, receiver) = mpsc::channel(LENGTH);
        let closing = CancellationToken::new();
        let drained = tasks.spawn(drain(backend, receiver, closing.clone()));
        AuditQueue {
            sender: Mutex::new(Some(sender)),
            drained: Mutex::new(Some(drained)),
            closing: closing.drop_guard(),
            deadline,
        }
    }

    /// Queues one entry, waiting for room no longer than the deadline.
    pub(crate) async fn push(&self, entry: Op) -> Result<(), StoreError> {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let closed = || StoreError::unavailable("the audit queue is closed");
        sender.ok_or_else(closed)?.send_timeout(entry, self.deadline).await.map_err(|error| match error {
            mpsc::error::SendTimeoutError::Timeout(_) => StoreError::Timeout,
            mpsc::error::SendTimeoutError::Closed(_) => closed(),
        })
    }

    /// Takes nothing more and writes what is queued.
    pub(crate) async fn close(&self) {
        drop(self.sender.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.closing.token().cancel();
        let drained = self.drained.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = drained
            && let Err(error) = task.await
        {
            tracing::error!(%error, "the audit queue ended badly");
        }
    }
}

async fn drain(backend: Arc<Backend>, mut receiver: mpsc::Receiver<Op>, closing: CancellationToken) {
    let mut batch = Vec::with_capacity(BATCH);
    while receiver.recv_many(&mut batch, BATCH).await > 0 {
        if batch.len() < BATCH {
            // Nobody is woken for what comes in meanwhile. Either end is fine: time has passed, or the queue closes.
            closing.run_until_cancelled(tokio::time::sleep(backend.gathers())).await;
            while batch.len() < BATCH
                && let Ok(entry) = receiver.try_recv()
            {
                batch.push(entry);
            }
        }
        if let Err(error) = write(&backend, &batch, &closing).await {
            // Trying the rest as well would keep a closing process waiting, a deadline for each batch.
            let entries = batch.len() + receiver.len();
            tracing::error!(%error, entries, "closing entries of the audit were lost on shutdown");
            return;
        }
        batch.clear();
    }
}

/// Tries until the store takes the batch; once the queue is closing, only once more.
async fn write(backend: &Backend, batch: &[Op], closing: &CancellationToken) -> Result<(), StoreError> {
    loop {
        let last_try = closing.is_cancelled();
        match backend.run(batch).await {
            Ok(_) => return Ok(()),
            Err(error) if last_try => return Err(error),
            Err(error) => tracing::warn!(%error, entries = batch.len(), "the audit queue waits for the store"),
        }
        // Either is fine: time has passed, or there is one last try left.
        closing.run_until_cancelled(tokio::time::sleep(AGAIN_AFTER)).await;
    }
}
