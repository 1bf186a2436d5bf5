//! What a world is made of, said before it starts.

use crate::redis::RedisServer;
use crate::world::{Start, World};
use std::collections::BTreeMap;

/// Where the state of a world lives.
pub(crate) enum Ground {
    Memory,
    File,
    Redis(RedisServer),
}

/// A world that is about to be.
pub struct Plan {
    pub(crate) ground: Ground,
    pub(crate) replicas: usize,
    pub(crate) tenants: BTreeMap<String, String>,
    pub(crate) secrets: Vec<(String, String, String)>,
    pub(crate) settings: Vec<(String, String)>,
}

impl Plan {
    /// One replica whose state ends with it.
    pub fn embedded() -> Plan {
        Plan::on(Ground::Memory, 1)
    }

    /// One replica whose state is a file.
    pub fn file() -> Plan {
        Plan::on(Ground::File, 1)
    }

    /// That many replicas on a Redis of their own.
    pub fn redis(replicas: usize) -> Plan {
        Plan::on(Ground::Redis(RedisServer::start()), replicas)
    }

    /// That many replicas on a Redis that has not been started yet.
    pub fn redis_away(replicas: usize) -> Plan {
        Plan::on(Ground::Redis(RedisServer::reserved()), replicas)
    }

    fn on(ground: Ground, replicas: usize) -> Plan {
        let plan = Plan { ground, replicas, tenants: BTreeMap::new(), secrets: Vec::new(), settings: Vec::new() };
        plan.tenant("acme", "").tenant("other", "")
    }

    /// Adds or replaces a tenant. Writing is allowed and memory is loaded unless `more` says otherwise.
    #[must_use]
    pub fn tenant(mut self, name: &str, more: &str) -> Plan {
        self.tenants.insert(name.to_owned(), tenant_file(name, more));
        self
    }

    /// Gives a tenant a secret, as a mounted file brings it.
    #[must_use]
    pub fn secret(mut self, tenant: &str, name: &str, text: &str) -> Plan {
        self.secrets.push((tenant.to_owned(), name.to_owned(), text.to_owned()));
        self
    }

    /// Sets one setting, as the environment does: `QM_STORE__DEADLINE`, `1s`.
    #[must_use]
    pub fn setting(mut self, key: &str, value: &str) -> Plan {
        self.settings.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Starts the replicas.
    pub async fn start<P>(self, start: Start<P>) -> World<P> {
        World::start(self, start).await
    }
}

/// A tenant's file; what `more` says stands in the place of the default of that key.
pub(crate) fn tenant_file(name: &str, more: &str) -> String {
    let told = |key: &str| more.lines().any(|line| line.starts_with(key));
    let defaults = [("mode:", "mode: write\n"), ("default_toolsets:", "default_toolsets: [memory]\n")];
    let defaults: String = defaults.into_iter().filter(|(key, _)| !told(key)).map(|(_, line)| line).collect();
    format!("tenant: {name}\n{defaults}{more}\n")
}
