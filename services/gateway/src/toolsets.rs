//! The toolsets of this service, in the order in which their tools are listed. A new kind of target is one line in
//! [`Toolsets::build`].

use crate::reach::EgressPolicy;
use crate::settings::Settings;
use catalog::CatalogEntry;
use domain::{Code, Tenant};
use executor::ServiceKeys;
use external::{ExternalToolset, ServerCatalog, Upstreams, UpstreamsConfig};
use helm::HelmToolset;
use helm::client::Helm;
use helm::client::charts::{Charts, ChartsConfig};
use helm::tools::HelmDeps;
use jenkins::{JenkinsConfig, JenkinsToolset, SimulatedServer};
use kubernetes::{Argo, Kubernetes, KubernetesConfig, SimulatedCluster};
use memory::MemoryToolset;
use memory::documents::Documents;
use runbooks::{Runbook, RunbooksToolset};
use sandbox::jenkins::JenkinsSeed;
use sandbox::{Sandbox, Seed};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::Store;
use target::Cursors;
use tenancy::{Section, TenantConfig};
use tokio::runtime::Handle;
use toolset::{AttachContext, AttachError, AttachedToolset, Toolset};
use vault::Vault;

/// Every toolset of this service.
pub struct Toolsets {
    all: Vec<Arc<dyn Toolset>>,
    tools: Vec<Arc<CatalogEntry>>,
    /// The documents of a tenant that is attached to nothing: the stores are those of the product.
    pub notebook: Documents,
    /// The external servers; `None` where they are not listed.
    pub upstreams: Option<Upstreams>,
}

/// What may be done with external servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExternalServers {
    /// They are listed, and their tools are offered.
    Listed,
    /// They are asked how they are, and nothing of the answer is kept: listing one may accept its tools.
    HealthOnly,
    /// They are left alone.
    Ignored,
}

/// What toolsets are made of.
pub struct ToolsetsParts<'a> {
    /// The effective settings.
    pub settings: &'a Settings,
    /// The state store.
    pub store: &'a Store,
    /// The keys of the service.
    pub keys: &'a ServiceKeys,
    /// The secrets of all tenants.
    pub vault: &'a Vault,
    /// The helm binary.
    pub helm: Helm,
    /// What only this process has.
    pub local: LocalParts,
}

/// What only a process for one user has.
#[derive(Default)]
pub struct LocalParts {
    /// Toolsets, listed last.
    pub toolsets: Vec<Arc<dyn Toolset>>,
    /// The runbooks of the project it was started in.
    pub runbooks: Vec<Runbook>,
}

impl Toolsets {
    /// Makes each toolset. To be called inside the runtime that simulated targets and background work shall run on.
    pub fn build(parts: ToolsetsParts<'_>, external: ExternalServers) -> anyhow::Result<Toolsets> {
        let ToolsetsParts { settings, store, keys, vault, helm, local } = parts;
        let (reach, cursors) = (EgressPolicy::of(settings), Cursors::new(*keys.page()));
        let charts = ChartsConfig {
            cache: settings.upstreams.cache.join("charts"),
            guard: reach.guard.clone(),
            hosts: reach.chart_hosts.unwrap_or_default(),
        };
        let charts = Charts::new(charts, store.clone())?;
        let kubernetes = KubernetesConfig {
            mask_key: *keys.mask(),
            cursors: cursors.clone(),
            vault: vault.clone(),
            loopback: settings.tenants.clusters_on_loopback,
            over_http: settings.tenants.clusters_over_http,
            guard: reach.guard.clone(),
            simulate: simulated_clusters(),
        };
        let jenkins = JenkinsConfig {
            cursors: cursors.clone(),
            vault: vault.clone(),
            guard: reach.guard.clone(),
            simulate: simulated_jenkins(),
        };
        let notebook = Documents::new(store.clone());
        let helm = HelmDeps::new(helm, charts, store.clone(), cursors.clone());
        let mut all: Vec<Arc<dyn Toolset>> = vec![
            Arc::new(Kubernetes::new(kubernetes)),
            Arc::new(HelmToolset::new(helm, vault.clone())),
            Arc::new(Argo::new(cursors.clone())),
            Arc::new(JenkinsToolset::new(jenkins)),
            Arc::new(MemoryToolset::new(notebook.clone(), cursors)),
            Arc::new(RunbooksToolset::new(store.clone(), vault.clone()).with_project(local.runbooks)),
        ];
        all.extend(local.toolsets);
        let tools = listed(&all, false)?;
        // No tool of an external server can take a name of ours.
        let reserved = tools.iter().map(|entry| entry.name().to_string()).collect();
        let servers = || Upstreams::new(UpstreamsConfig { store: store.clone(), reserved, lookup: None });
        let (upstreams, attached) = match external {
            ExternalServers::Listed => {
                let servers = servers();
                (Some(servers.clone()), Some(servers))
            }
            ExternalServers::HealthOnly => (None, Some(servers().without_background())),
            ExternalServers::Ignored => (None, None),
        };
        if let Some(servers) = attached {
            all.push(Arc::new(ExternalToolset::new(servers, vault.clone(), reach.guard)));
        }
        Toolsets { all, tools, notebook, upstreams }.with_distinct_sections().map_err(Into::into)
    }

    /// These toolsets and no others. External servers are left alone.
    pub fn of(all: Vec<Arc<dyn Toolset>>, notebook: Documents) -> Result<Toolsets, AttachError> {
        let tools = listed(&all, false)?;
        Toolsets { all, tools, notebook, upstreams: None }.with_distinct_sections()
    }

    /// The sections of tenants' files that toolsets own. Those of external servers are there even where the servers are
    /// left alone, and name what this catalog has.
    pub fn sections(&self, catalog: &ServerCatalog) -> Vec<Section> {
        let own = self.all.iter().flat_map(|toolset| toolset.sections());
        own.chain(external::section::sections(catalog)).collect()
    }

    /// Two toolsets with one key would read each other's values, so the service does not start with them.
    fn with_distinct_sections(self) -> Result<Toolsets, AttachError> {
        let sections = self.sections(&ServerCatalog::none());
        let mut keys = BTreeSet::new();
        match sections.iter().find(|section| !keys.insert(section.key)) {
            Some(twice) => Err(AttachError::new(format!("two toolsets own the section `{}`", twice.key))),
            None => Ok(self),
        }
    }

    /// Every built-in tool, attached to no target, as it is listed where a tenant has one target of each kind.
    pub fn tools(&self) -> &[Arc<CatalogEntry>] {
        &self.tools
    }

    /// The same, as for a tenant with several targets of each kind.
    pub fn tools_for_several(&self) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        listed(&self.all, true)
    }

    /// Every tool that a tenant's own configuration declares, attached to no target.
    pub fn tools_of(&self, config: &TenantConfig) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let each = self.all.iter().map(|toolset| toolset.tools_of(config)).collect::<Result<Vec<_>, _>>()?;
        Ok(each.into_iter().flatten().collect())
    }

    /// The codes that toolsets raise besides those of the path of a call.
    pub fn codes(&self) -> Vec<Code> {
        let own = self.all.iter().flat_map(|toolset| toolset.codes().iter().copied());
        target::codes::ALL.iter().copied().chain(own).collect()
    }

    /// Whether a tenant is offered a toolset of this name.
    pub fn offers(&self, toolset: &str, config: &TenantConfig) -> bool {
        let owner = self.all.iter().find(|owner| owner.names().contains(&toolset));
        owner.is_some_and(|owner| toolset::offers(&**owner, config))
    }

    /// Attaches every toolset to a tenant, or none: the first that cannot be attached ends it. `before` is what the tenant
    /// has now; targets that stay as they are keep their connections.
    pub fn attach(
        &self,
        config: &TenantConfig,
        before: &[Arc<dyn AttachedToolset>],
    ) -> Result<Vec<Arc<dyn AttachedToolset>>, AttachError> {
        let tenant: &Tenant = &config.tenant;
        let mut attached: Vec<Arc<dyn AttachedToolset>> = Vec::with_capacity(self.all.len());
        for (n, toolset) in self.all.iter().enumerate() {
            let one = toolset.attach(&AttachContext { tenant, config, before: before.get(n), others: &attached })?;
            attached.push(one);
        }
        Ok(attached)
    }

    /// Forgets a tenant that is served no longer.
    pub fn detach(&self, tenant: &Tenant) {
        self.all.iter().for_each(|toolset| toolset.detach(tenant));
    }
}

fn listed(all: &[Arc<dyn Toolset>], several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
    let each = all.iter().map(|toolset| toolset.tools(several)).collect::<Result<Vec<_>, _>>()?;
    Ok(each.into_iter().flatten().collect())
}

/// Starts simulated clusters on the current runtime.
fn simulated_clusters() -> kubernetes::SimulateCluster {
    let runtime = Handle::current();
    Arc::new(move || {
        let sandbox = runtime.block_on(Sandbox::start(Seed::shop()))?;
        Ok(SimulatedCluster { kubeconfig: sandbox.kubeconfig(), running: Box::new(sandbox) })
    })
}

/// Starts simulated Jenkins servers on the current runtime.
fn simulated_jenkins() -> jenkins::SimulateServer {
    let runtime = Handle::current();
    Arc::new(move || {
        let server = runtime.block_on(sandbox::jenkins::SimulatedJenkins::start(JenkinsSeed::shop()))?;
        Ok(SimulatedServer {
            url: server.url(),
            port: server.address().port(),
            user: server.user().to_owned(),
            token: server.token().to_owned(),
            running: Box::new(server),
        })
    })
}
