//! Where a document is: `scope/store/name…`, checked by its own grammar.
//!
//! A path says which of the caller's own places is meant, never whose: there is no way to write somebody else's.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// One part of a path.
pub const SEGMENT: &str = "[a-z0-9][a-z0-9._-]{0,63}";
/// Parts of the longest path, the scope included.
pub const MOST_SEGMENTS: usize = 8;
/// Bytes of the longest path.
pub const MOST_BYTES: usize = 256;

/// Who can read a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentScope {
    /// The session that wrote it.
    Session,
    /// The principal that wrote it, in any session.
    User,
    /// Everybody in the tenant.
    Tenant,
}

impl DocumentScope {
    /// All of them, nearest first.
    pub const ALL: [DocumentScope; 3] = [DocumentScope::Session, DocumentScope::User, DocumentScope::Tenant];

    /// As it stands in a path.
    pub const fn as_str(self) -> &'static str {
        match self {
            DocumentScope::Session => "session",
            DocumentScope::User => "user",
            DocumentScope::Tenant => "tenant",
        }
    }

    /// Reads it from a path.
    pub fn parse(text: &str) -> Option<DocumentScope> {
        DocumentScope::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    /// Who can read what is kept there, in words for whoever decides.
    pub const fn readers(self) -> &'static str {
        match self {
            DocumentScope::Session => "this session alone",
            DocumentScope::User => "the requester, in every session",
            DocumentScope::Tenant => "everybody in the tenant",
        }
    }
}

/// The text is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAPath(&'static str);

/// The path of one document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DocPath {
    scope: DocumentScope,
    text: String,
}

impl DocPath {
    /// Checks the path.
    pub fn parse(text: &str) -> Result<DocPath, NotAPath> {
        const WRONG: NotAPath = NotAPath(
            "a path is scope/store/name: session, user or tenant, then 2 to 7 parts of a-z, 0-9, '.', '_' and '-'",
        );
        let scope = well_formed(text, 3).ok_or(WRONG)?;
        Ok(DocPath { scope, text: text.to_owned() })
    }

    /// Who can read what is there.
    pub fn scope(&self) -> DocumentScope {
        self.scope
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of its store, within its scope.
    pub fn store(&self) -> &str {
        self.text.split('/').nth(1).unwrap_or_default()
    }

    /// The last part, for a title.
    pub fn name(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }
}

impl fmt::Display for DocPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for DocPath {
    type Err = NotAPath;
    fn from_str(text: &str) -> Result<DocPath, NotAPath> {
        DocPath::parse(text)
    }
}

impl TryFrom<String> for DocPath {
    type Error = NotAPath;
    fn try_from(text: String) -> Result<DocPath, NotAPath> {
        DocPath::parse(&text)
    }
}

impl From<DocPath> for String {
    fn from(path: DocPath) -> String {
        path.text
    }
}

/// Where to list: a scope, a store, or whatever lies under a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Prefix {
    scope: DocumentScope,
    text: String,
}

impl Prefix {
    /// Checks the path; a slash at its end changes nothing.
    pub fn parse(text: &str) -> Result<Prefix, NotAPath> {
        const WRONG: NotAPath =
            NotAPath("a place to list is session, user or tenant, with up to 7 parts of a-z, 0-9, '.', '_' and '-'");
        let text = text.strip_suffix('/').unwrap_or(text);
        let scope = well_formed(text, 1).ok_or(WRONG)?;
        Ok(Prefix { scope, text: text.to_owned() })
    }

    /// Everything of a scope.
    pub fn of(scope: DocumentScope) -> Prefix {
        Prefix { scope, text: scope.as_str().to_owned() }
    }

    /// Whose documents.
    pub fn scope(&self) -> DocumentScope {
        self.scope
    }

    /// The whole path.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The store it names, if it names one.
    pub fn store(&self) -> Option<&str> {
        self.text.split('/').nth(1)
    }

    /// Whether a document lies there. A prefix ends where a part ends: `session/notes/a` does not hold
    /// `session/notes/ab`.
    pub fn holds(&self, path: &str) -> bool {
        path.strip_prefix(self.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FromStr for Prefix {
    type Err = NotAPath;
    fn from_str(text: &str) -> Result<Prefix, NotAPath> {
        Prefix::parse(text)
    }
}

impl TryFrom<String> for Prefix {
    type Error = NotAPath;
    fn try_from(text: String) -> Result<Prefix, NotAPath> {
        Prefix::parse(&text)
    }
}

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> String {
        prefix.text
    }
}

/// The scope of a text that is a path of at least that many parts.
fn well_formed(text: &str, least: usize) -> Option<DocumentScope> {
    let segments = text.split('/');
    let fits = (least..=MOST_SEGMENTS).contains(&segments.clone().count())
        && text.len() <= MOST_BYTES
        && segments.clone().all(is_segment);
    segments.clone().next().filter(|_| fits).and_then(DocumentScope::parse)
}

/// Whether a text can be one part of a path.
pub(in crate::documents) fn is_segment(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
    (1..=64).contains(&text.len())
        && text.bytes().all(inner)
        && text.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_scope_store_and_name() {
        for good in ["session/notes/a", "tenant/runbooks/db/failover.md", "user/preferences/x_1-y"] {
            assert_eq!(DocPath::parse(good).unwrap().as_str(), good);
        }
        let path = DocPath::parse("tenant/runbooks/db/failover.md").unwrap();
        assert_eq!((path.scope(), path.store(), path.name()), (DocumentScope::Tenant, "runbooks", "failover.md"));
        let long = format!("session/notes/{}", "a".repeat(65));
        let longer = format!("session/notes/{}", ["a".repeat(63).as_str(); 5].join("/"));
        for bad in [
            "",
            "session",
            "session/notes",
            "other/notes/a",
            "session//a",
            "session/notes/",
            "/session/notes/a",
            "session/notes/../a",
            "session/notes/.a",
            "session/notes/A",
            "session/notes/a b",
            "session/notes/-a",
            "session/notes/a%2fb",
            "session/notes/a/b/c/d/e/f/g",
            "session/notes/ä",
            "session/notes/a\n",
            "session\\notes\\a",
            &long,
            &longer,
        ] {
            assert!(DocPath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_prefix_ends_where_a_part_ends() {
        let prefix = Prefix::parse("session/notes/a/").unwrap();
        assert_eq!((prefix.as_str(), prefix.store()), ("session/notes/a", Some("notes")));
        assert!(prefix.holds("session/notes/a") && prefix.holds("session/notes/a/b"));
        assert!(!prefix.holds("session/notes/ab") && !prefix.holds("session/notes"));
        assert_eq!(Prefix::parse("tenant").unwrap(), Prefix::of(DocumentScope::Tenant));
        for bad in ["", "/", "tenant//", "other", "tenant/..", "tenant/a/b/c/d/e/f/g/h"] {
            assert!(Prefix::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_path_reads_back_from_json_by_the_same_grammar() {
        let path: DocPath = serde_json::from_str(r#""user/notes/a""#).unwrap();
        assert_eq!(serde_json::to_string(&path).unwrap(), r#""user/notes/a""#);
        assert!(serde_json::from_str::<DocPath>(r#""user/notes/../a""#).is_err());
    }
}
