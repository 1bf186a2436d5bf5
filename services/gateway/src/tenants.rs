//! Tenants as calls see them: one immutable snapshot each, swapped whole when its configuration changes.
//!
//! A tenant exists because a file names it. A text that was set over HTTP holds instead of the file's, whole, until it is
//! removed. Both are read, compared and swapped by reconcilers that take no input: a wake-up or a tick only says when.
//! A text that is wrong keeps what its tenant had before and is reported; a file that is gone takes its tenant along.
//!
//! | what is known of a tenant | what is served |
//! |---|---|
//! | no text over HTTP | its file |
//! | a good text | the text |
//! | a text that is not good (any more) | what was served before, or nothing that acts (see `hold`) |
//! | the store has not answered yet | what was served before, or requests wait for it |
//!
//! The last two never fall back to the file: what a tenant's admin has tightened must not come loose because the store
//! is slow or a rule has changed.

mod known;
mod over_http;
mod settle;
mod snapshot;
mod watch;

pub use known::known;
pub(crate) use known::with as with_known;
pub use over_http::secrets_of;

use crate::reach::EgressPolicy;
use crate::settings::{Settings, UpstreamSettings};
use crate::toolsets::Toolsets;
use arc_swap::ArcSwap;
use catalog::CatalogEntry;
use domain::{Code, Failure, Tenant};
use executor::Snapshot;
use memory::TenantMemory;
use memory::documents::Documents;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use store::{Store, StoreError, TenantText};
use tenancy::{ConfiguredTenant, CuratedSources, Problem, ServerCatalog, TenantConfig, TenantFiles};
use tokio::sync::broadcast;
use toolset::AttachedToolset;
use vault::Vault;

/// How many changes a slow stream may be behind before it is told once for all of them.
const BACKLOG: usize = 64;

/// What tenants are made of.
pub struct TenantsParts {
    /// The folder with their files.
    pub dir: PathBuf,
    /// Where the operator's external servers are listed.
    pub curated: CuratedSources,
    /// Whether a text that was set over HTTP holds instead of a file.
    pub over_http: bool,
    /// Where such texts are kept.
    pub store: Store,
    /// The toolsets they are attached to.
    pub toolsets: Toolsets,
    /// Their secrets.
    pub vault: Vault,
    /// What their files may name.
    pub reach: EgressPolicy,
}

impl TenantsParts {
    /// What the settings say, with these toolsets.
    pub fn of(settings: &Settings, store: Store, toolsets: Toolsets, vault: Vault) -> TenantsParts {
        let told = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        let UpstreamSettings { catalog, config, mcp_servers, .. } = &settings.upstreams;
        TenantsParts {
            dir: settings.tenants.dir.clone(),
            curated: CuratedSources {
                dir: told(catalog),
                config: told(config),
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
    /// A text was set and cannot be used, and nothing was served before.
    Held,
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
    /// Those with a file, of which the store has not said yet whether something else holds.
    waiting: HashSet<Tenant>,
    files: HashMap<Tenant, Arc<ConfiguredTenant>>,
    /// Texts that cannot be used.
    unusable: BTreeMap<Tenant, Vec<Problem>>,
}

/// What the store said of a tenant's configuration.
#[derive(Debug, Clone, PartialEq)]
enum StoredConfig {
    Said(Option<TenantText>),
    /// It holds something that is none of our texts.
    Unreadable,
    /// It holds something that this service did not write.
    NotAuthentic(&'static str),
}

/// What a reconciler has at hand. Whoever changes what is served holds it meanwhile.
#[derive(Default)]
struct ReconcileState {
    book: TenantFiles,
    curated: ServerCatalog,
    stored: HashMap<Tenant, StoredConfig>,
    fixed: HashMap<Tenant, Vec<Arc<CatalogEntry>>>,
}

/// The tenants of this process.
pub struct TenantRegistry {
    parts: TenantsParts,
    state: ArcSwap<TenantsState>,
    desk: Mutex<ReconcileState>,
    problems: ArcSwap<Vec<Problem>>,
    /// Who is reading a tenant's text from the store. One after the other, so that an older answer never comes last.
    turns: Mutex<HashMap<Tenant, Arc<tokio::sync::Mutex<()>>>>,
    changes: broadcast::Sender<Tenant>,
}

impl TenantRegistry {
    /// Tenants made of these parts; none are served before the first [`TenantRegistry::look`].
    pub fn new(parts: TenantsParts) -> TenantRegistry {
        TenantRegistry {
            parts,
            state: ArcSwap::default(),
            desk: Mutex::default(),
            problems: ArcSwap::default(),
            turns: Mutex::default(),
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

    /// The same for a request. Of a tenant that has just appeared the store is asked first, so that the request is
    /// served by a whole tenant and not turned away.
    pub async fn whole(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<Arc<Snapshot>, Failure> {
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

    /// The documents of a tenant. One that is held has them too: people must be able to look after them.
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

    /// All that can act, as they are now. Those that are held are not among them: their runs wait until the text is
    /// mended, or for a replica that still has the one before.
    pub fn all(&self) -> Vec<(Tenant, Arc<Snapshot>)> {
        let state = self.state.load();
        let acting = state.served.iter().filter(|(_, served)| served.origin != ConfigOrigin::Held);
        acting.map(|(tenant, served)| (tenant.clone(), Arc::clone(&served.snapshot))).collect()
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

    /// How many wait for the store to say what holds for them.
    pub fn waiting(&self) -> usize {
        self.state.load().waiting.len()
    }

    /// What is wrong with the files, as of the last look.
    pub fn problems(&self) -> Arc<Vec<Problem>> {
        self.problems.load_full()
    }

    /// What is wrong with the texts that were set over HTTP and cannot be used.
    pub fn unusable(&self) -> BTreeMap<Tenant, Vec<Problem>> {
        self.state.load().unusable.clone()
    }

    /// Hears which tenant's tools changed.
    pub fn changes(&self) -> broadcast::Receiver<Tenant> {
        self.changes.subscribe()
    }

    /// The built-in tools.
    pub fn tools(&self) -> &[Arc<CatalogEntry>] {
        self.parts.toolsets.tools()
    }

    /// The sections of tenants' files that toolsets own.
    pub fn sections(&self) -> Vec<tenancy::Section> {
        self.parts.toolsets.sections()
    }

    /// Looks at everything once: the folder, and the store for tenants of which it has not said anything yet.
    pub async fn look(self: &Arc<TenantRegistry>) {
        let before = self.state.load_full();
        self.apart(|tenants| tenants.reload()).await;
        let now = self.state.load_full();
        let strange = |tenant: &&Tenant| now.waiting.contains(*tenant) || !before.files.contains_key(*tenant);
        self.refresh_each(now.files.keys().filter(strange).cloned().collect()).await;
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
                // A store that is away is told of elsewhere, and asking it for each tenant would only take longer.
                Err(error) if error.code().retryable() => return,
                Err(error) => tracing::error!(%tenant, %error, "what was set over HTTP cannot be read"),
            }
        }
    }

    /// Asks the store what holds for one tenant. `true` if that is something else than before. A store that does not
    /// answer leaves everything as it is.
    pub async fn refresh(self: &Arc<TenantRegistry>, tenant: &Tenant) -> Result<bool, StoreError> {
        // First, because what is then set up is read with them.
        self.parts.vault.refresh(tenant).await?;
        if !self.parts.over_http {
            return Ok(false);
        }
        let turn = Arc::clone(lock(&self.turns).entry(tenant.clone()).or_default());
        let turn = turn.lock().await;
        let stored = match self.parts.store.of(tenant).tenant_text().current().await {
            Ok(text) => StoredConfig::Said(text),
            Err(StoreError::Corrupt { .. }) => StoredConfig::Unreadable,
            Err(StoreError::NotAuthentic { why, .. }) => StoredConfig::NotAuthentic(why),
            Err(error) => return Err(error),
        };
        let whose = tenant.clone();
        let changed = self.apart(move |tenants| tenants.heard_from_store(&whose, stored)).await;
        drop(turn);
        Ok(changed.unwrap_or(false))
    }

    /// Draws up a tenant's catalog again, because tools from elsewhere have changed.
    pub async fn relist(self: &Arc<TenantRegistry>, tenant: &Tenant) {
        let whose = tenant.clone();
        self.apart(move |tenants| {
            let _desk = lock(&tenants.desk);
            let old = tenants.state.load_full();
            let Some(ServedTenant { config, attached, origin, .. }) = old.served.get(&whose).cloned() else { return };
            // A tenant that is held has no tools, wherever they come from.
            if matches!(origin, ConfigOrigin::File | ConfigOrigin::Http(_)) {
                let mut next = TenantsState::clone(&old);
                tenants.draw(&mut next, &old, config, attached, origin);
                tenants.swap(&old, next);
            }
        })
        .await;
    }

    /// Compiling schemas and starting sandboxes may take a while; requests must not wait for it.
    async fn apart<T: Send + 'static>(
        self: &Arc<TenantRegistry>,
        work: impl FnOnce(&TenantRegistry) -> T + Send + 'static,
    ) -> Option<T> {
        let tenants = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&tenants)).await;
        if done.is_err() {
            tracing::error!("reconciling the tenants panicked");
        }
        done.ok()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind it is whole after every statement, so a panic elsewhere leaves it usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
