//! Configurations as they travel.

use super::in_force;
use super::standing::TenantStanding;
use crate::app::Gateway;
use crate::openapi::shapes::AnyObject;
use crate::tenants::ConfigOrigin;
use domain::Tenant;
use domain::json::sha256_hex;
use schemars::JsonSchema;
use serde::Serialize;
use store::TenantText;
use tenancy::{Problem, TenantConfig};
use vault::Missing;

/// What holds for a tenant.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantView {
    /// `file` or `http`.
    pub source: &'static str,
    /// What a change has to name.
    pub etag: String,
    /// The number of a text that was set over HTTP.
    pub version: Option<u64>,
    /// The text.
    pub text: String,
    /// Who set it.
    pub set_by: Option<String>,
    /// When.
    pub set_at: Option<String>,
    /// What they had to say.
    pub note: Option<String>,
    /// Whether nothing can be changed over HTTP.
    pub locked: bool,
    /// Whether this replica serves the tenant by it.
    pub in_force: bool,
    /// Why it does not: mistakes in the text, or a toolset that refuses it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<AnyObject>")]
    pub problems: Vec<Problem>,
}

impl TenantView {
    pub(super) fn of(gateway: &Gateway, tenant: &Tenant, standing: TenantStanding) -> TenantView {
        let (etag, locked) = (standing.tag(), !gateway.tenants.over_http());
        let problems = gateway.tenants.problems_of(tenant);
        match standing {
            TenantStanding::File(page) => TenantView {
                source: "file",
                etag,
                version: None,
                text: page.text.clone(),
                set_by: None,
                set_at: None,
                note: None,
                locked,
                in_force: in_force(gateway, tenant, ConfigOrigin::File),
                problems,
            },
            TenantStanding::Http(TenantText { version, text, note, by, at }) => TenantView {
                source: "http",
                etag,
                version: Some(version),
                text: text.unwrap_or_default(),
                set_by: Some(by.subject),
                set_at: Some(at.to_string()),
                note,
                locked,
                in_force: in_force(gateway, tenant, ConfigOrigin::Http(version)),
                problems,
            },
        }
    }
}

/// What became of a change.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantChange {
    /// What holds now: `http`, or `file` after a removal.
    pub source: &'static str,
    /// What the next change has to name.
    pub etag: String,
    /// The version that was made.
    pub version: u64,
    /// Who made it.
    pub set_by: String,
    /// When.
    pub set_at: String,
    /// What they had to say.
    pub note: Option<String>,
    /// Whether this replica serves the tenant by it already.
    pub in_force: bool,
    /// What is not wrong, and will not work.
    pub warnings: Vec<Warning>,
}

impl TenantChange {
    pub(super) fn made(gateway: &Gateway, tenant: &Tenant, text: TenantText, warnings: Vec<Warning>) -> TenantChange {
        let TenantText { version, note, by, at, .. } = text;
        let in_force = in_force(gateway, tenant, ConfigOrigin::Http(version));
        let (set_by, set_at, etag) = (by.subject, at.to_string(), version.to_string());
        TenantChange { source: "http", etag, version, set_by, set_at, note, in_force, warnings }
    }

    pub(super) fn removed(gateway: &Gateway, tenant: &Tenant, text: TenantText) -> TenantChange {
        let etag = gateway.tenants.file_of(tenant).map(TenantStanding::File).map(|file| file.tag()).unwrap_or_default();
        let in_force = in_force(gateway, tenant, ConfigOrigin::File);
        TenantChange { source: "file", etag, in_force, ..TenantChange::made(gateway, tenant, text, Vec::new()) }
    }
}

/// Something that is not wrong, and will not work as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// The stable name of its kind.
    pub code: &'static str,
    /// What it is.
    pub message: String,
}

/// What a good configuration will run into.
pub(super) fn warnings(gateway: &Gateway, tenant: &Tenant, config: &TenantConfig) -> Vec<Warning> {
    let warning = |missing: Missing| match missing {
        // No answer of the store yet is no warning.
        Missing::NotKnownYet { .. } => None,
        Missing::NotAName | Missing::Unknown { .. } | Missing::NotGranted { .. } => Some(("secret_missing", missing)),
        Missing::Sealed { .. } | Missing::File { .. } => Some(("secret_unusable", missing)),
    };
    let missing = config.secrets.iter().filter_map(|name| gateway.vault.read(tenant, name).err());
    missing.filter_map(warning).map(|(code, missing)| Warning { code, message: missing.to_string() }).collect()
}

/// The result of a check.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantCheck {
    /// Whether the text could be set.
    pub valid: bool,
    /// Every mistake, in the order of the text.
    #[schemars(with = "Vec<AnyObject>")]
    pub problems: Vec<Problem>,
    /// What is not wrong, and will not work.
    pub warnings: Vec<Warning>,
}

/// One page of a history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantVersions {
    /// The versions, newest first.
    pub versions: Vec<TenantVersion>,
    /// What to ask for next, as `before`; none on the last page.
    pub next_before: Option<u64>,
}

impl TenantVersions {
    pub(super) fn page(versions: &[TenantText], most: usize) -> TenantVersions {
        let page = &versions[..versions.len().min(most)];
        let next_before = page.last().filter(|_| versions.len() > most).map(|last| last.version);
        TenantVersions { versions: page.iter().map(TenantVersion::head).collect(), next_before }
    }
}

/// One version.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TenantVersion {
    /// Its number.
    pub version: u64,
    /// Whether it removed what stood before.
    pub removed: bool,
    /// Who made it.
    pub set_by: String,
    /// When.
    pub set_at: String,
    /// What they had to say.
    pub note: Option<String>,
    /// The digest of its text.
    pub sha256: Option<String>,
    /// How long that is.
    pub bytes: usize,
    /// The text, on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl TenantVersion {
    fn head(text: &TenantText) -> TenantVersion {
        TenantVersion {
            version: text.version,
            removed: text.text.is_none(),
            set_by: text.by.subject.clone(),
            set_at: text.at.to_string(),
            note: text.note.clone(),
            sha256: text.text.as_ref().map(|text| sha256_hex(text.as_bytes())),
            bytes: text.text.as_ref().map_or(0, String::len),
            text: None,
        }
    }

    pub(super) fn whole(text: &TenantText) -> TenantVersion {
        TenantVersion { text: text.text.clone(), ..TenantVersion::head(text) }
    }
}
