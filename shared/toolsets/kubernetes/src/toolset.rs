//! How the toolsets `k8s` and `argo` join a tenant: its section `clusters` becomes the clusters their tools hold.

use crate::client::{
    BadCluster, ClusterConfig, ClusterEndpoint, ClusterReach, Clusters, ImagePattern, Impersonation, KeptKubeconfig,
    NamespacePattern, NotANamespacePattern, SecretText, WorkloadBounds,
};
use crate::k8s::K8sDeps;
use crate::section::{self, ClusterEntry, ClusterSource};
use crate::{argo, codes, k8s};
use catalog::{CatalogEntry, CompiledTools};
use domain::Code;
use egress::AddressGuard;
use std::any::Any;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use target::Cursors;
use tenancy::{Section, TenantConfig};
use toolset::{AttachContext, AttachError, AttachedToolset, HealthFuture, TargetHealth, TargetLoad, Toolset};
use vault::Vault;

/// How long a cluster may take to say how it is.
const HEALTH_WITHIN: Duration = Duration::from_secs(10);

/// What the operator lets tenants do with clusters, and what the service brings for them.
pub struct KubernetesConfig {
    /// Makes the marks that stand for secrets.
    pub mask_key: [u8; 32],
    /// Where long results go on.
    pub cursors: Cursors,
    /// Where kubeconfigs are kept.
    pub vault: Vault,
    /// Whether a tenant's kubeconfig may lead to this very machine.
    pub loopback: bool,
    /// Whether a kubeconfig that was set over HTTP may be used.
    pub over_http: bool,
    /// Where such a one may lead.
    pub guard: AddressGuard,
    /// Starts a simulated cluster, for `sandbox: true`.
    pub simulate: SimulateCluster,
}

/// Starts a simulated cluster.
pub type SimulateCluster = Arc<dyn Fn() -> io::Result<SimulatedCluster> + Send + Sync>;

/// A simulated cluster that runs as long as this value lives.
pub struct SimulatedCluster {
    /// How it is reached.
    pub kubeconfig: String,
    /// What keeps it running.
    pub running: Box<dyn Any + Send + Sync>,
}

/// The toolset `k8s`.
pub struct Kubernetes {
    config: KubernetesConfig,
    shapes: CompiledTools,
}

/// The clusters of one tenant and the tools on them.
pub struct TenantKubernetes {
    clusters: Clusters,
    simulated: Option<Arc<SimulatedCluster>>,
    entries: Vec<Arc<CatalogEntry>>,
}

impl TenantKubernetes {
    /// The tenant's clusters, for toolsets that act on the same ones.
    pub fn clusters(&self) -> &Clusters {
        &self.clusters
    }
}

/// Why a tenant's clusters cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadClusters {
    #[error(transparent)]
    Meaningless(#[from] BadCluster),
    #[error(transparent)]
    Namespace(#[from] NotANamespacePattern),
    #[error("the sandbox cannot be started")]
    NoSandbox(#[source] io::Error),
}

impl From<BadClusters> for AttachError {
    fn from(bad: BadClusters) -> AttachError {
        AttachError::new(bad)
    }
}

impl Kubernetes {
    /// For all tenants of the process.
    pub fn new(config: KubernetesConfig) -> Kubernetes {
        Kubernetes { config, shapes: CompiledTools::default() }
    }

    fn entries(&self, clusters: &Clusters, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let kit = K8sDeps { clusters: clusters.clone(), cursors: self.config.cursors.clone() };
        k8s::list(&kit, &self.shapes, several).map_err(AttachError::new)
    }

    fn configure(
        &self,
        config: &TenantConfig,
        cluster: &ClusterEntry,
        simulated: Option<&SimulatedCluster>,
        bounds: &WorkloadBounds,
    ) -> Result<ClusterConfig, BadClusters> {
        let patterns =
            |texts: &[String]| texts.iter().map(|text| NamespacePattern::parse(text)).collect::<Result<_, _>>();
        let KubernetesConfig { vault, loopback, over_http, guard, .. } = &self.config;
        let source = match &cluster.source {
            ClusterSource::Secret(name) => {
                let tenant = &config.tenant;
                let granted = cluster.secret_use().is_some_and(|used| config.grants(&used));
                let kept = |secret, reach| KeptKubeconfig { secret, reach };
                let tenants = || kept(vault.kept_over_http(tenant, name), ClusterReach::of_tenant(guard, *loopback));
                let operators = || kept(vault.kept_by_operator(tenant, name), ClusterReach::of_operator(*loopback));
                ClusterEndpoint::Kept(over_http.then(tenants).into_iter().chain(granted.then(operators)).collect())
            }
            ClusterSource::InCluster => ClusterEndpoint::InCluster,
            ClusterSource::Sandbox => {
                ClusterEndpoint::KubeconfigText(SecretText::new(simulated.map_or("", |running| &running.kubeconfig)))
            }
        };
        let who = cluster.impersonate.as_ref();
        Ok(ClusterConfig {
            namespaces: cluster.namespaces.as_deref().map(patterns).transpose()?,
            default_namespace: cluster.default_namespace.clone(),
            impersonate: who.map(|who| Impersonation { user: who.user.clone(), groups: who.groups.clone() }),
            protected: patterns(&cluster.protected)?,
            bounds: bounds.clone(),
            default: cluster.default,
            simulated: cluster.source == ClusterSource::Sandbox,
            ..ClusterConfig::new(cluster.name.clone(), source)
        })
    }
}

impl Toolset for Kubernetes {
    fn names(&self) -> &'static [&'static str] {
        &[k8s::TOOLSET]
    }

    fn sections(&self) -> Vec<Section> {
        vec![section::section(), section::images(), section::most_replicas()]
    }

    fn tools(&self, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(&Clusters::none(), several)
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(section::KEY)
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let before = attach.before::<TenantKubernetes>();
        let clusters = attach.config.section::<Vec<ClusterEntry>>(section::KEY).map_err(AttachError::new)?;
        let configured = clusters.map_or(&[][..], Vec::as_slice);
        let simulated = if configured.iter().any(|cluster| cluster.source == ClusterSource::Sandbox) {
            let running = before.as_ref().and_then(|before| before.simulated.clone());
            let start = || (self.config.simulate)().map(Arc::new).map_err(BadClusters::NoSandbox);
            Some(running.map_or_else(start, Ok)?)
        } else {
            None
        };
        let bounds = WorkloadBounds {
            images: attach.config.section::<Vec<ImagePattern>>(section::IMAGES).map_err(AttachError::new)?.cloned(),
            most_replicas: attach.config.section::<u32>(section::MOST_REPLICAS).map_err(AttachError::new)?.copied(),
        };
        let describe = |cluster| self.configure(attach.config, cluster, simulated.as_deref(), &bounds);
        let configs = configured.iter().map(describe).collect::<Result<Vec<_>, _>>()?;
        let before = before.as_ref().map(|before| &before.clusters);
        let clusters =
            Clusters::build(attach.tenant, &self.config.mask_key, configs, before).map_err(BadClusters::from)?;
        let several = clusters.len() > 1;
        let entries = if attach.offers(self) { self.entries(&clusters, several)? } else { Vec::new() };
        Ok(Arc::new(TenantKubernetes { clusters, simulated, entries }))
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for TenantKubernetes {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.entries.clone()
    }

    fn can_be_let_go(&self) -> bool {
        self.simulated.is_none()
    }

    fn loads(&self) -> Vec<TargetLoad> {
        let load = |load: target::ConnectionLoad| {
            let target::ConnectionLoad { name, is_closed, in_flight, waiting } = load;
            TargetLoad { name, is_closed, in_flight, waiting }
        };
        self.clusters.loads().into_iter().map(load).collect()
    }

    fn health(&self) -> HealthFuture<'_> {
        Box::pin(async {
            let mut all = Vec::new();
            for name in self.clusters.names() {
                let state = self.clusters.health(name, HEALTH_WITHIN).await;
                all.push(TargetHealth { kind: "cluster", name: name.to_owned(), state });
            }
            all
        })
    }
}

/// The toolset `argo`. It attaches after [`Kubernetes`], whose clusters it acts on.
pub struct Argo {
    cursors: Cursors,
    shapes: CompiledTools,
}

/// The tools on rollouts of one tenant.
pub struct TenantArgo {
    entries: Vec<Arc<CatalogEntry>>,
}

impl Argo {
    /// For all tenants of the process.
    pub fn new(cursors: Cursors) -> Argo {
        Argo { cursors, shapes: CompiledTools::default() }
    }

    fn entries(&self, clusters: Clusters, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let kit = K8sDeps { clusters, cursors: self.cursors.clone() };
        argo::list(&kit, &self.shapes, several).map_err(AttachError::new)
    }
}

impl Toolset for Argo {
    fn names(&self) -> &'static [&'static str] {
        &[argo::TOOLSET]
    }

    fn tools(&self, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(Clusters::none(), several)
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(section::KEY)
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let kubernetes = attach.other::<TenantKubernetes>();
        let clusters = kubernetes.map_or_else(Clusters::none, |kubernetes| kubernetes.clusters().clone());
        let several = clusters.len() > 1;
        let entries = if attach.offers(self) { self.entries(clusters, several)? } else { Vec::new() };
        Ok(Arc::new(TenantArgo { entries }))
    }

    fn codes(&self) -> &'static [Code] {
        // Its codes stand in the one table of this crate, which `k8s` reports.
        &[]
    }
}

impl AttachedToolset for TenantArgo {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.entries.clone()
    }
}
