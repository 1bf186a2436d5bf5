//! Where the frames of an exchange go: a bounded queue that a transport empties in its own form.

use bytes::Bytes;
use std::time::Duration;
use tokio::sync::mpsc;

/// Frames a slow client may be behind.
pub(super) const QUEUE: usize = 64;
/// How often an idle stream shows that it is alive: often enough for every proxy.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a transport writes for a client besides the one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// One JSON-RPC message.
    Message(Bytes),
    /// Nothing, said so that the connection stays open. A transport that cannot time out leaves it out.
    KeepAlive,
}

/// The protocol's end of the queue. It closes when the transport drops the other end, which is how a client leaves.
#[derive(Debug, Clone)]
pub struct Sink(mpsc::Sender<Frame>);

/// A sink, and the end from which the transport takes the frames.
pub fn channel() -> (Sink, mpsc::Receiver<Frame>) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (Sink(sender), receiver)
}

impl Sink {
    /// Sends one message; `false` when the client is gone or hopelessly behind.
    pub async fn send(&self, message: Bytes) -> bool {
        self.frame(Frame::Message(message)).await
    }

    /// Keeps a quiet connection open.
    pub async fn keep_alive(&self) {
        self.frame(Frame::KeepAlive).await;
    }

    /// Resolves when the client is gone.
    pub async fn gone(&self) {
        self.0.closed().await;
    }

    async fn frame(&self, frame: Frame) -> bool {
        self.0.send_timeout(frame, KEEP_ALIVE).await.is_ok()
    }
}
