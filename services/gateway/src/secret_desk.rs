//! What people do with a tenant's secrets, whichever door they come in by: the REST API and the console call these and
//! nothing else.
//!
//! A value only goes in. It is encrypted before it is stored; no answer, log, span or audit entry has it, and no path reads
//! it back. A value set here replaces the operator's file or variable of that name.

use crate::app::Gateway;
use crate::http::caller::{AuthedRequest, administers};
use domain::{Code, Failure};
use redact::SecretText;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use store::WritePrecondition;
use vault::{SecretFacts, StoredSecretFacts};

/// Every secret of a tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretList {
    pub(crate) secrets: Vec<SecretSummary>,
}

/// One secret without its value.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretSummary {
    pub(crate) name: String,
    /// Where the one lies that counts: `store`, `file` or `environment`.
    pub(crate) source: Option<&'static str>,
    /// Where there is one of that name, the one that counts first.
    pub(crate) sources: Vec<&'static str>,
    #[serde(flatten)]
    pub(crate) kept: Option<SecretMetadata>,
}

/// What the store knows of a secret besides its value.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretMetadata {
    pub(crate) version: u64,
    pub(crate) set_by: String,
    pub(crate) set_at: String,
    /// `current`, `older` (sealed under a key that is going) or `unopenable`.
    pub(crate) standing: &'static str,
}

impl From<StoredSecretFacts> for SecretMetadata {
    fn from(StoredSecretFacts { version, by, at, standing }: StoredSecretFacts) -> SecretMetadata {
        SecretMetadata { version, set_by: by.subject, set_at: at.to_string(), standing: standing.as_str() }
    }
}

impl From<SecretFacts> for SecretSummary {
    fn from(SecretFacts { name, sources, kept }: SecretFacts) -> SecretSummary {
        let sources: Vec<&'static str> = sources.into_iter().map(vault::SecretLocation::as_str).collect();
        SecretSummary { name, source: sources.first().copied(), sources, kept: kept.map(SecretMetadata::from) }
    }
}

/// What became of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretChange {
    name: String,
    #[serde(flatten)]
    kept: Option<SecretMetadata>,
    removed: bool,
}

impl SecretChange {
    /// The version that was made.
    pub(crate) fn version(&self) -> Option<u64> {
        self.kept.as_ref().map(|kept| kept.version)
    }
}

/// Every secret, by name.
pub(crate) async fn list(gateway: &Gateway, authed: &AuthedRequest) -> Result<SecretList, Failure> {
    administers(authed)?;
    let facts = gateway.vault.list(&authed.caller.tenant).await.map_err(|error| {
        Failure::new(error.code(), "the secrets cannot be listed at the moment").retry_after_ms(1_000)
    })?;
    Ok(SecretList { secrets: facts.into_iter().map(SecretSummary::from).collect() })
}

/// Sets a secret in the place of what `base` names, or of whatever stands there.
pub(crate) async fn set(
    gateway: &Gateway,
    authed: &AuthedRequest,
    name: &str,
    value: SecretText,
    base: Option<WritePrecondition>,
) -> Result<SecretChange, Failure> {
    may_change(gateway, authed)?;
    let set = gateway.vault.set(&authed.caller.tenant, name, value, &authed.caller, base).await;
    let kept = match set {
        Ok(kept) => kept,
        Err(failure) => return Err(with_winner(gateway, authed, name, failure).await),
    };
    Ok(SecretChange { name: name.to_owned(), kept: Some(kept.into()), removed: false })
}

/// Removes a secret, of this version or of any. The operator's of that name counts again, if there is one.
pub(crate) async fn remove(
    gateway: &Gateway,
    authed: &AuthedRequest,
    name: &str,
    version: Option<u64>,
) -> Result<SecretChange, Failure> {
    may_change(gateway, authed)?;
    let removed = gateway.vault.forget(&authed.caller.tenant, name, &authed.caller, version).await;
    if let Err(failure) = removed {
        return Err(with_winner(gateway, authed, name, failure).await);
    }
    Ok(SecretChange { name: name.to_owned(), kept: None, removed: true })
}

/// Checks that the caller may change secrets, and that tenants are configured over HTTP at all: a secret that is set here
/// replaces the operator's.
pub(crate) fn may_change(gateway: &Gateway, authed: &AuthedRequest) -> Result<(), Failure> {
    administers(authed)?;
    if gateway.tenants.over_http() {
        return Ok(());
    }
    Err(Failure::new(Code::ConfigLocked, "tenants are configured by files only; nothing was changed")
        .next("ask the operator to change the file of the secret"))
}

/// A refusal, and for whoever lost a race who won it and when.
async fn with_winner(gateway: &Gateway, authed: &AuthedRequest, name: &str, failure: Failure) -> Failure {
    if failure.code != Code::ConfigConflict {
        return failure;
    }
    let known = gateway.vault.list(&authed.caller.tenant).await.unwrap_or_default();
    match known.into_iter().find(|facts| facts.name == name).and_then(|facts| facts.kept) {
        Some(kept) => {
            let details = json!({ "version": kept.version, "set_by": kept.by.subject, "set_at": kept.at.to_string() });
            failure.details(details)
        }
        None => failure,
    }
}
