//! One client on standard input and output: lines in order, answers as they are ready, requests that can be given up.

use crate::stdio::lines::{ClientLine, LineReader, LineWriter};
use bytes::Bytes;
use executor::Tasks;
use mcp::{Era, Id, MessageFault, Refusal, WireError};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinHandle};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Requests that may be under way at once.
const MOST_OPEN: usize = 256;
/// How long requests may go on after the client has closed its end. Together with what follows it stays below a second.
const LAST_ANSWERS: Duration = Duration::from_millis(400);
/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_millis(100);

/// A client that is connected.
pub struct Connection<R> {
    reader: LineReader<R>,
    cap: usize,
    writer: LineWriter,
    writing: JoinHandle<Option<()>>,
    open: Arc<OpenRequests>,
    tasks: Tasks,
    stop: CancellationToken,
}

/// The requests that are being answered.
#[derive(Default)]
struct OpenRequests {
    tracker: TaskTracker,
    /// Those that end when the client says so. Requests of the legacy era are cancelled by the protocol itself.
    cancellable: Mutex<HashMap<Id, AbortHandle>>,
}

impl OpenRequests {
    fn cancellable(&self) -> MutexGuard<'_, HashMap<Id, AbortHandle>> {
        self.cancellable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: AsyncBufRead + Unpin> Connection<R> {
    /// Reads lines of at most `cap` bytes until the input ends, the client does not read any more, or `stop` is called.
    pub fn open(
        input: R,
        output: impl AsyncWrite + Send + Unpin + 'static,
        cap: usize,
        tasks: &Tasks,
        stop: CancellationToken,
    ) -> Connection<R> {
        let (writer, writing) = LineWriter::to(output, tasks);
        let (reader, open, tasks) = (LineReader::new(input, cap), Arc::default(), tasks.clone());
        Connection { reader, cap, writer, writing, open, tasks, stop }
    }

    /// Where messages to the client go.
    pub fn writer(&self) -> &LineWriter {
        &self.writer
    }

    /// The next line; `None` when the connection is over. A line that is too long is answered here.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let line = tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                () = self.writer.gone() => return None,
                line = self.reader.next() => line,
            };
            match line {
                Ok(Some(ClientLine::Message(line))) => return Some(line),
                Ok(Some(ClientLine::TooLong)) => {
                    let message = format!("the line is longer than {} bytes and was skipped", self.cap);
                    self.refuse(None, WireError::new(MessageFault::InvalidRequest, message)).await;
                }
                Ok(None) => return None,
                Err(error) => {
                    tracing::debug!(%error, "the input cannot be read any more");
                    return None;
                }
            }
        }
    }

    /// Answers a request beside others. One that is `cancellable` is dropped when the client gives it up.
    pub async fn answer(&self, id: Id, cancellable: bool, work: impl Future<Output = ()> + Send + 'static) {
        if self.open.tracker.len() >= MOST_OPEN {
            let message = format!("{MOST_OPEN} requests are under way already");
            return self.refuse(Some(id), WireError::new(MessageFault::TooManyRequests, message)).await;
        }
        let (open, key) = (Arc::clone(&self.open), id.clone());
        let work = self.open.tracker.track_future(async move {
            work.await;
            open.cancellable().remove(&key);
        });
        // Under the lock, so that work that ends at once does not end before it is noted.
        let mut noted = self.open.cancellable();
        let task = self.tasks.spawn("stdio request", work);
        if cancellable {
            noted.insert(id, task.abort_handle());
        }
    }

    /// Ends a request that the client gave up; `false` if there is none of this id that could be ended here.
    pub fn cancel(&self, id: &Id) -> bool {
        let task = self.open.cancellable().remove(id);
        task.map(|task| task.abort()).is_some()
    }

    /// Writes a refusal.
    pub async fn refuse(&self, id: Option<Id>, error: WireError) {
        let body: Bytes = Refusal::new(Era::Modern, id, error).body(None);
        self.writer.send(body).await;
    }

    /// Lets what is under way end for a moment, writes the last answers and ends the rest.
    pub async fn close(self) {
        let Connection { writer, writing, open, tasks, .. } = self;
        tasks.stopping().cancel();
        open.tracker.close();
        if tokio::time::timeout(LAST_ANSWERS, open.tracker.wait()).await.is_err() {
            open.cancellable().drain().for_each(|(_, task)| task.abort());
        }
        drop(writer);
        // Whoever still holds a writer, or does not read, keeps it from ending by itself.
        if tokio::time::timeout(LAST_LINES, writing).await.is_err() {
            tracing::debug!("the last lines were not written");
        }
    }
}
