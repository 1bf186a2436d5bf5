//! The time of day, as this host tells it: for tokens, which are judged by the clock of whoever reads them.
//!
//! Nothing that must agree between replicas uses it; that is the store's clock.

use domain::Moment;
use std::time::{SystemTime, UNIX_EPOCH};

/// The host's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl SystemClock {
    /// Now.
    pub fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}
