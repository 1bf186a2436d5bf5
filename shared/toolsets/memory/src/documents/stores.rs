//! The stores a tenant has: where documents of a kind live together, and who may put what there.
//!
//! Every tenant has the stores of the product; its configuration adds some and may set the rules of each. Nothing here
//! lifts the approval gate: `Writable::Agents` says that an agent may ask, not that it need not.

use crate::codes;
use crate::documents::{DocPath, DocumentKind, DocumentScope, Prefix, path};
use domain::Failure;
use domain::outcome::near;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;
/// The stores every tenant has, and whether agents may write there.
const DEFAULTS: [(DocumentScope, &str, WriteAccess); 7] = [
    (DocumentScope::Session, "notes", WriteAccess::Agents),
    (DocumentScope::User, "notes", WriteAccess::Agents),
    (DocumentScope::User, "preferences", WriteAccess::Agents),
    (DocumentScope::Tenant, "conventions", WriteAccess::People),
    (DocumentScope::Tenant, "incidents", WriteAccess::Agents),
    (DocumentScope::Tenant, "runbooks", WriteAccess::Agents),
    (DocumentScope::Tenant, "services", WriteAccess::Agents),
];
/// How many stores a tenant can have; a list of them is read by models.
const MOST_STORES: usize = 64;

/// Who may write to a store. Promotion is apart: there a person adopts what an agent proposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteAccess {
    /// People with their own token.
    People,
    /// Agents as well; outside a session every write of theirs waits for a person.
    Agents,
}

impl WriteAccess {
    /// The one spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            WriteAccess::People => "people",
            WriteAccess::Agents => "agents",
        }
    }
}

/// How much may be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Documents.
    pub documents: u64,
    /// Bytes of content over all documents.
    pub bytes: u64,
}

/// What holds in one store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreRules {
    /// The types it takes; none named means all.
    pub kinds: Vec<DocumentKind>,
    /// Who may write to it.
    pub writable: WriteAccess,
    /// Whether documents can be proposed for it. Never so in session scope.
    pub promotable: bool,
    /// How much it may hold; its scope's quota holds besides.
    pub quota: Option<Quota>,
}

impl StoreRules {
    /// Open to agents and to proposals, for every type.
    pub fn open() -> StoreRules {
        StoreRules { kinds: Vec::new(), writable: WriteAccess::Agents, promotable: true, quota: None }
    }

    /// The types it takes.
    pub fn kinds(&self) -> &[DocumentKind] {
        match self.kinds.as_slice() {
            [] => &DocumentKind::ALL,
            kinds => kinds,
        }
    }

    /// Wants the store to take documents of that type.
    pub(in crate::documents) fn takes(&self, path: &DocPath, kind: DocumentKind) -> Result<(), Failure> {
        if self.kinds().contains(&kind) {
            return Ok(());
        }
        let names: Vec<&str> = self.kinds().iter().map(|kind| kind.as_str()).collect();
        let store = format!("{}/{}", path.scope().as_str(), path.store());
        Err(Failure::new(codes::TYPE_NOT_ALLOWED, format!("{store} takes no documents of type {}", kind.as_str()))
            .next(format!("choose a type it takes ({}), or another store", names.join(", "))))
    }
}

/// The stores of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stores {
    stores: BTreeMap<(DocumentScope, String), StoreRules>,
    quotas: BTreeMap<DocumentScope, Quota>,
}

/// What the product gives every tenant.
impl Default for Stores {
    fn default() -> Stores {
        let rules = |scope: DocumentScope, writable| StoreRules {
            writable,
            promotable: scope != DocumentScope::Session,
            ..StoreRules::open()
        };
        Stores {
            stores: DEFAULTS.map(|(scope, name, who)| ((scope, name.to_owned()), rules(scope, who))).into(),
            quotas: [
                (DocumentScope::Session, Quota { documents: 50, bytes: MIB }),
                (DocumentScope::User, Quota { documents: 200, bytes: 10 * MIB }),
                (DocumentScope::Tenant, Quota { documents: 2_000, bytes: 100 * MIB }),
            ]
            .into(),
        }
    }
}

/// Why a store cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadStore {
    /// Its name does not fit into a path.
    #[error("a store is named with 1 to 64 of a-z, 0-9, '.', '_' and '-'")]
    Name,
    /// A session's notes are its own.
    #[error("nothing can be promoted into session scope, and agents always write there")]
    Session,
    /// There are too many.
    #[error("a tenant can have at most {MOST_STORES} stores")]
    TooMany,
    /// It would hold nothing.
    #[error("a quota must allow at least one document and one byte")]
    Quota,
}

impl Stores {
    /// Adds a store, or sets the rules of one that is there.
    pub fn with(mut self, scope: DocumentScope, name: &str, rules: StoreRules) -> Result<Stores, BadStore> {
        if !path::is_segment(name) {
            return Err(BadStore::Name);
        }
        if scope == DocumentScope::Session && (rules.promotable || rules.writable == WriteAccess::People) {
            return Err(BadStore::Session);
        }
        if rules.quota.is_some_and(|quota| quota.documents == 0 || quota.bytes == 0) {
            return Err(BadStore::Quota);
        }
        self.stores.insert((scope, name.to_owned()), rules);
        match self.stores.len() > MOST_STORES {
            true => Err(BadStore::TooMany),
            false => Ok(self),
        }
    }

    /// Sets how much a scope may hold over all its stores.
    pub fn with_quota(mut self, scope: DocumentScope, quota: Quota) -> Result<Stores, BadStore> {
        if quota.documents == 0 || quota.bytes == 0 {
            return Err(BadStore::Quota);
        }
        self.quotas.insert(scope, quota);
        Ok(self)
    }

    /// How much a scope may hold over all its stores.
    pub fn quota(&self, scope: DocumentScope) -> Quota {
        // Every scope has one from the beginning; nothing at all would be the safe reading of a gap.
        self.quotas.get(&scope).copied().unwrap_or(Quota { documents: 0, bytes: 0 })
    }

    /// Every store: its scope, its name and its rules.
    pub fn iter(&self) -> impl Iterator<Item = (DocumentScope, &str, &StoreRules)> {
        self.stores.iter().map(|((scope, name), rules)| (*scope, name.as_str(), rules))
    }

    /// The rules of the store a path lies in.
    pub fn of(&self, path: &DocPath) -> Result<&StoreRules, Failure> {
        self.find(path.scope(), path.store())
    }

    /// Wants the store to exist, if the place to list names one.
    pub fn know(&self, prefix: &Prefix) -> Result<(), Failure> {
        prefix.store().map_or(Ok(()), |store| self.find(prefix.scope(), store).map(|_| ()))
    }

    fn find(&self, scope: DocumentScope, name: &str) -> Result<&StoreRules, Failure> {
        self.stores.get(&(scope, name.to_owned())).ok_or_else(|| {
            let wanted = format!("{}/{name}", scope.as_str());
            let known: Vec<String> = self.iter().map(|(scope, name, _)| format!("{}/{name}", scope.as_str())).collect();
            Failure::new(codes::UNKNOWN_STORE, format!("there is no store {wanted}"))
                .next(format!("choose from: {}", known.join(", ")))
                .did_you_mean(near(&wanted, known.iter().map(String::as_str)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> DocPath {
        DocPath::parse(text).unwrap()
    }

    #[test]
    fn a_tenant_that_says_nothing_has_the_stores_of_the_product() {
        let stores = Stores::default();
        let people: Vec<_> = stores.iter().filter(|(_, _, rules)| rules.writable == WriteAccess::People).collect();
        assert_eq!(people.len(), 1);
        assert_eq!((people[0].0, people[0].1), (DocumentScope::Tenant, "conventions"));
        assert!(stores.iter().all(|(scope, _, rules)| rules.promotable == (scope != DocumentScope::Session)));
        assert!(stores.of(&path("session/notes/a")).is_ok());
        let failure = stores.of(&path("session/note/a")).unwrap_err();
        assert_eq!((failure.code, failure.did_you_mean), (codes::UNKNOWN_STORE, vec!["session/notes".to_owned()]));
        assert!(stores.know(&Prefix::of(DocumentScope::User)).is_ok());
        assert_eq!(stores.know(&Prefix::parse("user/nots").unwrap()).unwrap_err().code, codes::UNKNOWN_STORE);
    }

    #[test]
    fn configuration_adds_stores_and_sets_their_rules() {
        let rules =
            StoreRules { kinds: vec![DocumentKind::Lesson], writable: WriteAccess::People, ..StoreRules::open() };
        let stores = Stores::default().with(DocumentScope::Tenant, "postmortems", rules).unwrap();
        let target = path("tenant/postmortems/a");
        let found = stores.of(&target).unwrap();
        assert!(found.takes(&target, DocumentKind::Lesson).is_ok());
        let failure = found.takes(&target, DocumentKind::Note).unwrap_err();
        assert_eq!(failure.code, codes::TYPE_NOT_ALLOWED);
        assert!(failure.next.unwrap().contains("lesson"));
        let quota = Quota { documents: 5, bytes: 10 };
        assert_eq!(stores.with_quota(DocumentScope::User, quota).unwrap().quota(DocumentScope::User), quota);
    }

    #[test]
    fn rules_that_make_no_sense_are_refused() {
        let open = StoreRules::open();
        let with = |scope, name: &str, rules: &StoreRules| Stores::default().with(scope, name, rules.clone());
        assert_eq!(with(DocumentScope::Tenant, "a/b", &open).unwrap_err(), BadStore::Name);
        assert_eq!(with(DocumentScope::Session, "x", &open).unwrap_err(), BadStore::Session);
        let none = StoreRules { quota: Some(Quota { documents: 0, bytes: 1 }), ..open.clone() };
        assert_eq!(with(DocumentScope::Tenant, "x", &none).unwrap_err(), BadStore::Quota);
        let many = (0..MOST_STORES).try_fold(Stores::default(), |all, n| {
            all.with(DocumentScope::Tenant, &format!("store{n}"), StoreRules::open())
        });
        assert_eq!(many.unwrap_err(), BadStore::TooMany);
    }
}
