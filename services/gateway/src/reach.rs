//! What the operator lets tenants' files name: addresses, chart hosts, servers of their own.

use crate::settings::Settings;
use domain::Tenant;
use egress::AddressGuard;
use helm::client::charts::Hosts;

/// What the operator allows tenants' files to name.
#[derive(Debug, Clone)]
pub struct EgressPolicy {
    /// What addresses may lead to.
    pub guard: AddressGuard,
    /// The hosts charts may come from; `None` where no settings are at hand to say.
    pub chart_hosts: Option<Hosts>,
    /// The tenants that may name external servers of their own; `None` where no settings are at hand to say.
    pub own_servers: Option<Vec<String>>,
}

impl EgressPolicy {
    /// By the settings.
    pub fn of(settings: &Settings) -> EgressPolicy {
        let upstreams = &settings.upstreams;
        let guard = AddressGuard { private: upstreams.private, ports: upstreams.ports.clone() };
        let chart_hosts = Some(Hosts::new(upstreams.chart_hosts.clone()));
        EgressPolicy { guard, chart_hosts, own_servers: Some(upstreams.own_servers.clone()) }
    }

    /// What holds where no settings are at hand: public addresses, and charts from anywhere.
    pub fn unknown() -> EgressPolicy {
        EgressPolicy { guard: AddressGuard::default(), chart_hosts: None, own_servers: None }
    }

    /// Whether a tenant may name this address, as far as no further rule holds for it.
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
