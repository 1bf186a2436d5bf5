//! Builds each part, in order, and hands them to the server. Wires everything, decides nothing.

use crate::archiving;
use crate::authenticity;
use crate::clock::SystemClock;
use crate::console::Console;
use crate::duties::{self, Duties};
use crate::http::address::AddressLimit;
use crate::http::guard::OriginPolicy;
use crate::http::refusal_log::RefusalLog;
use crate::in_flight::InFlight;
use crate::measure;
use crate::readiness::{self, Readiness};
use crate::sealing::{self, Sealing};
use crate::settings::{SessionSettings, Settings, TenantSettings};
use crate::switches;
use crate::tenants::{TenantRegistry, TenantsParts};
use crate::toolsets::{self, ExternalServers, LocalParts, Toolsets};
use crate::usage::{self, UsageWriter};
use crate::webhooks::{self, Webhook};
use anyhow::Context;
use archive::Archive;
use catalog::ToolsCache;
use domain::{Code, Failure};
use executor::runs::notice::RunEvents;
use executor::{Executor, Leases, ServiceKeys, Tasks};
use external::Upstreams;
use helm::client::{Helm, HelmConfig};
use identity::Verifier;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use store::{SessionConfig, Store};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::error::RecvError;
use vault::{Environment, RecordSealer, Sealer, Vault};

/// Everything a handler can reach.
pub struct Gateway {
    /// The effective settings.
    pub settings: Settings,
    /// The state store.
    pub store: Store,
    /// The path of a call.
    pub executor: Executor,
    /// The tenants of this process.
    pub tenants: Arc<TenantRegistry>,
    /// External MCP servers and what they offer.
    pub upstreams: Upstreams,
    /// The secrets of all tenants.
    pub vault: Vault,
    /// Tokens in, callers out.
    pub verifier: Verifier,
    /// Finished lists.
    pub lists: ToolsCache,
    /// The audit logs outside the store.
    pub archive: Archive,
    /// One audit log is verified at a time: it is read from beginning to end.
    pub verifying: Semaphore,
    /// The service's keys.
    pub keys: Arc<ServiceKeys>,
    /// Which hosts and origins are answered.
    pub doors: OriginPolicy,
    /// What is left to each address before a token is verified.
    pub addresses: AddressLimit,
    /// Log lines about requests that were refused before a call.
    pub refusals: RefusalLog,
    /// Whether this process may serve.
    pub readiness: Readiness,
    /// Legacy calls that can be cancelled.
    pub in_flight: InFlight,
    /// What callers used, on its way into the store.
    pub usage: UsageWriter,
    /// What is due in the background, and which replica sees to it.
    pub duties: Duties,
    /// The audit logs this replica is at work on.
    pub sealing: Sealing,
    /// The web console; `None` if it is off.
    pub console: Option<Console>,
    /// Background work.
    pub tasks: Tasks,
    /// How long sessions live.
    pub lives: SessionConfig,
    /// The host's clock.
    pub clock: SystemClock,
    /// The name of this process among its replicas.
    pub replica: String,
}

impl Gateway {
    /// Builds everything. Fails only on what an operator has to correct; a store that is away is waited for.
    pub async fn build(settings: Settings) -> anyhow::Result<Arc<Gateway>> {
        let helm = helm(&settings).await;
        Gateway::build_with(settings, GatewayParts { helm, local: LocalParts::default() }).await
    }

    /// The same for a process that answers one user: with toolsets that only this process has, and nothing looked for
    /// before it is used.
    pub async fn build_local(settings: Settings, local: LocalParts) -> anyhow::Result<Arc<Gateway>> {
        let helm = Helm::when_used(helm_config(&settings));
        Gateway::build_with(settings, GatewayParts { helm, local }).await
    }

    async fn build_with(settings: Settings, parts: GatewayParts) -> anyhow::Result<Arc<Gateway>> {
        measure::begin(&settings);
        let secret = std::fs::read(&settings.calls.key_file).with_context(|| {
            let todo = "put 32 random bytes there, the same on every replica (`quartermaster init` writes such a file)";
            format!("cannot read calls.key_file {}: {todo}", settings.calls.key_file.display())
        })?;
        let keys = Arc::new(ServiceKeys::derive(&secret).context("calls.key_file cannot be used")?);
        let http = egress::operator_client(&egress::Config::default()).context("cannot build the HTTP client")?;
        for warning in settings.identity.warnings() {
            tracing::warn!(%warning, "the issuers of tokens");
        }
        let verifier = Verifier::new(settings.identity.clone(), http).await.context("identity cannot start")?;
        let store = store(&settings, &secret).await?;
        let vault = vault(&settings, &store, &secret)?;
        let archive =
            Archive::open(&settings.audit, &secret, &older_keys(&settings)?).context("[audit] cannot be used")?;
        let GatewayParts { helm, local } = parts;
        let parts =
            toolsets::ToolsetsParts { settings: &settings, store: &store, keys: &keys, vault: &vault, helm, local };
        let toolsets = Toolsets::build(parts, ExternalServers::Listed).context("a toolset cannot be built")?;
        let upstreams = toolsets.upstreams.clone().context("external servers are not listed")?;
        let codes = toolsets.codes();
        let tenants =
            Arc::new(TenantRegistry::new(TenantsParts::of(&settings, store.clone(), toolsets, vault.clone())));
        tenants.look().await;
        let tasks = Tasks::default();
        let SessionSettings { idle, longest, carry_over } = settings.sessions;
        let lives = SessionConfig { idle, longest, carry_over };
        let webhook = Webhook::read(&settings).context("the webhook cannot be used")?;
        let (notices, events) = RunEvents::channel();
        let notices = if webhook.is_some() { notices } else { RunEvents::default() };
        let leases = Leases { lease: settings.approvals.lease, renew_every: settings.approvals.renew_every };
        let console = Console::build(&settings).context("[console] cannot be used")?;
        let doors = doors(&settings, console.as_ref());
        let gateway = Arc::new(Gateway {
            executor: Executor::new(store.clone(), tasks.clone(), lives, Arc::clone(&keys), leases)
                .telling(notices)
                .with_codes(codes)
                .with_pages(console.as_ref().map(|console| console.address("/runs/")))
                .with_limits(settings.limits.call_limits())
                .with_audited_bytes(usize::try_from(settings.calls.audit_contents_bytes).unwrap_or(usize::MAX)),
            addresses: AddressLimit::of(&settings.listen),
            refusals: RefusalLog::default(),
            lists: ToolsCache::new(settings.calls.list_cache_bytes),
            replica: store.replica().to_owned(),
            readiness: Readiness::starting(),
            in_flight: InFlight::default(),
            usage: UsageWriter::default(),
            duties: Duties::default(),
            sealing: Sealing::default(),
            verifying: Semaphore::new(1),
            clock: SystemClock,
            settings,
            store,
            tenants,
            upstreams,
            vault,
            archive,
            verifier,
            keys,
            doors,
            console,
            tasks,
            lives,
        });
        // A store that is away is told of elsewhere, and no call is judged before the switches were read.
        gateway.store.switches().refresh().await.ok();
        gateway.watch().await;
        if let Some(webhook) = webhook {
            webhooks::send(&gateway, webhook, events);
        }
        Ok(gateway)
    }

    /// Begins what goes on in the background.
    async fn watch(self: &Arc<Gateway>) {
        switches::watch(self);
        self.readiness.look(self).await;
        readiness::watch(self);
        let TenantSettings { reload_every, idle, .. } = self.settings.tenants;
        self.tenants.watch(&self.tasks, reload_every, idle);
        watch_servers(self);
        reseal(self);
        duties::watch(self);
        sealing::watch(self);
        usage::watch(self);
        archiving::watch(self);
    }

    /// The challenge that goes with a failure, if its kind has one.
    pub fn challenge_for(&self, failure: &Failure) -> Option<String> {
        let detail = |key: &str| failure.details.as_ref().and_then(|d| d.get(key)).and_then(Value::as_str);
        let (error, scope) = if failure.code == Code::Unauthenticated {
            (detail("error"), "tools:read")
        } else if failure.code == Code::InsufficientScope {
            (Some("insufficient_scope"), detail("scope").unwrap_or("tools:read"))
        } else {
            return None;
        };
        let error = error.map(|error| format!(r#"error="{error}", "#)).unwrap_or_default();
        Some(format!(r#"Bearer {error}resource_metadata="{}", scope="{scope}""#, self.metadata_address()))
    }

    /// Where the RFC 9728 document of `/mcp` stands.
    fn metadata_address(&self) -> String {
        const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
        let resource = &self.settings.identity.resource;
        let after_scheme = resource.find("://").map_or(0, |at| at + 3);
        let path = resource[after_scheme..].find('/').map_or(resource.len(), |at| after_scheme + at);
        let (host, path) = resource.split_at(path);
        format!("{host}{WELL_KNOWN}{path}")
    }
}

/// Which hosts and origins are answered: those of the tools, and that of the console.
fn doors(settings: &Settings, console: Option<&Console>) -> OriginPolicy {
    let listen = &settings.listen;
    let (mut hosts, mut origins) = (listen.hosts.clone(), listen.origins.clone());
    if let Some(console) = console {
        hosts.extend(console.origin.split_once("://").map(|(_, host)| host.to_owned()));
        origins.push(console.origin.clone());
    }
    OriginPolicy::new(&settings.identity.resource, &hosts, &origins, listen.address.ip().is_loopback())
}

/// What differs between a service and a process for one user.
struct GatewayParts {
    helm: Helm,
    local: LocalParts,
}

/// The helm binary, as the settings name it.
pub(crate) async fn helm(settings: &Settings) -> Helm {
    Helm::new(helm_config(settings)).await
}

fn helm_config(settings: &Settings) -> HelmConfig {
    let configured = &settings.upstreams;
    let binary = (!configured.helm.as_os_str().is_empty()).then(|| configured.helm.clone());
    HelmConfig {
        binary,
        slots: configured.helm_slots,
        tenant_slots: configured.helm_slots_per_tenant,
        memory_bytes: configured.helm_memory_bytes,
        cpu: configured.helm_cpu,
        ..HelmConfig::new(configured.cache.join("helm"))
    }
}

/// What the service's own secret was before.
fn older_keys(settings: &Settings) -> anyhow::Result<Vec<Vec<u8>>> {
    let read = |path: &PathBuf| std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let older = settings.calls.older_key_files.iter().map(read).collect::<Result<Vec<_>, _>>();
    older.context("calls.older_key_files cannot be used")
}

/// The state store, in which everything that something is done by is sealed under the service's own secret.
pub(crate) async fn store(settings: &Settings, secret: &[u8]) -> anyhow::Result<Store> {
    let sealer = RecordSealer::new(secret, &older_keys(settings)?).context("a service key cannot be used")?;
    let limits = settings.limits.store_limits();
    Store::open_sealed_with(&settings.store, Arc::new(sealer), limits).await.context("the store cannot be opened")
}

/// The secrets of all tenants: sealed under the service's own, in files, and in the environment.
pub(crate) fn vault(settings: &Settings, store: &Store, secret: &[u8]) -> anyhow::Result<Vault> {
    let sealer = Sealer::new(secret, &older_keys(settings)?).context("a service key cannot be used")?;
    Ok(Vault::new(store.clone(), sealer, settings.tenants.secrets.clone(), Environment::of(std::env::vars_os())))
}

/// Brings what was sealed under an older key under the current one, tenant by tenant, once.
fn reseal(gateway: &Arc<Gateway>) {
    if gateway.settings.calls.older_key_files.is_empty() {
        return;
    }
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("reseal", async move {
        for tenant in watched.tenants.names() {
            if stopping.is_cancelled() {
                return;
            }
            // What holds for it names records that are to be sealed anew.
            if let Err(failure) = watched.tenants.get_when_read(&tenant).await {
                tracing::error!(%tenant, code = failure.code.as_str(), "records of a tenant may stay under an older key");
            }
            match watched.vault.reseal(&tenant).await {
                Ok(0) => {}
                Ok(secrets) => tracing::info!(%tenant, secrets, "secrets were brought under the current key"),
                Err(failure) => {
                    tracing::error!(%tenant, code = failure.code.as_str(), "secrets stay under an older key");
                }
            }
            match authenticity::reseal(&watched, &tenant).await {
                Ok(0) => {}
                Ok(records) => tracing::info!(%tenant, records, "records were brought under the current key"),
                Err(error) => tracing::error!(%tenant, %error, "records stay under an older key"),
            }
        }
    });
}

/// Rebuilds a tenant's catalog whenever its external servers offer something else.
fn watch_servers(gateway: &Arc<Gateway>) {
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    let mut changes = watched.upstreams.changes();
    gateway.tasks.spawn("servers", async move {
        // Tenants are read before anybody listens here, and a quick server may have listed its tools by then.
        for (tenant, _) in watched.tenants.all() {
            watched.tenants.relist(&tenant).await;
        }
        loop {
            let heard = tokio::select! {
                () = stopping.cancelled() => break,
                heard = changes.recv() => heard,
            };
            match heard {
                Ok(tenant) => watched.tenants.relist(&tenant).await,
                Err(RecvError::Lagged(_)) => {
                    for (tenant, _) in watched.tenants.all() {
                        watched.tenants.relist(&tenant).await;
                    }
                }
                Err(RecvError::Closed) => break,
            }
        }
        watched.upstreams.close().await;
    });
}
