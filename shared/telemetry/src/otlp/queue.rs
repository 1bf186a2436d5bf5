//! What waits to be sent: a bounded queue and the task that sends it batch by batch.
//!
//! A full queue drops what comes and counts it. Nobody who fills it waits.
//!
//! The task is woken by the first item, by one that completes a batch and by the time, but not by every item: it works on
//! another thread than the calls, and waking a thread costs a call more than the span itself.

use super::{OtlpRequest, OtlpSender, Signal};
use crate::metrics::TELEMETRY_DROPPED;
use std::fmt;
use std::sync::{Arc, mpsc as blocking};
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Notify, mpsc};

/// What is sent at once.
const BATCH: usize = 512;
/// How long something may wait for company.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// The end of a queue that is filled. A clone fills the same one.
pub(crate) struct OtlpQueue<T> {
    items: mpsc::Sender<Queued<T>>,
    /// Told when there is a batch, or when somebody wants everything to be sent.
    ready: Arc<Notify>,
    signal: Signal,
}

pub(crate) enum Queued<T> {
    Item(T),
    /// Everything before it is to be sent now; then whoever waits hears of it.
    Flush(blocking::Sender<()>),
}

impl<T> Clone for OtlpQueue<T> {
    fn clone(&self) -> OtlpQueue<T> {
        OtlpQueue { items: self.items.clone(), ready: Arc::clone(&self.ready), signal: self.signal }
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
        (OtlpQueue { items, ready: Arc::default(), signal }, other_end)
    }

    /// A queue whose items are sent as requests that `write` makes of them.
    pub(crate) fn start(
        sender: OtlpSender,
        most: usize,
        write: impl Fn(Vec<T>) -> OtlpRequest + Send + 'static,
    ) -> OtlpQueue<T> {
        let (queue, items) = OtlpQueue::channel(sender.signal(), most);
        sender.runtime().spawn(send_all(items, Arc::clone(&queue.ready), sender, write));
        queue
    }

    pub(crate) fn push(&self, item: T) {
        if self.items.try_send(Queued::Item(item)).is_err() {
            TELEMETRY_DROPPED.add([self.signal.as_str()], 1);
        }
        if self.items.max_capacity() - self.items.capacity() >= BATCH {
            self.ready.notify_one();
        }
    }

    /// Waits until everything that was queued is sent or dropped. It blocks.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let (done, heard) = blocking::channel();
        let asked = self.items.blocking_send(Queued::Flush(done)).is_ok();
        self.ready.notify_one();
        asked && heard.recv_timeout(timeout).is_ok()
    }
}

/// Sends batch by batch until nobody is left who could fill the queue.
async fn send_all<T: Send>(
    mut items: mpsc::Receiver<Queued<T>>,
    ready: Arc<Notify>,
    sender: OtlpSender,
    write: impl Fn(Vec<T>) -> OtlpRequest + Send,
) {
    let mut batch = Vec::with_capacity(BATCH);
    while let Some(first) = items.recv().await {
        let mut waiting = take(first, &mut batch);
        let until = tokio::time::Instant::now() + SEND_EVERY;
        let mut is_over = false;
        while waiting.is_none() && batch.len() < BATCH {
            match items.try_recv() {
                Ok(next) => waiting = take(next, &mut batch),
                Err(TryRecvError::Empty) if !is_over => tokio::select! {
                    () = ready.notified() => {}
                    () = tokio::time::sleep_until(until) => is_over = true,
                },
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
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
