//! What is known at the moment of deciding, gathered by whoever asks: policy itself looks nothing up.

use domain::{Loaded, Mode};

/// What is known about a call besides the call itself.
#[derive(Debug, Clone)]
pub struct Evidence {
    /// What the session, or the address the call came in by, has loaded.
    pub loaded: Loaded,
    /// What the session is for.
    pub mode: Mode,
    /// Whether the session has read text from outside.
    pub tainted: bool,
    /// The tenant's calls in the current minute, this one included.
    pub calls_this_minute: u64,
}
