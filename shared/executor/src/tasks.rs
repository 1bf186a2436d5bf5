//! Background work that is named, counted and drained. Nothing is spawned anywhere else.

use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Where background work is started, and waited for when the process ends.
#[derive(Debug, Clone)]
pub struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
    /// The runtime these were made in, which outlives those of the server's workers.
    home: Option<Handle>,
}

impl Default for Tasks {
    fn default() -> Tasks {
        Tasks { tracker: TaskTracker::new(), stopping: CancellationToken::new(), home: Handle::try_current().ok() }
    }
}

impl Tasks {
    /// Starts a piece of work. A panic in it is reported and ends nothing else; the handle then gives `None`.
    pub fn spawn<F>(&self, name: &'static str, work: F) -> tokio::task::JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.tracker.spawn(watched(name, work))
    }

    /// Starts a piece of work that must not end with the worker that asked for it: a worker's runtime goes as soon as
    /// its last request is answered, and drops what is left on it.
    pub fn spawn_lasting<F>(&self, name: &'static str, work: F) -> tokio::task::JoinHandle<Option<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.home {
            Some(home) => self.tracker.spawn_on(watched(name, work), home),
            None => self.spawn(name, work),
        }
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

async fn watched<F: Future>(name: &'static str, work: F) -> Option<F::Output> {
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    if ended.is_err() {
        tracing::error!(task = name, "a background task panicked");
    }
    ended.ok()
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

    #[test]
    fn lasting_work_outlives_the_worker_that_asked_for_it() {
        let home = tokio::runtime::Runtime::new().unwrap();
        let tasks = home.block_on(async { Tasks::default() });
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let worker = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let entered = worker.enter();
        let done = tasks.spawn_lasting("run", async move { released.await.is_ok() });
        drop(entered);
        drop(worker);
        release.send(()).unwrap();
        assert_eq!(home.block_on(done).unwrap(), Some(true));
        assert!(home.block_on(tasks.drain(Duration::from_secs(5))));
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
