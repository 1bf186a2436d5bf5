//! What a request about a configuration may say, and what it is about.

use crate::app::Gateway;
use crate::http::body;
use crate::http::caller::AuthedRequest;
use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, IF_MATCH};
use actix_web::web::Payload;
use domain::json::sha256_hex;
use domain::{Code, Failure, Tenant};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use store::{Actor, ActorKind, AuditEntry, Phase, StoreError, TenantText, WritePrecondition};
use tenancy::ConfiguredTenant;

/// The largest text that is taken.
const MOST_BYTES: usize = 256 * 1024;
/// The longest note beside a change.
const MOST_NOTE: usize = 500;
/// What YAML is called.
const YAML: [&str; 4] = ["text/yaml", "application/yaml", "application/x-yaml", "text/x-yaml"];

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
        Failure::new(Code::ConfigConflict, "the configuration is another one than If-Match names; nothing was changed")
            .next("read it again, and name its ETag")
            .details(json!({ "etag": self.tag() }))
    }
}

/// The one tag in `If-Match`, without which nothing is changed: who did not see what holds cannot mean to replace it.
pub(super) fn match_of(headers: &HeaderMap) -> Result<String, Failure> {
    let mut sent = headers.get_all(IF_MATCH);
    let only = sent.next().and_then(|value| value.to_str().ok()).map(str::trim);
    let tag = only.and_then(|text| text.strip_prefix('"')?.strip_suffix('"'));
    match (tag.filter(|tag| !tag.is_empty() && tag.bytes().all(|b| b.is_ascii_alphanumeric())), sent.next()) {
        (Some(tag), None) => Ok(tag.to_ascii_lowercase()),
        (Some(_) | None, _) => {
            let failure = Failure::new(Code::InvalidRequest, "a change needs If-Match with one ETag, in quotes");
            Err(failure.next("send the ETag that GET /v1/tenant/config gave"))
        }
    }
}

/// The query of a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeNote {
    pub(super) note: Option<String>,
}

/// What somebody adds to a change.
pub(super) fn note_of(note: Option<&str>) -> Result<Option<String>, Failure> {
    match note.map(str::trim).filter(|note| !note.is_empty()) {
        Some(note) if note.len() > MOST_NOTE => {
            Err(Failure::new(Code::InvalidRequest, format!("a note has at most {MOST_NOTE} bytes")))
        }
        note => Ok(note.map(str::to_owned)),
    }
}

/// The text in a body.
pub(super) async fn text_of(request: &HttpRequest, payload: Payload) -> Result<String, Failure> {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if !YAML.iter().any(|yaml| kind.eq_ignore_ascii_case(yaml)) {
        return Err(Failure::new(Code::InvalidRequest, "the body must be text/yaml or application/yaml"));
    }
    let bytes = body::read(request, payload, MOST_BYTES).await.map_err(|status| {
        if status == StatusCode::PAYLOAD_TOO_LARGE {
            return too_large();
        }
        Failure::new(Code::InvalidRequest, "the body could not be read")
    })?;
    String::from_utf8(bytes.into()).map_err(|_| Failure::new(Code::InvalidRequest, "the body is not UTF-8"))
}

pub(super) fn too_large() -> Failure {
    Failure::new(Code::TooLarge, format!("a configuration has at most {MOST_BYTES} bytes"))
}

/// Whether the answer shall be JSON. Whoever takes anything gets the text, which is what can be sent back.
pub(super) fn wants_json(request: &HttpRequest) -> bool {
    let ranges = request.headers().get_all(ACCEPT).filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    ranges.map(|range| range.split(';').next().unwrap_or_default().trim()).any(|kind| kind == "application/json")
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

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    #[test]
    fn a_change_names_exactly_one_tag() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            values.iter().for_each(|v| headers.append(IF_MATCH, HeaderValue::from_str(v).unwrap()));
            match_of(&headers)
        };
        assert_eq!(of(&["\"12\""]).unwrap(), "12");
        assert_eq!(of(&[" \"aB3\" "]).unwrap(), "ab3");
        for bad in [&[][..], &["*"], &["12"], &["W/\"12\""], &["\"1\", \"2\""], &["\"1\"", "\"1\""], &["\"\""]] {
            assert_eq!(of(bad).unwrap_err().code, Code::InvalidRequest, "{bad:?}");
        }
    }

    #[test]
    fn json_is_given_to_whoever_names_it() {
        let of = |accept: &str| wants_json(&TestRequest::default().insert_header((ACCEPT, accept)).to_http_request());
        assert!(of("application/json") && of("text/html, application/json;q=0.9"));
        assert!(!of("*/*") && !of("text/yaml") && !of("application/*"));
        assert!(!wants_json(&TestRequest::default().to_http_request()));
    }

    #[test]
    fn a_note_is_short_or_left_out() {
        assert_eq!(note_of(None).unwrap(), None);
        assert_eq!(note_of(Some("  ")).unwrap(), None);
        assert_eq!(note_of(Some(" why ")).unwrap().as_deref(), Some("why"));
        assert!(note_of(Some(&"x".repeat(501))).is_err());
    }
}
