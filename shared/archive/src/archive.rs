//! The archive of one service: its keys, its sinks, and how far it is behind.

use crate::config::ArchiveConfig;
use crate::keys::{ArchiveKeys, ArchiveKeysError};
use crate::sink::{Sink, SinkSetupError};
use crate::status::ArchiveStatus;
use crate::worklist::Worklist;
use domain::Tenant;
use std::time::Instant;

/// The archive of one service.
#[derive(Debug)]
pub struct Archive {
    /// What signs and what verifies.
    pub keys: ArchiveKeys,
    /// How far it is behind.
    pub status: ArchiveStatus,
    pub(crate) config: ArchiveConfig,
    pub(crate) sinks: Vec<Sink>,
    signing: Worklist,
    exporting: Vec<Worklist>,
}

/// Why there is no archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// A key.
    #[error(transparent)]
    Key(#[from] ArchiveKeysError),
    /// A sink.
    #[error("the sink {name}")]
    Sink {
        /// Which one.
        name: String,
        /// Why.
        #[source]
        source: SinkSetupError,
    },
}

impl Archive {
    /// Reads keys and secrets. `secret` is the service's own, `older` what it was before.
    pub fn open(config: &ArchiveConfig, secret: &[u8], older: &[Vec<u8>]) -> Result<Archive, ArchiveError> {
        let keys = ArchiveKeys::read(config, secret, older)?;
        let open = |sink| Sink::open(sink).map_err(|source| ArchiveError::Sink { name: sink.name.clone(), source });
        let sinks: Vec<Sink> = config.sinks.iter().map(open).collect::<Result<_, _>>()?;
        // Of several replicas each sees only what it has sealed itself.
        let many = config.checkpoint_entries / 4;
        let exporting = sinks.iter().map(|_| Worklist::new(many)).collect();
        let (config, status, signing) = (config.clone(), ArchiveStatus::default(), Worklist::new(many));
        Ok(Archive { keys, status, config, sinks, signing, exporting })
    }

    /// So many entries of a tenant were sealed here; none if it is only to be looked at.
    pub fn sealed(&self, tenant: &Tenant, entries: u64) {
        let now = Instant::now();
        for list in std::iter::once(&self.signing).chain(&self.exporting) {
            list.add(tenant, entries, now);
        }
    }

    /// Whether something is left to do for a tenant here.
    pub fn is_at_work(&self, tenant: &Tenant) -> bool {
        std::iter::once(&self.signing).chain(&self.exporting).any(|list| list.holds(tenant))
    }

    /// Whose audit logs may want a checkpoint.
    pub fn signing(&self) -> &Worklist {
        &self.signing
    }

    /// Whose audit logs a sink may want; `None` if there is no such sink.
    pub fn exporting(&self, sink: usize) -> Option<&Worklist> {
        self.exporting.get(sink)
    }

    /// How many sinks there are.
    pub fn sinks(&self) -> usize {
        self.sinks.len()
    }
}
