//! A fresh store per test, and the few things every test needs.

use domain::{
    Call, CallId, Caller, Effect, Level, LoadedToolsets, Moment, Principal, Scopes, Session, SessionId, SessionMode,
    Tenant,
};
use domain::{ToolName, ToolUse, ToolsetName};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use store::{ActorKind, CallOpening, CallRate, Config, SessionConfig, Store, StoreLimits, TenantStore};
use testkit::redis::RedisServer;
use testkit::redis_topology::{ClusterSet, Kept, SentinelSet};

pub(crate) const LIVES: SessionConfig = SessionConfig {
    idle: Duration::from_secs(3600),
    longest: Duration::from_secs(30 * 86_400),
    carry_over: Duration::from_secs(3600),
};

/// A store, and what it stands on.
pub(crate) struct Bench {
    pub(crate) store: Store,
    pub(crate) config: Config,
    _folder: Option<tempfile::TempDir>,
    _server: Option<Arc<RedisServer>>,
}

impl Bench {
    pub(crate) async fn memory() -> Bench {
        Bench::on(config("memory:".into()), None, None).await
    }

    pub(crate) async fn file() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("file:{}", folder.path().join("qm.redb").display());
        Bench::on(config(url), Some(folder), None).await
    }

    pub(crate) async fn redis() -> Bench {
        let server = shared_server();
        Bench::on(config(server.url()), None, Some(server)).await
    }

    pub(crate) async fn sentinel() -> Bench {
        static SET: OnceLock<Kept<SentinelSet>> = OnceLock::new();
        let set = SET.get_or_init(|| Kept::sentinels(SentinelSet::start()));
        Bench::on(config(set.topology.url()), None, None).await
    }

    pub(crate) async fn cluster() -> Bench {
        static SET: OnceLock<Kept<ClusterSet>> = OnceLock::new();
        let set = SET.get_or_init(|| Kept::cluster(ClusterSet::replicated()));
        Bench::on(config(set.topology.url()), None, None).await
    }

    async fn on(config: Config, folder: Option<tempfile::TempDir>, server: Option<Arc<RedisServer>>) -> Bench {
        let store = Store::open(&config).await.unwrap();
        Bench { store, config, _folder: folder, _server: server }
    }

    /// The same place, opened anew with these limits.
    pub(crate) async fn limited(self, limits: StoreLimits) -> Bench {
        self.store.close().await;
        Bench { store: Store::open_with(&self.config, limits).await.unwrap(), ..self }
    }

    /// Whether the nodes of the store have replicas.
    pub(crate) fn is_replicated(&self) -> bool {
        self.config.url.starts_with("redis+")
    }

    pub(crate) fn acme(&self) -> TenantStore {
        self.store.of(&tenant("acme"))
    }

    /// Waits until the store's own clock has passed a moment. Expiry is judged by it, so nothing else will do.
    pub(crate) async fn pass(&self, moment: Moment) {
        while self.store.now().await.unwrap() <= moment {
            tokio::task::yield_now().await;
        }
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

pub(crate) fn tenant(slug: &str) -> Tenant {
    Tenant::parse(slug).unwrap()
}

pub(crate) fn principal(subject: &str) -> Principal {
    Principal::new("https://login.example", subject)
}

pub(crate) fn session_id(number: u8) -> SessionId {
    SessionId::from_random([number; 16])
}

pub(crate) fn session(number: u8, opened_at: Moment) -> Session {
    Session {
        id: session_id(number),
        owner: principal("agent"),
        mode: SessionMode::Write,
        loaded: LoadedToolsets::default(),
        grown: false,
        catalog: "c1".into(),
        tainted: false,
        assignment: domain::Assignment::default(),
        client: None,
        door: Some(domain::SessionDoor::Rest),
        opened_at,
    }
}

pub(crate) fn call(number: u8, session: Option<SessionId>) -> Call {
    let caller = Caller {
        tenant: tenant("acme"),
        principal: principal("agent"),
        scopes: Scopes::parse("tools:read"),
        expires_at: Moment::from_secs(u64::from(u32::MAX)),
        token: None,
        labels: Vec::new(),
    };
    let used = ToolUse {
        tool: ToolName::parse("k8s_get").unwrap(),
        toolset: ToolsetName::parse("k8s").unwrap(),
        needs: Level::Read,
        effect: Effect::Read,
        about: None,
        schema: "",
        arguments: "{}",
    };
    Call::new(CallId::from_random([number; 16]), Arc::new(caller), session, used)
}

pub(crate) fn opening(call: &Call) -> CallOpening<'_> {
    CallOpening {
        call,
        kind: ActorKind::Agent,
        args: "hmac:abc".into(),
        token: None,
        contents: None,
        client: None,
        target: None,
        trace: Some("4bf9".into()),
        session: call.session,
        lives: LIVES,
        held_to_quota: true,
        rate: CallRate { tenant: u64::MAX >> 11, caller: u64::MAX >> 11 },
        gated: None,
    }
}

/// Makes a test of each function for each backend.
macro_rules! on_every_backend {
    ($($name:ident),+ $(,)?) => {
        on_every_backend!(@ memory, $($name),+);
        on_every_backend!(@ file, $($name),+);
        on_every_backend!(@ redis, $($name),+);
        on_every_backend!(@ sentinel, $($name),+);
        on_every_backend!(@ cluster, $($name),+);
    };
    (@ $backend:ident, $($name:ident),+) => {
        mod $backend {
            $(
                #[tokio::test]
                async fn $name() {
                    super::$name($crate::bench::Bench::$backend().await).await;
                }
            )+
        }
    };
}
pub(crate) use on_every_backend;
