//! What is known at the moment of deciding, gathered by whoever asks: policy itself looks nothing up.

use crate::Approval;
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
    /// Whether a rejection ended the session's step, so that nothing may be changed until a person clears it.
    pub stopped: bool,
    /// The run that a person approved for exactly this call.
    pub approved: Option<Approved>,
}

/// A person's yes to one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approved {
    /// The run, who approved it, and when.
    pub approval: Approval,
    /// The digest of the call that was approved; another call gains nothing from it.
    pub digest: String,
}
