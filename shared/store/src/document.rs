//! A document of a tenant's memory, and the shape in which it is stored.

use crate::{StoreError, Version};
use domain::{Moment, Principal, RunId, SessionId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

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

/// Where a version came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Who wrote it.
    pub actor: Principal,
    /// `agent`, `person` or `service`.
    pub kind: String,
    /// In which session.
    #[serde(with = "session_text")]
    pub session: Option<SessionId>,
    /// When, by the store's clock; filled in by the store.
    pub at: Moment,
    /// Whether that session had read text from outside.
    pub tainted: bool,
    /// The run that a person approved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
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
    /// Who wrote it.
    pub actor: Principal,
    /// `agent`, `person` or `service`.
    pub actor_kind: String,
    /// In which session.
    pub session: Option<SessionId>,
    /// Whether that session had read text from outside.
    pub tainted: bool,
    /// The run that a person approved for it.
    pub run: Option<RunId>,
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
    /// SHA-256 of the content, in hex.
    pub sha256: String,
    /// The text.
    pub content: String,
    /// How its writer knows.
    pub evidence: String,
    /// Where it came from.
    pub provenance: Provenance,
    /// When it was written, by the store's clock.
    pub updated_at: Moment,
}

/// A document without its text, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// Where in its scope.
    pub path: String,
    /// What it is called.
    pub title: String,
    /// Its type.
    pub kind: String,
    /// How far it can be relied on.
    pub trust: Trust,
    /// Its number among the versions.
    pub version: u64,
    /// SHA-256 of the content, in hex.
    pub sha256: String,
    /// When it was written.
    pub updated_at: Moment,
}

impl From<Document> for Head {
    fn from(document: Document) -> Head {
        let Document { path, title, kind, trust, version, sha256, updated_at, .. } = document;
        Head { path, title, kind, trust, version, sha256, updated_at }
    }
}

/// The stored shape.
#[derive(Serialize, Deserialize)]
struct Shape<D> {
    v: u8,
    doc: D,
}

const UNREADABLE: StoreError = StoreError::Corrupt { what: "a document" };

impl Document {
    pub(crate) fn from_draft(draft: Draft, version: Version, now: Moment) -> Document {
        let sha256 = crate::keys::hex(&Sha256::digest(&draft.content));
        let Draft { path, title, kind, tags, trust, content, evidence, actor, actor_kind, session, tainted, run } =
            draft;
        let provenance = Provenance { actor, kind: actor_kind, session, at: now, tainted, run };
        let version = version.number();
        Document { path, title, kind, tags, trust, version, sha256, content, evidence, provenance, updated_at: now }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(&Shape { v: 1, doc: self }).map_err(|_| UNREADABLE)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Document, StoreError> {
        match serde_json::from_slice(bytes) {
            Ok(Shape { v: 1, doc }) => Ok(doc),
            Ok(_) | Err(_) => Err(UNREADABLE),
        }
    }
}

mod session_text {
    use domain::SessionId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(id: &Option<SessionId>, to: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionId>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| SessionId::parse(&text)).transpose().map_err(D::Error::custom)
    }
}
