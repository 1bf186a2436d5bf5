//! What each tenant's tools act on, as its file says: clusters, Jenkins servers, chart repositories.
//!
//! Secrets are files under `tenants.secrets`, one folder per tenant, as a mounted Kubernetes secret brings them.
//! `sandbox: true` is a simulated target of the tenant's own inside this process.

mod clusters;
mod servers;

use crate::settings::Settings;
use clusters::ClusterDesk;
use domain::Tenant;
use egress::Guard;
use helm::charts::{Charts, Hosts, Repository, TenantCharts};
use servers::ServerDesk;
use std::path::PathBuf;
use tenancy::TenantConfig;

/// Turns what tenants' files say into what tools act on.
pub struct Targets {
    clusters: ClusterDesk,
    servers: ServerDesk,
    charts: Charts,
    secrets: PathBuf,
    /// What tenants may have reached.
    pub reach: Reach,
}

impl Targets {
    /// Targets for these tools. To be made inside the runtime that sandboxes shall run on.
    pub fn new(kit: &tools::Kit, settings: &Settings) -> Targets {
        let secrets = settings.tenants.secrets.clone();
        let reach = Reach::of(settings);
        Targets {
            clusters: ClusterDesk::new(kit.clusters.clone(), &secrets, settings.tenants.clusters_on_loopback),
            servers: ServerDesk::new(kit.servers.clone(), &secrets, reach.guard.clone()),
            charts: kit.charts.clone(),
            secrets,
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
        let secrets = Some(self.secrets.join(tenant.as_str()));
        self.charts.replace(tenant, TenantCharts { repositories, secrets });
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
    }
}

/// What the operator lets tenants' files name.
#[derive(Debug, Clone)]
pub struct Reach {
    /// What addresses may lead to.
    pub guard: Guard,
    /// The hosts charts may come from; `None` where no settings are at hand to say.
    pub chart_hosts: Option<Hosts>,
}

impl Reach {
    /// What the settings say.
    pub fn of(settings: &Settings) -> Reach {
        let told = &settings.upstreams;
        let guard = Guard { private: told.private, ports: told.ports.clone() };
        Reach { guard, chart_hosts: Some(Hosts::new(told.chart_hosts.clone())) }
    }

    /// What holds where no settings are at hand: public addresses, and charts from anywhere.
    pub fn unknown() -> Reach {
        Reach { guard: Guard::default(), chart_hosts: None }
    }

    /// Whether a tenant may name this Jenkins server.
    pub fn server(&self, address: &str) -> Result<(), String> {
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
