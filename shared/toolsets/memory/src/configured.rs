//! What a tenant's file says about its stores, as the rules that hold for them.
//!
//! What the file leaves out stays as the product has it: for a store of the product its own rules, for a new one none.

use crate::documents::{BadStore, DocumentScope, Quota, StoreRules, Stores};
use crate::section::MemoryStore;

/// Why a store that was checked is none all the same.
#[derive(Debug, thiserror::Error)]
#[error("the rules of the store `{0}` are invalid")]
pub(crate) struct NoStores(String, #[source] BadStore);

/// The stores of a tenant that says this.
pub(crate) fn stores(configured: &[MemoryStore]) -> Result<Stores, NoStores> {
    configured.iter().try_fold(Stores::default(), with)
}

fn with(stores: Stores, said: &MemoryStore) -> Result<Stores, NoStores> {
    let MemoryStore { scope, name, .. } = said;
    let there = stores.iter().find(|(whose, named, _)| (whose, *named) == (scope, name.as_str()));
    let new = StoreRules { promotable: *scope != DocumentScope::Session, ..StoreRules::open() };
    let mut rules = there.map_or(new, |(_, _, rules)| rules.clone());
    if let Some(types) = &said.types {
        rules.kinds.clone_from(types);
    }
    rules.writable = said.writable.unwrap_or(rules.writable);
    rules.promotable = said.promotable.unwrap_or(rules.promotable);
    if said.documents.is_some() || said.bytes.is_some() {
        let whole = stores.quota(*scope);
        rules.quota = Some(Quota {
            documents: said.documents.map_or(whole.documents, u64::from),
            bytes: said.bytes.map_or(whole.bytes, u64::from),
        });
    }
    stores.with(*scope, name, rules).map_err(|error| NoStores(format!("{}/{name}", scope.as_str()), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{DocumentKind, WriteAccess};
    use crate::section::{self, MemoryConfig};
    use tenancy::KnownNames;

    fn read(stores: &str) -> Stores {
        let text = format!("tenant: acme\nmemory: {{ stores: [{stores}] }}\n");
        let config = tenancy::parse("acme.yaml", &text, &KnownNames::only(&[section::section()])).unwrap();
        super::stores(&config.section::<MemoryConfig>(section::KEY).unwrap().unwrap().stores).unwrap()
    }

    fn rules(stores: &Stores, scope: DocumentScope, name: &str) -> StoreRules {
        stores.iter().find(|(whose, named, _)| (*whose, *named) == (scope, name)).unwrap().2.clone()
    }

    #[test]
    fn what_is_left_out_stays_as_the_product_has_it() {
        assert_eq!(read(""), Stores::default());
        let stores =
            read("{ name: tenant/conventions, types: [convention] }, { name: tenant/runbooks, promotable: false }");
        let conventions = rules(&stores, DocumentScope::Tenant, "conventions");
        assert_eq!((conventions.writable, conventions.kinds()), (WriteAccess::People, &[DocumentKind::Convention][..]));
        let runbooks = rules(&stores, DocumentScope::Tenant, "runbooks");
        assert_eq!((runbooks.writable, runbooks.promotable), (WriteAccess::Agents, false));
        assert_eq!(
            rules(&stores, DocumentScope::User, "notes"),
            rules(&Stores::default(), DocumentScope::User, "notes")
        );
    }

    #[test]
    fn new_stores_have_the_rules_they_are_given() {
        let stores = read("{ name: session/drafts }, { name: user/x, writable: people, documents: 5 }");
        assert!(!rules(&stores, DocumentScope::Session, "drafts").promotable);
        let own = rules(&stores, DocumentScope::User, "x");
        let bytes = Stores::default().quota(DocumentScope::User).bytes;
        assert_eq!((own.writable, own.quota), (WriteAccess::People, Some(Quota { documents: 5, bytes })));
    }

    #[test]
    fn every_type_there_is_can_be_configured() {
        let types = DocumentKind::ALL.map(DocumentKind::as_str).join(", ");
        let stores = read(&format!("{{ name: tenant/all, types: [{types}] }}"));
        assert_eq!(rules(&stores, DocumentScope::Tenant, "all").kinds, DocumentKind::ALL);
    }

    #[test]
    fn as_many_stores_as_a_file_may_name_can_be_had() {
        let many: Vec<String> = (0..48).map(|n| format!("{{ name: tenant/s{n} }}")).collect();
        assert_eq!(read(&many.join(", ")).iter().count(), 48 + Stores::default().iter().count());
    }
}
