//! What the operator lets tenants' files name: addresses, chart hosts, servers of their own, runbooks that only read.

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
    /// The runbooks that only read, as the operator vouches; `None` where no settings are at hand to say.
    pub read_runbooks: Option<Vec<String>>,
}

impl EgressPolicy {
    /// By the settings.
    pub fn of(settings: &Settings) -> EgressPolicy {
        let upstreams = &settings.upstreams;
        let guard = AddressGuard { private: upstreams.private, ports: upstreams.ports.clone() };
        let chart_hosts = Some(Hosts::new(upstreams.chart_hosts.clone()));
        let read_runbooks = Some(settings.runbooks.reads.clone());
        EgressPolicy { guard, chart_hosts, own_servers: Some(upstreams.own_servers.clone()), read_runbooks }
    }

    /// What holds where no settings are at hand: public addresses, and charts from anywhere.
    pub fn unknown() -> EgressPolicy {
        EgressPolicy { guard: AddressGuard::default(), chart_hosts: None, own_servers: None, read_runbooks: None }
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

    /// Whether a runbook of a tenant, named as `group/name`, may run without an approval.
    pub fn read_runbook(&self, tenant: &Tenant, runbook: &str) -> Result<(), String> {
        let name = format!("{tenant}/{runbook}");
        let covers = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => *pattern == name,
        };
        match &self.read_runbooks {
            Some(vouched) if !vouched.iter().any(covers) => {
                Err(format!("`{name}` is not one of the operator's runbooks.reads"))
            }
            Some(_) | None => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runbook_only_reads_where_the_operator_says_so() {
        let tenant = Tenant::parse("acme").unwrap();
        let policy = |reads: &[&str]| {
            let reads = reads.iter().map(|text| (*text).to_owned()).collect();
            EgressPolicy { read_runbooks: Some(reads), ..EgressPolicy::unknown() }
        };
        assert!(policy(&[]).read_runbook(&tenant, "shop/status").is_err());
        for (pattern, fits) in [
            ("acme/shop/status", true),
            ("acme/shop/*", true),
            ("acme/shop/stat", false),
            ("acme/sho/*", false),
            ("other/shop/status", false),
            ("shop/status", false),
        ] {
            assert_eq!(policy(&[pattern]).read_runbook(&tenant, "shop/status").is_ok(), fits, "{pattern}");
        }
    }
}
