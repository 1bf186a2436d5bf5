//! What is done about records of the store that this service did not write, and about those under an older key.
//!
//! The store refuses them by itself ([`store::StoreError::NotAuthentic`]); here they are put into the audit log of their
//! tenant, so that whoever reads it learns of them.

use crate::app::Gateway;
use domain::{Principal, Scopes, Tenant};
use external::section::{SERVERS, ServersSection};
use store::{Actor, ActorKind, AuditEntry, Phase, RecordKey, StoreError};

/// How many versions of a configuration are looked at; more are not kept.
const VERSIONS: usize = 50;

/// Puts what was found since the last time into the audit logs.
pub(crate) async fn record(gateway: &Gateway) {
    for record in gateway.store.newly_unauthentic() {
        // The service's own records are nobody's; the log of the process and `/readyz` tell of them.
        if record.tenant == Tenant::of_service() {
            continue;
        }
        let what = format!("record {} at version {}: {}; it is not used", record.name, record.version, record.why);
        let entry = AuditEntry { target: Some(what), ..entry(gateway, Phase::Denied) };
        if let Err(error) = gateway.store.of(&record.tenant).audit().note(&entry).await {
            let (tenant, name) = (&record.tenant, record.name.as_str());
            tracing::error!(%tenant, record = name, %error, "a record that is not authentic is not in the audit log");
        }
    }
}

/// Seals what stays for good in a tenant anew, where it is not under the current key. Tells how many records that were.
pub(crate) async fn reseal(gateway: &Gateway, tenant: &Tenant) -> Result<usize, StoreError> {
    let shelf = gateway.store.of(tenant);
    let mut keys =
        vec![RecordKey::tenant_text(), RecordKey::chart_repositories(), RecordKey::checkpoint(), RecordKey::trimmed()];
    keys.extend(gateway.settings.audit.sinks.iter().map(|sink| RecordKey::export(&sink.name)));
    let versions = shelf.tenant_text().history(None, VERSIONS).await?;
    keys.extend(versions.iter().map(|text| RecordKey::tenant_text_version(text.version)));
    if let Some(config) = gateway.tenants.config_of(tenant) {
        match config.section::<ServersSection>(SERVERS) {
            Ok(section) => {
                let servers = section.map_or(&[][..], |section| &section.servers);
                keys.extend(servers.iter().map(|server| RecordKey::server_pins(&server.id)));
            }
            Err(error) => tracing::error!(%tenant, %error, "the tools of external servers stay under an older key"),
        }
    }
    let mut written = 0;
    for key in keys {
        match shelf.reseal(&key, &entry(gateway, Phase::Admin)).await {
            Ok(anew) => written += usize::from(anew),
            // Told by the store, and left as it is.
            Err(StoreError::NotAuthentic { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

fn entry(gateway: &Gateway, phase: Phase) -> AuditEntry {
    let principal = Principal::new("quartermaster", gateway.replica.clone());
    let actor = Actor { principal, kind: ActorKind::Service, scopes: Scopes::default(), token: None };
    AuditEntry { actor: Some(actor), ..AuditEntry::new(phase) }
}
