//! The indexes of documents, one per scope, kept in memory and brought up to date by whoever searches.
//!
//! An index is derived data. Each search first asks the store what changed in the scope since the index last looked,
//! which normally is nothing, and reads only that: so whatever any replica has written is found by the next search on
//! this one. Indexes are bounded in bytes, for a tenant and for the process; the one that was not used for longest goes
//! first, and is built again when somebody searches there.

use domain::Tenant;
use recall::{DocumentText, RankFacts, TextIndex};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use store::{DocScope, Document, DocumentStore, StoreError};

use crate::documents::DocumentKind;
use crate::documents::kind::trust_weight;

const MIB: usize = 1 << 20;
/// What the indexes of one tenant may take together.
const TENANT_BYTES: usize = 64 * MIB;
/// What all of them may take.
const PROCESS_BYTES: usize = 256 * MIB;
/// What an index counts for at least, so that many empty ones are bounded as well.
const LEAST_BYTES: usize = 4 * 1024;
/// How many documents are read in one round trip.
const BATCH: usize = 64;

type IndexKey = (Tenant, DocScope);

/// Every index there is.
pub(in crate::documents) struct DocumentIndexes {
    kept: Mutex<HashMap<IndexKey, Arc<ScopedIndex>>>,
    /// Counts uses, so that the oldest is known.
    uses: AtomicU64,
    bounds: IndexBounds,
}

#[derive(Clone, Copy)]
struct IndexBounds {
    tenant: usize,
    process: usize,
}

impl Default for DocumentIndexes {
    fn default() -> DocumentIndexes {
        DocumentIndexes::bounded(IndexBounds { tenant: TENANT_BYTES, process: PROCESS_BYTES })
    }
}

/// The index of one scope.
#[derive(Default)]
pub(in crate::documents) struct ScopedIndex {
    /// Held by the one who brings it up to date; the others wait and find it done.
    updating: tokio::sync::Mutex<()>,
    state: RwLock<IndexState>,
    bytes: AtomicUsize,
    used: AtomicU64,
}

/// What is indexed, and up to which change.
#[derive(Default)]
pub(in crate::documents) struct IndexState {
    pub(in crate::documents) index: TextIndex,
    /// Documents that found no room.
    pub(in crate::documents) left_out: HashSet<String>,
    mark: u64,
}

impl DocumentIndexes {
    fn bounded(bounds: IndexBounds) -> DocumentIndexes {
        DocumentIndexes { kept: Mutex::default(), uses: AtomicU64::new(1), bounds }
    }

    /// The index of a scope, as new as the store is at this moment.
    pub(in crate::documents) async fn fresh(
        &self,
        tenant: &Tenant,
        scope: &DocScope,
        memory: &DocumentStore,
    ) -> Result<Arc<ScopedIndex>, StoreError> {
        let key = (tenant.clone(), scope.clone());
        let scoped = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(kept.entry(key.clone()).or_default())
        };
        scoped.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        if scoped.update(scope, memory, self.bounds.tenant).await? {
            self.make_room(&key);
        }
        Ok(scoped)
    }

    /// Lets go of what was not used for longest until everything fits, but not of the one at hand.
    fn make_room(&self, at_hand: &IndexKey) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let bytes = |of: Option<&Tenant>| -> usize {
                let counted = kept.iter().filter(|((tenant, _), _)| of.is_none_or(|of| of == tenant));
                counted.map(|(_, scoped)| scoped.bytes.load(Ordering::Relaxed).max(LEAST_BYTES)).sum()
            };
            let only = match (bytes(Some(&at_hand.0)) > self.bounds.tenant, bytes(None) > self.bounds.process) {
                (true, _) => Some(&at_hand.0),
                (false, true) => None,
                (false, false) => return,
            };
            let others = kept.iter().filter(|(key, _)| *key != at_hand && only.is_none_or(|only| *only == key.0));
            let oldest =
                others.min_by_key(|(_, scoped)| scoped.used.load(Ordering::Relaxed)).map(|(key, _)| key.clone());
            match oldest {
                Some(oldest) => kept.remove(&oldest),
                None => return,
            };
        }
    }
}

impl ScopedIndex {
    /// What is indexed now.
    pub(in crate::documents) fn state(&self) -> RwLockReadGuard<'_, IndexState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes documents out that were found to be gone. Should one come back, its change is still to be read.
    pub(in crate::documents) fn drop_gone(&self, paths: &[String]) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        paths.iter().for_each(|path| {
            state.index.remove(path);
        });
    }

    /// Reads what changed since the last look. Tells whether anything had.
    async fn update(&self, scope: &DocScope, memory: &DocumentStore, most: usize) -> Result<bool, StoreError> {
        let mark = self.state().mark;
        let mut changes = memory.changes(scope, mark).await?;
        if changes.is_empty() {
            return Ok(false);
        }
        let _one = self.updating.lock().await;
        let now_at = self.state().mark;
        if now_at != mark {
            // Somebody else was at it meanwhile; most likely nothing is left to do.
            changes = memory.changes(scope, now_at).await?;
        }
        // The newest first: if there is no room for all, what is old stays out.
        changes.reverse();
        for some in changes.chunks(BATCH) {
            let paths: Vec<String> = some.iter().map(|change| change.path.clone()).collect();
            let documents = memory.get_many(scope, &paths).await?;
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            for (path, document) in paths.into_iter().zip(documents) {
                state.take_in(path, document.as_ref(), most);
            }
        }
        // Only now is everything up to the highest mark in the index: whoever broke off before begins again.
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let highest = changes.iter().map(|change| change.mark).max().unwrap_or(0);
        state.mark = state.mark.max(highest);
        self.bytes.store(state.index.bytes(), Ordering::Relaxed);
        Ok(true)
    }
}

impl IndexState {
    /// What stands at a path now, if there is room for it.
    fn take_in(&mut self, path: String, document: Option<&Document>, most: usize) {
        self.index.remove(&path);
        self.left_out.remove(&path);
        match document {
            Some(document) if self.index.bytes() < most => put(&mut self.index, document),
            Some(_) => {
                self.left_out.insert(path);
            }
            None => {}
        }
    }
}

fn put(index: &mut TextIndex, document: &Document) {
    let Document { path, title, tags, content, .. } = document;
    let facts = RankFacts {
        trust_weight: trust_weight(document.trust),
        type_weight: DocumentKind::parse(&document.kind).map_or(0.0, DocumentKind::weight),
        updated_ms: document.updated_at.millis(),
        suspect: document.suspect,
        kind: document.kind.clone(),
    };
    index.put(DocumentText { path, title, tags, content }, facts);
}

#[cfg(test)]
mod tests;
