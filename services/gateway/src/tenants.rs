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
//! A tenant that nobody uses is dormant: of it this process has the checked file and nothing else. It is made ready at its
//! first use, which asks the store what holds for it, and let go again when nobody has used it for a while (`dormancy`).
//!
//! The last three rows never fall back to the file: a restriction that a tenant's admin set must not be lost because the store is
//! slow or a rule has changed.

mod dormancy;
mod folder;
mod known_names;
mod over_http;
mod reconcile;
mod report;
mod snapshot;
mod watch;

pub use dormancy::TenantUse;
pub use known_names::names_of;
pub(crate) use known_names::with_known_names;

use crate::reach::EgressPolicy;
use crate::settings::{Settings, UpstreamSettings};
use crate::toolsets::Toolsets;
use arc_swap::ArcSwap;
use catalog::CatalogEntry;
use domain::{Code, Failure, Tenant};
use executor::Snapshot;
use executor::Tasks;
use external::{CuratedSources, ServerCatalog};
use memory::TenantMemory;
use memory::documents::Documents;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use store::{Store, StoreError, TenantText};
use tenancy::{ConfiguredTenant, FolderReading, Problem, TenantConfig, TenantFiles};
use tokio::sync::broadcast;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
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
    /// The file in which it is reported what is served.
    pub report: Option<PathBuf>,
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
            report: configured(&settings.tenants.report),
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

/// The toolsets of one tenant, with its targets.
pub type AttachedToolsets = Arc<[Arc<dyn AttachedToolset>]>;

/// One tenant as it is served.
#[derive(Clone)]
struct ServedTenant {
    snapshot: Arc<Snapshot>,
    config: Arc<TenantConfig>,
    /// Its toolsets, with its targets. Swapped together with the rest.
    attached: AttachedToolsets,
    origin: ConfigOrigin,
    /// Who uses it, and when it was last used; stays through all its versions.
    used: Arc<TenantUse>,
}

/// What the tenants of this process are, now.
#[derive(Default, Clone)]
struct TenantsState {
    served: HashMap<Tenant, ServedTenant>,
    /// Tenants with a file for which the store has not answered yet whether a configuration over HTTP replaces it.
    waiting: HashSet<Tenant>,
    /// Every tenant that has a file. Those that are neither served nor waited for are dormant.
    files: Arc<HashMap<Tenant, Arc<ConfiguredTenant>>>,
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

/// The files as they were last read.
#[derive(Default)]
struct FilesReading {
    folder: FolderReading,
    curated: ServerCatalog,
}

/// The tenants of this process.
pub struct TenantRegistry {
    parts: TenantsParts,
    state: ArcSwap<TenantsState>,
    /// Locked while files are read, and before `reconcile`.
    reading: Mutex<FilesReading>,
    reconcile: Mutex<ReconcileState>,
    problems: ArcSwap<Vec<Problem>>,
    /// One lock for each tenant, held while its configuration is read from the store, so that an older answer never comes
    /// last.
    refresh_locks: Mutex<HashMap<Tenant, Arc<tokio::sync::Mutex<()>>>>,
    changes: broadcast::Sender<Tenant>,
    /// Tenants that were served and are no more, until somebody has seen to what waits in them.
    gone: Mutex<BTreeSet<Tenant>>,
    /// Tenants that have appeared, until somebody has looked whether something was left undone in them.
    appeared: Mutex<BTreeSet<Tenant>>,
    /// What listeners are started with, once there are any.
    tasks: OnceLock<Tasks>,
    listeners: Mutex<HashMap<Tenant, CancellationToken>>,
    /// What was last reported.
    reported: Mutex<String>,
}

impl TenantRegistry {
    /// Tenants made of these parts; none are served before the first [`TenantRegistry::look`].
    pub fn new(parts: TenantsParts) -> TenantRegistry {
        TenantRegistry {
            parts,
            state: ArcSwap::default(),
            reading: Mutex::default(),
            reconcile: Mutex::default(),
            problems: ArcSwap::default(),
            refresh_locks: Mutex::default(),
            changes: broadcast::Sender::new(BACKLOG),
            gone: Mutex::default(),
            appeared: Mutex::default(),
            tasks: OnceLock::new(),
            listeners: Mutex::default(),
            reported: Mutex::default(),
        }
    }

    /// One tenant as it is now; `None` if it is dormant, or not served here.
    pub fn find(&self, tenant: &Tenant) -> Option<Arc<Snapshot>> {
        self.state.load().served.get(tenant).map(ServedTenant::in_use)
    }

    /// Whether there is such a tenant here, dormant or not.
    pub fn knows(&self, tenant: &Tenant) -> bool {
        let state = self.state.load();
        state.served.contains_key(tenant) || state.files.contains_key(tenant)
    }

    /// Every tenant there is here, dormant or not.
    pub fn names(&self) -> Vec<Tenant> {
        let state = self.state.load();
        let fixed = state.served.keys().filter(|tenant| !state.files.contains_key(*tenant));
        state.files.keys().chain(fixed).cloned().collect()
    }

    /// The same, or why there is none.
    pub fn get(&self, tenant: &Tenant) -> Result<Arc<Snapshot>, Failure> {
        let state = self.state.load();
        match state.served.get(tenant) {
            Some(served) => Ok(served.in_use()),
            None if state.files.contains_key(tenant) => {
                let message = "the tenant's configuration cannot be read from the store yet";
                Err(Failure::new(Code::StoreUnavailable, message).retry_after_ms(1_000))
            }
            // A tenant that is not configured answers like a token that names none.
            None => Err(Failure::new(Code::ForbiddenTenant, "the token names no tenant that is served here")),
        }
    }

    /// The same for a request. A tenant that is dormant, or has just appeared, waits for the store's answer instead of
    /// failing.
    pub async fn get_when_read(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<Arc<Snapshot>, Failure> {
        if let Some(snapshot) = self.find(tenant) {
            return Ok(snapshot);
        }
        let is_waiting = self.state.load().files.contains_key(tenant);
        if is_waiting && let Err(error) = Box::pin(self.refresh(tenant)).await {
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
    pub fn all_attached(&self, tenant: &Tenant) -> AttachedToolsets {
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

    /// All tenants with tools that are not dormant, as they are now. Runs of suspended ones wait until the configuration is corrected, or for a
    /// replica that still has the previous one.
    pub fn all(&self) -> Vec<(Tenant, Arc<Snapshot>)> {
        let state = self.state.load();
        let active = state.served.iter().filter(|(_, served)| served.origin != ConfigOrigin::Suspended);
        active.map(|(tenant, served)| (tenant.clone(), Arc::clone(&served.snapshot))).collect()
    }

    /// How many there are, dormant ones included.
    pub fn len(&self) -> usize {
        let state = self.state.load();
        let fixed = state.served.keys().filter(|tenant| !state.files.contains_key(*tenant));
        state.files.len() + fixed.count()
    }

    /// How many are not dormant.
    pub fn awake(&self) -> usize {
        self.state.load().served.len()
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

    /// Whether a tenant has no tools because its configuration cannot be used.
    pub fn is_suspended(&self, tenant: &Tenant) -> bool {
        self.state.load().served.get(tenant).is_some_and(|served| served.origin == ConfigOrigin::Suspended)
    }

    /// How long a tenant wants its audit entries kept. A dormant one stays so, unless a text that was set over HTTP has
    /// the word.
    pub async fn audit_keep(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<Duration, Failure> {
        let state = self.state.load_full();
        if let Some(served) = state.served.get(tenant) {
            return Ok(served.snapshot.audit.keep);
        }
        if let Some(file) = state.files.get(tenant) {
            let text = |error: StoreError| error.failure(", so it is not known how long entries are kept");
            let stored = if self.parts.over_http { Some(self.read_stored(tenant).await.map_err(text)?) } else { None };
            if let None | Some(StoredConfig::Text(None | Some(TenantText { text: None, .. }))) = stored {
                return Ok(file.config.audit.keep);
            }
        }
        Ok(self.get_when_read(tenant).await?.audit.keep)
    }

    /// Receives each tenant whose tools changed.
    pub fn changes(&self) -> broadcast::Receiver<Tenant> {
        self.changes.subscribe()
    }

    /// The built-in tools.
    pub fn tools(&self) -> &[Arc<CatalogEntry>] {
        self.parts.toolsets.tools()
    }

    /// The toolsets that tenants are attached to.
    pub(crate) fn toolsets(&self) -> &Toolsets {
        &self.parts.toolsets
    }

    /// The sections of tenants' files that toolsets own.
    pub fn sections(&self) -> Vec<tenancy::Section> {
        self.parts.toolsets.sections(&ServerCatalog::none())
    }

    /// The codes that tools of toolsets raise.
    pub fn codes(&self) -> Vec<domain::Code> {
        self.parts.toolsets.codes()
    }

    /// Looks at everything once: the folder, and the store for tenants about which it has not answered yet. Tells whether
    /// some file has to be looked at once more.
    pub async fn look(self: &Arc<TenantRegistry>) -> bool {
        let before = self.state.load_full();
        let unsettled = self.run_blocking(|tenants| tenants.reload()).await;
        let now = self.state.load_full();
        let new = now.served.keys().filter(|tenant| now.files.contains_key(*tenant));
        let new = new.filter(|tenant| !before.files.contains_key(*tenant));
        self.refresh_each(now.waiting.iter().chain(new).cloned().collect()).await;
        if self.parts.report.is_some() {
            self.run_blocking(TenantRegistry::write_report).await;
        }
        unsettled.unwrap_or(false)
    }

    /// Makes every tenant ready, used or not.
    pub async fn wake_all(self: &Arc<TenantRegistry>) {
        let state = self.state.load_full();
        self.refresh_each(state.files.keys().filter(|tenant| !state.served.contains_key(*tenant)).cloned().collect())
            .await;
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

    /// Reads one tenant's configuration from the store, and makes a dormant tenant ready. `true` if it changed. A store
    /// that does not answer leaves everything as it is.
    pub async fn refresh(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<bool, StoreError> {
        // Of many that ask for a dormant tenant at once, one makes it ready.
        let was_dormant = !self.state.load().served.contains_key(tenant);
        let refresh_lock = Arc::clone(lock(&self.refresh_locks).entry(tenant.clone()).or_default());
        let refreshing = refresh_lock.lock().await;
        if was_dormant && self.state.load().served.contains_key(tenant) {
            return Ok(true);
        }
        // First, because the targets that are set up next read secrets.
        self.parts.vault.refresh(tenant).await?;
        let stored = if self.parts.over_http { self.read_stored(tenant).await? } else { StoredConfig::Text(None) };
        let whose = tenant.clone();
        let changed = self.run_blocking(move |tenants| tenants.apply_stored(&whose, stored)).await.unwrap_or(false);
        if changed && let Some(upstreams) = &self.parts.toolsets.upstreams {
            // Its first list has what is known of its external servers, before any of them is asked.
            if upstreams.recall(tenant).await {
                self.relist(tenant).await;
            }
            upstreams.touch(tenant);
        }
        drop(refreshing);
        self.listen(tenant);
        Ok(changed)
    }

    async fn read_stored(&self, tenant: &Tenant) -> Result<StoredConfig, StoreError> {
        match self.parts.store.of(tenant).tenant_text().current().await {
            Ok(text) => Ok(StoredConfig::Text(text)),
            Err(StoreError::Corrupt { .. }) => Ok(StoredConfig::Unreadable),
            Err(StoreError::NotAuthentic { why, .. }) => Ok(StoredConfig::NotAuthentic(why)),
            Err(error) => Err(error),
        }
    }

    /// Tenants that have appeared here, since this was last asked.
    pub fn take_appeared(&self) -> BTreeSet<Tenant> {
        std::mem::take(&mut *lock(&self.appeared))
    }

    /// Tenants that were served here and are no more, since this was last asked.
    pub fn take_gone(&self) -> BTreeSet<Tenant> {
        std::mem::take(&mut *lock(&self.gone))
    }

    /// Rebuilds a tenant's catalog, because an external server's tools have changed.
    pub async fn relist(self: &Arc<TenantRegistry>, tenant: &Tenant) {
        let whose = tenant.clone();
        self.run_blocking(move |tenants| {
            let _reconcile = lock(&tenants.reconcile);
            let old = tenants.state.load_full();
            let Some(ServedTenant { config, attached, origin, used, .. }) = old.served.get(&whose).cloned() else {
                return;
            };
            // A suspended tenant has no tools, wherever they come from.
            if matches!(origin, ConfigOrigin::File | ConfigOrigin::Http(_)) {
                let mut next = TenantsState::clone(&old);
                match tenants.rebuild_catalog(&mut next, (config, attached, used), origin) {
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
        // Work that was not begun when the process ended is no fault of anybody.
        if result.as_ref().is_err_and(JoinError::is_panic) {
            tracing::error!("reconciling the tenants panicked");
        }
        result.ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The value is consistent after every statement, so a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
