//! Tenants as calls see them: one immutable snapshot each, swapped whole when its configuration changes.
//!
//! A tenant exists because a file names it. A configuration set over HTTP replaces the file as a whole until it is removed.
//! A reconciler reads and compares both; a wake-up or a tick only tells it when to look. An invalid configuration leaves
//! its tenant as it was and is reported; if a file is removed, its tenant is no longer served.
//!
//! | what is configured | what is served |
//! |---|---|
//! | nothing over HTTP | its file |
//! | a valid configuration over HTTP | that configuration |
//! | a configuration over HTTP that is invalid, or became so | what was served before, or no tools (see `suspend`) |
//! | one that takes more than its file gives by now | no tools |
//! | the store has not answered yet | what was served before, or requests wait for it |
//!
//! The last three never fall back to the file: a restriction that a tenant's admin set must not be lost because the store is
//! slow or a rule has changed.

mod known_names;
mod over_http;
mod reconcile;
mod snapshot;
mod watch;

pub use known_names::names_of;
pub(crate) use known_names::with_known_names;

use crate::reach::EgressPolicy;
use crate::settings::{Settings, UpstreamSettings};
use crate::toolsets::Toolsets;
use arc_swap::ArcSwap;
use catalog::CatalogEntry;
use domain::{Code, Failure, Tenant};
use executor::Snapshot;
use external::{CuratedSources, ServerCatalog};
use memory::TenantMemory;
use memory::documents::Documents;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Store, StoreError, TenantText};
use tenancy::{ConfiguredTenant, Problem, TenantConfig, TenantFiles};
use tokio::sync::broadcast;
use toolset::AttachedToolset;
use vault::Vault;

/// How many changes a slow stream may be behind before it gets one message for all of them.
const BACKLOG: usize = 64;

/// What tenants are made of.
pub struct TenantsParts {
    /// The folder with their files.
    pub dir: PathBuf,
    /// Where the operator's external servers are listed.
    pub curated: CuratedSources,
    /// Whether a configuration set over HTTP replaces a file.
    pub over_http: bool,
    /// Where such configurations are stored.
    pub store: Store,
    /// The toolsets they are attached to.
    pub toolsets: Toolsets,
    /// Their secrets.
    pub vault: Vault,
    /// What their files may name.
    pub reach: EgressPolicy,
}

impl TenantsParts {
    /// By the settings, with these toolsets.
    pub fn of(settings: &Settings, store: Store, toolsets: Toolsets, vault: Vault) -> TenantsParts {
        let configured = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        let UpstreamSettings { catalog, config, mcp_servers, .. } = &settings.upstreams;
        TenantsParts {
            dir: settings.tenants.dir.clone(),
            curated: CuratedSources {
                dir: configured(catalog),
                config: configured(config),
                mcp_servers: (!mcp_servers.is_empty()).then(|| mcp_servers.clone()),
            },
            over_http: settings.tenants.over_http,
            store,
            reach: EgressPolicy::of(settings),
            toolsets,
            vault,
        }
    }
}

/// Where the configuration of a tenant comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigOrigin {
    /// From nowhere: its tools are fixed.
    Fixed,
    /// From its file.
    File,
    /// From a text that was set over HTTP: this version.
    Http(u64),
    /// Its configuration cannot be used and nothing was served before, so it has no tools.
    Suspended,
}

/// One tenant as it is served.
#[derive(Clone)]
struct ServedTenant {
    snapshot: Arc<Snapshot>,
    config: Arc<TenantConfig>,
    /// Its toolsets, with its targets. Swapped together with the rest.
    attached: Arc<[Arc<dyn AttachedToolset>]>,
    origin: ConfigOrigin,
}

/// What the tenants of this process are, now.
#[derive(Default, Clone)]
struct TenantsState {
    served: HashMap<Tenant, ServedTenant>,
    /// Tenants with a file for which the store has not answered yet whether a configuration over HTTP replaces it.
    waiting: HashSet<Tenant>,
    files: HashMap<Tenant, Arc<ConfiguredTenant>>,
    /// Configurations set over HTTP that cannot be used.
    unusable: BTreeMap<Tenant, Vec<Problem>>,
    /// Configurations without a mistake that cannot be put to use all the same.
    refused: BTreeMap<Tenant, RefusedConfig>,
}

/// A configuration that no check finds fault with and a toolset refuses to attach.
#[derive(Clone, PartialEq)]
struct RefusedConfig {
    config: Arc<TenantConfig>,
    problem: Problem,
}

/// What the store has of a tenant's configuration.
#[derive(Debug, Clone, PartialEq)]
enum StoredConfig {
    /// This, or nothing.
    Text(Option<TenantText>),
    /// Something that is not a configuration.
    Unreadable,
    /// It holds something that this service did not write.
    NotAuthentic(&'static str),
}

/// What the reconciler works with. Whoever changes what is served locks it.
#[derive(Default)]
struct ReconcileState {
    files: TenantFiles,
    curated: ServerCatalog,
    stored: HashMap<Tenant, StoredConfig>,
    fixed: HashMap<Tenant, Vec<Arc<CatalogEntry>>>,
}

/// The tenants of this process.
pub struct TenantRegistry {
    parts: TenantsParts,
    state: ArcSwap<TenantsState>,
    reconcile: Mutex<ReconcileState>,
    problems: ArcSwap<Vec<Problem>>,
    /// One lock for each tenant, held while its configuration is read from the store, so that an older answer never comes
    /// last.
    refresh_locks: Mutex<HashMap<Tenant, Arc<tokio::sync::Mutex<()>>>>,
    changes: broadcast::Sender<Tenant>,
}

impl TenantRegistry {
    /// Tenants made of these parts; none are served before the first [`TenantRegistry::look`].
    pub fn new(parts: TenantsParts) -> TenantRegistry {
        TenantRegistry {
            parts,
            state: ArcSwap::default(),
            reconcile: Mutex::default(),
            problems: ArcSwap::default(),
            refresh_locks: Mutex::default(),
            changes: broadcast::Sender::new(BACKLOG),
        }
    }

    /// One tenant as it is now; `None` if it is not served here.
    pub fn find(&self, tenant: &Tenant) -> Option<Arc<Snapshot>> {
        self.state.load().served.get(tenant).map(|served| Arc::clone(&served.snapshot))
    }

    /// The same, or why there is none.
    pub fn get(&self, tenant: &Tenant) -> Result<Arc<Snapshot>, Failure> {
        let state = self.state.load();
        match state.served.get(tenant) {
            Some(served) => Ok(Arc::clone(&served.snapshot)),
            None if state.waiting.contains(tenant) => {
                let message = "the tenant's configuration cannot be read from the store yet";
                Err(Failure::new(Code::StoreUnavailable, message).retry_after_ms(1_000))
            }
            // A tenant that is not configured answers like a token that names none.
            None => Err(Failure::new(Code::ForbiddenTenant, "the token names no tenant that is served here")),
        }
    }

    /// The same for a request. If the tenant has just appeared, it waits for the store's answer instead of failing.
    pub async fn get_when_read(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<Arc<Snapshot>, Failure> {
        let is_waiting = self.state.load().waiting.contains(tenant);
        if is_waiting && let Err(error) = self.refresh(tenant).await {
            tracing::warn!(%tenant, error = &error as &dyn std::error::Error, "the tenant cannot be served yet");
        }
        self.get(tenant)
    }

    /// The configuration a tenant is served by.
    pub fn config_of(&self, tenant: &Tenant) -> Option<Arc<TenantConfig>> {
        self.state.load().served.get(tenant).map(|served| Arc::clone(&served.config))
    }

    /// What a tenant has of one toolset: its documents, its external servers.
    pub fn attached<A: AttachedToolset>(&self, tenant: &Tenant) -> Option<Arc<A>> {
        self.state.load().served.get(tenant).and_then(|served| toolset::find(&served.attached))
    }

    /// The documents of a tenant. A suspended one has them too: people must be able to manage them.
    pub fn notebook(&self, tenant: &Tenant) -> Documents {
        let attached = self.attached::<TenantMemory>(tenant);
        attached.map_or_else(|| self.parts.toolsets.notebook.clone(), |memory| memory.notebook().clone())
    }

    /// Everything a tenant is attached to.
    pub fn all_attached(&self, tenant: &Tenant) -> Arc<[Arc<dyn AttachedToolset>]> {
        let state = self.state.load();
        state.served.get(tenant).map_or_else(|| Arc::from([]), |served| Arc::clone(&served.attached))
    }

    /// Where that configuration comes from.
    pub fn origin_of(&self, tenant: &Tenant) -> Option<ConfigOrigin> {
        self.state.load().served.get(tenant).map(|served| served.origin)
    }

    /// A tenant's file, as it was when it was last good.
    pub fn file_of(&self, tenant: &Tenant) -> Option<Arc<ConfiguredTenant>> {
        self.state.load().files.get(tenant).cloned()
    }

    /// All tenants with tools, as they are now. Runs of suspended ones wait until the configuration is corrected, or for a
    /// replica that still has the previous one.
    pub fn all(&self) -> Vec<(Tenant, Arc<Snapshot>)> {
        let state = self.state.load();
        let active = state.served.iter().filter(|(_, served)| served.origin != ConfigOrigin::Suspended);
        active.map(|(tenant, served)| (tenant.clone(), Arc::clone(&served.snapshot))).collect()
    }

    /// How many there are, those included that wait for the store.
    pub fn len(&self) -> usize {
        let state = self.state.load();
        state.served.len() + state.waiting.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many wait for the store's answer.
    pub fn waiting(&self) -> usize {
        self.state.load().waiting.len()
    }

    /// What is wrong with the files, as of the last look.
    pub fn problems(&self) -> Arc<Vec<Problem>> {
        self.problems.load_full()
    }

    /// What is wrong with the configurations set over HTTP that cannot be used.
    pub fn unusable(&self) -> BTreeMap<Tenant, Vec<Problem>> {
        self.state.load().unusable.clone()
    }

    /// Why configurations of tenants cannot be put to use, though no check finds a mistake in them. The tenants keep what
    /// they had.
    pub fn refused(&self) -> BTreeMap<Tenant, Problem> {
        self.state.load().refused.iter().map(|(tenant, refused)| (tenant.clone(), refused.problem.clone())).collect()
    }

    /// Everything that keeps one tenant's configuration from being served.
    pub fn problems_of(&self, tenant: &Tenant) -> Vec<Problem> {
        let state = self.state.load();
        let refused = state.refused.get(tenant).map(|refused| refused.problem.clone());
        state.unusable.get(tenant).into_iter().flatten().cloned().chain(refused).collect()
    }

    /// Receives each tenant whose tools changed.
    pub fn changes(&self) -> broadcast::Receiver<Tenant> {
        self.changes.subscribe()
    }

    /// The built-in tools.
    pub fn tools(&self) -> &[Arc<CatalogEntry>] {
        self.parts.toolsets.tools()
    }

    /// The sections of tenants' files that toolsets own.
    pub fn sections(&self) -> Vec<tenancy::Section> {
        self.parts.toolsets.sections(&ServerCatalog::none())
    }

    /// The codes that tools of toolsets raise.
    pub fn codes(&self) -> Vec<domain::Code> {
        self.parts.toolsets.codes()
    }

    /// Looks at everything once: the folder, and the store for tenants about which it has not answered yet.
    pub async fn look(self: &Arc<TenantRegistry>) {
        let before = self.state.load_full();
        self.run_blocking(|tenants| tenants.reload()).await;
        let now = self.state.load_full();
        let is_new = |tenant: &&Tenant| now.waiting.contains(*tenant) || !before.files.contains_key(*tenant);
        self.refresh_each(now.files.keys().filter(is_new).cloned().collect()).await;
    }

    /// Asks the store about every tenant again.
    async fn refresh_all(self: &Arc<TenantRegistry>) {
        let all: Vec<Tenant> = self.state.load().files.keys().cloned().collect();
        self.refresh_each(all).await;
    }

    async fn refresh_each(self: &Arc<TenantRegistry>, tenants: Vec<Tenant>) {
        for tenant in tenants {
            match self.refresh(&tenant).await {
                Ok(_) => {}
                // That the store is away is reported elsewhere; asking it for each tenant would only take longer.
                Err(error) if error.code().retryable() => return,
                Err(error) => tracing::error!(%tenant, %error, "the configuration set over HTTP cannot be read"),
            }
        }
    }

    /// Reads one tenant's configuration from the store. `true` if it changed. A store that does not answer leaves
    /// everything as it is.
    pub async fn refresh(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<bool, StoreError> {
        // First, because the targets that are set up next read secrets.
        self.parts.vault.refresh(tenant).await?;
        if !self.parts.over_http {
            return Ok(false);
        }
        let refresh_lock = Arc::clone(lock(&self.refresh_locks).entry(tenant.clone()).or_default());
        let refreshing = refresh_lock.lock().await;
        let stored = match self.parts.store.of(tenant).tenant_text().current().await {
            Ok(text) => StoredConfig::Text(text),
            Err(StoreError::Corrupt { .. }) => StoredConfig::Unreadable,
            Err(StoreError::NotAuthentic { why, .. }) => StoredConfig::NotAuthentic(why),
            Err(error) => return Err(error),
        };
        let whose = tenant.clone();
        let changed = self.run_blocking(move |tenants| tenants.apply_stored(&whose, stored)).await;
        drop(refreshing);
        Ok(changed.unwrap_or(false))
    }

    /// Rebuilds a tenant's catalog, because an external server's tools have changed.
    pub async fn relist(self: &Arc<TenantRegistry>, tenant: &Tenant) {
        let whose = tenant.clone();
        self.run_blocking(move |tenants| {
            let _reconcile = lock(&tenants.reconcile);
            let old = tenants.state.load_full();
            let Some(ServedTenant { config, attached, origin, .. }) = old.served.get(&whose).cloned() else { return };
            // A suspended tenant has no tools, wherever they come from.
            if matches!(origin, ConfigOrigin::File | ConfigOrigin::Http(_)) {
                let mut next = TenantsState::clone(&old);
                match tenants.rebuild_catalog(&mut next, config, attached, origin) {
                    Ok(()) => tenants.publish(&old, next),
                    Err(error) => tracing::error!(tenant = %whose, %error, "the tenant's catalog cannot be built"),
                }
            }
        })
        .await;
    }

    /// Runs work on a thread of its own: compiling schemas and starting sandboxes may take a while.
    async fn run_blocking<T: Send + 'static>(
        self: &Arc<TenantRegistry>,
        work: impl FnOnce(&TenantRegistry) -> T + Send + 'static,
    ) -> Option<T> {
        let tenants = Arc::clone(self);
        let result = tokio::task::spawn_blocking(move || work(&tenants)).await;
        if result.is_err() {
            tracing::error!("reconciling the tenants panicked");
        }
        result.ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is consistent after every statement, so a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
