//! What holds for a tenant, and what a change of it leaves in the audit log.

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use domain::json::sha256_hex;
use domain::{Code, Failure, Tenant};
use serde_json::json;
use std::sync::Arc;
use store::{Actor, ActorKind, AuditEntry, Phase, StoreError, TenantText, WritePrecondition};
use tenancy::ConfiguredTenant;

/// What holds for a tenant, by the word of the store.
pub(super) enum TenantStanding {
    File(Arc<ConfiguredTenant>),
    Http(TenantText),
}

/// Asks the store what holds for a tenant.
pub(super) async fn standing(gateway: &Gateway, tenant: &Tenant) -> Result<TenantStanding, Failure> {
    if gateway.tenants.over_http() {
        let current = match gateway.store.of(tenant).tenant_text().current().await {
            // What this service did not write is nothing: whoever administers the tenant sets it anew over the file.
            Err(StoreError::NotAuthentic { .. }) => None,
            current => current.map_err(stored)?,
        };
        if let Some(text) = current.filter(|current| current.text.is_some()) {
            return Ok(TenantStanding::Http(text));
        }
    }
    // The caller was let in because there is a file; it may have gone since.
    let page = gateway.tenants.file_of(tenant);
    page.map(TenantStanding::File).ok_or_else(|| Failure::new(Code::NotFound, "the tenant has no configuration"))
}

impl TenantStanding {
    /// Tells this configuration from every other: the version's number, or the digest of the file's text.
    pub(super) fn tag(&self) -> String {
        match self {
            TenantStanding::File(page) => sha256_hex(page.text.as_bytes()),
            TenantStanding::Http(text) => text.version.to_string(),
        }
    }

    pub(super) fn base(&self) -> WritePrecondition {
        match self {
            TenantStanding::File(_) => WritePrecondition::Absent,
            TenantStanding::Http(text) => WritePrecondition::Version(text.version),
        }
    }

    /// Wants this to be what a change was made for.
    pub(super) fn must_be(&self, named: &str) -> Result<(), Failure> {
        if self.tag() == named { Ok(()) } else { Err(self.is_another()) }
    }

    pub(super) fn is_another(&self) -> Failure {
        let mut details = json!({ "etag": self.tag() });
        if let TenantStanding::Http(text) = self {
            details["set_by"] = json!(text.by.subject);
            details["set_at"] = json!(text.at.to_string());
        }
        Failure::new(Code::ConfigConflict, "the configuration is another one than If-Match names; nothing was changed")
            .next("read it again, and name its ETag")
            .details(details)
    }
}

/// The audit entry of a change; the store adds which version it made.
pub(super) fn entry(gateway: &Gateway, authed: &AuthedRequest, text: Option<&str>) -> AuditEntry {
    let caller = &authed.caller;
    let actor =
        Actor { principal: caller.principal.clone(), kind: ActorKind::Person, scopes: caller.scopes, token: None };
    AuditEntry {
        actor: Some(actor),
        args: text.map(|text| gateway.keys.audit_digest(&caller.tenant, &sha256_hex(text.as_bytes()))),
        trace: Some(authed.trace_id.clone()),
        ..AuditEntry::new(Phase::Admin)
    }
}

/// An error of the store.
pub(super) fn stored(error: StoreError) -> Failure {
    match error {
        StoreError::Corrupt { what } => {
            tracing::error!(what, "the store holds something unreadable");
            Failure::new(error.code(), "what the store holds is no configuration")
        }
        StoreError::QuotaReached(quota) => Failure::new(error.code(), quota.to_string()).next(quota.next()),
        StoreError::NotAuthentic { .. } => {
            Failure::new(error.code(), "what the store holds was not written by this service")
        }
        StoreError::Unavailable { .. } | StoreError::Timeout | StoreError::Full | StoreError::ReadOnly => {
            Failure::new(error.code(), "the store cannot be asked at the moment").retry_after_ms(1_000)
        }
    }
}
