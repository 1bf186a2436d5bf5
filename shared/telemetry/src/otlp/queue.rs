//! What waits to be sent: a bounded queue and the task that sends it batch by batch.
//!
//! A full queue drops what comes and counts it. Nobody who fills it waits.

use super::{OtlpRequest, OtlpSender, Signal};
use crate::metrics::TELEMETRY_DROPPED;
use std::fmt;
use std::sync::mpsc as blocking;
use std::time::Duration;
use tokio::sync::mpsc;

/// What is sent at once.
const BATCH: usize = 512;
/// How long something may wait for company.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// The end of a queue that is filled. A clone fills the same one.
pub(crate) struct OtlpQueue<T> {
    items: mpsc::Sender<Queued<T>>,
    signal: Signal,
}

pub(crate) enum Queued<T> {
    Item(T),
    /// Everything before it is to be sent now; then whoever waits hears of it.
    Flush(blocking::Sender<()>),
}

impl<T> Clone for OtlpQueue<T> {
    fn clone(&self) -> OtlpQueue<T> {
        OtlpQueue { items: self.items.clone(), signal: self.signal }
    }
}

impl<T> fmt::Debug for OtlpQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpQueue").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl<T: Send + 'static> OtlpQueue<T> {
    /// A queue for so many items, and its other end.
    pub(crate) fn channel(signal: Signal, most: usize) -> (OtlpQueue<T>, mpsc::Receiver<Queued<T>>) {
        let (items, other_end) = mpsc::channel(most);
        (OtlpQueue { items, signal }, other_end)
    }

    /// A queue whose items are sent as requests that `write` makes of them.
    pub(crate) fn start(
        sender: OtlpSender,
        most: usize,
        write: impl Fn(Vec<T>) -> OtlpRequest + Send + 'static,
    ) -> OtlpQueue<T> {
        let (queue, items) = OtlpQueue::channel(sender.signal(), most);
        sender.runtime().spawn(send_all(items, sender, write));
        queue
    }

    pub(crate) fn push(&self, item: T) {
        if self.items.try_send(Queued::Item(item)).is_err() {
            TELEMETRY_DROPPED.add([self.signal.as_str()], 1);
        }
    }

    /// Waits until everything that was queued is sent or dropped. It blocks.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let (done, heard) = blocking::channel();
        self.items.blocking_send(Queued::Flush(done)).is_ok() && heard.recv_timeout(timeout).is_ok()
    }
}

/// Sends batch by batch until nobody is left who could fill the queue.
async fn send_all<T: Send>(
    mut items: mpsc::Receiver<Queued<T>>,
    sender: OtlpSender,
    write: impl Fn(Vec<T>) -> OtlpRequest + Send,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(first) = items.recv().await {
        let mut waiting = take(first, &mut batch);
        let until = tokio::time::Instant::now() + SEND_EVERY;
        while waiting.is_none() && batch.len() < BATCH {
            match tokio::time::timeout_at(until, items.recv()).await {
                Ok(Some(next)) => waiting = take(next, &mut batch),
                Ok(None) | Err(_) => break,
            }
        }
        if !batch.is_empty() {
            let (count, full) = (batch.len(), std::mem::replace(&mut batch, Vec::with_capacity(BATCH)));
            // Counted where it fails.
            sender.send(write(full), count).await.ok();
        }
        if let Some(waiting) = waiting {
            waiting.send(()).ok();
        }
    }
}

fn take<T>(queued: Queued<T>, batch: &mut Vec<T>) -> Option<blocking::Sender<()>> {
    match queued {
        Queued::Item(item) => {
            batch.push(item);
            None
        }
        Queued::Flush(done) => Some(done),
    }
}
