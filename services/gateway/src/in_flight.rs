//! Legacy calls under way in this process, by session and request id, so that a message can cancel them.

use domain::SessionId;
use mcp::Id;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// A request of a session.
pub type RequestKey = (SessionId, Id);

/// Calls under way.
#[derive(Debug, Default)]
pub struct InFlight(Mutex<HashMap<RequestKey, CancellationToken>>);

impl InFlight {
    /// Notes a call.
    pub fn insert(&self, key: RequestKey, cancel: CancellationToken) {
        self.lock().insert(key, cancel);
    }

    /// Forgets a call.
    pub fn remove(&self, key: &RequestKey) {
        self.lock().remove(key);
    }

    /// Cancels a call; `false` if it is not here.
    pub fn cancel(&self, key: &RequestKey) -> bool {
        let cancel = self.lock().get(key).cloned();
        cancel.map(|cancel| cancel.cancel()).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
