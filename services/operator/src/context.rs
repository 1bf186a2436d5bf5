//! What reconciling needs: the API server, what was applied, whom to tell, and how long to wait.

use crate::apply::Applier;
use crate::names::OPERATOR;
use crate::resources::ToolSchema;
use crate::status::{self, Condition, Verdict};
use crate::tenant::replicas::{ReplicaReport, ReplicaWatch};
use egress::Lookup;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use telemetry::metrics;

/// The first pause after a failure; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What the operator is told when it starts.
#[derive(Clone)]
pub struct OperatorSettings {
    /// The one namespace that it looks at; all of them without it.
    pub watch: Option<String>,
    /// The namespace it runs in: where its lease is, and whence it asks tools.
    pub namespace: String,
    /// Who it is, among several.
    pub identity: String,
    /// The domain of the cluster's own names.
    pub cluster_domain: String,
    /// What the namespaces of tenants begin with.
    pub namespace_prefix: String,
    /// How often tools are asked again what they offer.
    pub resync: Duration,
    /// How long its lease lasts without being renewed.
    pub lease: Duration,
    /// How names of tools are resolved; the system's way without it.
    pub lookup: Option<Lookup>,
}

impl fmt::Debug for OperatorSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OperatorSettings { watch, namespace, identity, cluster_domain, namespace_prefix, resync, lease, lookup } =
            self;
        f.debug_struct("OperatorSettings")
            .field("watch", watch)
            .field("namespace", namespace)
            .field("identity", identity)
            .field("cluster_domain", cluster_domain)
            .field("namespace_prefix", namespace_prefix)
            .field("resync", resync)
            .field("lease", lease)
            .field("own_lookup", &lookup.is_some())
            .finish()
    }
}

/// Everything that a look at a resource needs.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What was applied.
    pub applier: Applier,
    /// What the operator was told.
    pub settings: OperatorSettings,
    recorder: Recorder,
    failures: Mutex<HashMap<String, u32>>,
    lists: Mutex<HashMap<String, ListedTools>>,
    replicas: Mutex<ReplicaWatch>,
}

/// When a tool was asked last what it offers, and what came of it.
#[derive(Debug, Clone)]
pub struct ListedTools {
    /// What was running then.
    pub of: String,
    /// When to ask again, if nothing changes.
    pub again: Instant,
    /// How often in a row it failed.
    pub failures: u32,
    /// What was said of it.
    pub verdict: Verdict,
    /// What it offered.
    pub schemas: Option<Vec<ToolSchema>>,
}

impl Context {
    /// A context without memory.
    pub fn new(client: Client, settings: OperatorSettings) -> Context {
        let reporter = Reporter { controller: OPERATOR.to_owned(), instance: Some(settings.identity.clone()) };
        let recorder = Recorder::new(client.clone(), reporter);
        let (failures, lists, replicas) = (Mutex::default(), Mutex::default(), Mutex::default());
        Context { client, applier: Applier::default(), settings, recorder, failures, lists, replicas }
    }

    /// Tells people of the conditions that changed. An event that is lost is no reason to look again.
    pub async fn tell(&self, about: &ObjectReference, before: &[Condition], now: &[Condition]) {
        for condition in status::changed(before, now) {
            let is_bad = condition.status == "False" && condition.kind != "Ready";
            let event = Event {
                type_: if is_bad { EventType::Warning } else { EventType::Normal },
                reason: condition.reason.clone(),
                note: Some(format!("{} is {}: {}", condition.kind, condition.status, condition.message)),
                action: condition.kind.clone(),
                secondary: None,
            };
            metrics::OPERATOR_WRITES.add(["Event"], 1);
            if let Err(error) = self.recorder.publish(&event, about).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "an event could not be written");
            }
        }
    }

    /// A look that succeeded.
    pub fn succeeded(&self, uid: &str) {
        lock(&self.failures).remove(uid);
    }

    /// When to look again after a failure.
    pub fn after_failure(&self, uid: &str) -> Action {
        let mut failures = lock(&self.failures);
        let count = failures.entry(uid.to_owned()).or_default();
        *count = count.saturating_add(1);
        Action::requeue(pause(*count))
    }

    /// What is remembered of a tool's list.
    pub fn listed(&self, uid: &str) -> Option<ListedTools> {
        lock(&self.lists).get(uid).cloned()
    }

    /// Remembers what came of asking a tool.
    pub fn remember_list(&self, uid: &str, listed: ListedTools) {
        lock(&self.lists).insert(uid.to_owned(), listed);
    }

    /// The reports of those of these replicas of the gateway that are there.
    pub fn live_replicas(&self, leases: &[Lease], now: Instant) -> Vec<ReplicaReport> {
        lock(&self.replicas).live(leases, now)
    }

    /// Forgets a resource that is gone.
    pub fn forget(&self, uid: &str) {
        lock(&self.lists).remove(uid);
        lock(&self.failures).remove(uid);
    }
}

/// The pause after so many failures in a row.
pub fn pause(failures: u32) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(16));
    FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let seconds: Vec<u64> = (1..=12).map(|failures| pause(failures).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
