//! The notebook: the documents of all tenants, with the rules that hold for them.
//!
//! One per process. Reading asks for a [`Reader`], writing for an [`Author`](crate::Author); both come from a permit or
//! from a person's own token, and the keys come from them alone. Every write is planned first (see `plan`), so that what a
//! person is shown and what is then done are made by the same code.

use crate::indexes::Indexes;
use crate::{Reader, Stores};
use domain::{Moment, Tenant};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};
use store::{Memory, Runs, Shelf, Store};

/// The documents of all tenants.
#[derive(Clone)]
pub struct Notebook {
    shared: Arc<Shared>,
}

struct Shared {
    store: Store,
    /// What tenants configured; the others have the stores of the product.
    stores: RwLock<HashMap<Tenant, Arc<Stores>>>,
    default: Arc<Stores>,
    indexes: Indexes,
}

impl Notebook {
    /// A notebook over a store. Nothing is read before somebody asks.
    pub fn new(store: Store) -> Notebook {
        let (stores, default) = (RwLock::default(), Arc::new(Stores::default()));
        Notebook { shared: Arc::new(Shared { store, stores, default, indexes: Indexes::default() }) }
    }

    /// Sets the stores of a tenant, from now on.
    pub fn replace(&self, tenant: &Tenant, stores: Stores) {
        let mut all = self.shared.stores.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(tenant.clone(), Arc::new(stores));
    }

    /// The stores of a tenant.
    pub fn stores(&self, tenant: &Tenant) -> Arc<Stores> {
        let all = self.shared.stores.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.get(tenant).unwrap_or(&self.shared.default))
    }

    pub(crate) fn shelf(&self, reader: &Reader) -> Shelf {
        self.shared.store.of(reader.tenant())
    }

    pub(crate) fn runs(&self, reader: &Reader) -> Runs {
        self.shelf(reader).runs()
    }

    pub(crate) fn memory(&self, reader: &Reader) -> Memory {
        self.shelf(reader).memory()
    }

    pub(crate) fn indexes(&self) -> &Indexes {
        &self.shared.indexes
    }

    /// The time for ages, by the host's clock: a search should not pay a round trip to know how old something is.
    pub(crate) fn now(&self) -> Moment {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Debug for Notebook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Notebook(…)")
    }
}
