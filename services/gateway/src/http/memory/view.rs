//! Documents as they travel.

use memory::documents::{DocumentHistory, Promotion, trust};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::{Document, DocumentHead, Provenance};

/// One page of a list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DocumentListPage {
    /// The documents, by path.
    pub documents: Vec<DocumentSummary>,
    /// What to ask for next, as `cursor`; none on the last page.
    pub next_cursor: Option<String>,
}

/// A document without its text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DocumentSummary {
    /// Where it is.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels.
    pub tags: Vec<String>,
    /// How far it can be relied on.
    pub trust: String,
    /// Its number among the versions.
    pub version: u64,
    /// The digest of its text.
    pub sha256: String,
    /// When it was written.
    pub updated_at: String,
}

impl From<DocumentHead> for DocumentSummary {
    fn from(head: DocumentHead) -> DocumentSummary {
        let DocumentHead { path, title, kind, tags, version, sha256, .. } = head;
        let (trust, updated_at) = (trust(head.trust).to_owned(), head.updated_at.to_string());
        DocumentSummary { path, title, kind, tags, trust, version, sha256, updated_at }
    }
}

/// A document, or one of its versions.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct DocumentView {
    /// Where it is.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels.
    pub tags: Vec<String>,
    /// How far it can be relied on.
    pub trust: String,
    /// Its number among the versions.
    pub version: u64,
    /// The digest of its text.
    pub sha256: String,
    /// Its text.
    pub content: String,
    /// How its writer knows.
    pub evidence: String,
    /// The evidence that the audit log has.
    pub references: Vec<Value>,
    /// Where it came from.
    pub provenance: Value,
    /// What the scan found.
    pub findings: Vec<String>,
    /// When it was written.
    pub updated_at: String,
}

impl From<Document> for DocumentView {
    fn from(document: Document) -> DocumentView {
        let provenance = provenance(&document.provenance);
        let (trust, updated_at) = (trust(document.trust).to_owned(), document.updated_at.to_string());
        let reference = |one: &store::Reference| json!({ "id": one.id, "tool": one.tool, "at": one.at.to_string(), "outcome": one.outcome });
        let references = document.references.iter().map(reference).collect();
        let Document { path, title, kind, tags, version, sha256, content, evidence, findings, .. } = document;
        DocumentView {
            path,
            title,
            kind,
            tags,
            trust,
            version,
            sha256,
            content,
            evidence,
            references,
            provenance,
            findings,
            updated_at,
        }
    }
}

fn provenance(of: &Provenance) -> Value {
    json!({
        "actor": of.actor.subject,
        "kind": of.kind,
        "session": of.session.map(|id| id.to_string()),
        "run": of.run.map(|id| id.to_string()),
        "approver": of.approver.as_ref().map(|who| who.subject.clone()),
        "at": of.at.to_string(),
        "tainted": of.tainted,
    })
}

/// The past of a document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DocumentVersions {
    pub(crate) versions: Vec<Value>,
    pub(crate) promotions: Vec<Value>,
    pub(crate) next: Option<u64>,
}

impl From<DocumentHistory> for DocumentVersions {
    fn from(past: DocumentHistory) -> DocumentVersions {
        let versions = past.versions.iter().map(version).collect();
        let promotion = |one: &Promotion| {
            json!({
                "from": one.from, "to": one.to, "state": one.state.as_str(),
                "run": one.run.to_string(), "reason": one.reason,
            })
        };
        DocumentVersions { versions, promotions: past.promotions.iter().map(promotion).collect(), next: past.next }
    }
}

fn version(document: &Document) -> Value {
    let redacted = document.redacted.as_ref();
    json!({
        "version": document.version,
        "op": document.op,
        "sha256": document.sha256,
        "trust": trust(document.trust),
        "evidence": document.evidence,
        "diff": document.diff,
        "provenance": provenance(&document.provenance),
        "deleted": document.deleted,
        "redacted": redacted.map(|gone| json!({ "by": gone.by.subject, "reason": gone.reason, "at": gone.at.to_string() })),
    })
}

/// What a write came to.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct WriteResponse {
    /// Where it is.
    pub path: String,
    /// Its number among the versions.
    pub version: u64,
    /// The digest of its text.
    pub sha256: String,
    /// How far it can be relied on.
    pub trust: String,
    /// Whether there was none before.
    pub created: bool,
    /// What the writer should know.
    pub warnings: Vec<String>,
}

impl From<memory::documents::DocumentWriteResult> for WriteResponse {
    fn from(written: memory::documents::DocumentWriteResult) -> WriteResponse {
        let memory::documents::DocumentWriteResult { document, created, warnings, .. } = written;
        let Document { path, version, sha256, .. } = document;
        WriteResponse { path, version, sha256, trust: trust(document.trust).to_owned(), created, warnings }
    }
}
