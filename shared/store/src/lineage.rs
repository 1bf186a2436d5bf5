//! Whether the store is still the one it was.
//!
//! A server that was restarted or replaced may have forgotten the last things it was told, and one that lost its disk all
//! of them. Whoever acts on what was written before asks here first.
//!
//! Not here: how it is found out (see `redis::server`). The embedded store is one file and never another.

use domain::Moment;
use tokio::sync::watch;

/// Which store this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreEpoch {
    /// Counts up with every loss of all records; 0 while nobody could look.
    pub generation: u64,
    /// When another server took over, by that server's clock: what was written before may have been forgotten since.
    /// `None` if that has never been seen to happen.
    pub since: Option<Moment>,
}

impl StoreEpoch {
    /// Whether what was written at this moment may have been followed by something that is forgotten.
    pub fn doubts(&self, at: Moment) -> bool {
        self.since.is_some_and(|since| at < since)
    }
}

/// Tells which store this is, and when it becomes another.
#[derive(Debug, Clone)]
pub struct StoreEpochs(watch::Receiver<StoreEpoch>);

impl StoreEpochs {
    pub(crate) fn new(told: watch::Receiver<StoreEpoch>) -> StoreEpochs {
        StoreEpochs(told)
    }

    /// The store of one file.
    pub(crate) fn constant() -> StoreEpochs {
        StoreEpochs(watch::Sender::new(StoreEpoch { generation: 1, since: None }).subscribe())
    }

    /// Which store this is.
    pub fn now(&self) -> StoreEpoch {
        *self.0.borrow()
    }

    /// Waits until it is another one. Safe to abandon and call again.
    pub async fn changed(&mut self) -> StoreEpoch {
        if self.0.changed().await.is_err() {
            // Nobody is left who could tell: the store is closed, or can never change.
            std::future::pending::<()>().await;
        }
        *self.0.borrow_and_update()
    }
}
