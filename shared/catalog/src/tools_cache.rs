//! ToolsCache, first level: finished list bytes in this process.
//!
//! Never invalidated, only missed: a new catalog has a new digest and a newly loaded set is a new key.
//! All sessions with the same set share one value. A cached page is never proof of permission.

use crate::{Catalog, ListAudience};
use bytes::Bytes;
use domain::LoadedToolsets;
use moka::sync::Cache;

/// Which finished bytes are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListKey {
    catalog: [u8; 32],
    set: u128,
    view: ListAudience,
    form: u8,
    page: u32,
}

impl ListKey {
    /// The key of one page of one form (the caller numbers its forms) of a loaded set.
    pub fn new(catalog: &Catalog, loaded: &LoadedToolsets, view: ListAudience, form: u8, page: u32) -> ListKey {
        ListKey { catalog: catalog.key(), set: catalog.set_key(loaded), view, form, page }
    }
}

/// One finished page.
#[derive(Debug, Clone)]
pub struct CachedToolsPage {
    /// The bytes, ready to be sent.
    pub bytes: Bytes,
    /// Names these bytes for `If-None-Match`.
    pub etag: std::sync::Arc<str>,
    /// What the listed tools cost a model.
    pub tokens: u32,
}

/// Finished list bytes, bounded by their size.
pub struct ToolsCache {
    pages: Cache<ListKey, CachedToolsPage>,
}

impl ToolsCache {
    /// A cache of at most this many bytes.
    pub fn new(bytes: u64) -> ToolsCache {
        let weigh = |_: &ListKey, page: &CachedToolsPage| u32::try_from(page.bytes.len() + 128).unwrap_or(u32::MAX);
        ToolsCache { pages: Cache::builder().max_capacity(bytes).weigher(weigh).build() }
    }

    /// The page for this key, drawn once and shared from then on.
    pub fn page(&self, key: ListKey, draw: impl FnOnce() -> (Bytes, u32)) -> CachedToolsPage {
        if let Some(page) = self.pages.get(&key) {
            return page;
        }
        let (bytes, tokens) = draw();
        let mut digest = domain::json::sha256_hex(&bytes);
        digest.truncate(32);
        let page = CachedToolsPage { etag: format!("\"{digest}\"").into(), bytes, tokens };
        self.pages.insert(key, page.clone());
        page
    }
}
