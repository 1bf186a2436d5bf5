//! What is to be known of a tenant's servers: told by whoever reads the tenant's configuration.

use crate::LinkTarget;
use domain::{Assignment, Failure};
use policy::Pattern;
pub use policy::{Accept, ServerLimits, TrustedEffects};
use redact::Scrubber;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Store;

/// Where a server is for one assignment, with its parameters and secrets filled in, or what is missing.
pub type TargetOf = Arc<dyn Fn(&Assignment) -> Result<LinkTarget, Failure> + Send + Sync>;

/// The tenant's secrets as they are now, to be taken out of whatever a server says.
pub type ScrubberOf = Arc<dyn Fn() -> Arc<Scrubber> + Send + Sync>;

/// One server as one tenant uses it.
#[derive(Clone)]
pub struct ExternalServerConfig {
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
    pub vouch: TrustedEffects,
    /// What becomes of the first list.
    pub accept: Accept,
    /// Whether the tenant named the address itself. Then nobody vouches for anything.
    pub own: bool,
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
