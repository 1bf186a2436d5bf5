//! The Jenkins servers of one tenant. A tool holds these and no others, and reaches one by its permit.

use crate::client::config::{BadServer, JenkinsServerConfig};
use crate::client::connection::JenkinsConnection;
use crate::client::server::PermittedServer;
use crate::codes;
use domain::{Failure, Tenant};
use policy::Permit;
use std::sync::Arc;
use target::{ConnectionLoad, NameTaken, NamedTarget, TargetWords, Targets};

/// The Jenkins servers of one tenant. Cheap to clone.
#[derive(Clone)]
pub struct JenkinsServers(Targets<JenkinsConnection>);

impl NamedTarget for JenkinsConnection {
    type Config = JenkinsServerConfig;
    const WORDS: TargetWords = TargetWords {
        one: "Jenkins server",
        several: "Jenkins servers",
        argument: "server",
        required: codes::SERVER_REQUIRED,
        unknown: target::codes::SERVER_UNKNOWN,
    };

    fn config(&self) -> &JenkinsServerConfig {
        &self.config
    }

    fn name(config: &JenkinsServerConfig) -> &str {
        &config.name
    }

    fn is_default(config: &JenkinsServerConfig) -> bool {
        config.default
    }
}

impl JenkinsServers {
    /// None, for whoever only looks at tools.
    pub fn none() -> JenkinsServers {
        JenkinsServers(Targets::none())
    }

    /// The servers of a tenant, all at once. Those that stay as they were `before` keep their connections.
    pub fn build(
        tenant: &Tenant,
        configs: Vec<JenkinsServerConfig>,
        before: Option<&JenkinsServers>,
    ) -> Result<JenkinsServers, BadServer> {
        configs.iter().try_for_each(JenkinsServerConfig::check)?;
        let make = |config| JenkinsConnection::new(tenant.clone(), config);
        let targets = Targets::build(tenant, configs, before.map(|before| &before.0), make);
        let taken = |NameTaken(name)| BadServer { name, what: "there are two of that name".to_owned() };
        targets.map(JenkinsServers).map_err(taken)
    }

    /// The name of the one that a call means which named this one, or none.
    pub fn meant(&self, named: Option<&str>) -> Option<String> {
        self.0.meant(named)
    }

    pub(in crate::client) fn connection(&self, name: &str) -> Result<&Arc<JenkinsConnection>, Failure> {
        self.0.find(name)
    }

    /// How hard each is pressed at the moment.
    pub fn loads(&self) -> Vec<ConnectionLoad> {
        self.0.all().iter().map(|connection| connection.pressure()).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.all().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their names, in the order of the tenant's configuration.
    pub fn names(&self) -> Vec<&str> {
        self.0.names()
    }

    /// The server a call means. Where there are several, a read may leave the name out if the tenant set a default; a
    /// write never may.
    pub fn of<'p>(&self, permit: &'p Permit, name: Option<&str>) -> Result<PermittedServer<'p>, Failure> {
        Ok(PermittedServer::new(self.0.choose(permit, name)?, permit))
    }
}

impl std::fmt::Debug for JenkinsServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Servers").field(&self.names()).finish()
    }
}
