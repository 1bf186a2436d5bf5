//! Holds progress to ten frames a second after a burst of five. A newer frame replaces one that is held back, and the
//! last one always gets through.

use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// The frames a call may send now.
pub(super) struct ProgressPace {
    left: u32,
    since: Instant,
    waiting: Option<Bytes>,
}

impl ProgressPace {
    const BURST: u32 = 5;
    const EVERY: Duration = Duration::from_millis(100);

    /// The pace of a stream whose first frame has been sent.
    pub(super) fn new() -> ProgressPace {
        // The frame that opened the stream was the first of the burst.
        ProgressPace { left: ProgressPace::BURST - 1, since: Instant::now(), waiting: None }
    }

    /// The frame, if it may go out now; else it waits in place of an older one.
    pub(super) fn take(&mut self, frame: Bytes) -> Option<Bytes> {
        self.waiting = Some(frame);
        self.release()
    }

    /// The waiting frame, if it may go out now.
    pub(super) fn release(&mut self) -> Option<Bytes> {
        self.refill();
        self.left = self.left.checked_sub(1)?;
        self.waiting.take()
    }

    /// The waiting frame, whether it may go out or not: the call has ended.
    pub(super) fn last(&mut self) -> Option<Bytes> {
        self.waiting.take()
    }

    /// Resolves when the waiting frame may go out; never if there is none.
    pub(super) async fn next(&self) {
        match &self.waiting {
            Some(_) => tokio::time::sleep_until(self.since + ProgressPace::EVERY).await,
            None => std::future::pending().await,
        }
    }

    fn refill(&mut self) {
        while self.left < ProgressPace::BURST && self.since.elapsed() >= ProgressPace::EVERY {
            self.left += 1;
            self.since += ProgressPace::EVERY;
        }
        if self.left == ProgressPace::BURST {
            self.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_comes_in_a_burst_and_then_ten_times_a_second() {
        let mut pace = ProgressPace::new();
        let frame = |n: u8| Bytes::from(vec![n]);
        let sent = (0..100).filter(|n| pace.take(frame(*n)).is_some()).count();
        assert_eq!((sent, pace.waiting.clone()), (4, Some(frame(99))), "four are left of the burst, the newest waits");
        pace.next().await;
        assert_eq!(pace.release(), Some(frame(99)));
        assert_eq!(pace.release(), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        let sent = (0..100).filter(|n| pace.take(frame(*n)).is_some()).count();
        assert_eq!(sent, 5, "a pause earns one burst, not ten");
    }
}
