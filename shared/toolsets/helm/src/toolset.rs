//! How the toolset `helm` joins a tenant: its section `toolsets.helm` and the clusters it already has.

use crate::client::charts::{ChartRepository, SecretsFolder, TenantCharts};
use crate::section::{self, HelmConfig, RepositoryEntry};
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

    /// The secrets of a tenant: those of the operator where the tenant's file uses them, else the tenant's own alone.
    fn secrets(&self, config: &TenantConfig) -> SecretsFolder {
        let (vault, tenant, granted) = (self.vault.clone(), config.tenant.clone(), config.granted_secrets.clone());
        SecretsFolder::Kept(Arc::new(move |name, url| {
            let granted = granted.contains(&RepositoryEntry::credential_use(name, url));
            Ok(if granted { vault.read(&tenant, name)? } else { vault.read_by_tenant(&tenant, name)? })
        }))
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
        let config = attach.config.section::<HelmConfig>(section::KEY).map_err(AttachError::new)?;
        let HelmConfig { repositories, templates_in_values } = config.cloned().unwrap_or_default();
        let repository = |entry: &RepositoryEntry| ChartRepository {
            name: entry.name.clone(),
            url: entry.url.clone(),
            credential: entry.credential.clone(),
        };
        let repositories = repositories.iter().map(repository).collect();
        let charts = TenantCharts { repositories, secrets: self.secrets(attach.config) };
        let several = clusters.len() > 1;
        let kit = self.kit.for_tenant(attach.tenant, clusters, charts).with_templates_in_values(templates_in_values);
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
