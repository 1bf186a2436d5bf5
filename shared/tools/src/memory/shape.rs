//! What the model sees of a document, and the types of documents there are.

use domain::Moment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Document, Trust};

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    Preference,
    Convention,
    Runbook,
    Incident,
    Service,
    Lesson,
    Checklist,
    Note,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Kind::Preference => "preference",
            Kind::Convention => "convention",
            Kind::Runbook => "runbook",
            Kind::Incident => "incident",
            Kind::Service => "service",
            Kind::Lesson => "lesson",
            Kind::Checklist => "checklist",
            Kind::Note => "note",
        }
    }
}

/// Who wrote a version, and whether to believe it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Origin {
    /// The principal's name.
    pub(super) actor: String,
    /// Agent, person or service.
    pub(super) kind: String,
    /// The session it was written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session: Option<String>,
    /// When.
    pub(super) at: String,
    /// Whether that session had read text from outside.
    pub(super) tainted: bool,
}

impl Origin {
    pub(super) fn of(document: &Document) -> Origin {
        let p = &document.provenance;
        Origin {
            actor: p.actor.subject.clone(),
            kind: p.kind.clone(),
            session: p.session.map(|s| s.to_string()),
            at: p.at.to_string(),
            tainted: p.tainted,
        }
    }
}

pub(super) const fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Seeded => "seeded",
        Trust::Approved => "approved",
        Trust::Authored => "authored",
        Trust::Draft => "draft",
    }
}

/// One line of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Line {
    pub(super) path: String,
    pub(super) title: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) trust: &'static str,
    pub(super) version: u64,
    pub(super) updated_at: String,
}

impl Line {
    pub(super) fn of(head: store::Head) -> Line {
        Line {
            path: head.path,
            title: head.title,
            kind: head.kind,
            trust: trust(head.trust),
            version: head.version,
            updated_at: at(head.updated_at),
        }
    }
}

pub(super) fn at(moment: Moment) -> String {
    moment.to_string()
}
