//! Keeps what this replica knows of the kill switches up to date, and takes out those whose end has passed.
//!
//! A wake-up tells when to look. If one is lost, the next look makes up for it: one key of the service, twice a second,
//! however many tenants there are.

use crate::app::Gateway;
use domain::{Principal, Scopes, Switch, Tenant};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{Actor, ActorKind, AuditEntry, CallVerdict, Phase, StoreError};

/// How often the record is looked at without a wake-up. A switch holds everywhere within a second, so half of it is left
/// for the look itself.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const _: () = assert!(LOOK_EVERY.as_millis() <= 500, "operators are promised a second");

/// Looks again and again until the process stops.
pub(crate) fn watch(gateway: &Arc<Gateway>) {
    let (watched, stopping) = (Arc::clone(gateway), gateway.tasks.stopping().clone());
    gateway.tasks.spawn("switches", async move {
        let switches = watched.store.switches();
        let mut wake_ups = switches.watch();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                _ = wake_ups.next() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            match switches.refresh().await {
                Ok(true) => tracing::info!(set = switches.all().len(), "the kill switches changed"),
                Ok(false) => {}
                // What is known keeps holding; that the store is away is reported elsewhere.
                Err(error) => tracing::debug!(%error, "the kill switches cannot be read"),
            }
            if let Err(error) = end(&watched).await {
                tracing::debug!(%error, "kill switches that have ended cannot be taken out");
            }
        }
    });
}

/// Takes out what has ended. The replica that does it puts it into the audit log.
async fn end(gateway: &Gateway) -> Result<(), StoreError> {
    for switch in gateway.store.switches().take_ended().await? {
        let principal = Principal::new("quartermaster", gateway.replica.clone());
        let service = Actor { principal, kind: ActorKind::Service, scopes: Scopes::default(), token: None };
        let entry = entry(service, &switch, "ended", None);
        if let Err(error) = record(gateway, &switch, &switch.from, &entry).await {
            tracing::error!(switch = switch.id(), %error, "a kill switch has ended, and the audit log does not say so");
        }
    }
    Ok(())
}

/// The audit entry of what happens to a switch.
pub(crate) fn entry(actor: Actor, switch: &Switch, verdict: &'static str, trace: Option<&str>) -> AuditEntry {
    let until = switch.until.map_or_else(|| "until it is lifted".to_owned(), |until| format!("until {until}"));
    let whose = switch.tenant.as_ref().map_or("all tenants", Tenant::as_str);
    let basis = format!("{} in {whose}, {until}, by {}", switch.mode.as_str(), switch.owner.in_words());
    AuditEntry {
        actor: Some(actor),
        target: Some(format!("switch/{}", switch.on)),
        decision: Some(CallVerdict { verdict, basis: Some(basis), rule: None, comment: Some(switch.reason.clone()) }),
        trace: trace.map(str::to_owned),
        ..AuditEntry::new(Phase::Admin)
    }
}

/// Puts an entry into the audit logs of the tenant that is switched, of whoever set the switch, and of whoever acts.
pub(crate) async fn record(
    gateway: &Gateway,
    switch: &Switch,
    acting: &Tenant,
    entry: &AuditEntry,
) -> Result<(), StoreError> {
    let concerned: BTreeSet<&Tenant> = switch.tenant.iter().chain([&switch.from, acting]).collect();
    for tenant in concerned {
        gateway.store.of(tenant).audit().note(entry).await?;
    }
    Ok(())
}
