//! Which binary is started, how many at once, and what each may use.

use std::path::PathBuf;
use std::time::Duration;

/// How helm is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelmConfig {
    /// The binary; `None` looks in the places where packages put it.
    pub binary: Option<PathBuf>,
    /// A folder of ours: private places while helm runs, and whatever is kept between calls.
    pub cache: PathBuf,
    /// How many may run at once in this process.
    pub slots: usize,
    /// How many of them may be one tenant's.
    pub tenant_slots: usize,
    /// The memory one process may use.
    pub memory_bytes: u64,
    /// The CPU time one process may use.
    pub cpu: Duration,
    /// How long after an operation began it counts as abandoned, so that a release may be recovered.
    pub abandoned_after: Duration,
}

/// Where packages put the binary.
pub(in crate::client) const PLACES: [&str; 3] = ["/usr/local/bin/helm", "/usr/bin/helm", "/opt/helm/helm"];

impl HelmConfig {
    /// The binary from its usual place, with a folder to work in.
    pub fn new(cache: impl Into<PathBuf>) -> HelmConfig {
        HelmConfig {
            binary: None,
            cache: cache.into(),
            slots: 8,
            tenant_slots: 3,
            memory_bytes: 768 * 1024 * 1024,
            cpu: Duration::from_secs(60),
            abandoned_after: Duration::from_secs(600),
        }
    }
}
