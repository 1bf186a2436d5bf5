//! Whether this process may serve, looked at in the background so that asking costs nothing.

use crate::app::Gateway;
use crate::tenants::TenantRegistry;
use arc_swap::ArcSwap;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::{HealthFinding, Store};

/// How often it is looked at. Calls fail fast by themselves; this only steers where new ones go.
const EVERY: Duration = Duration::from_secs(1);

/// The result of one look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ReadinessReport {
    /// Why it may not serve; empty when it may.
    pub reasons: Vec<&'static str>,
    /// What an operator should know.
    pub warnings: Vec<&'static str>,
    /// The shards of the store that serve nobody, by their slots.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards_down: Vec<String>,
}

impl ReadinessReport {
    /// Whether it may serve.
    pub fn ready(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// The last look.
pub struct Readiness {
    report: ArcSwap<ReadinessReport>,
    leaving: AtomicBool,
}

impl Readiness {
    /// Before the first look nothing is ready.
    pub fn starting() -> Readiness {
        let report = ReadinessReport { reasons: vec!["starting"], ..ReadinessReport::default() };
        Readiness { report: ArcSwap::from_pointee(report), leaving: AtomicBool::new(false) }
    }

    /// The result of the last look.
    pub fn now(&self) -> Arc<ReadinessReport> {
        self.report.load_full()
    }

    /// Says that the process is leaving; nothing makes it ready again.
    pub fn drain(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        let report = ReadinessReport { reasons: vec!["draining"], ..ReadinessReport::default() };
        self.report.store(Arc::new(report));
    }

    /// Whether the process is leaving.
    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Looks once.
    pub async fn look(&self, gateway: &Gateway) {
        let Gateway { store, verifier, tenants, clock, executor, .. } = gateway;
        let now = clock.now();
        let health = store.health().await;
        executor.close_gate(!health.ready() || health.warnings.contains(&HealthFinding::StoreFull));
        verifier.warm(now).await;
        let mut report = ReadinessReport {
            reasons: health.reasons.iter().map(|finding| finding.as_str()).collect(),
            warnings: health.warnings.iter().map(|finding| finding.as_str()).collect(),
            shards_down: health.shards_down,
        };
        // The kill switches are on one shard. A replica that knows them goes on by what it knows; one that never read them
        // may judge no call.
        if !report.shards_down.is_empty() && !store.switches().is_good() && !store.switches().is_doubted() {
            report.reasons.push("switches_unread");
        }
        if !verifier.usable(now) {
            report.reasons.push("no_usable_keys");
        }
        if tenants.is_empty() {
            report.reasons.push("config_missing");
        }
        // Only if the store answers: otherwise the store is the reason already.
        if report.reasons.is_empty() && tenants.waiting() > 0 {
            report.reasons.push("config_unread");
        }
        report.warnings.extend(tenant_warnings(tenants));
        if telemetry::otlp_down() {
            report.warnings.push("otlp_down");
        }
        if store.unauthentic() > 0 {
            report.warnings.push("records_not_authentic");
        }
        report.warnings.extend(switch_warnings(store));
        if gateway.archive.status.is_behind(now) {
            report.warnings.push("audit_export_behind");
        }
        let before = self.report.load();
        if before.reasons == ["draining"] {
            return;
        }
        if **before != report {
            tracing::info!(ready = report.ready(), reasons = ?report.reasons, warnings = ?report.warnings, shards_down = ?report.shards_down, "readiness changed");
            self.report.store(Arc::new(report));
        }
    }
}

/// Whether anything is switched, without a word on whose it is: anybody may ask.
fn switch_warnings(store: &Store) -> Option<&'static str> {
    let switches = store.switches();
    // A store that has not answered yet is the reason already.
    if switches.is_doubted() {
        Some("switches_unreadable")
    } else {
        (!switches.all().is_empty()).then_some("switches_set")
    }
}

/// What an operator should know of the tenants' configurations.
pub fn tenant_warnings(tenants: &TenantRegistry) -> Vec<&'static str> {
    let warnings = [
        (!tenants.problems().is_empty(), "config_reload_failed"),
        (!tenants.unusable().is_empty(), "stored_config_invalid"),
        (!tenants.refused().is_empty(), "config_attach_failed"),
    ];
    warnings.into_iter().filter_map(|(is_so, warning)| is_so.then_some(warning)).collect()
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
