//! What the store says about its own state, in the words of the readiness page.

/// One thing that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HealthFinding {
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

impl HealthFinding {
    /// The stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            HealthFinding::StoreUnreachable => "store_unreachable",
            HealthFinding::StoreReadonly => "store_readonly",
            HealthFinding::StoreEvicts => "store_evicts",
            HealthFinding::StoreNotPersistent => "store_not_persistent",
            HealthFinding::StoreFull => "store_full",
            HealthFinding::StoreLost => "store_lost",
            HealthFinding::StoreSettingsUnreadable => "store_settings_unreadable",
        }
    }
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HealthReport {
    /// Why a replica on this store must not serve; empty when it may.
    pub reasons: Vec<HealthFinding>,
    /// What an operator should know, though it stops nothing.
    pub warnings: Vec<HealthFinding>,
}

impl HealthReport {
    /// Whether a replica on this store may serve.
    pub fn ready(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(crate) fn unreachable() -> HealthReport {
        HealthReport { reasons: vec![HealthFinding::StoreUnreachable], warnings: Vec::new() }
    }

    pub(crate) fn refuse(&mut self, finding: HealthFinding) {
        self.reasons.push(finding);
    }

    pub(crate) fn warn(&mut self, finding: HealthFinding) {
        self.warnings.push(finding);
    }
}
