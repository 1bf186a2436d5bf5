//! How the toolset `jenkins` joins a tenant: its section `toolsets.jenkins` becomes the servers its tools hold.

use crate::client::{BadServer, JenkinsServerConfig, JenkinsServers, SecretSource, SecretText};
use crate::section::{self, JenkinsServer, JenkinsSource};
use crate::tools::JenkinsDeps;
use crate::{codes, tools};
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

/// How long a server may take to say how it is.
const HEALTH_WITHIN: Duration = Duration::from_secs(10);

/// What the operator lets tenants do with Jenkins servers, and what the service brings for them.
pub struct JenkinsConfig {
    /// Where long results go on.
    pub cursors: Cursors,
    /// Where tokens are kept.
    pub vault: Vault,
    /// What addresses may lead to.
    pub guard: AddressGuard,
    /// Starts a simulated server, for `sandbox: true`.
    pub simulate: SimulateServer,
}

/// Starts a simulated server.
pub type SimulateServer = Arc<dyn Fn() -> io::Result<SimulatedServer> + Send + Sync>;

/// A simulated server that runs as long as this value lives.
pub struct SimulatedServer {
    /// Its base address, on this machine.
    pub url: String,
    /// Its port.
    pub port: u16,
    /// The user.
    pub user: String,
    /// The user's API token.
    pub token: String,
    /// What keeps it running.
    pub running: Box<dyn Any + Send + Sync>,
}

/// The toolset `jenkins`.
pub struct JenkinsToolset {
    config: JenkinsConfig,
    shapes: CompiledTools,
}

/// The Jenkins servers of one tenant and the tools on them.
pub struct TenantJenkins {
    servers: JenkinsServers,
    simulated: Option<Arc<SimulatedServer>>,
    entries: Vec<Arc<CatalogEntry>>,
}

/// Why a tenant's servers cannot be used.
#[derive(Debug, thiserror::Error)]
enum BadServers {
    #[error(transparent)]
    Meaningless(#[from] BadServer),
    #[error(transparent)]
    Address(#[from] egress::AddressRefused),
    #[error("the sandbox cannot be started")]
    NoSandbox(#[source] io::Error),
}

impl From<BadServers> for AttachError {
    fn from(bad: BadServers) -> AttachError {
        AttachError::new(bad)
    }
}

impl JenkinsToolset {
    /// For all tenants of the process.
    pub fn new(config: JenkinsConfig) -> JenkinsToolset {
        JenkinsToolset { config, shapes: CompiledTools::default() }
    }

    fn entries(&self, servers: &JenkinsServers, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        let kit = JenkinsDeps { servers: servers.clone(), cursors: self.config.cursors.clone() };
        tools::list(&kit, &self.shapes, several).map_err(AttachError::new)
    }

    fn configure(
        &self,
        tenant: &TenantConfig,
        server: &JenkinsServer,
        simulated: Option<&SimulatedServer>,
    ) -> Result<JenkinsServerConfig, BadServers> {
        let JenkinsConfig { vault, guard, .. } = &self.config;
        let secret = |name: &String, what: &str, url: &str| {
            let granted = tenant.grants(&JenkinsSource::secret_use(name, what, url));
            let kept =
                if granted { vault.kept(&tenant.tenant, name) } else { vault.kept_by_tenant(&tenant.tenant, name) };
            SecretSource::Kept(kept)
        };
        let config = match (&server.source, simulated) {
            (JenkinsSource::Address { url, user, token, ca }, _) => {
                let mut config =
                    JenkinsServerConfig::new(&server.name, guard.parse(url)?, user, secret(token, "token", url));
                config.ca = ca.as_ref().map(|ca| secret(ca, "ca", url));
                config.guard = guard.clone();
                config
            }
            (JenkinsSource::Sandbox, Some(simulated)) => {
                let guard = AddressGuard { private: true, ports: vec![simulated.port] };
                let token = SecretSource::Text(SecretText::new(simulated.token.as_str()));
                let mut config =
                    JenkinsServerConfig::new(&server.name, guard.parse(&simulated.url)?, &simulated.user, token);
                config.guard = guard;
                config.simulated = true;
                config
            }
            (JenkinsSource::Sandbox, None) => return Err(BadServers::NoSandbox(io::ErrorKind::NotFound.into())),
        };
        let run_id_parameter = server.run_id_parameter.clone();
        Ok(JenkinsServerConfig { default: server.default, run_id_parameter, ..config })
    }
}

impl Toolset for JenkinsToolset {
    fn names(&self) -> &'static [&'static str] {
        &[tools::TOOLSET]
    }

    fn sections(&self) -> Vec<Section> {
        vec![section::section()]
    }

    fn tools(&self, several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        self.entries(&JenkinsServers::none(), several)
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(section::KEY)
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let before = attach.before::<TenantJenkins>();
        let servers = attach.config.section::<Vec<JenkinsServer>>(section::KEY).map_err(AttachError::new)?;
        let configured = servers.map_or(&[][..], Vec::as_slice);
        let simulated = if configured.iter().any(|server| server.source == JenkinsSource::Sandbox) {
            let running = before.as_ref().and_then(|before| before.simulated.clone());
            let start = || (self.config.simulate)().map(Arc::new).map_err(BadServers::NoSandbox);
            Some(running.map_or_else(start, Ok)?)
        } else {
            None
        };
        let describe = |server| self.configure(attach.config, server, simulated.as_deref());
        let configs = configured.iter().map(describe).collect::<Result<Vec<_>, _>>()?;
        let before = before.as_ref().map(|before| &before.servers);
        let servers = JenkinsServers::build(attach.tenant, configs, before).map_err(BadServers::from)?;
        let entries = if attach.offers(self) { self.entries(&servers, servers.len() > 1)? } else { Vec::new() };
        Ok(Arc::new(TenantJenkins { servers, simulated, entries }))
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for TenantJenkins {
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
        self.servers.loads().into_iter().map(load).collect()
    }

    fn health(&self) -> HealthFuture<'_> {
        Box::pin(async {
            let mut all = Vec::new();
            for name in self.servers.names() {
                let state = self.servers.health(name, HEALTH_WITHIN).await;
                all.push(TargetHealth { kind: "Jenkins", name: name.to_owned(), state });
            }
            all
        })
    }
}
