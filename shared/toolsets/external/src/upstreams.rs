//! All external servers of all tenants: kept up to date in the background, read from memory.
//!
//! A list is fetched by whichever replica holds the lease and kept in the store for all of them; the others read it
//! there. Meanwhile, and whenever a server does not answer, the list from before serves.

mod accept;
mod health;
mod measure;
mod refresh;

pub use accept::AcceptedTools;

use crate::config::{ExternalServerConfig, UpstreamsConfig};
use crate::link::{LinksConfig, ServerLinks};
use crate::member::{self, Member};
use crate::naming;
use crate::pins::PinState;
use crate::places::SharedSlots;
use crate::standing::{self, ServerStanding};
use crate::tool::ExternalDeps;
use catalog::CatalogEntry;
use domain::{Code, Failure, Tenant};
use refresh::RefreshPolicy;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError, RwLock};
use store::{Store, StoreError};
use tokio::runtime::Handle;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// How many changes a slow listener may be behind.
const BACKLOG: usize = 256;

/// The external servers of all tenants. A clone is another handle to the same ones.
#[derive(Clone)]
pub struct Upstreams(Arc<UpstreamsParts>);

struct UpstreamsParts {
    store: Store,
    shared: Arc<ExternalDeps>,
    members: RwLock<HashMap<Tenant, BTreeMap<String, Arc<Member>>>>,
    changes: broadcast::Sender<Tenant>,
    tasks: TaskTracker,
    /// The runtime this was made in, which outlives those of the server's workers.
    home: Handle,
    /// Ends the background work, on closing or with the last handle.
    stop: DropGuard,
}

impl Upstreams {
    /// No servers yet. To be made inside the runtime that background work shall run on.
    pub fn new(config: UpstreamsConfig) -> Upstreams {
        let links = ServerLinks::new(LinksConfig { lookup: config.lookup, ..LinksConfig::default() });
        let (stop, heard) = (CancellationToken::new(), links.changes());
        let reserved = member::reserved(config.reserved);
        let upstreams = Upstreams(Arc::new(UpstreamsParts {
            store: config.store,
            shared: Arc::new(ExternalDeps { links, common: SharedSlots::default(), reserved }),
            members: RwLock::default(),
            changes: broadcast::Sender::new(BACKLOG),
            tasks: TaskTracker::new(),
            home: Handle::current(),
            stop: stop.clone().drop_guard(),
        }));
        let listening = refresh::listen(Arc::downgrade(&upstreams.0), heard, stop);
        upstreams.0.tasks.spawn_on(listening, &upstreams.0.home);
        upstreams
    }

    /// Sets the servers of a tenant. Those it had before keep what is known of them; those that are gone are forgotten,
    /// except for what was accepted. Nothing is asked: that is [`Upstreams::refresh`]'s, and to be called next.
    pub fn replace(&self, tenant: &Tenant, servers: Vec<ExternalServerConfig>) {
        let mut before = self.members_of(tenant);
        let mut now = BTreeMap::new();
        for config in servers {
            let id = config.id.clone();
            let member = match (before.remove(&id), naming::toolset(&id)) {
                (Some(member), _) => {
                    member.configure(config, &self.0.shared);
                    member
                }
                (None, Some(toolset)) => Member::new(tenant, toolset, config),
                (None, None) => {
                    tracing::error!(%tenant, "an external server whose id cannot name a toolset is left out");
                    continue;
                }
            };
            now.insert(id, member);
        }
        self.forget(before.into_values());
        self.0.members.write().unwrap_or_else(PoisonError::into_inner).insert(tenant.clone(), now);
    }

    /// Takes every server of a tenant away.
    pub fn remove(&self, tenant: &Tenant) {
        let gone = self.0.members.write().unwrap_or_else(PoisonError::into_inner).remove(tenant);
        self.forget(gone.into_iter().flat_map(BTreeMap::into_values));
        self.0.shared.links.drop_links(tenant, None);
    }

    /// What the tenant's servers offer of what is accepted and wanted; from memory.
    pub fn entries(&self, tenant: &Tenant) -> Vec<Arc<CatalogEntry>> {
        let members = self.members_of(tenant);
        members.values().flat_map(|member| member.view().entries().cloned().collect::<Vec<_>>()).collect()
    }

    /// The tools that were offered and are withheld now, because their definitions are not the accepted ones any more.
    pub fn withheld(&self, tenant: &Tenant) -> BTreeSet<String> {
        let views: Vec<_> = self.members_of(tenant).values().map(|member| member.view()).collect();
        let changed = views.iter().flat_map(|view| &view.tools).filter(|stood| stood.state == PinState::Changed);
        changed.filter_map(|stood| stood.name.as_ref().map(ToString::to_string)).collect()
    }

    /// Hears of tenants whose entries are others now. Whoever falls behind should look at all of its tenants.
    pub fn changes(&self) -> broadcast::Receiver<Tenant> {
        self.0.changes.subscribe()
    }

    /// A list was served: what is older than its time is looked at in the background. Never waits.
    pub fn touch(&self, tenant: &Tenant) {
        let now = Instant::now();
        let members = self.0.members.read().unwrap_or_else(PoisonError::into_inner);
        for member in members.get(tenant).into_iter().flat_map(BTreeMap::values).filter(|member| member.is_due(now)) {
            self.kick(member, RefreshPolicy::IfDue);
        }
    }

    /// Reads again what is kept of a tenant's servers, or of one of them; what was never listed, or is too old, is
    /// listed. A store that does not answer leaves everything as it was.
    pub async fn refresh(&self, tenant: &Tenant, server: Option<&str>) {
        let wanted = self.members_of(tenant).into_iter().filter(|(id, _)| server.is_none_or(|server| server == id));
        // All at once: one that hangs holds up nobody else's list.
        let looks = wanted.map(|(_, member)| async move {
            let _flight = member.flight.lock().await;
            self.look_or_tell(&member, RefreshPolicy::IfDue).await;
        });
        futures_util::future::join_all(looks).await;
    }

    /// Reads what the store has of those of a tenant's servers of which nothing is known yet, and asks none of them. Tells
    /// whether any of them offers something. A store that does not answer leaves everything as it was.
    pub async fn recall(&self, tenant: &Tenant) -> bool {
        let unread = self.members_of(tenant).into_values().filter(|member| member.view().known.offer.is_none());
        let looks = unread.map(|member| async move {
            let _flight = member.flight.lock().await;
            self.look_or_tell(&member, RefreshPolicy::No).await;
            member.view().entries().next().is_some()
        });
        futures_util::future::join_all(looks).await.contains(&true)
    }

    /// Asks one server for its list now, however fresh the one that is kept, and waits for what comes of it. A server
    /// that was asked a moment ago, or failed a moment ago, is left in peace; its standing says which.
    pub async fn relist(&self, tenant: &Tenant, server: &str) -> Result<(), Failure> {
        let (upstreams, member) = (self.clone(), self.member(tenant, server)?);
        // A connection belongs to the runtime it was made in, and a request to one that may end before it.
        let work = async move {
            let _flight = member.flight.lock().await;
            upstreams.look(&member, RefreshPolicy::Now).await
        };
        let asked = self.0.tasks.spawn_on(work, &self.0.home).await;
        let broken_off = |_| Failure::new(Code::Internal, "asking the external server was broken off");
        asked.map_err(broken_off)?.map_err(|error| no_store(&error))
    }

    /// What an administrator sees of the tenant's servers, read from the store.
    pub async fn standing(&self, tenant: &Tenant) -> Result<Vec<ServerStanding>, Failure> {
        let now = self.0.store.now().await.map_err(|error| no_store(&error))?;
        let mut all = Vec::new();
        for member in self.members_of(tenant).into_values() {
            let _flight = member.flight.lock().await;
            self.look(&member, RefreshPolicy::No).await.map_err(|error| no_store(&error))?;
            all.push(standing::of(&member, now));
        }
        Ok(all)
    }

    /// Ends what is under way in the background and waits for it.
    pub async fn close(&self) {
        self.0.stop.token().cancel();
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn forget(&self, gone: impl Iterator<Item = Arc<Member>>) {
        for member in gone {
            member.leave();
            self.0.shared.links.drop_links(&member.tenant, Some(&member.id));
        }
    }

    fn members_of(&self, tenant: &Tenant) -> BTreeMap<String, Arc<Member>> {
        self.0.members.read().unwrap_or_else(PoisonError::into_inner).get(tenant).cloned().unwrap_or_default()
    }

    fn member(&self, tenant: &Tenant, server: &str) -> Result<Arc<Member>, Failure> {
        let known = self.members_of(tenant);
        known.get(server).cloned().ok_or_else(|| {
            let near = domain::outcome::near(server, known.keys().map(String::as_str));
            Failure::new(target::codes::SERVER_UNKNOWN, "the tenant has no external server of that name")
                .did_you_mean(near)
        })
    }
}

fn no_store(error: &StoreError) -> Failure {
    tracing::warn!(
        error = error as &dyn std::error::Error,
        "what is kept of external servers cannot be read or written"
    );
    error.failure(", so nothing was done")
}
