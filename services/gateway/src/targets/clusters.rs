//! The clusters of each tenant: a secret is a kubeconfig, `sandbox: true` a simulated cluster.

use crate::settings::Tenants;
use cluster::{ClusterConfig, Clusters, Impersonate, NamespacePattern, SecretText, Source};
use domain::Tenant;
use sandbox::{Sandbox, Seed};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tenancy::{Cluster, ClusterSource, TenantConfig};
use tokio::runtime::Handle;
use vault::Vault;

/// Why a tenant's clusters cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadClusters {
    /// What the file says makes no sense to the cluster.
    #[error(transparent)]
    Meaningless(#[from] cluster::BadCluster),
    /// A namespace that the file's own check should have refused.
    #[error(transparent)]
    Namespace(#[from] cluster::NotANamespacePattern),
    /// The sandbox did not start.
    #[error("the sandbox cannot be started")]
    NoSandbox(#[source] std::io::Error),
}

/// Turns what tenants' files say about clusters into what tools act on.
pub(super) struct ClusterDesk {
    clusters: Clusters,
    vault: Vault,
    loopback: bool,
    over_http: bool,
    sandboxes: Mutex<HashMap<Tenant, Sandbox>>,
    runtime: Handle,
}

impl ClusterDesk {
    /// A desk whose secrets are in this vault. To be made inside the runtime that sandboxes shall run on.
    pub(super) fn new(clusters: Clusters, vault: Vault, told: &Tenants) -> ClusterDesk {
        let (loopback, over_http) = (told.clusters_on_loopback, told.clusters_over_http);
        ClusterDesk { clusters, vault, loopback, over_http, sandboxes: Mutex::default(), runtime: Handle::current() }
    }

    /// Sets the clusters of a tenant. Waits for a sandbox to start, so it is not for a task of the runtime.
    pub(super) fn set(&self, config: &TenantConfig) -> Result<(), BadClusters> {
        let tenant = &config.tenant;
        let wants_sandbox = config.clusters.iter().any(|cluster| cluster.source == ClusterSource::Sandbox);
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if !wants_sandbox {
            sandboxes.remove(tenant);
        } else if !sandboxes.contains_key(tenant) {
            let started = self.runtime.block_on(Sandbox::start(Seed::shop())).map_err(BadClusters::NoSandbox)?;
            sandboxes.insert(tenant.clone(), started);
        }
        let kubeconfig = sandboxes.get(tenant).map(Sandbox::kubeconfig);
        drop(sandboxes);
        let described = config.clusters.iter().map(|cluster| self.describe(tenant, cluster, kubeconfig.as_deref()));
        let described: Vec<ClusterConfig> = described.collect::<Result<_, _>>()?;
        Ok(self.clusters.replace(tenant, described)?)
    }

    /// Takes a tenant's clusters away.
    pub(super) fn remove(&self, tenant: &Tenant) -> Result<(), BadClusters> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant);
        Ok(self.clusters.replace(tenant, Vec::new())?)
    }

    fn describe(&self, tenant: &Tenant, told: &Cluster, sandbox: Option<&str>) -> Result<ClusterConfig, BadClusters> {
        let patterns =
            |texts: &[String]| texts.iter().map(|text| NamespacePattern::parse(text)).collect::<Result<_, _>>();
        let source = match &told.source {
            ClusterSource::Secret(name) => {
                let secret = if self.over_http {
                    self.vault.kept(tenant, name)
                } else {
                    self.vault.kept_by_operator(tenant, name)
                };
                Source::Kept { secret, loopback: self.loopback }
            }
            ClusterSource::InCluster => Source::InCluster,
            ClusterSource::Sandbox => Source::KubeconfigText(SecretText::new(sandbox.unwrap_or_default())),
        };
        let who = told.impersonate.as_ref();
        Ok(ClusterConfig {
            namespaces: told.namespaces.as_deref().map(patterns).transpose()?,
            default_namespace: told.default_namespace.clone(),
            impersonate: who.map(|who| Impersonate { user: who.user.clone(), groups: who.groups.clone() }),
            protected: patterns(&told.protected)?,
            default: told.default,
            simulated: told.source == ClusterSource::Sandbox,
            ..ClusterConfig::new(told.name.clone(), source)
        })
    }
}
