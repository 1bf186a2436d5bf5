//! Reads sealed entries from the store and computes their links again, for whoever signs or exports them.
//!
//! What does not verify is neither signed nor exported: it stays where it is, for people to look at.

use domain::Tenant;
use store::{AuditLogPosition, Chain, ChainLink, EntryLink, EntryPlace, StoreError, TenantStore};

/// One sealed entry.
pub(crate) struct SealedEntry {
    pub(crate) place: EntryPlace,
    pub(crate) body: Vec<u8>,
    /// Its link as it is stored.
    pub(crate) link: EntryLink,
    /// Its link, whole, as it was computed.
    pub(crate) whole: ChainLink,
}

/// Why entries cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RangeError {
    /// The store.
    #[error("the audit log cannot be read")]
    Store(#[from] StoreError),
    /// The audit log is not as it was sealed.
    #[error("entry {0} of the audit log is not as it was sealed")]
    Broken(u64),
}

/// Reads on from some entry.
pub(crate) struct RangeReader<'s> {
    shelf: &'s TenantStore,
    chain: Chain,
    at: Option<AuditLogPosition>,
}

impl<'s> RangeReader<'s> {
    /// Behind this link and position; at the beginning if there are none.
    pub(crate) fn behind(shelf: &'s TenantStore, link: Option<&ChainLink>, at: Option<AuditLogPosition>) -> Self {
        RangeReader { shelf, chain: link.map_or_else(|| Chain::of(shelf.tenant()), Chain::behind), at }
    }

    /// The number of the last entry that was read.
    pub(crate) fn seq(&self) -> u64 {
        self.chain.len()
    }

    /// Where the next page begins.
    pub(crate) fn position(&self) -> Option<AuditLogPosition> {
        self.at
    }

    /// The next entries, at most `limit`, and fewer where they are large.
    pub(crate) async fn next(&mut self, limit: u64) -> Result<Vec<SealedEntry>, RangeError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let page = self.shelf.audit_log(self.at, limit).await?;
        let broken = RangeError::Broken(self.chain.len() + 1);
        if !page.loose.is_empty() || page.entries.is_empty() {
            return Err(broken);
        }
        let mut entries = Vec::with_capacity(page.entries.len());
        for entry in page.entries {
            let whole = self.chain.add(entry.id, &entry.body);
            let Some(link) = entry.link.filter(|link| link.fits(&whole)) else {
                return Err(RangeError::Broken(whole.seq));
            };
            entries.push(SealedEntry { place: entry.id, body: entry.body, link, whole });
        }
        self.at = page.end;
        Ok(entries)
    }

    /// Reads to this link, and tells whether it is the one that is computed.
    pub(crate) async fn verify(&mut self, seal: &ChainLink) -> Result<(), RangeError> {
        let mut last = None;
        while self.seq() < seal.seq {
            last = self.next(seal.seq - self.seq()).await?.pop().map(|entry| entry.whole);
        }
        if last == Some(*seal) { Ok(()) } else { Err(RangeError::Broken(seal.seq)) }
    }
}

/// What is told of an audit log that does not verify.
pub(crate) fn tell_broken(tenant: &Tenant, error: &RangeError) {
    tracing::error!(%tenant, %error, "the audit log of a tenant is broken: nothing of it is signed or exported");
}
