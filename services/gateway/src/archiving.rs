//! Keeps the archive of the audit logs up to date in the background: signs, exports and trims, tenant by tenant.
//!
//! Every replica tries; the compare-and-set in `archive` lets one of them succeed. A replica looks at the tenants whose
//! entries it has sealed, and now and then at all of them, since another replica may have died before it was done.
//! A sink has a task of its own, so that one that hangs holds up no other.

use crate::app::Gateway;
use archive::{ExportError, ExportOutcome, RangeError, SignOutcome};
use domain::Tenant;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::StoreError;

/// How often the lists of what is due are looked at, which costs nothing.
const TICK: Duration = Duration::from_millis(500);
/// How long a tenant is left alone whose audit log is broken or being worked on by another replica.
const LATER: Duration = Duration::from_secs(60);
/// How long a sink is left alone after its first failure, and at most.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// Starts the tasks.
pub(crate) fn watch(gateway: &Arc<Gateway>) {
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway
        .tasks
        .spawn("checkpoints", stopping.run_until_cancelled_owned(async move { sign_and_trim(&watched).await }));
    for sink in 0..gateway.archive.sinks() {
        let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
        gateway.tasks.spawn("export", stopping.run_until_cancelled_owned(async move { export(&watched, sink).await }));
    }
}

async fn sign_and_trim(gateway: &Gateway) {
    let mut everybody = Instant::now();
    loop {
        if Instant::now() >= everybody {
            everybody = Instant::now() + gateway.settings.audit.look_every;
            let tenants: Vec<Tenant> = gateway.tenants.all().into_iter().map(|(tenant, _)| tenant).collect();
            gateway.archive.status.keep(|tenant| tenants.contains(tenant));
            for tenant in &tenants {
                gateway.archive.sealed(tenant, 0);
                trim(gateway, tenant).await;
            }
        }
        let list = gateway.archive.signing();
        for tenant in list.due(Instant::now()) {
            let again = match gateway.archive.sign(&gateway.store.of(&tenant)).await {
                Ok(SignOutcome::Nothing) => None,
                Ok(SignOutcome::Waiting(wait)) => Some(wait),
                Ok(SignOutcome::Signed) => {
                    // The checkpoint itself is to be exported.
                    gateway.archive.sealed(&tenant, 0);
                    None
                }
                Err(RangeError::Store(error)) if error.code().retryable() => Some(TICK),
                Err(error) => {
                    tracing::error!(%tenant, %error, "the audit log of a tenant cannot be signed");
                    Some(LATER)
                }
            };
            list.looked(&tenant, again, Instant::now());
        }
        tokio::time::sleep(TICK).await;
    }
}

/// Takes out of the store what is not kept there, as far as it is signed and exported.
async fn trim(gateway: &Gateway, tenant: &Tenant) {
    match gateway.archive.trim(&gateway.store.of(tenant), gateway.settings.audit.keep).await {
        Ok(0) => {}
        Ok(entries) => {
            tracing::info!(%tenant, entries, "entries of the audit log left the store: they are signed and exported")
        }
        // That the store is away is reported elsewhere.
        Err(error) if error.code().retryable() => {}
        Err(error) => tracing::error!(%tenant, %error, "the audit log of a tenant cannot be trimmed"),
    }
}

async fn export(gateway: &Gateway, sink: usize) {
    let mut back_off = BACK_OFF.0;
    loop {
        let Some(list) = gateway.archive.exporting(sink) else { return };
        for tenant in list.due(Instant::now()) {
            let again = match gateway.archive.export(sink, &gateway.store.of(&tenant)).await {
                Ok(ExportOutcome::Nothing) => None,
                Ok(ExportOutcome::Waiting(wait)) => Some(wait),
                Ok(ExportOutcome::Sent) => {
                    back_off = BACK_OFF.0;
                    Some(Duration::ZERO)
                }
                Err(ExportError::Range(RangeError::Store(error))) if error.code().retryable() => Some(TICK),
                Err(ExportError::Range(RangeError::Store(StoreError::NotAuthentic { .. }))) => Some(LATER),
                Err(ExportError::Range(error)) => {
                    tracing::error!(%tenant, %error, "the audit log of a tenant cannot be exported");
                    Some(LATER)
                }
                Err(ExportError::Sink(error)) => {
                    tracing::warn!(%tenant, sink, error = &error as &dyn std::error::Error, "a sink took no audit log");
                    // It is the sink that is away, and would be for the next tenant as well.
                    list.looked(&tenant, Some(Duration::ZERO), Instant::now());
                    tokio::time::sleep(back_off).await;
                    back_off = (back_off * 2).min(BACK_OFF.1);
                    break;
                }
            };
            list.looked(&tenant, again, Instant::now());
        }
        tokio::time::sleep(TICK).await;
    }
}
