//! What is to be known of a tenant's servers: told by whoever reads the tenant's configuration.

use crate::Target;
use domain::{Assignment, Effect, Failure};
use policy::Pattern;
use redact::Scrubber;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::Store;

/// Where a server is for one assignment, with its parameters and secrets filled in, or what is missing.
pub type TargetOf = Arc<dyn Fn(&Assignment) -> Result<Target, Failure> + Send + Sync>;

/// The tenant's secrets as they are now, to be taken out of whatever a server says.
pub type ScrubberOf = Arc<dyn Fn() -> Arc<Scrubber> + Send + Sync>;

/// One server as one tenant uses it.
#[derive(Clone)]
pub struct ServerConfig {
    /// The tenant's name for it.
    pub id: String,
    /// What it is, for people.
    pub description: Option<String>,
    /// Where it is.
    pub target: TargetOf,
    /// What must not come back from it.
    pub scrubber: ScrubberOf,
    /// How much may be asked of it.
    pub limits: ServerLimits,
    /// Which of its tools the tenant wants, by the server's own names; `None`: all of them.
    pub allow: Option<Vec<Pattern>>,
    /// What the operator vouches for.
    pub vouch: Vouch,
    /// What becomes of the first list.
    pub accept: Accept,
    /// Whether the tenant named the address itself. Then nobody vouches for anything.
    pub own: bool,
}

/// How much may be asked of one server by one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    /// How long one call may take.
    pub deadline: Duration,
    /// Calls under way at the same time.
    pub in_flight: u32,
    /// Calls that wait for one of those to end.
    pub waiting: u32,
    /// The largest arguments, as JSON.
    pub argument_bytes: usize,
    /// The largest answer, unpacked.
    pub result_bytes: usize,
    /// How long a list of its tools is taken for current.
    pub refresh: Duration,
}

impl Default for ServerLimits {
    fn default() -> ServerLimits {
        ServerLimits {
            deadline: Duration::from_secs(10),
            in_flight: 8,
            waiting: 32,
            argument_bytes: 64 * 1024,
            result_bytes: 8 * 1024 * 1024,
            refresh: Duration::from_secs(10 * 60),
        }
    }
}

/// What the operator vouches for. Without it every tool counts as one that changes something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vouch {
    /// Whether the server's own word on what its tools do is taken.
    pub annotations: bool,
    /// What single tools do, by the server's own names; the first that fits counts.
    pub effects: Vec<(Pattern, Effect)>,
}

/// What becomes of the first list of a server. Whatever changes later waits for an administrator either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// It is accepted as it is.
    First,
    /// Each tool waits for an administrator.
    Each,
}

/// What all servers share.
#[derive(Clone)]
pub struct UpstreamsConfig {
    /// Where lists and accepted definitions are kept.
    pub store: Store,
    /// Names that tools of this service have.
    pub reserved: BTreeSet<String>,
    /// How names of hosts are resolved; `None`: by the system. What comes back is vetted either way.
    pub lookup: Option<egress::Lookup>,
}
