//! The world: replicas that serve, the store under them, the tenants they know, and the key their tokens are signed with.
//!
//! It is tidy when it ends, or the test fails: no receipt open, no task running, no key outside the tenants' own space.

use crate::actor::{Mint, TenantActors};
use crate::http::{self, Answer, Request};
use crate::plan::{Ground, Plan, tenant_file};
use crate::redis::RedisServer;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

/// What every key of a world begins with.
const PREFIX: &str = "world";

/// What a replica is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The settings file.
    pub config: PathBuf,
    /// The settings that lie over it.
    pub environment: Vec<(String, String)>,
}

/// What a replica left behind when it had stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// Audit entries that were opened and never closed.
    pub receipts: i64,
    /// Background tasks that still ran.
    pub tasks: usize,
}

/// Work that ends with a value.
pub type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A replica that serves.
pub struct Replica<P> {
    /// Where it listens.
    pub address: SocketAddr,
    /// What a test may reach of it.
    pub part: P,
    /// Stops it in order.
    pub stop: Box<dyn FnOnce() -> Work<Leftovers> + Send>,
}

/// How a replica is started.
pub type Start<P> = Arc<dyn Fn(Setup) -> Work<anyhow::Result<Replica<P>>> + Send + Sync>;

/// Where the replicas are; actors look here each time, because a restart moves them.
pub(crate) type Addresses = Arc<Mutex<Vec<Option<SocketAddr>>>>;

/// Replicas that serve, and everything around them.
pub struct World<P> {
    replicas: Vec<Option<Replica<P>>>,
    addresses: Addresses,
    start: Start<P>,
    setup: Setup,
    mint: Arc<Mint>,
    redis: Option<RedisServer>,
    folder: TempDir,
}

impl<P> World<P> {
    pub(crate) async fn start(plan: Plan, start: Start<P>) -> World<P> {
        let folder = tempfile::tempdir().expect("a temporary folder should be made");
        let url = match &plan.ground {
            Ground::Memory => "memory:".to_owned(),
            Ground::File => format!("file:{}", folder.path().join("state.redb").display()),
            Ground::Redis(server) => server.url(),
        };
        let mint = Mint::fresh(&folder.path().join("signing.key"));
        let config = write_settings(folder.path(), &url, &mint);
        let mut world = World {
            replicas: Vec::new(),
            addresses: Addresses::default(),
            start,
            setup: Setup { config, environment: plan.settings },
            mint: Arc::new(mint),
            redis: match plan.ground {
                Ground::Memory | Ground::File => None,
                Ground::Redis(server) => Some(server),
            },
            folder,
        };
        for (name, text) in &plan.tenants {
            world.write_tenant(name, text);
        }
        for (tenant, name, text) in &plan.secrets {
            world.write_secret(tenant, name, text);
        }
        for replica in 0..plan.replicas {
            world.replicas.push(None);
            world.begin(replica).await;
        }
        world
    }

    /// Speaks for a tenant.
    pub fn tenant(&self, name: &str) -> TenantActors {
        TenantActors::new(name, Arc::clone(&self.mint), Arc::clone(&self.addresses))
    }

    /// Makes tokens, good ones and others.
    pub fn mint(&self) -> &Mint {
        &self.mint
    }

    /// Where a replica listens.
    pub fn address(&self, replica: usize) -> SocketAddr {
        address(&self.addresses, replica)
    }

    /// What a test may reach of a replica.
    pub fn part(&self, replica: usize) -> &P {
        &self.running(replica).part
    }

    /// Asks a replica without a token.
    pub async fn get(&self, replica: usize, path: &str) -> Answer {
        Request::new("GET", path).send(self.address(replica)).await
    }

    /// Sends bytes as they are; `None` if the connection was closed without an answer.
    pub async fn raw(&self, replica: usize, bytes: &[u8]) -> Option<Answer> {
        http::raw(self.address(replica), bytes).await
    }

    /// The Redis under this world.
    pub fn redis(&mut self) -> &mut RedisServer {
        self.redis.as_mut().expect("this world stands on no Redis")
    }

    /// The settings file its replicas were started with.
    pub fn settings_file(&self) -> &std::path::Path {
        &self.setup.config
    }

    /// Writes a tenant's file with the defaults, changed by `more`.
    pub fn configure(&self, name: &str, more: &str) {
        self.write_tenant(name, &tenant_file(name, more));
    }

    /// Writes any text into a tenant's file, whole at once as a careful editor does.
    pub fn write_tenant(&self, name: &str, text: &str) {
        let folder = self.folder.path().join("tenants");
        let (draft, file) = (folder.join(format!(".{name}")), folder.join(format!("{name}.yaml")));
        std::fs::write(&draft, text).expect("a tenant's file should be written");
        std::fs::rename(draft, file).expect("a tenant's file should be put in place");
    }

    /// Writes a tenant's secret, whole at once as a mounted one changes.
    pub fn write_secret(&self, tenant: &str, name: &str, text: &str) {
        let folder = self.folder.path().join("secrets").join(tenant);
        std::fs::create_dir_all(&folder).expect("a folder for secrets should be made");
        let (draft, file) = (folder.join(format!(".{name}")), folder.join(name));
        std::fs::write(&draft, text).expect("a secret should be written");
        std::fs::rename(draft, file).expect("a secret should be put in place");
    }

    /// Takes a tenant's file away.
    pub fn remove_tenant(&self, name: &str) {
        let file = self.folder.path().join("tenants").join(format!("{name}.yaml"));
        std::fs::remove_file(file).expect("a tenant's file should be there");
    }

    /// Changes a setting for replicas that are started from now on.
    pub fn set(&mut self, key: &str, value: &str) {
        self.setup.environment.push((key.to_owned(), value.to_owned()));
    }

    /// Stops one replica in order, and wants it to leave nothing behind.
    pub async fn stop(&mut self, replica: usize) {
        let Replica { stop, part, .. } = self.take(replica);
        let left = stop().await;
        drop(part);
        assert_eq!(left, Leftovers::default(), "replica {replica} should leave nothing behind");
    }

    /// Takes a replica out without stopping it; what becomes of it is the caller's business.
    pub fn take(&mut self, replica: usize) -> Replica<P> {
        locked(&self.addresses)[replica] = None;
        self.replicas[replica].take().expect("this replica should run")
    }

    /// Starts a replica that was stopped, on the same settings and a new port.
    pub async fn begin(&mut self, replica: usize) {
        let started = (self.start)(self.setup.clone()).await;
        let started = started.unwrap_or_else(|error| panic!("replica {replica} did not start: {error:#}"));
        let mut addresses = locked(&self.addresses);
        addresses.resize(self.replicas.len(), None);
        addresses[replica] = Some(started.address);
        self.replicas[replica] = Some(started);
    }

    /// Tries to start one more replica on the same settings, and gives the reason if it does not start.
    pub async fn begin_another(&self) -> Result<Replica<P>, String> {
        (self.start)(self.setup.clone()).await.map_err(|error| format!("{error:#}"))
    }

    async fn stop_all(&mut self) {
        for replica in 0..self.replicas.len() {
            if self.replicas[replica].is_some() {
                self.stop(replica).await;
            }
        }
        if let Some(server) = self.redis.as_ref().filter(|server| server.runs()) {
            let foreign: Vec<String> = server.keys().into_iter().filter(|key| !is_ours(key)).collect();
            assert!(foreign.is_empty(), "keys outside the tenants' space: {foreign:?}");
        }
    }

    fn running(&self, replica: usize) -> &Replica<P> {
        self.replicas[replica].as_ref().expect("this replica should run")
    }
}

impl<P> Drop for World<P> {
    fn drop(&mut self) {
        // A test that has failed already says more than what it left lying about.
        if std::thread::panicking() {
            return;
        }
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(self.stop_all()));
    }
}

/// Every key is `<prefix>:{<tenant>}:…`, or the store's own under `{~}`.
fn is_ours(key: &str) -> bool {
    let tenant =
        key.strip_prefix(PREFIX).and_then(|rest| rest.strip_prefix(":{")).and_then(|rest| rest.split_once("}:"));
    tenant.is_some_and(|(tenant, _)| tenant == "~" || domain::Tenant::parse(tenant).is_ok())
}

pub(crate) fn address(addresses: &Addresses, replica: usize) -> SocketAddr {
    locked(addresses).get(replica).copied().flatten().expect("this replica should run")
}

fn locked(addresses: &Addresses) -> std::sync::MutexGuard<'_, Vec<Option<SocketAddr>>> {
    addresses.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_settings(folder: &Path, url: &str, mint: &Mint) -> PathBuf {
    std::fs::create_dir(folder.join("tenants")).expect("a folder for tenants should be made");
    std::fs::write(folder.join("service.key"), [7; 32]).expect("the service's key should be written");
    let (resource, issuer, shown) = (Mint::RESOURCE, Mint::ISSUER, folder.display());
    let key = mint.file().display();
    // The store's deadline is longer than in production: what is tested is not how fast a busy machine is.
    let text = format!(
        r#"
        [listen]
        address = "127.0.0.1:0"
        workers = 1
        [store]
        url = "{url}"
        prefix = "{PREFIX}"
        deadline = "10s"
        [identity]
        resource = "{resource}"
        [[identity.issuers]]
        issuer = "{issuer}"
        algorithms = ["HS256"]
        key_file = "{key}"
        scopes = ["tools:read", "tools:write", "runs:decide", "tenant:admin", "audit:read", "operator:switch", "runner:work"]
        [calls]
        key_file = "{shown}/service.key"
        [tenants]
        dir = "{shown}/tenants"
        secrets = "{shown}/secrets"
        clusters_on_loopback = true
        reload_every = "50ms"
        [upstreams]
        cache = "{shown}/cache"
        "#
    );
    let file = folder.join("quartermaster.toml");
    std::fs::write(&file, text).expect("the settings should be written");
    file
}

#[cfg(test)]
mod tests;
