//! How the toolset `runbooks` joins a tenant: each runbook of its section becomes a tool.

use crate::codes;
use crate::declaration::Runbook;
use crate::section;
use crate::tool::{RunbookTool, TOOLSET};
use catalog::CatalogEntry;
use domain::{Code, Effect};
use kubernetes::TenantKubernetes;
use kubernetes::client::Clusters;
use redact::KeptSecret;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::Store;
use tenancy::{Section, TenantConfig};
use toolset::{AttachContext, AttachError, AttachedToolset, Toolset};
use vault::Vault;

/// The toolset `runbooks`. It attaches after [`kubernetes::Kubernetes`], in whose clusters it makes Jobs.
pub struct RunbooksToolset {
    store: Store,
    vault: Vault,
    /// Those of a project on this machine, which every tenant of the process has besides its own.
    project: Vec<Runbook>,
}

/// The runbooks of one tenant as tools.
pub struct TenantRunbooks {
    entries: Vec<Arc<CatalogEntry>>,
}

impl RunbooksToolset {
    /// For all tenants of the process.
    pub fn new(store: Store, vault: Vault) -> RunbooksToolset {
        RunbooksToolset { store, vault, project: Vec::new() }
    }

    /// The same with the runbooks of a project. Nobody vouches for the author of a project, so none of them only reads:
    /// each waits for a person.
    #[must_use]
    pub fn with_project(mut self, runbooks: Vec<Runbook>) -> RunbooksToolset {
        self.project = runbooks;
        self.project.iter_mut().for_each(|runbook| runbook.effect = runbook.effect.max(Effect::Change));
        self
    }

    fn entries(&self, config: &TenantConfig, clusters: &Clusters) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let runbooks = config.section::<Vec<Runbook>>(section::KEY).map_err(AttachError::new)?;
        let entry = |runbook: &Runbook| {
            let tool = RunbookTool {
                runbook: Arc::new(runbook.clone()),
                store: self.store.clone(),
                clusters: clusters.clone(),
                secrets: self.secrets(config, runbook),
            };
            tool.entry().map(Arc::new)
        };
        let own: Vec<&Runbook> = runbooks.into_iter().flatten().collect();
        // A name of the tenant's own stays the tenant's.
        let more = self.project.iter().filter(|runbook| own.iter().all(|taken| taken.tool != runbook.tool));
        own.iter().copied().chain(more).map(entry).collect()
    }

    /// The secrets that a runbook hands to its commands. What the operator brought is read only where the tenant's file
    /// says so.
    fn secrets(&self, config: &TenantConfig, runbook: &Runbook) -> BTreeMap<String, KeptSecret> {
        let kept = |used: tenancy::SecretUse| {
            let kept = match config.grants(&used) {
                true => self.vault.kept(&config.tenant, &used.secret),
                false => self.vault.kept_by_tenant(&config.tenant, &used.secret),
            };
            (used.secret, kept)
        };
        runbook.secret_uses().map(kept).collect()
    }
}

impl Toolset for RunbooksToolset {
    fn names(&self) -> &'static [&'static str] {
        &[TOOLSET]
    }

    fn sections(&self) -> Vec<Section> {
        vec![section::section()]
    }

    /// None: every tool is one that a tenant declares.
    fn tools(&self, _: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        Ok(Vec::new())
    }

    fn tools_of(&self, config: &TenantConfig) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(config, &Clusters::none())
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(section::KEY) || !self.project.is_empty()
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let kubernetes = attach.other::<TenantKubernetes>();
        let clusters = kubernetes.map_or_else(Clusters::none, |kubernetes| kubernetes.clusters().clone());
        Ok(Arc::new(TenantRunbooks { entries: self.entries(attach.config, &clusters)? }))
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for TenantRunbooks {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.entries.clone()
    }
}
