//! What each tenant's tools act on, as its configuration says: clusters, Jenkins servers, chart repositories, external
//! MCP servers.
//!
//! Secrets come from the vault at each use, so that one that was changed needs no restart.
//! `sandbox: true` is a simulated target of the tenant's own inside this process.

mod clusters;
mod external;
mod servers;

use crate::settings::Settings;
use clusters::ClusterDesk;
use domain::Tenant;
use egress::Guard;
use external::ExternalDesk;
use helm::charts::{Charts, Hosts, Repository, Secrets, TenantCharts};
use servers::ServerDesk;
use std::sync::Arc;
use tenancy::TenantConfig;
use upstream::Upstreams;
use vault::Vault;

/// Turns what tenants' files say into what tools act on.
pub struct Targets {
    clusters: ClusterDesk,
    servers: ServerDesk,
    charts: Charts,
    external: Option<ExternalDesk>,
    vault: Vault,
    /// What tenants may have reached.
    pub reach: Reach,
}

impl Targets {
    /// Targets for these tools. To be made inside the runtime that sandboxes shall run on. Without `upstreams` external
    /// servers are left alone.
    pub fn new(kit: &tools::Kit, settings: &Settings, vault: Vault, upstreams: Option<Upstreams>) -> Targets {
        let reach = Reach::of(settings);
        let external = upstreams.map(|upstreams| ExternalDesk::new(upstreams, vault.clone(), reach.guard.clone()));
        Targets {
            clusters: ClusterDesk::new(kit.clusters.clone(), vault.clone(), &settings.tenants),
            servers: ServerDesk::new(kit.servers.clone(), vault.clone(), reach.guard.clone()),
            charts: kit.charts.clone(),
            external,
            vault,
            reach,
        }
    }

    /// Sets what a tenant acts on. A part that cannot be used is told of and leaves the others alone: its tools say
    /// what is missing. Waits for sandboxes to start, so it is not for a task of the runtime.
    pub fn set(&self, config: &TenantConfig) {
        let tenant = &config.tenant;
        if let Err(error) = self.clusters.set(config) {
            tracing::error!(%tenant, %error, "the tenant's clusters cannot be used");
        }
        if let Err(error) = self.servers.set(config) {
            tracing::error!(%tenant, %error, "the tenant's Jenkins servers cannot be used");
        }
        let repository = |told: &tenancy::Repository| Repository {
            name: told.name.clone(),
            url: told.url.clone(),
            credential: told.credential.clone(),
        };
        let repositories = config.repositories.iter().map(repository).collect();
        let (vault, whose) = (self.vault.clone(), tenant.clone());
        let secrets = Secrets::Kept(Arc::new(move |name| Ok(vault.read(&whose, name)?)));
        self.charts.replace(tenant, TenantCharts { repositories, secrets });
        if let Some(external) = &self.external {
            external.set(config);
        }
    }

    /// Takes everything of a tenant away.
    pub fn remove(&self, tenant: &Tenant) {
        if let Err(error) = self.clusters.remove(tenant) {
            tracing::error!(%tenant, %error, "the clusters of a tenant that is gone stay");
        }
        if let Err(error) = self.servers.remove(tenant) {
            tracing::error!(%tenant, %error, "the Jenkins servers of a tenant that is gone stay");
        }
        self.charts.replace(tenant, TenantCharts::default());
        if let Some(external) = &self.external {
            external.remove(tenant);
        }
    }
}

/// What the operator lets tenants' files name.
#[derive(Debug, Clone)]
pub struct Reach {
    /// What addresses may lead to.
    pub guard: Guard,
    /// The hosts charts may come from; `None` where no settings are at hand to say.
    pub chart_hosts: Option<Hosts>,
    /// The tenants that may name external servers of their own; `None` where no settings are at hand to say.
    pub own_servers: Option<Vec<String>>,
}

impl Reach {
    /// What the settings say.
    pub fn of(settings: &Settings) -> Reach {
        let told = &settings.upstreams;
        let guard = Guard { private: told.private, ports: told.ports.clone() };
        let chart_hosts = Some(Hosts::new(told.chart_hosts.clone()));
        Reach { guard, chart_hosts, own_servers: Some(told.own_servers.clone()) }
    }

    /// What holds where no settings are at hand: public addresses, and charts from anywhere.
    pub fn unknown() -> Reach {
        Reach { guard: Guard::default(), chart_hosts: None, own_servers: None }
    }

    /// Whether a tenant may name this Jenkins server.
    pub fn server(&self, address: &str) -> Result<(), String> {
        self.guard.parse(address).map(drop).map_err(|refused| refused.to_string())
    }

    /// Whether a tenant may name an external server of its own at this address.
    pub fn own_server(&self, tenant: &Tenant, address: &str) -> Result<(), String> {
        if self.own_servers.as_ref().is_some_and(|named| !named.iter().any(|named| named == tenant.as_str())) {
            return Err("the tenant is not one of the operator's upstreams.own_servers".into());
        }
        self.guard.parse(address).map(drop).map_err(|refused| refused.to_string())
    }

    /// Whether a tenant may name this chart repository or registry.
    pub fn charts(&self, address: &str) -> Result<(), String> {
        // A registry is reached over https as well; only its name for it differs.
        let web = match address.strip_prefix("oci://") {
            Some(rest) => format!("https://{rest}"),
            None => address.to_owned(),
        };
        let url = self.guard.parse(&web).map_err(|refused| refused.to_string())?;
        match &self.chart_hosts {
            Some(hosts) if !hosts.allow(&url) => {
                Err("the host is not one of the operator's upstreams.chart_hosts".into())
            }
            Some(_) | None => Ok(()),
        }
    }
}
