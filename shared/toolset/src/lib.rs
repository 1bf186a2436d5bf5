//! How a toolset joins a tenant.
//!
//! A [`Toolset`] is made once per process. [`Toolset::attach`] turns one tenant's configuration into an [`AttachedToolset`]: the
//! tenant's targets, and tools that hold these targets and no others. So isolation between tenants is structure: a
//! tool has no way to another tenant's target.
//!
//! A tenant's attached toolsets are replaced together with its catalog and policy, in one swap. What stays as it was
//! keeps its connections, because [`AttachContext::before`] hands the earlier value over.
//!
//! Not here: what a tenant may configure (see `tenancy`), and who may call what (see `policy`).

use catalog::CatalogEntry;
use domain::{Code, Failure, Tenant};
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tenancy::{Section, TenantConfig};

/// One kind of target and the tools on it. A new kind of target is one crate with one of these, and one line where the
/// service lists its toolsets.
pub trait Toolset: Send + Sync {
    /// The toolsets it brings, in the order in which they are listed.
    fn names(&self) -> &'static [&'static str];

    /// Its parts of a tenant's file. A toolset that acts on what another one configures has none.
    fn sections(&self) -> Vec<Section> {
        Vec::new()
    }

    /// Every tool it could bring, attached to no target: for documentation and for checks of configuration. `several`
    /// lists them as for a tenant with several targets of this kind.
    fn tools(&self, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError>;

    /// Every tool that a tenant's own configuration declares, attached to no target: for explanations of what a call of
    /// it would meet. Most toolsets bring their own tools and have none.
    fn tools_of(&self, _: &TenantConfig) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        Ok(Vec::new())
    }

    /// Whether the tenant configures a target for it.
    fn is_configured(&self, config: &TenantConfig) -> bool;

    /// Builds the tenant's targets and the tools on them. May wait, for example for a simulated target to start, so it
    /// does not run in a task of the runtime.
    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError>;

    /// Forgets what it keeps for a tenant besides the value that [`Toolset::attach`] returned. Most toolsets keep nothing.
    fn detach(&self, _: &Tenant) {}

    /// The codes its tools raise besides those of the path of a call.
    fn codes(&self) -> &'static [Code];
}

/// What a toolset is given to attach itself to a tenant.
pub struct AttachContext<'a> {
    /// The tenant.
    pub tenant: &'a Tenant,
    /// Its configuration.
    pub config: &'a TenantConfig,
    /// What this toolset built for the tenant before, if it did.
    pub before: Option<&'a Arc<dyn AttachedToolset>>,
    /// What the toolsets before this one have just built for the tenant.
    pub others: &'a [Arc<dyn AttachedToolset>],
}

impl AttachContext<'_> {
    /// What this toolset built for the tenant before.
    pub fn before<A: AttachedToolset>(&self) -> Option<Arc<A>> {
        self.before.and_then(downcast)
    }

    /// What another toolset has built for the tenant. Toolsets attach in the order in which the service lists them.
    pub fn other<A: AttachedToolset>(&self) -> Option<Arc<A>> {
        self.others.iter().find_map(downcast)
    }

    /// Whether the tenant is offered the tools of this toolset.
    pub fn offers(&self, toolset: &dyn Toolset) -> bool {
        offers(toolset, self.config)
    }
}

/// Whether a tenant is offered the tools of a toolset: it configures a target, or loads the toolset by default. In the
/// second case the tools say what is missing.
pub fn offers(toolset: &dyn Toolset, config: &TenantConfig) -> bool {
    let by_default = || config.default_toolsets.iter().any(|name| toolset.names().contains(&name.as_str()));
    toolset.is_configured(config) || by_default()
}

/// A toolset as one tenant has it.
pub trait AttachedToolset: Any + Send + Sync {
    /// Its tools. They hold this tenant's targets and no others.
    fn entries(&self) -> Vec<Arc<CatalogEntry>>;

    /// Whether it can be dropped while nobody uses the tenant, and built again later, without anything being lost. A
    /// simulated target cannot: its state is in this process alone.
    fn can_be_let_go(&self) -> bool {
        true
    }

    /// How hard each target is pressed at the moment, as this process sees it. Asks no target.
    fn loads(&self) -> Vec<TargetLoad> {
        Vec::new()
    }

    /// Asks every target how it is, without changing anything. For `doctor`.
    fn health(&self) -> HealthFuture<'_> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// The answer of [`AttachedToolset::health`].
pub type HealthFuture<'a> = Pin<Box<dyn Future<Output = Vec<TargetHealth>> + Send + 'a>>;

/// How one target is.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetHealth {
    /// What kind of target it is, as people call it (`cluster`, `Jenkins server`).
    pub kind: &'static str,
    /// Its name in the tenant's configuration.
    pub name: String,
    /// The version it says it has, if it says one, or why it cannot be used.
    pub state: Result<Option<String>, Failure>,
}

/// How hard one target is pressed at the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetLoad {
    /// The target, named as in the audit log: `cluster/prod`.
    pub name: String,
    /// Whether it is not asked at the moment because it failed before.
    pub is_closed: bool,
    /// Requests under way.
    pub in_flight: usize,
    /// Requests that wait for a slot.
    pub waiting: usize,
}

/// The attached toolset of this type among these.
pub fn find<A: AttachedToolset>(attached: &[Arc<dyn AttachedToolset>]) -> Option<Arc<A>> {
    attached.iter().find_map(downcast)
}

fn downcast<A: AttachedToolset>(attached: &Arc<dyn AttachedToolset>) -> Option<Arc<A>> {
    let any: Arc<dyn Any + Send + Sync> = Arc::<dyn AttachedToolset>::clone(attached);
    any.downcast::<A>().ok()
}

/// Why a toolset cannot be attached to a tenant. The tenant then keeps what it had.
#[derive(Debug, thiserror::Error)]
#[error("the toolset cannot be attached: {0}")]
pub struct AttachError(Box<dyn std::error::Error + Send + Sync>);

impl AttachError {
    /// Because of this.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> AttachError {
        AttachError(cause.into())
    }
}
