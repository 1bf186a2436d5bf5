//! What people do with a tenant's configuration, whichever door they come in by: the REST API and the console call these
//! and nothing else.
//!
//! A text that is set holds instead of the tenant's file, whole, until it is removed. It passes the validator of files and
//! is refused whole with every mistake. Each change is a version of its own and names the one it was made for; an earlier
//! one comes back by being written anew. What is shown is what the store has; the replica that answers may not serve it
//! yet.

mod standing;
mod view;

pub use view::{TenantChange, TenantCheck, TenantVersion, TenantVersions, TenantView, Warning};

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use crate::tenants::ConfigOrigin;
use domain::{Code, Failure, Tenant};
use serde_json::json;
use standing::{TenantStanding, entry, standing, stored};
use std::sync::Arc;
use store::{TenantText, TextChange};
use tenancy::{Problem, TenantConfig};
use view::warnings;

/// The largest text that is taken.
pub(crate) const MOST_BYTES: usize = 256 * 1024;
/// The longest note beside a change.
const MOST_NOTE: usize = 500;
/// Versions on one page of a history.
const PAGE: usize = 20;

/// What holds for the caller's tenant.
pub(crate) async fn show(gateway: &Gateway, authed: &AuthedRequest) -> Result<TenantView, Failure> {
    administers(authed)?;
    Ok(TenantView::of(gateway, &authed.caller.tenant, standing(gateway, &authed.caller.tenant).await?))
}

/// What is not wrong in the configuration that is served, and will not work.
pub(crate) fn warnings_now(gateway: &Gateway, authed: &AuthedRequest) -> Result<Vec<Warning>, Failure> {
    administers(authed)?;
    let config = gateway.tenants.config_of(&authed.caller.tenant);
    Ok(config.map(|config| warnings(gateway, &authed.caller.tenant, &config)).unwrap_or_default())
}

/// Sets a text in the place of the one that was named.
pub(crate) async fn set(
    gateway: &Gateway,
    authed: &AuthedRequest,
    named: &str,
    text: String,
    note: Option<&str>,
) -> Result<TenantChange, Failure> {
    may_change(gateway, authed)?;
    let note = note_of(note)?;
    if text.len() > MOST_BYTES {
        return Err(too_large());
    }
    let config = good(gateway, &authed.caller.tenant, &text).await?;
    write(gateway, authed, named, text, note, &config).await
}

/// Back to the file.
pub(crate) async fn remove(
    gateway: &Gateway,
    authed: &AuthedRequest,
    named: &str,
    note: Option<&str>,
) -> Result<TenantChange, Failure> {
    may_change(gateway, authed)?;
    let (note, tenant) = (note_of(note)?, &authed.caller.tenant);
    let current = standing(gateway, tenant).await?;
    let TenantStanding::Http(TenantText { version, .. }) = &current else {
        return Err(Failure::new(Code::NotFound, "nothing is set over HTTP; the tenant's file holds already"));
    };
    current.must_be(named)?;
    let (texts, entry) = (gateway.store.of(tenant).tenant_text(), entry(gateway, authed, None));
    let change = texts.remove(*version, note, &authed.caller.principal, &entry).await.map_err(stored)?;
    let text = done(gateway, tenant, change).await?;
    Ok(TenantChange::removed(gateway, tenant, text))
}

/// What setting this text would say.
pub(crate) async fn check(gateway: &Gateway, authed: &AuthedRequest, text: &str) -> Result<TenantCheck, Failure> {
    administers(authed)?;
    let tenant = &authed.caller.tenant;
    Ok(match judged(gateway, tenant, text).await? {
        Ok(config) => TenantCheck { valid: true, problems: Vec::new(), warnings: warnings(gateway, tenant, &config) },
        Err(problems) => TenantCheck { valid: false, problems, warnings: Vec::new() },
    })
}

/// Versions, newest first, without their text.
pub(crate) async fn history(
    gateway: &Gateway,
    authed: &AuthedRequest,
    before: Option<u64>,
) -> Result<TenantVersions, Failure> {
    administers(authed)?;
    let texts = gateway.store.of(&authed.caller.tenant).tenant_text();
    // One more than fits on the page shows whether there is another page.
    let versions = texts.history(before, PAGE + 1).await.map_err(stored)?;
    Ok(TenantVersions::page(&versions, PAGE))
}

/// One version with its text.
pub(crate) async fn version(gateway: &Gateway, authed: &AuthedRequest, number: &str) -> Result<TenantVersion, Failure> {
    administers(authed)?;
    find_version(gateway, &authed.caller.tenant, number.parse().ok()).await.map(|text| TenantVersion::whole(&text))
}

/// Writes an earlier text anew, if it is good by today's rules.
pub(crate) async fn rollback(
    gateway: &Gateway,
    authed: &AuthedRequest,
    named: &str,
    version: u64,
    note: Option<&str>,
) -> Result<TenantChange, Failure> {
    may_change(gateway, authed)?;
    let note = note_of(note)?.or_else(|| Some(format!("as version {version}")));
    let Some(text) = find_version(gateway, &authed.caller.tenant, Some(version)).await?.text else {
        return Err(Failure::new(Code::NotFound, format!("version {version} is a removal and has no text"))
            .next("DELETE the configuration to go back to the file"));
    };
    let config = good(gateway, &authed.caller.tenant, &text).await?;
    write(gateway, authed, named, text, note, &config).await
}

/// Writes a text that is good in the place of the one that was named.
async fn write(
    gateway: &Gateway,
    authed: &AuthedRequest,
    named: &str,
    text: String,
    note: Option<String>,
    config: &TenantConfig,
) -> Result<TenantChange, Failure> {
    let tenant = &authed.caller.tenant;
    let current = standing(gateway, tenant).await?;
    current.must_be(named)?;
    let (texts, entry) = (gateway.store.of(tenant).tenant_text(), entry(gateway, authed, Some(&text)));
    let change = texts.put(current.base(), text, note, &authed.caller.principal, &entry).await.map_err(stored)?;
    let text = done(gateway, tenant, change).await?;
    Ok(TenantChange::made(gateway, tenant, text, warnings(gateway, tenant, config)))
}

/// What was changed, once this replica has taken note of it. Should that not work, it will hear of it like all others.
async fn done(gateway: &Gateway, tenant: &Tenant, change: TextChange) -> Result<TenantText, Failure> {
    match change {
        TextChange::Done(text) => {
            if let Err(error) = gateway.tenants.refresh(tenant).await {
                tracing::warn!(%tenant, %error, "what was just set cannot be read back yet");
            }
            Ok(text)
        }
        TextChange::Conflict(_) => Err(standing(gateway, tenant).await?.is_another()),
        TextChange::TooLarge => Err(too_large()),
    }
}

/// The configuration a text makes, or every mistake in it.
async fn good(gateway: &Gateway, tenant: &Tenant, text: &str) -> Result<TenantConfig, Failure> {
    judged(gateway, tenant, text).await?.map_err(|problems| {
        let message = match problems.len() {
            1 => "there is a mistake in the configuration, so nothing was changed".to_owned(),
            many => format!("there are {many} mistakes in the configuration, so nothing was changed"),
        };
        Failure::new(Code::ConfigInvalid, message).details(json!({ "problems": problems }))
    })
}

/// The configuration a text would make, or what is wrong with it.
pub(crate) async fn judged(
    gateway: &Gateway,
    tenant: &Tenant,
    text: &str,
) -> Result<Result<TenantConfig, Vec<Problem>>, Failure> {
    let (tenants, tenant, text) = (Arc::clone(&gateway.tenants), tenant.clone(), text.to_owned());
    let judged = tokio::task::spawn_blocking(move || tenants.check(&tenant, &text)).await;
    judged.map_err(|_| Failure::new(Code::Internal, "the configuration could not be checked"))
}

async fn find_version(gateway: &Gateway, tenant: &Tenant, number: Option<u64>) -> Result<TenantText, Failure> {
    let version = match number {
        Some(number) => gateway.store.of(tenant).tenant_text().version(number).await.map_err(stored)?,
        None => None,
    };
    version.ok_or_else(|| {
        Failure::new(Code::NotFound, "there is no such version").next("the history lists those that are kept")
    })
}

/// Wants somebody who may change the configuration, where that can be done over HTTP at all.
pub(crate) fn may_change(gateway: &Gateway, authed: &AuthedRequest) -> Result<(), Failure> {
    administers(authed)?;
    if gateway.tenants.over_http() {
        return Ok(());
    }
    Err(Failure::new(Code::ConfigLocked, "tenants are configured by files only; nothing was changed")
        .next("ask the operator to change the tenant's file"))
}

/// Whether this replica already serves the tenant by what the store says.
fn in_force(gateway: &Gateway, tenant: &Tenant, origin: ConfigOrigin) -> bool {
    // A file that was refused leaves the one before in use, and that one has the same origin.
    gateway.tenants.origin_of(tenant) == Some(origin) && !gateway.tenants.refused().contains_key(tenant)
}

/// What somebody adds to a change.
fn note_of(note: Option<&str>) -> Result<Option<String>, Failure> {
    match note.map(str::trim).filter(|note| !note.is_empty()) {
        Some(note) if note.len() > MOST_NOTE => {
            Err(Failure::new(Code::InvalidRequest, format!("a note has at most {MOST_NOTE} bytes")))
        }
        note => Ok(note.map(str::to_owned)),
    }
}

/// The refusal of a text that is too long.
pub(crate) fn too_large() -> Failure {
    Failure::new(Code::TooLarge, format!("a configuration has at most {MOST_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_short_or_left_out() {
        assert_eq!(note_of(None).unwrap(), None);
        assert_eq!(note_of(Some("  ")).unwrap(), None);
        assert_eq!(note_of(Some(" why ")).unwrap().as_deref(), Some("why"));
        assert!(note_of(Some(&"x".repeat(501))).is_err());
    }
}
