//! How external servers join a tenant: its section `servers` becomes the servers whose tools it is offered.
//!
//! What a server offers changes while the tenant stays the same, so each server of a tenant is one live value that is
//! kept up to date in the background and taken over from one configuration to the next. [`AttachedToolset::entries`] says what
//! it offers now.

use crate::resolve::{ResolvedAuth, ResolvedAuthWay, ResolvedReach, ResolvedServer, TenantServers};
use crate::section::SERVERS;
use crate::server::{Scheme, ServerUse, TokenGrant};
use crate::{ClientCredentials, ExternalServerConfig, LinkTarget, TargetReach, Upstreams, codes};
use catalog::CatalogEntry;
use domain::{Assignment, Code, Failure, Tenant};
use egress::header::HeaderName;
use egress::{AddressGuard, Url};
use redact::SecretText;
use std::collections::BTreeSet;
use std::sync::Arc;
use tenancy::{SectionTypeError, TenantConfig};
use toolset::{AttachContext, AttachError, AttachedToolset, HealthFuture, TargetHealth, Toolset};
use vault::Vault;

/// The tools of external servers. It attaches last, so that a tenant that cannot be attached leaves its servers alone.
/// Its sections are made for each reading ([`sections`](crate::section::sections)): they know the operator's catalog.
pub struct ExternalToolset {
    upstreams: Upstreams,
    vault: Vault,
    guard: AddressGuard,
}

/// The external servers of one tenant.
pub struct TenantExternal {
    upstreams: Upstreams,
    tenant: Tenant,
}

impl TenantExternal {
    /// Tools that were offered and are withheld now, because their definitions are not the accepted ones any more.
    pub fn withheld(&self) -> BTreeSet<String> {
        self.upstreams.withheld(&self.tenant)
    }
}

impl ExternalToolset {
    /// For all tenants of the process, which may name addresses that this guard lets through.
    pub fn new(upstreams: Upstreams, vault: Vault, guard: AddressGuard) -> ExternalToolset {
        ExternalToolset { upstreams, vault, guard }
    }

    fn configure(&self, config: &Arc<TenantConfig>, used: &ServerUse) -> ExternalServerConfig {
        let server = &used.server;
        let address = ServerAddress {
            config: Arc::clone(config),
            id: used.id.clone(),
            vault: self.vault.clone(),
            guard: server.own.then(|| self.guard.clone()),
        };
        let (vault, tenant) = (self.vault.clone(), config.tenant.clone());
        ExternalServerConfig {
            id: used.id.clone(),
            description: server.description.clone(),
            target: Arc::new(move |assignment| address.target(assignment)),
            scrubber: Arc::new(move || vault.scrubber_of_all(&tenant)),
            limits: server.limits.clone(),
            allow: used.allow.clone(),
            vouch: server.vouch.clone(),
            accept: used.accept,
            own: server.own,
        }
    }
}

impl Toolset for ExternalToolset {
    fn names(&self) -> &'static [&'static str] {
        &[]
    }

    fn tools(&self, _several: bool) -> Result<Vec<Arc<CatalogEntry>>, AttachError> {
        Ok(Vec::new())
    }

    fn is_configured(&self, config: &TenantConfig) -> bool {
        config.sections.has(SERVERS)
    }

    fn attach(&self, attach: &AttachContext<'_>) -> Result<Arc<dyn AttachedToolset>, AttachError> {
        let config = Arc::new(attach.config.clone());
        let servers = TenantServers::of(&config).map_err(AttachError::new)?.servers;
        let servers = servers.iter().map(|used| self.configure(&config, used)).collect();
        self.upstreams.replace(attach.tenant, servers);
        // A tenant that was not attached before gets what the store has first ([`Upstreams::recall`]), and is asked then.
        if attach.before.is_some() {
            self.upstreams.touch(attach.tenant);
        }
        Ok(Arc::new(TenantExternal { upstreams: self.upstreams.clone(), tenant: attach.tenant.clone() }))
    }

    fn detach(&self, tenant: &Tenant) {
        self.upstreams.remove(tenant);
    }

    fn codes(&self) -> &'static [Code] {
        codes::ALL
    }
}

impl AttachedToolset for TenantExternal {
    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.upstreams.entries(&self.tenant)
    }

    fn health(&self) -> HealthFuture<'_> {
        Box::pin(async {
            let answers = self.upstreams.health(&self.tenant).await.into_iter();
            let health = |(name, listed): (String, Result<usize, Failure>)| {
                let state = listed.map(|tools| Some(format!("answers and lists {tools} tools")));
                TargetHealth { kind: "external server", name, state }
            };
            answers.map(health).collect()
        })
    }
}

/// What is needed to say where a server is, each time it is asked.
struct ServerAddress {
    config: Arc<TenantConfig>,
    id: String,
    vault: Vault,
    /// What the tenant's own addresses may lead to; `None` for an entry of the operator's catalog.
    guard: Option<AddressGuard>,
}

impl ServerAddress {
    fn resolve(&self, assignment: &Assignment) -> Result<ResolvedServer, Failure> {
        let servers = TenantServers::of(&self.config).map_err(unreadable)?;
        servers.resolve(&self.id, assignment)
    }

    fn target(&self, assignment: &Assignment) -> Result<LinkTarget, Failure> {
        let ResolvedServer { reach, headers, auth, params } = self.resolve(assignment)?;
        let mut sent = Vec::with_capacity(headers.len() + 1);
        for (name, value) in headers {
            sent.push((header(&name)?, SecretText::new(value)));
        }
        let mut credentials = None;
        if let Some(ResolvedAuth { secret, way }) = auth {
            let secret = self.secret(&secret)?;
            match way {
                ResolvedAuthWay::Header { header: name, scheme } => {
                    let value = match scheme {
                        Scheme::Bearer => SecretText::new(format!("Bearer {}", secret.expose())),
                        Scheme::Raw => secret,
                    };
                    sent.push((header(&name)?, value));
                }
                ResolvedAuthWay::ClientCredentials { grant, client_id } => {
                    credentials = Some(self.credentials(grant, client_id, secret)?);
                }
            }
        }
        let (reach, guard) = match reach {
            ResolvedReach::Http { url, transport } => {
                let (url, guard) = self.guarded(&url, "the external server")?;
                (TargetReach::Http { url, transport }, guard)
            }
            ResolvedReach::Process { command, args, env } => {
                (TargetReach::Process { command, args, env }, AddressGuard::default())
            }
        };
        Ok(LinkTarget { reach, headers: sent, params, guard, credentials })
    }

    /// A secret of the tenant. One that the operator keeps is used only as the tenant's file uses it.
    fn secret(&self, name: &str) -> Result<SecretText, Failure> {
        let servers = TenantServers::of(&self.config).map_err(unreadable)?;
        let granted = servers.server(&self.id).is_some_and(|used| self.config.grants(&used.secret_use(name)));
        let (vault, tenant) = (&self.vault, &self.config.tenant);
        Ok(if granted { vault.read(tenant, name)? } else { vault.read_by_tenant(tenant, name)? })
    }

    fn credentials(
        &self,
        grant: TokenGrant,
        client_id: String,
        client_secret: SecretText,
    ) -> Result<ClientCredentials, Failure> {
        let (token_url, guard) = self.guarded(&grant.token_url, "the authorization server")?;
        let TokenGrant { scope, audience, resource, method, .. } = grant;
        Ok(ClientCredentials { token_url, guard, client_id, client_secret, scope, audience, resource, method })
    }

    /// An address, and what may be dialled for it: what the operator lets tenants reach, or exactly what the operator
    /// entered.
    fn guarded(&self, url: &str, whose: &str) -> Result<(Url, AddressGuard), Failure> {
        let guard = self.guard.clone().map_or_else(|| operators(url), Ok)?;
        let url = guard.parse(url).map_err(|refused| {
            Failure::new(codes::UPSTREAM_REFUSED, format!("{whose} cannot be reached: {refused}"))
                .next("ask the tenant's admin or the operator to correct its address")
        })?;
        Ok((url, guard))
    }
}

/// What an entry of the operator's catalog may lead to: exactly the port it names, in private networks too. Parameters
/// stand behind the host, so a tenant moves neither.
fn operators(url: &str) -> Result<AddressGuard, Failure> {
    let port = Url::parse(url).ok().and_then(|url| url.port_or_known_default());
    let port =
        port.ok_or_else(|| Failure::new(codes::UPSTREAM_REFUSED, "the external server has no usable address"))?;
    Ok(AddressGuard { private: true, ports: vec![port] })
}

fn unreadable(error: SectionTypeError) -> Failure {
    Failure::new(Code::Internal, error.to_string())
}

fn header(name: &str) -> Result<HeaderName, Failure> {
    HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| Failure::new(Code::ConfigInvalid, format!("`{name}` is no name of a header")))
}
