//! The memory toolset: documents an agent keeps, with provenance, in the service's own store.
//!
//! Scopes are enforced by key: the key is built from the permit's caller and session, so there is no syntax for
//! somebody else's documents and no check to forget. Everything read back is data, never an instruction.

mod history;
mod list;
mod path;
mod rank;
mod read;
mod remember;
mod scan;
mod search;
mod shape;

use catalog::Entry;
use catalog::validate::BadSchema;
use domain::{Code, Failure};
use path::Scope;
use policy::Permit;
use std::sync::Arc;
use store::{DocScope, Memory, Store, StoreError};

/// The name of the toolset.
pub const TOOLSET: &str = "memory";

/// Its tools, read list first.
pub(crate) fn list(store: &Store) -> Result<Vec<Arc<Entry>>, BadSchema> {
    Ok(vec![
        Arc::new(Entry::of(search::Search { store: store.clone() })?),
        Arc::new(Entry::of(read::Read { store: store.clone() })?),
        Arc::new(Entry::of(list::List { store: store.clone() })?),
        Arc::new(Entry::of(history::History { store: store.clone() })?),
        Arc::new(Entry::of(remember::Remember { store: store.clone() })?),
    ])
}

/// The documents of the permit's tenant.
fn memory(store: &Store, permit: &Permit) -> Memory {
    store.of(permit.tenant()).memory()
}

/// The key of a scope, from the authenticated caller alone.
fn scope(permit: &Permit, scope: Scope) -> Result<DocScope, Failure> {
    let call = permit.call();
    match scope {
        Scope::Tenant => Ok(DocScope::Tenant),
        Scope::User => Ok(DocScope::User(call.caller.principal.clone())),
        Scope::Session => call.session.map(DocScope::Session).ok_or_else(|| {
            Failure::new(Code::SessionRequired, "documents under session/ belong to a session, and this call has none")
                .next("call load_toolset with toolset=memory; it gives a session handle to pass along")
        }),
    }
}

/// A store that did not answer, as a failure of the call.
fn no_store(error: &StoreError) -> Failure {
    tracing::warn!(%error, "the state store failed a memory tool");
    Failure::new(error.code(), "the state store did not answer").next("try again shortly").retry_after_ms(1_000)
}
