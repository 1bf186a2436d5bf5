//! What a call is judged against: one tenant's catalog, policy and limits, swapped whole.
//!
//! A call holds the snapshot it began with, so it sees one version of everything from beginning to end.

use crate::runs::Approvals;
use catalog::Catalog;
use policy::Policy;
use redact::Scrubber;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// One version of one tenant.
pub struct Snapshot {
    /// Its tools.
    pub catalog: Arc<Catalog>,
    /// Names of tools that were offered and are withheld, because their definitions are not the accepted ones any more.
    pub withheld: BTreeSet<String>,
    /// Its rules.
    pub policy: Policy,
    /// How people are asked.
    pub approvals: Approvals,
    /// Its secrets, to be taken out of whatever comes back.
    pub secrets: Secrets,
    /// How large one result may be.
    pub result_bytes: usize,
    /// How many of its calls may be under way in this process.
    pub slots: Arc<Semaphore>,
    /// How many slots there are, so that a reload that leaves the limit alone can keep them.
    pub in_flight: u32,
}

/// A tenant's secrets as they are at the moment of asking: a value that was changed while a call ran is looked for too.
#[derive(Clone)]
pub struct Secrets(Arc<dyn Fn() -> Arc<Scrubber> + Send + Sync>);

impl Secrets {
    /// Secrets that somebody else keeps.
    pub fn kept_by(keeper: impl Fn() -> Arc<Scrubber> + Send + Sync + 'static) -> Secrets {
        Secrets(Arc::new(keeper))
    }

    /// What takes them out of texts, now.
    pub(crate) fn now(&self) -> Arc<Scrubber> {
        (self.0)()
    }
}

/// No secrets.
impl Default for Secrets {
    fn default() -> Secrets {
        let none = Arc::default();
        Secrets::kept_by(move || Arc::clone(&none))
    }
}
