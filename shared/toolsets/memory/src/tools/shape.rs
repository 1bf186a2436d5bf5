//! What the model sees of a document.

use crate::documents::trust;
use schemars::JsonSchema;
use serde::Serialize;
use store::{Document, DocumentHead};

/// Who wrote a version, and whether to believe it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VersionOrigin {
    /// The principal's name.
    pub(super) actor: String,
    /// Agent, person or service.
    pub(super) kind: String,
    pub(super) trust: &'static str,
    /// The session it was written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// The run that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// Who approved that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) approver: Option<String>,
    /// When.
    pub(super) at: String,
    /// Whether that session had read text from outside.
    pub(super) tainted: bool,
    /// The scan found something in it that speaks to whoever reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) suspect: bool,
}

impl VersionOrigin {
    pub(super) fn of(document: &Document) -> VersionOrigin {
        let p = &document.provenance;
        VersionOrigin {
            actor: p.actor.subject.clone(),
            kind: p.kind.clone(),
            trust: trust(document.trust),
            session: p.session.map(|s| s.to_string()),
            run: p.run.map(|run| run.to_string()),
            approver: p.approver.as_ref().map(|person| person.subject.clone()),
            at: p.at.to_string(),
            tainted: p.tainted,
            suspect: document.suspect,
        }
    }

    /// Whether whoever reads the text takes in something from outside with it.
    pub(super) fn taints(&self) -> bool {
        self.tainted || self.suspect
    }
}

/// One line of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DocumentRow {
    pub(super) path: String,
    pub(super) title: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) trust: &'static str,
    pub(super) version: u64,
    pub(super) updated_at: String,
    /// The scan found something in it that speaks to whoever reads it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) suspect: bool,
}

impl DocumentRow {
    pub(super) fn of(head: DocumentHead) -> DocumentRow {
        let DocumentHead { path, title, kind, version, suspect, updated_at, .. } = head;
        DocumentRow {
            path,
            title,
            kind,
            trust: trust(head.trust),
            version,
            updated_at: updated_at.to_string(),
            suspect,
        }
    }
}

/// A call or run that evidence names and the audit log knows.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct EvidenceRef {
    id: String,
    tool: String,
    at: String,
    outcome: String,
}

impl EvidenceRef {
    pub(super) fn of(document: &Document) -> Vec<EvidenceRef> {
        let known = |r: &store::Reference| EvidenceRef {
            id: r.id.clone(),
            tool: r.tool.clone(),
            at: r.at.to_string(),
            outcome: r.outcome.clone(),
        };
        document.references.iter().map(known).collect()
    }
}
