//! How documents come about, and the shape in which they are stored.
//!
//! The shape has a number. Number 1 knew neither tombstones nor diffs; it is still read, and written as 2 when it next
//! changes.

use super::{DocOp, Document, DocumentHead, Draft, Provenance, Redaction, Removal};
use crate::StoreError;
use domain::{Moment, json};
use serde::{Deserialize, Serialize};

/// The stored shape.
#[derive(Serialize, Deserialize)]
struct StoredDocument<D> {
    v: u8,
    doc: D,
}

const UNREADABLE: StoreError = StoreError::Corrupt { what: "a document" };

/// What older builds wrote was told apart by its number alone; see [`Document::from_bytes`].
pub(super) const fn unknown_op() -> DocOp {
    DocOp::Replace
}

impl Document {
    pub(crate) fn from_draft(draft: Draft, version: u64, now: Moment) -> Document {
        let sha256 = json::sha256_hex(draft.content.as_bytes());
        let Draft {
            path, title, kind, tags, trust, content, evidence, references, op, suspect, findings, diff, ..
        } = draft;
        let Draft { source, actor, actor_kind, session, tainted, run, approver, .. } = draft;
        Document {
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
            op,
            suspect,
            findings,
            diff,
            source,
            provenance: Provenance { actor, kind: actor_kind, session, at: now, tainted, run, approver },
            updated_at: now,
            deleted: false,
            redacted: None,
        }
    }

    /// The version that says that this document is no more.
    pub(crate) fn tombstone(&self, op: DocOp, removal: &Removal, now: Moment) -> Document {
        let Removal { reason, actor, actor_kind, session, tainted, run, approver, .. } = removal.clone();
        Document {
            path: self.path.clone(),
            title: self.title.clone(),
            kind: self.kind.clone(),
            tags: self.tags.clone(),
            trust: self.trust,
            version: self.version.saturating_add(1),
            sha256: String::new(),
            content: String::new(),
            evidence: reason,
            references: Vec::new(),
            op,
            suspect: false,
            findings: Vec::new(),
            diff: String::new(),
            source: None,
            provenance: Provenance { actor, kind: actor_kind, session, at: now, tainted, run, approver },
            updated_at: now,
            deleted: true,
            redacted: None,
        }
    }

    /// The same version without anything its writer chose; who wrote it, when and by which run stays.
    pub(crate) fn redact(self, redaction: Redaction) -> Document {
        Document {
            title: String::new(),
            tags: Vec::new(),
            sha256: String::new(),
            content: String::new(),
            evidence: String::new(),
            diff: String::new(),
            source: None,
            redacted: Some(redaction),
            ..self
        }
    }

    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(&StoredDocument { v: 2, doc: self }).map_err(|_| UNREADABLE)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Document, StoreError> {
        match serde_json::from_slice::<StoredDocument<Document>>(bytes) {
            Ok(StoredDocument { v: 1, doc }) if doc.version == 1 => Ok(Document { op: DocOp::Create, ..doc }),
            Ok(StoredDocument { v: 1 | 2, doc }) => Ok(doc),
            Ok(_) | Err(_) => Err(UNREADABLE),
        }
    }
}

impl DocumentHead {
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(&StoredDocument { v: 1, doc: self }).map_err(|_| UNREADABLE)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<DocumentHead, StoreError> {
        match serde_json::from_slice(bytes) {
            Ok(StoredDocument { v: 1, doc }) => Ok(doc),
            Ok(_) | Err(_) => Err(UNREADABLE),
        }
    }
}

pub(super) mod session_text {
    use domain::SessionId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(in crate::document) fn serialize<S: Serializer>(id: &Option<SessionId>, to: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).serialize(to)
    }

    pub(in crate::document) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionId>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| SessionId::parse(&text)).transpose().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Principal;

    /// As the first shape was written.
    const WRITTEN: &str = r#"{"v":1,"doc":{"path":"notes/a","title":"A","type":"note","tags":["shop"],"trust":"draft","version":1,"sha256":"ab","content":"text","evidence":"seen","provenance":{"actor":{"issuer":"https://login.example","subject":"agent"},"kind":"agent","session":null,"at":1763280000000,"tainted":false},"updated_at":1763280000000}}"#;

    #[test]
    fn a_document_of_the_first_shape_is_read_and_written_in_the_second() {
        let first = Document::from_bytes(WRITTEN.as_bytes()).unwrap();
        assert_eq!((first.op, first.deleted, first.suspect), (DocOp::Create, false, false));
        assert_eq!((first.content.as_str(), first.provenance.approver.clone()), ("text", None));
        let later = WRITTEN.replace("\"version\":1", "\"version\":2");
        assert_eq!(Document::from_bytes(later.as_bytes()).unwrap().op, DocOp::Replace);
        let written = first.to_bytes().unwrap();
        assert!(String::from_utf8_lossy(&written).starts_with(r#"{"v":2,"#));
        assert_eq!(Document::from_bytes(&written).unwrap(), first);
    }

    #[test]
    fn a_shape_of_a_later_build_is_refused() {
        let newer = WRITTEN.replace("\"v\":1", "\"v\":3");
        for bad in ["", "{}", "null", newer.as_str()] {
            assert!(matches!(Document::from_bytes(bad.as_bytes()), Err(StoreError::Corrupt { .. })), "{bad}");
        }
    }

    #[test]
    fn nothing_its_writer_chose_survives_a_redaction() {
        let by = Principal::new("https://login.example", "person");
        let redaction = Redaction { by, reason: "a key".into(), at: Moment::from_millis(7) };
        let read = Document::from_bytes(WRITTEN.as_bytes()).unwrap();
        let redacted = Document { diff: "+text".into(), ..read.clone() }.redact(redaction.clone());
        let stored = String::from_utf8(redacted.to_bytes().unwrap()).unwrap();
        for gone in ["\"A\"", "shop", "\"ab\"", "text", "seen"] {
            assert!(!stored.contains(gone), "{gone} in {stored}");
        }
        assert_eq!((redacted.redacted, redacted.provenance), (Some(redaction), read.provenance));
    }
}
