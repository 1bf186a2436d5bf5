//! The notebook: the documents of one tenant, with the rules that hold for them.
//!
//! The store and the indexes are shared by all tenants of a process. Reading asks for a [`DocumentReader`], writing for an [`Author`](crate::documents::DocumentAuthor); both come from a permit or
//! from a person's own token, and the keys come from them alone. Every write is planned first (see `plan`), so that what a
//! person is shown and what is then done are made by the same code.

use crate::documents::indexes::DocumentIndexes;
use crate::documents::{DocumentReader, Stores};
use domain::Moment;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use store::{DocumentStore, RunStore, Store, TenantStore};

/// The documents of one tenant. Cheap to clone.
#[derive(Clone)]
pub struct Documents {
    shared: Arc<NotebookShared>,
    stores: Arc<Stores>,
}

struct NotebookShared {
    store: Store,
    indexes: DocumentIndexes,
}

impl Documents {
    /// A notebook over a store, with the stores of the product. Nothing is read before somebody asks.
    pub fn new(store: Store) -> Documents {
        let shared = Arc::new(NotebookShared { store, indexes: DocumentIndexes::default() });
        Documents { shared, stores: Arc::new(Stores::default()) }
    }

    /// The same for a tenant that configured these stores.
    #[must_use]
    pub fn with_stores(&self, stores: Stores) -> Documents {
        Documents { shared: Arc::clone(&self.shared), stores: Arc::new(stores) }
    }

    /// The stores of the tenant.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    pub(in crate::documents) fn shelf(&self, reader: &DocumentReader) -> TenantStore {
        self.shared.store.of(reader.tenant())
    }

    pub(in crate::documents) fn runs(&self, reader: &DocumentReader) -> RunStore {
        self.shelf(reader).runs()
    }

    pub(in crate::documents) fn memory(&self, reader: &DocumentReader) -> DocumentStore {
        self.shelf(reader).memory()
    }

    pub(in crate::documents) fn indexes(&self) -> &DocumentIndexes {
        &self.shared.indexes
    }

    /// The time for ages, by the host's clock: a search should not pay a round trip to know how old something is.
    pub(in crate::documents) fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for Documents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notebook(…)")
    }
}
