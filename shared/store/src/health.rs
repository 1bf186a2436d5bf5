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
    /// Some shards of it do not answer or take no changes: those of [`HealthReport::shards_down`].
    StoreShardUnreachable,
    /// What answers is of another kind than the address says: a node of a cluster, a sentinel, or a node of none.
    StoreWrongTopology,
    /// The cluster stops serving all tenants when one shard is away.
    StoreRequiresFullCoverage,
    /// A primary that is cut off from its replicas goes on taking changes, which are lost when another one is promoted.
    StoreAcceptsWritesAlone,
    /// Fewer replicas follow than must have a decision before it counts, so nobody can decide.
    StoreReplicasMissing,
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
            HealthFinding::StoreShardUnreachable => "store_shard_unreachable",
            HealthFinding::StoreWrongTopology => "store_wrong_topology",
            HealthFinding::StoreRequiresFullCoverage => "store_requires_full_coverage",
            HealthFinding::StoreAcceptsWritesAlone => "store_accepts_writes_alone",
            HealthFinding::StoreReplicasMissing => "store_replicas_missing",
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
    /// The shards of a cluster that serve nobody, by their slots: tenants there get `store_unavailable`, others go on.
    pub shards_down: Vec<String>,
}

impl HealthReport {
    /// Whether a replica on this store may serve.
    pub fn ready(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(crate) fn unreachable() -> HealthReport {
        HealthReport { reasons: vec![HealthFinding::StoreUnreachable], ..HealthReport::default() }
    }

    pub(crate) fn refuse(&mut self, finding: HealthFinding) {
        if !self.reasons.contains(&finding) {
            self.reasons.push(finding);
        }
    }

    pub(crate) fn warn(&mut self, finding: HealthFinding) {
        if !self.warnings.contains(&finding) {
            self.warnings.push(finding);
        }
    }
}
