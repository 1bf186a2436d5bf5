//! The types of documents there are, and what each weighs in a search.

use serde::{Deserialize, Serialize};
use store::Trust;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    /// How somebody likes things to be done.
    Preference,
    /// How things are done here.
    Convention,
    /// What to do when something happens.
    Runbook,
    /// What happened, and what came of it.
    Incident,
    /// What a service is and who looks after it.
    Service,
    /// What was learnt.
    Lesson,
    /// What must not be forgotten.
    Checklist,
    /// Anything else.
    Note,
}

impl DocumentKind {
    /// All of them, in the product's order.
    pub const ALL: [DocumentKind; 8] = [
        DocumentKind::Preference,
        DocumentKind::Convention,
        DocumentKind::Runbook,
        DocumentKind::Incident,
        DocumentKind::Service,
        DocumentKind::Lesson,
        DocumentKind::Checklist,
        DocumentKind::Note,
    ];

    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            DocumentKind::Preference => "preference",
            DocumentKind::Convention => "convention",
            DocumentKind::Runbook => "runbook",
            DocumentKind::Incident => "incident",
            DocumentKind::Service => "service",
            DocumentKind::Lesson => "lesson",
            DocumentKind::Checklist => "checklist",
            DocumentKind::Note => "note",
        }
    }

    /// Reads the spelling back.
    pub fn parse(text: &str) -> Option<DocumentKind> {
        DocumentKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// How much it counts among equals: what tells people what to do comes before what somebody jotted down.
    pub const fn weight(self) -> f64 {
        match self {
            DocumentKind::Runbook => 1.0,
            DocumentKind::Checklist | DocumentKind::Convention => 0.9,
            DocumentKind::Incident | DocumentKind::Service => 0.7,
            DocumentKind::Lesson => 0.6,
            DocumentKind::Preference => 0.5,
            DocumentKind::Note => 0.3,
        }
    }
}

/// The one spelling of a trust.
pub const fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::Seeded => "seeded",
        Trust::Approved => "approved",
        Trust::Authored => "authored",
        Trust::Draft => "draft",
    }
}

/// How much a trust counts in a search. It orders results; it never lifts a gate.
pub(in crate::documents) const fn trust_weight(trust: Trust) -> f64 {
    match trust {
        Trust::Seeded => 1.0,
        Trust::Approved => 0.95,
        Trust::Authored => 0.85,
        Trust::Draft => 0.45,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_and_weighs_something() {
        for kind in DocumentKind::ALL {
            assert_eq!(DocumentKind::parse(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
            assert!((0.3..=1.0).contains(&kind.weight()));
        }
        assert_eq!(DocumentKind::parse("Note"), None);
    }
}
