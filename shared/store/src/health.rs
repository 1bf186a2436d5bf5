//! What the store says about its own state, in the words of the readiness page.

/// One thing that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finding {
    /// It does not answer.
    StoreUnreachable,
    /// It answers but takes no changes.
    StoreReadonly,
    /// It may throw records away when memory is short.
    StoreEvicts,
    /// A restart would lose what it holds.
    StoreNotPersistent,
    /// It has no room.
    StoreFull,
    /// It lost everything it held, not long ago.
    StoreLost,
    /// It does not tell how it is set up.
    StoreSettingsUnreadable,
}

impl Finding {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Finding::StoreUnreachable => "store_unreachable",
            Finding::StoreReadonly => "store_readonly",
            Finding::StoreEvicts => "store_evicts",
            Finding::StoreNotPersistent => "store_not_persistent",
            Finding::StoreFull => "store_full",
            Finding::StoreLost => "store_lost",
            Finding::StoreSettingsUnreadable => "store_settings_unreadable",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Health {
    /// Why a replica on this store must not serve; empty when it may.
    pub reasons: Vec<Finding>,
    /// What an operator should know, though it stops nothing.
    pub warnings: Vec<Finding>,
}

impl Health {
    /// Whether a replica on this store may serve.
    pub fn ready(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(crate) fn unreachable() -> Health {
        Health { reasons: vec![Finding::StoreUnreachable], warnings: Vec::new() }
    }

    pub(crate) fn refuse(&mut self, finding: Finding) {
        self.reasons.push(finding);
    }

    pub(crate) fn warn(&mut self, finding: Finding) {
        self.warnings.push(finding);
    }
}
