//! Whether this process may serve, looked at in the background so that asking costs nothing.

use crate::app::Gateway;
use arc_swap::ArcSwap;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use store::HealthFinding;

/// How often it is looked at. Calls fail fast by themselves; this only steers where new ones go.
const EVERY: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ReadinessReport {
    /// Why it may not serve; empty when it may.
    pub reasons: Vec<&'static str>,
    /// What an operator should know.
    pub warnings: Vec<&'static str>,
}

impl ReadinessReport {
    /// Whether it may serve.
    pub fn ready(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// The last look.
pub struct Readiness {
    found: ArcSwap<ReadinessReport>,
}

impl Readiness {
    /// Before the first look nothing is ready.
    pub fn starting() -> Readiness {
        Readiness { found: ArcSwap::from_pointee(ReadinessReport { reasons: vec!["starting"], warnings: vec![] }) }
    }

    /// What was found last.
    pub fn now(&self) -> Arc<ReadinessReport> {
        self.found.load_full()
    }

    /// Says that the process is leaving; nothing makes it ready again.
    pub fn drain(&self) {
        self.found.store(Arc::new(ReadinessReport { reasons: vec!["draining"], warnings: vec![] }));
    }

    /// Looks once.
    pub async fn look(&self, gateway: &Gateway) {
        let Gateway { store, verifier, tenants, clock, executor, .. } = gateway;
        let now = clock.now();
        let health = store.health().await;
        executor.close_gate(!health.ready() || health.warnings.contains(&HealthFinding::StoreFull));
        verifier.warm(now).await;
        let mut found = ReadinessReport {
            reasons: health.reasons.iter().map(|finding| finding.as_str()).collect(),
            warnings: health.warnings.iter().map(|finding| finding.as_str()).collect(),
        };
        if !verifier.usable(now) {
            found.reasons.push("no_usable_keys");
        }
        if tenants.is_empty() {
            found.reasons.push("config_missing");
        }
        // Asked only of a store that answers: one that is away is the reason, and has been told.
        if found.reasons.is_empty() && tenants.waiting() > 0 {
            found.reasons.push("config_unread");
        }
        if !tenants.problems().is_empty() {
            found.warnings.push("config_reload_failed");
        }
        if !tenants.unusable().is_empty() {
            found.warnings.push("stored_config_invalid");
        }
        if store.unauthentic() > 0 {
            found.warnings.push("records_not_authentic");
        }
        let before = self.found.load();
        if before.reasons == ["draining"] {
            return;
        }
        if **before != found {
            tracing::info!(ready = found.ready(), reasons = ?found.reasons, warnings = ?found.warnings, "readiness changed");
            self.found.store(Arc::new(found));
        }
    }
}

/// Looks again and again until the process stops.
pub fn watch(gateway: &Arc<Gateway>) {
    let stopping = gateway.tasks.stopping().clone();
    let gateway = Arc::clone(gateway);
    gateway.tasks.clone().spawn("readiness", async move {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(EVERY) => gateway.readiness.look(&gateway).await,
            }
        }
    });
}
