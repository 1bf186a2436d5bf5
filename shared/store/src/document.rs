//! A document of a tenant's memory and its versions, as others see them.
//!
//! Not here: the shape in which they are stored (see `shape`), and when they change (see [`DocumentStore`](crate::DocumentStore)).

mod shape;

use domain::{Moment, Principal, RunId, SessionId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Whose documents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DocScope {
    /// Those of one session, gone with it.
    Session(SessionId),
    /// Those of one principal, in any session.
    User(Principal),
    /// Those of the whole tenant.
    Tenant,
}

/// How far a document can be relied on; derived by whoever writes it, never claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Shipped in the tenant's configuration.
    Seeded,
    /// Approved by a person.
    Approved,
    /// Written with a person's own token.
    Authored,
    /// Written by an agent without review.
    Draft,
}

/// How a version came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocOp {
    /// The first text at its path.
    Create,
    /// Another text in place of the one before.
    Replace,
    /// A change to the text before.
    Patch,
    /// Taken over from another document.
    Promote,
    /// A tombstone: the document was deleted.
    Delete,
    /// A tombstone: the text that stood here was redacted.
    Redact,
}

/// Evidence that the audit log knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The call or run.
    pub id: String,
    /// What it used.
    pub tool: String,
    /// When.
    pub at: Moment,
    /// How it ended.
    pub outcome: String,
}

/// The document that a promoted one was taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromotedFrom {
    /// Where it stood.
    pub path: String,
    /// Its number among the versions.
    pub version: u64,
    /// SHA-256 of its content, in hex.
    pub sha256: String,
}

/// Where a version came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Who wrote it.
    pub actor: Principal,
    /// `agent`, `person` or `service`.
    pub kind: String,
    /// In which session.
    #[serde(with = "shape::session_text")]
    pub session: Option<SessionId>,
    /// When, by the store's clock; filled in by the store.
    pub at: Moment,
    /// Whether that session had read text from outside.
    pub tainted: bool,
    /// The run that a person approved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Who approved that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approver: Option<Principal>,
}

/// Who took the text of a version away, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// Who.
    pub by: Principal,
    /// Why.
    pub reason: String,
    /// When, by the store's clock.
    pub at: Moment,
}

/// What is to be written; the store adds version, digest and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// Where in its scope.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// Its type, such as `note` or `runbook`.
    pub kind: String,
    /// Labels.
    pub tags: Vec<String>,
    /// How far it can be relied on.
    pub trust: Trust,
    /// The text.
    pub content: String,
    /// How its writer knows.
    pub evidence: String,
    /// The evidence that the audit log knows.
    pub references: Vec<Reference>,
    /// How this version comes about.
    pub op: DocOp,
    /// Whether the text reads like orders to whoever reads it.
    pub suspect: bool,
    /// What the scan found, by line and rule.
    pub findings: Vec<String>,
    /// What changes against the version before, as a unified diff.
    pub diff: String,
    /// What it was promoted from.
    pub source: Option<PromotedFrom>,
    /// Who writes it.
    pub actor: Principal,
    /// `agent`, `person` or `service`.
    pub actor_kind: String,
    /// In which session.
    pub session: Option<SessionId>,
    /// Whether that session had read text from outside.
    pub tainted: bool,
    /// The run that a person approved for it.
    pub run: Option<RunId>,
    /// Who approved that run.
    pub approver: Option<Principal>,
}

/// Who deletes or redacts, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Why.
    pub reason: String,
    /// How long the scope keeps its documents, as in [`ScopeLimits`](crate::ScopeLimits).
    pub keep: Option<Duration>,
    /// Who.
    pub actor: Principal,
    /// `agent`, `person` or `service`.
    pub actor_kind: String,
    /// In which session.
    pub session: Option<SessionId>,
    /// Whether that session had read text from outside.
    pub tainted: bool,
    /// The run that a person approved for it.
    pub run: Option<RunId>,
    /// Who approved that run.
    pub approver: Option<Principal>,
}

/// A document, or one of its versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Where in its scope.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels.
    pub tags: Vec<String>,
    /// How far it can be relied on.
    pub trust: Trust,
    /// Its number among the versions.
    pub version: u64,
    /// SHA-256 of the content, in hex; empty if there is none.
    pub sha256: String,
    /// The text.
    pub content: String,
    /// How its writer knows; of a tombstone, why.
    pub evidence: String,
    /// The evidence that the audit log knows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<Reference>,
    /// How this version came about.
    #[serde(default = "shape::unknown_op")]
    pub op: DocOp,
    /// Whether the text reads like orders to whoever reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspect: bool,
    /// What the scan found, by line and rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// What changed against the version before, as a unified diff.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
    /// What it was promoted from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PromotedFrom>,
    /// Where it came from.
    pub provenance: Provenance,
    /// When it was written, by the store's clock.
    pub updated_at: Moment,
    /// Whether it is a tombstone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// Who took its text away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<Redaction>,
}

/// A document without its text, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentHead {
    /// Where in its scope.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels.
    pub tags: Vec<String>,
    /// How far it can be relied on.
    pub trust: Trust,
    /// Whether the text reads like orders to whoever reads it.
    pub suspect: bool,
    /// Its number among the versions.
    pub version: u64,
    /// SHA-256 of the content, in hex.
    pub sha256: String,
    /// How long the content is.
    pub bytes: u64,
    /// When it was written.
    pub updated_at: Moment,
}

impl From<&Document> for DocumentHead {
    fn from(document: &Document) -> DocumentHead {
        let Document { path, title, kind, tags, trust, suspect, version, sha256, content, updated_at, .. } = document;
        DocumentHead {
            path: path.clone(),
            title: title.clone(),
            kind: kind.clone(),
            tags: tags.clone(),
            trust: *trust,
            suspect: *suspect,
            version: *version,
            sha256: sha256.clone(),
            bytes: content.len() as u64,
            updated_at: *updated_at,
        }
    }
}
