//! Which binary is started, and how many at once.

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
    /// How long after an operation began it counts as abandoned, so that a release may be recovered.
    pub abandoned_after: Duration,
}

/// Where packages put the binary.
pub(in crate::client) const PLACES: [&str; 3] = ["/usr/local/bin/helm", "/usr/bin/helm", "/opt/helm/helm"];

impl HelmConfig {
    /// The binary from its usual place, with a folder to work in.
    pub fn new(cache: impl Into<PathBuf>) -> HelmConfig {
        HelmConfig { binary: None, cache: cache.into(), slots: 8, abandoned_after: Duration::from_secs(600) }
    }
}
