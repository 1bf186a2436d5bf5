//! Charts: where a tenant's come from, how they are fetched, and how they are kept for helm.
//!
//! Reading order: [`mod@reference`] and [`range`] (what a caller names), `hosts` and `place` (where that may be), `web` (the way
//! there, through `egress`), [`index`], `indexes` and `oci` (the two kinds of repository), [`archive`] (what is inside), [`cache`] (the
//! file), `records` (what tenants added), [`repositories`] (the handle that tools get), `failures` (what callers are told).
//!
//! # The face
//! ```text
//! Charts::new(ChartsConfig { cache, guard, hosts }, store)      one per process, cheap to clone
//!   .for_tenant(TenantCharts { repositories, secrets })         the tenant's file
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
#[cfg(feature = "fuzz")]
pub mod fuzz;
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

pub use archive::ChartContents;
pub use cache::Archive;
pub use credential::{SecretLookup, SecretsFolder};
pub use egress::ClientError;
pub use hosts::Hosts;
pub use index::{ChartIndex, ChartVersion};
pub use indexes::FetchedIndex;
pub use range::Range;
pub use reference::{ChartRef, is_repository};
pub use repositories::{Repositories, RepositoryCheck, RepositoryOrigin, TenantRepository};

use cache::Cache;
use domain::Failure;
use egress::{AddressGuard, Config};
use indexes::ChartIndexes;
use place::ChartLimits;
use policy::Permit;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::Store;
use web::ChartWeb;

/// What an operator says about charts.
#[derive(Debug, Clone)]
pub struct ChartsConfig {
    /// The folder archives are kept in; ours alone, and made when the first one is kept.
    pub cache: PathBuf,
    /// What addresses may lead to.
    pub guard: AddressGuard,
    /// The hosts charts may come from.
    pub hosts: Hosts,
}

/// What a tenant's file says about charts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TenantCharts {
    /// Its repositories and registries.
    pub repositories: Vec<ChartRepository>,
    /// Where its secrets are.
    pub secrets: SecretsFolder,
}

/// A repository or registry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChartRepository {
    /// The part of a chart's name before the slash.
    pub name: String,
    /// Its `https://` or `oci://` address.
    pub url: String,
    /// The name of the tenant's secret that opens it. Only the tenant's configuration says which one goes where, so a
    /// repository that was added by a call has none, whatever its record says.
    #[serde(skip)]
    pub credential: Option<String>,
}

/// The charts of one tenant, over what all tenants share: client, files and indexes. Cheap to clone.
#[derive(Clone)]
pub struct Charts {
    shared: Arc<ChartsParts>,
    own: Arc<TenantCharts>,
}

struct ChartsParts {
    web: ChartWeb,
    cache: Cache,
    store: Store,
    indexes: ChartIndexes,
}

impl Charts {
    /// No repositories yet.
    pub fn new(config: ChartsConfig, store: Store) -> Result<Charts, ClientError> {
        // Twice this fits into the deadline of a call.
        let waits = Config { answer_within: Duration::from_secs(12), ..Config::default() };
        let client = config.guard.client(&waits)?;
        let cache = Cache::at(config.cache);
        let web = ChartWeb::new(ChartLimits { guard: config.guard, hosts: config.hosts }, client);
        let shared = Arc::new(ChartsParts { web, cache, store, indexes: ChartIndexes::default() });
        Ok(Charts { shared, own: Arc::default() })
    }

    /// No charts from anywhere, for whoever only looks at tools.
    pub fn nowhere(store: Store) -> Result<Charts, ClientError> {
        let config = ChartsConfig { cache: PathBuf::new(), guard: AddressGuard::default(), hosts: Hosts::default() };
        Charts::new(config, store)
    }

    /// The charts of a tenant whose file says this.
    #[must_use]
    pub fn for_tenant(&self, own: TenantCharts) -> Charts {
        Charts { shared: Arc::clone(&self.shared), own: Arc::new(own) }
    }

    /// Whether a tenant may have a repository at this address, or why not.
    pub fn check(&self, url: &str) -> Result<(), Failure> {
        self.shared.web.limits.place(url).map(drop)
    }

    /// The repositories of the permit's tenant.
    pub fn of<'p>(&self, permit: &'p Permit) -> Repositories<'p> {
        Repositories::new(self.clone(), permit)
    }
}

impl std::fmt::Debug for Charts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Charts(..)")
    }
}
