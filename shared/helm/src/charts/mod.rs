//! Charts: where a tenant's come from, how they are fetched, and how they are kept for helm.
//!
//! Reading order: [`mod@reference`] and [`range`] (what a caller names), `hosts` and `place` (where that may be), `web` (the way
//! there, through `egress`), [`index`], `indexes` and `oci` (the two kinds of repository), [`archive`] (what is inside), [`cache`] (the
//! file), `records` (what tenants added), [`repositories`] (the handle that tools get), `failures` (what callers are told).
//!
//! # The face
//! ```text
//! Charts::new(ChartsConfig { cache, guard, hosts }, store)      one per process, cheap to clone
//!   .replace(&tenant, TenantCharts { repositories, secrets })   the tenant's file
//!   .check(url)                                                 whether a tenant may have this repository
//!   .of(&permit) -> Repositories<'_>                            those of the permit's tenant, and no others
//!
//! Repositories
//!   .list() -> Vec<Listed>                      from the tenant's file and added
//!   .index(&repository, refresh) -> Fetched     what a repository says it has; ten minutes old at most
//!   .fetch(&ChartRef, &Range) -> Archive        the file for helm, its digest checked, its contents looked through
//!   .rehearse(&Repository) -> Checked           what adding it would mean
//!   .add(Repository), .remove(name)             need a permit that may act
//!
//! Archive { path, sha256, name, version, contents }             the file stays as long as the value does
//! ```
//! helm itself is never told an address: it gets files.

pub mod archive;
pub mod cache;
mod credential;
mod failures;
mod hosts;
pub mod index;
mod indexes;
mod oci;
mod place;
pub mod range;
mod records;
pub mod reference;
pub mod repositories;
mod web;

pub use archive::Contents;
pub use cache::Archive;
pub use credential::{Keeper, Secrets, is_secret_name};
pub use egress::BuildError;
pub use hosts::Hosts;
pub use index::{Entry, Index};
pub use indexes::Fetched;
pub use range::Range;
pub use reference::{ChartRef, is_repository};
pub use repositories::{Checked, Listed, Origin, Repositories};

use cache::Cache;
use domain::{Failure, Tenant};
use egress::{Config, Guard};
use indexes::Indexes;
use place::Limits;
use policy::Permit;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use store::Store;
use web::Web;

/// What an operator says about charts.
#[derive(Debug, Clone)]
pub struct ChartsConfig {
    /// The folder archives are kept in; ours alone, and made when the first one is kept.
    pub cache: PathBuf,
    /// What addresses may lead to.
    pub guard: Guard,
    /// The hosts charts may come from.
    pub hosts: Hosts,
}

/// What a tenant's file says about charts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantCharts {
    /// Its repositories and registries.
    pub repositories: Vec<Repository>,
    /// Where its secrets are.
    pub secrets: Secrets,
}

/// A repository or registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Repository {
    /// The part of a chart's name before the slash.
    pub name: String,
    /// Its `https://` or `oci://` address.
    pub url: String,
    /// The name of the tenant's secret that opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
}

/// The charts of all tenants in this process. Cheap to clone; a tenant's are reached by its permit and in no other way.
#[derive(Clone)]
pub struct Charts(Arc<Parts>);

struct Parts {
    web: Web,
    cache: Cache,
    store: Store,
    tenants: RwLock<HashMap<Tenant, Arc<TenantCharts>>>,
    indexes: Indexes,
}

impl Charts {
    /// No repositories yet.
    pub fn new(config: ChartsConfig, store: Store) -> Result<Charts, BuildError> {
        // Twice this fits into the deadline of a call.
        let waits = Config { answer_within: Duration::from_secs(12), ..Config::default() };
        let client = config.guard.client(&waits)?;
        let cache = Cache::at(config.cache);
        let web = Web::new(Limits { guard: config.guard, hosts: config.hosts }, client);
        let (tenants, indexes) = (RwLock::default(), Indexes::default());
        Ok(Charts(Arc::new(Parts { web, cache, store, tenants, indexes })))
    }

    /// No charts from anywhere, for whoever only looks at tools.
    pub fn nowhere(store: Store) -> Result<Charts, BuildError> {
        let config = ChartsConfig { cache: PathBuf::new(), guard: Guard::default(), hosts: Hosts::default() };
        Charts::new(config, store)
    }

    /// Sets what a tenant's file says, all at once.
    pub fn replace(&self, tenant: &Tenant, charts: TenantCharts) {
        let mut tenants = self.0.tenants.write().unwrap_or_else(PoisonError::into_inner);
        tenants.insert(tenant.clone(), Arc::new(charts));
    }

    /// Whether a tenant may have a repository at this address, or why not.
    pub fn check(&self, url: &str) -> Result<(), Failure> {
        self.0.web.limits.place(url).map(drop)
    }

    /// The repositories of the permit's tenant.
    pub fn of<'p>(&self, permit: &'p Permit) -> Repositories<'p> {
        let tenants = self.0.tenants.read().unwrap_or_else(PoisonError::into_inner);
        let own = tenants.get(permit.tenant()).cloned().unwrap_or_default();
        Repositories::new(self.clone(), own, permit)
    }
}

impl std::fmt::Debug for Charts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Charts(..)")
    }
}
