//! What a tenant may configure: plain data, already checked.
//!
//! Every rule here tightens. Nothing a tenant writes can lift an approval or widen a scope, because there is no
//! field to say so.

use domain::{Mode, Tenant, ToolsetName};
use policy::Pattern;
use std::ops::RangeInclusive;

/// One tenant's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantConfig {
    /// Whose it is.
    pub tenant: Tenant,
    /// The most a session may ask for.
    pub mode: Mode,
    /// What a session has loaded, read-only, when it opens.
    pub default_toolsets: Vec<ToolsetName>,
    /// Calls that are refused whoever asks.
    pub deny: Vec<Pattern>,
    /// Calls that wait for a person even if they only read.
    pub require_approval: Vec<Pattern>,
    /// How much the tenant may use at once.
    pub limits: Limits,
}

/// How much one tenant may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Calls that may be on their way at the same time.
    pub calls_in_flight: u32,
    /// Calls that may begin within one minute.
    pub calls_per_minute: u32,
    /// The largest result that is handed out in one piece.
    pub result_bytes: u32,
}

impl Limits {
    /// What [`Limits::calls_in_flight`] may be; zero would lock the tenant out by accident.
    pub const CALLS_IN_FLIGHT: RangeInclusive<u32> = 1..=10_000;
    /// What [`Limits::calls_per_minute`] may be.
    pub const CALLS_PER_MINUTE: RangeInclusive<u32> = 1..=1_000_000;
    /// What [`Limits::result_bytes`] may be; below the floor not even an error with its hint would fit.
    pub const RESULT_BYTES: RangeInclusive<u32> = 4_096..=1_048_576;
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { calls_in_flight: 32, calls_per_minute: 600, result_bytes: 262_144 }
    }
}
