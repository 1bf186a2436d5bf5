//! Keeps the archive of the audit logs up to date in the background: signs, exports and trims, tenant by tenant.
//!
//! Every replica may try; the compare-and-set in `archive` lets one of them succeed. A replica looks at the tenants whose
//! entries it has sealed, at those it has taken over from a replica that died (see [`sealing`](crate::sealing)), and once in
//! a long while at each of which it is the owner (see [`duties`](crate::duties)), which is also when old entries leave the
//! store.
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
    gateway.tasks.spawn("checkpoints", stopping.run_until_cancelled_owned(async move { sign(&watched).await }));
    for sink in 0..gateway.archive.sinks() {
        let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
        gateway.tasks.spawn("export", stopping.run_until_cancelled_owned(async move { export(&watched, sink).await }));
    }
}

async fn sign(gateway: &Gateway) {
    loop {
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

/// How long entries stay at least: nobody loses what either the operator or the tenant wants to keep.
fn longer(operator: Duration, tenant: Duration) -> Duration {
    operator.max(tenant)
}

/// Takes out of the store what is older than the operator and the tenant want to keep, as far as it is signed and
/// exported. The oldest entry has this age.
pub(crate) async fn trim_if_old(gateway: &Arc<Gateway>, tenant: &Tenant, age: Duration) {
    // The tenant's own word is only asked for where it can matter.
    if age < gateway.settings.audit.keep {
        return;
    }
    let keep = match gateway.tenants.audit_keep(tenant).await {
        Ok(keep) => longer(gateway.settings.audit.keep, keep),
        Err(failure) => {
            return tracing::debug!(%tenant, code = failure.code.as_str(), "how long entries are kept is not known");
        }
    };
    if age < keep {
        return;
    }
    loop {
        match gateway.archive.trim(&gateway.store.of(tenant), keep).await {
            Ok(0) => return,
            Ok(entries) => {
                tracing::info!(%tenant, entries, "entries of the audit log left the store: they are signed and exported");
            }
            // That the store is away is reported elsewhere.
            Err(error) if error.code().retryable() => return,
            Err(error) => return tracing::error!(%tenant, %error, "the audit log of a tenant cannot be trimmed"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_operator_nor_the_tenant_can_shorten_what_the_other_keeps() {
        let days = |count: u64| Duration::from_secs(count * 24 * 3600);
        assert_eq!(longer(days(1), days(180)), days(180));
        assert_eq!(longer(days(365), days(90)), days(365));
    }
}
