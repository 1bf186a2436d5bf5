//! What a call is judged against: one tenant's catalog, policy and limits, swapped whole.
//!
//! A call holds the snapshot it began with, so it sees one version of everything from beginning to end.

use crate::runs::Approvals;
use catalog::Catalog;
use policy::Policy;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One version of one tenant.
pub struct Snapshot {
    /// Its tools.
    pub catalog: Arc<Catalog>,
    /// Its rules.
    pub policy: Policy,
    /// How people are asked.
    pub approvals: Approvals,
    /// How large one result may be.
    pub result_bytes: usize,
    /// How many of its calls may be under way in this process.
    pub slots: Arc<Semaphore>,
    /// How many slots there are, so that a reload that leaves the limit alone can keep them.
    pub in_flight: u32,
}
