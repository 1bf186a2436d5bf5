//! The Jenkins servers of each tenant.

use domain::Tenant;
use egress::Guard;
use jenkins::{SecretSource, SecretText, ServerConfig, Servers};
use sandbox::jenkins::{Jenkins, JenkinsSeed};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tenancy::{JenkinsServer, JenkinsSource, TenantConfig};
use tokio::runtime::Handle;
use vault::Vault;

/// Why a tenant's servers cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadServers {
    /// What the file says makes no sense to the client.
    #[error(transparent)]
    Meaningless(#[from] jenkins::BadServer),
    /// An address that the file's own check should have refused.
    #[error(transparent)]
    Address(#[from] egress::Refused),
    /// The sandbox did not start.
    #[error("the sandbox cannot be started")]
    NoSandbox(#[source] std::io::Error),
}

/// Turns what tenants' files say about Jenkins servers into what tools act on.
pub(super) struct ServerDesk {
    servers: Servers,
    vault: Vault,
    guard: Guard,
    sandboxes: Mutex<HashMap<Tenant, Jenkins>>,
    runtime: Handle,
}

impl ServerDesk {
    /// A desk whose secrets are in this vault. To be made inside the runtime that sandboxes shall run on.
    pub(super) fn new(servers: Servers, vault: Vault, guard: Guard) -> ServerDesk {
        ServerDesk { servers, vault, guard, sandboxes: Mutex::default(), runtime: Handle::current() }
    }

    /// Sets the servers of a tenant.
    pub(super) fn set(&self, config: &TenantConfig) -> Result<(), BadServers> {
        let tenant = &config.tenant;
        let wants_sandbox = config.jenkins.iter().any(|server| server.source == JenkinsSource::Sandbox);
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if !wants_sandbox {
            sandboxes.remove(tenant);
        } else if !sandboxes.contains_key(tenant) {
            let started = self.runtime.block_on(Jenkins::start(JenkinsSeed::shop())).map_err(BadServers::NoSandbox)?;
            sandboxes.insert(tenant.clone(), started);
        }
        let described = config.jenkins.iter().map(|server| self.describe(tenant, server, sandboxes.get(tenant)));
        let described: Vec<ServerConfig> = described.collect::<Result<_, _>>()?;
        Ok(self.servers.replace(tenant, described)?)
    }

    /// Takes a tenant's servers away.
    pub(super) fn remove(&self, tenant: &Tenant) -> Result<(), BadServers> {
        self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner).remove(tenant);
        Ok(self.servers.replace(tenant, Vec::new())?)
    }

    fn describe(
        &self,
        tenant: &Tenant,
        told: &JenkinsServer,
        sandbox: Option<&Jenkins>,
    ) -> Result<ServerConfig, BadServers> {
        let secret = |name: &String| SecretSource::Kept(self.vault.kept(tenant, name));
        let config = match (&told.source, sandbox) {
            (JenkinsSource::Address { url, user, token, ca }, _) => {
                let mut config = ServerConfig::new(&told.name, self.guard.parse(url)?, user, secret(token));
                config.ca = ca.as_ref().map(secret);
                config.guard = self.guard.clone();
                config
            }
            (JenkinsSource::Sandbox, Some(sandbox)) => {
                let guard = Guard { private: true, ports: vec![sandbox.address().port()] };
                let token = SecretSource::Text(SecretText::new(sandbox.token()));
                let mut config = ServerConfig::new(&told.name, guard.parse(&sandbox.url())?, sandbox.user(), token);
                config.guard = guard;
                config.simulated = true;
                config
            }
            (JenkinsSource::Sandbox, None) => return Err(BadServers::NoSandbox(std::io::ErrorKind::NotFound.into())),
        };
        let run_id_parameter = told.run_id_parameter.clone();
        Ok(ServerConfig { default: told.default, run_id_parameter, ..config })
    }
}
