//! Background work that is named, counted and drained. Nothing is spawned anywhere else.

use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where background work is started, and waited for when the process ends.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
}

impl Tasks {
    /// Starts a piece of work. A panic in it is reported and ends nothing else; the handle then gives `None`.
    pub fn spawn<F>(&self, name: &'static str, work: F) -> tokio::task::JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let watched = AssertUnwindSafe(work).catch_unwind().map(move |ended| match ended {
            Ok(output) => Some(output),
            Err(_) => {
                tracing::error!(task = name, "a background task panicked");
                None
            }
        });
        self.tracker.spawn(watched)
    }

    /// Ends when the process is to stop; whoever loops or streams listens to it.
    pub fn stopping(&self) -> &CancellationToken {
        &self.stopping
    }

    /// How much is under way.
    pub fn len(&self) -> usize {
        self.tracker.len()
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.tracker.is_empty()
    }

    /// Says stop and waits for what is under way; `false` if some of it was still running at the end.
    pub async fn drain(&self, within: Duration) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        tokio::time::timeout(within, self.tracker.wait()).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_its_own_task_and_nothing_else() {
        let tasks = Tasks::default();
        let bad = tasks.spawn("bad", async { panic!("boom") });
        let good = tasks.spawn("good", async { 7 });
        assert_eq!((bad.await.unwrap(), good.await.unwrap()), (None::<()>, Some(7)));
        assert!(tasks.drain(Duration::from_secs(5)).await);
    }

    #[tokio::test]
    async fn draining_tells_the_loops_and_waits_for_them() {
        let tasks = Tasks::default();
        let stopping = tasks.stopping().clone();
        tasks.spawn("loop", async move { stopping.cancelled().await });
        assert!(tasks.drain(Duration::from_secs(5)).await);
        assert!(tasks.is_empty());
    }
}
