//! Where a document is: `scope/store/name…`, checked by its own grammar.

use domain::outcome::near;
use domain::{Code, Failure};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

const SEGMENT: &str = "[a-z0-9][a-z0-9._-]{0,63}";
const MOST_SEGMENTS: usize = 8;
const MOST_BYTES: usize = 256;

/// Who can read a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scope {
    /// The session that wrote it.
    Session,
    /// The principal that wrote it, in any session.
    User,
    /// Everybody in the tenant.
    Tenant,
}

impl Scope {
    /// All of them, nearest first.
    pub(super) const ALL: [Scope; 3] = [Scope::Session, Scope::User, Scope::Tenant];

    /// As it stands in a path.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Scope::Session => "session",
            Scope::User => "user",
            Scope::Tenant => "tenant",
        }
    }
}

/// The stores every tenant has: where documents of a kind live together.
pub(super) const STORES: [(Scope, &str); 7] = [
    (Scope::Session, "notes"),
    (Scope::User, "notes"),
    (Scope::User, "preferences"),
    (Scope::Tenant, "conventions"),
    (Scope::Tenant, "incidents"),
    (Scope::Tenant, "runbooks"),
    (Scope::Tenant, "services"),
];

/// The path of one document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct DocPath {
    scope: Scope,
    text: String,
}

impl DocPath {
    /// Who can read what is there.
    pub(super) fn scope(&self) -> Scope {
        self.scope
    }

    /// The whole path.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The last part, for a title.
    pub(super) fn name(&self) -> &str {
        self.text.rsplit('/').next().unwrap_or_default()
    }

    /// Wants the store to be one that exists.
    pub(super) fn in_known_store(&self) -> Result<(), Failure> {
        let store = self.text.split('/').nth(1).unwrap_or_default();
        if STORES.iter().any(|(scope, name)| *scope == self.scope && *name == store) {
            return Ok(());
        }
        Err(unknown_store(&format!("{}/{store}", self.scope.as_str())))
    }
}

/// The stores there are, as paths.
pub(super) fn stores() -> Vec<String> {
    STORES.iter().map(|(scope, name)| format!("{}/{name}", scope.as_str())).collect()
}

pub(super) fn unknown_store(wanted: &str) -> Failure {
    let known = stores();
    Failure::new(Code::UnknownStore, format!("there is no store {wanted}"))
        .next(format!("choose from: {}", known.join(", ")))
        .did_you_mean(near(wanted, known.iter().map(String::as_str)))
}

impl TryFrom<String> for DocPath {
    type Error = String;

    fn try_from(text: String) -> Result<DocPath, String> {
        let segments: Vec<&str> = text.split('/').collect();
        let scope = Scope::ALL.into_iter().find(|scope| Some(&scope.as_str()) == segments.first());
        let fits = |segment: &&str| {
            let rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'_' | b'-');
            (1..=64).contains(&segment.len())
                && segment.bytes().all(rest)
                && segment.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
        };
        let good = (3..=MOST_SEGMENTS).contains(&segments.len())
            && text.len() <= MOST_BYTES
            && segments.iter().all(fits)
            && !segments.contains(&"..");
        match scope {
            Some(scope) if good => Ok(DocPath { scope, text }),
            Some(_) | None => Err(format!(
                "a path is scope/store/name: session, user or tenant, then 2 to {} parts of a-z, 0-9, '.', '_' and '-'",
                MOST_SEGMENTS - 1
            )),
        }
    }
}

impl JsonSchema for DocPath {
    fn schema_name() -> Cow<'static, str> {
        "DocPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": MOST_BYTES,
            "pattern": format!("^(session|user|tenant)(/{SEGMENT}){{2,{}}}$", MOST_SEGMENTS - 1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_scope_store_and_name() {
        for good in ["session/notes/a", "tenant/runbooks/db/failover.md", "user/preferences/x_1-y"] {
            assert!(DocPath::try_from(good.to_owned()).is_ok(), "{good}");
        }
        let long = format!("session/notes/{}", "a".repeat(65));
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
            &long,
        ] {
            assert!(DocPath::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_stores_that_exist_are_written_to() {
        let path = |text: &str| DocPath::try_from(text.to_owned()).unwrap();
        assert!(path("session/notes/a").in_known_store().is_ok());
        let failure = path("session/note/a").in_known_store().unwrap_err();
        assert_eq!((failure.code, failure.did_you_mean), (Code::UnknownStore, vec!["session/notes".to_owned()]));
    }
}
