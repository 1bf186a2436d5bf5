//! How the toolset `helm` joins a tenant: its section `toolsets.helm` and the clusters it already has.

use crate::client::charts::{ChartRepository, SecretsFolder, TenantCharts};
use crate::section::{self, RepositoryEntry};
use crate::tools::HelmDeps;
use crate::{codes, tools};
use catalog::{CatalogEntry, CompiledTools};
use domain::Code;
use kubernetes::TenantKubernetes;
use kubernetes::client::Clusters;
use std::sync::Arc;
use tenancy::{Section, TenantConfig};
use toolset::{AttachContext, AttachError, AttachedToolset, Toolset};
use vault::Vault;

/// The toolset `helm`. It attaches after `kubernetes`, whose clusters it acts on.
pub struct HelmToolset {
    kit: HelmDeps,
    vault: Vault,
    shapes: CompiledTools,
}

/// The tools on releases of one tenant.
pub struct TenantHelm {
    entries: Vec<Arc<CatalogEntry>>,
}

impl HelmToolset {
    /// For all tenants of the process.
    pub fn new(kit: HelmDeps, vault: Vault) -> HelmToolset {
        HelmToolset { kit, vault, shapes: CompiledTools::default() }
    }

    fn entries(&self, kit: &HelmDeps, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        tools::list(kit, &self.shapes, several).map_err(AttachError::new)
    }
}

impl Toolset for HelmToolset {
    fn names(&self) -> &'static [&'static str] {
        &[tools::TOOLSET]
    }

    fn sections(&self) -> Vec<Section> {
        vec![section::section()]
    }

    fn tools(&self, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(&self.kit, several)
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(kubernetes::section::KEY)
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let kubernetes = attach.other::<TenantKubernetes>();
        let clusters = kubernetes.map_or_else(Clusters::none, |kubernetes| kubernetes.clusters().clone());
        let repository = |repository: &RepositoryEntry| ChartRepository {
            name: repository.name.clone(),
            url: repository.url.clone(),
            credential: repository.credential.clone(),
        };
        let repositories = attach.config.section::<Vec<RepositoryEntry>>(section::KEY).map_err(AttachError::new)?;
        let repositories = repositories.into_iter().flatten().map(repository).collect();
        let (vault, tenant) = (self.vault.clone(), attach.tenant.clone());
        let secrets = SecretsFolder::Kept(Arc::new(move |name| Ok(vault.read(&tenant, name)?)));
        let several = clusters.len() > 1;
        let kit = self.kit.for_tenant(attach.tenant, clusters, TenantCharts { repositories, secrets });
        let entries = if attach.offers(self) { self.entries(&kit, several)? } else { Vec::new() };
        Ok(Arc::new(TenantHelm { entries }))
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for TenantHelm {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.entries.clone()
    }
}
