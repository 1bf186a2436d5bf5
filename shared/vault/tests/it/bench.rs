//! A vault over a fresh store and a folder of its own, and the few things every test needs.

use domain::{Caller, Moment, Principal, Scopes, Tenant};
use redact::SecretText;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use store::{Config, Store};
use testkit::redis::RedisServer;
use vault::{Environment, Missing, Sealer, Vault};

/// A vault, and what it stands on.
pub(crate) struct Bench {
    pub(crate) vault: Vault,
    pub(crate) store: Store,
    pub(crate) config: Config,
    pub(crate) folder: tempfile::TempDir,
    _server: Option<Arc<RedisServer>>,
}

impl Bench {
    pub(crate) async fn memory() -> Bench {
        Bench::on(config("memory:".into()), tempfile::tempdir().unwrap(), None).await
    }

    pub(crate) async fn file() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file:{}", folder.path().join("qm.redb").display());
        Bench::on(config(url), folder, None).await
    }

    pub(crate) async fn redis() -> Bench {
        let server = shared_server();
        Bench::on(config(server.url()), tempfile::tempdir().unwrap(), Some(server)).await
    }

    async fn on(config: Config, folder: tempfile::TempDir, server: Option<Arc<RedisServer>>) -> Bench {
        let store = Store::open(&config).await.unwrap();
        let vault = Vault::new(store.clone(), sealer(1, &[]), folder.path().join("secrets"), Environment::default());
        Bench { vault, store, config, folder, _server: server }
    }

    /// The same places, seen with other keys and with these variables.
    pub(crate) fn vault_with(&self, sealer: Sealer, variables: &[(&str, &str)]) -> Vault {
        let environment = Environment::of(variables.iter().copied());
        Vault::new(self.store.clone(), sealer, self.folder.path().join("secrets"), environment)
    }

    /// Writes a secret as a mount brings it.
    pub(crate) fn mount(&self, slug: &str, name: &str, text: &str) {
        let home = self.folder.path().join("secrets").join(slug);
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(home.join(name), text).unwrap();
    }
}

/// One server for all tests that run at the same time; it ends with the last of them.
fn shared_server() -> Arc<RedisServer> {
    static SERVER: Mutex<Weak<RedisServer>> = Mutex::new(Weak::new());
    let mut server = SERVER.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    server.upgrade().unwrap_or_else(|| {
        let fresh = Arc::new(RedisServer::start());
        *server = Arc::downgrade(&fresh);
        fresh
    })
}

/// Settings with a prefix that no other test has.
pub(crate) fn config(url: String) -> Config {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let prefix = format!("qm{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Config { prefix, ..Config::at(&url) }
}

pub(crate) fn sealer(current: u8, older: &[u8]) -> Sealer {
    Sealer::new(&[current; 32], &older.iter().map(|byte| vec![*byte; 32]).collect::<Vec<_>>()).unwrap()
}

pub(crate) fn tenant(slug: &str) -> Tenant {
    Tenant::parse(slug).unwrap()
}

pub(crate) fn acme() -> Tenant {
    tenant("acme")
}

pub(crate) fn ada() -> Caller {
    Caller {
        tenant: acme(),
        principal: Principal::new("https://login.example", "ada"),
        scopes: Scopes::parse("tenant:admin"),
        expires_at: Moment::from_secs(u64::from(u32::MAX)),
        token: None,
        labels: Vec::new(),
    }
}

pub(crate) fn text(value: &str) -> SecretText {
    SecretText::new(value)
}

pub(crate) async fn set(vault: &Vault, name: &str, value: &str) -> vault::StoredSecretFacts {
    vault.set(&acme(), name, text(value), &ada(), None).await.unwrap()
}

pub(crate) fn read(vault: &Vault, name: &str) -> Result<String, Missing> {
    vault.read(&acme(), name).map(|value| value.expose().to_owned())
}

pub(crate) fn unknown(name: &str) -> Result<String, Missing> {
    Err(Missing::Unknown { name: name.into() })
}

/// Makes a test of each function for each store.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        on_every_store!(@ memory, $($name),+);
        on_every_store!(@ file, $($name),+);
        on_every_store!(@ redis, $($name),+);
    };
    (@ $store:ident, $($name:ident),+) => {
        mod $store {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name($crate::bench::Bench::$store().await).await;
                }
            )+
        }
    };
}
pub(crate) use on_every_store;
