//! The gauges of this process, set when somebody is about to read them.
//!
//! What costs nothing to know is read from memory; the store is asked only about tenants that have runs which are not
//! over.

use crate::app::Gateway;
use crate::settings::Settings;
use identity::TokenRefused;
use std::sync::Arc;
use std::time::Duration;
use telemetry::{MetricsExporter, metrics};

/// What the state store is called in metrics: the one that holds the truth.
const LEDGER: &str = "ledger";

/// Begins to count, from nothing, so that the first failure of a process is an increase too.
pub(crate) fn begin(settings: &Settings) {
    metrics::begin(env!("CARGO_PKG_VERSION"), option_env!("QUARTERMASTER_COMMIT").unwrap_or_default());
    for reason in ["no_token", "bad_origin", "address_limit"].into_iter().chain(TokenRefused::REASONS) {
        metrics::AUTH_FAILURES.add([reason], 0);
    }
    metrics::label_tenants(settings.telemetry.metrics_by_tenant);
}

/// Sets every gauge that is not kept up to date by whatever it measures.
pub(crate) async fn measure(gateway: &Gateway) {
    let Gateway { store, verifier, clock, readiness, upstreams, executor, archive, .. } = gateway;
    let (now, report) = (clock.now(), readiness.now());
    metrics::NOT_READY.replace(report.reasons.iter().map(|reason| ([*reason], 1.0)));
    metrics::JWKS_AGE.replace(verifier.key_ages(now).map(|(issuer, (age, _))| ([issuer], age.as_secs_f64())));
    let used = |(age, most): (Duration, Duration)| age.div_duration_f64(most);
    metrics::JWKS_AGE_RATIO.replace(verifier.key_ages(now).map(|(issuer, age)| ([issuer], used(age))));
    metrics::AUDIT_OPEN.set([], store.open_receipts() as f64);
    let mut findings = report.reasons.iter().chain(&report.warnings);
    let is_unsafe = findings.any(|finding| matches!(*finding, "store_evicts" | "store_not_persistent"));
    metrics::STORE_UNSAFE.set([LEDGER], f64::from(u8::from(is_unsafe)));
    let epoch = store.lineages().now();
    // A loss of all records moves the first part, a restart or a failover the second.
    let since = epoch.since.map_or(0, |since| since.millis() / 1_000);
    metrics::STORE_GENERATION.set([LEDGER], (epoch.generation + since) as f64);
    metrics::AUDIT_CHECKPOINT_AGE.set([], archive.status.checkpoint_age(now).as_secs_f64());
    metrics::AUDIT_EXPORT_LAG.set([], archive.status.export_lag(now).as_secs_f64());
    metrics::AUDIT_VERIFY_FAILURES.set([], archive.status.verify_failures() as f64);
    upstreams.measure(target::connection_loads());
    executor.measure().await;
}

/// Sends everything to a collector, again and again.
pub(crate) fn send(gateway: &Arc<Gateway>, exporter: MetricsExporter) {
    let every = Duration::from_millis(gateway.settings.telemetry.metrics_every_ms);
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("metrics", async move {
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            measure(&watched).await;
            exporter.export().await;
        }
    });
}
