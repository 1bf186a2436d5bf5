//! The external MCP servers of each tenant: entries of the operator's catalog, and addresses of the tenant's own.

use domain::{Assignment, Code, Failure, Tenant};
use egress::header::HeaderName;
use egress::{Guard, Url};
use redact::SecretText;
use std::sync::Arc;
use tenancy::{Resolved, ResolvedAuth, ResolvedReach, Scheme, ServerUse, TenantConfig};
use upstream::{ServerConfig, Target, TargetReach, Upstreams};
use vault::Vault;

/// Turns what tenants' files say about external servers into what is asked and offered.
pub(super) struct ExternalDesk {
    upstreams: Upstreams,
    vault: Vault,
    guard: Guard,
}

impl ExternalDesk {
    /// A desk whose tenants may name addresses that this guard lets through.
    pub(super) fn new(upstreams: Upstreams, vault: Vault, guard: Guard) -> ExternalDesk {
        ExternalDesk { upstreams, vault, guard }
    }

    /// Sets the servers of a tenant, and has those asked that are new.
    pub(super) fn set(&self, config: &TenantConfig) {
        let tenant = &config.tenant;
        let shared = Arc::new(config.clone());
        self.upstreams.replace(tenant, config.servers.iter().map(|used| self.describe(&shared, used)).collect());
        self.upstreams.touch(tenant);
    }

    /// Takes a tenant's servers away.
    pub(super) fn remove(&self, tenant: &Tenant) {
        self.upstreams.remove(tenant);
    }

    fn describe(&self, config: &Arc<TenantConfig>, used: &ServerUse) -> ServerConfig {
        let server = &used.server;
        let asked = Asked {
            config: Arc::clone(config),
            id: used.id.clone(),
            vault: self.vault.clone(),
            guard: server.own.then(|| self.guard.clone()),
        };
        let (vault, tenant) = (self.vault.clone(), config.tenant.clone());
        ServerConfig {
            id: used.id.clone(),
            description: server.description.clone(),
            target: Arc::new(move |assignment| asked.target(assignment)),
            scrubber: Arc::new(move || vault.scrubber_of_all(&tenant)),
            limits: server.limits.clone(),
            allow: used.allow.clone(),
            vouch: server.vouch.clone(),
            accept: used.accept,
            own: server.own,
        }
    }
}

/// What is needed to say where a server is, each time it is asked.
struct Asked {
    config: Arc<TenantConfig>,
    id: String,
    vault: Vault,
    /// What the tenant's own addresses may lead to; `None` for an entry of the operator's catalog.
    guard: Option<Guard>,
}

impl Asked {
    fn target(&self, assignment: &Assignment) -> Result<Target, Failure> {
        let Resolved { reach, headers, auth, params } = self.config.resolve(&self.id, assignment)?;
        let mut sent = Vec::with_capacity(headers.len() + 1);
        for (name, value) in headers {
            sent.push((header(&name)?, SecretText::new(value)));
        }
        if let Some(ResolvedAuth { header: name, scheme, secret }) = auth {
            let secret = self.vault.read(&self.config.tenant, &secret)?;
            let value = match scheme {
                Scheme::Bearer => SecretText::new(format!("Bearer {}", secret.expose())),
                Scheme::Raw => secret,
            };
            sent.push((header(&name)?, value));
        }
        let (reach, guard) = match reach {
            ResolvedReach::Http { url } => {
                let guard = self.guard.clone().map_or_else(|| operators(&url), Ok)?;
                let url = guard.parse(&url).map_err(|refused| {
                    Failure::new(Code::UpstreamRefused, format!("the external server cannot be reached: {refused}"))
                        .next("ask the tenant's admin or the operator to correct its address")
                })?;
                (TargetReach::Http { url }, guard)
            }
            ResolvedReach::Process { command, args, env } => {
                (TargetReach::Process { command, args, env }, Guard::default())
            }
        };
        Ok(Target { reach, headers: sent, params, guard })
    }
}

/// What an entry of the operator's catalog may lead to: exactly the port it names, in private networks too. Parameters
/// stand behind the host, so a tenant moves neither.
fn operators(url: &str) -> Result<Guard, Failure> {
    let port = Url::parse(url).ok().and_then(|url| url.port_or_known_default());
    let port = port.ok_or_else(|| Failure::new(Code::UpstreamRefused, "the external server has no usable address"))?;
    Ok(Guard { private: true, ports: vec![port] })
}

fn header(name: &str) -> Result<HeaderName, Failure> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Failure::new(Code::ConfigInvalid, format!("`{name}` is no name of a header")))
}
