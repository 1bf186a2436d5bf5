//! From a configuration and tools to what one call sees from beginning to end.

use catalog::catalog::CatalogError;
use catalog::{Catalog, CatalogEntry};
use domain::{Effect, SessionMode, Tenant, ToolsetName};
use executor::{RuleLine, SecretsNow, Snapshot};
use policy::Policy;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::RulePlace;
use tenancy::{
    ApprovalConfig, AuditConfig, AuditContents, RuleAt, RuleKind, TenantConfig, TenantLimits, UnwritableAudit,
};

/// What a snapshot has besides the configuration.
#[derive(Default)]
pub(super) struct SnapshotInputs {
    /// The tenant's secrets.
    pub(super) secrets: SecretsNow,
    /// Tools of external servers that are withheld.
    pub(super) withheld: BTreeSet<String>,
    /// How long people may take to review what agents propose, where the tenant says so.
    pub(super) review: Option<Duration>,
    /// The text in which its rules stand: `file`, or `http/` and the version of the text.
    pub(super) source: String,
}

/// Builds the snapshot of a tenant that has these tools.
pub(super) fn build(
    config: &TenantConfig,
    tools: &[Arc<CatalogEntry>],
    inputs: SnapshotInputs,
) -> Result<Snapshot, CatalogError> {
    let SnapshotInputs { secrets, withheld, review, source } = inputs;
    let gates = config.gates();
    let rules = catalog::CatalogRules { deny: &config.deny, gates: &gates };
    let catalog = Catalog::build(&config.tenant, tools.iter().cloned(), &config.default_toolsets, rules)?;
    // Never the catalog from before, even with the same definitions: its tools hold the targets from before.
    let catalog = Arc::new(catalog);
    let in_flight = config.limits.calls_in_flight;
    let policy = Policy {
        mode: config.mode,
        deny: config.deny.clone(),
        require_approval: gates,
        calls_per_minute: u64::from(config.limits.calls_per_minute),
    };
    let result_bytes = usize::try_from(config.limits.result_bytes).unwrap_or(usize::MAX);
    let approvals = executor::ApprovalRules {
        expires: config.approval.expires,
        execute_within: config.approval.execute_within,
        deciders: config.approval.deciders,
        most_waiting: usize::try_from(config.approval.most_waiting).unwrap_or(usize::MAX),
        review,
    };
    let audit = executor::AuditRules {
        contents: config.audit.contents == AuditContents::Full,
        keep: config.audit.keep,
        unrecorded_reads: config.audit.unwritable == UnwritableAudit::AllowReads,
    };
    let rules = config.rules.iter().filter_map(|rule| rule_line(rule, &source)).collect();
    Ok(Snapshot { catalog, withheld, policy, approvals, secrets, result_bytes, in_flight, audit, rules })
}

/// A rule about calls, as the audit log names it.
fn rule_line(rule: &RuleAt, source: &str) -> Option<RuleLine> {
    let asks = match rule.kind {
        RuleKind::Mode => return None,
        RuleKind::Deny => false,
        RuleKind::RequireApproval => true,
        RuleKind::Section(_) => rule.on_reject.is_some(),
    };
    let place =
        RulePlace { key: rule.kind.as_str(), text: rule.text.clone(), source: source.to_owned(), line: rule.line };
    Some(RuleLine { asks, patterns: rule.patterns.clone(), place })
}

/// The configuration of a tenant that has exactly these tools, all by default.
pub(super) fn open_config(tenant: &Tenant, tools: &[Arc<CatalogEntry>]) -> TenantConfig {
    let mut default_toolsets: Vec<ToolsetName> = tools.iter().map(|e| e.definition().toolset.clone()).collect();
    default_toolsets.dedup();
    let only_read = tools.iter().all(|e| e.definition().most == Effect::Read);
    TenantConfig {
        mode: if only_read { SessionMode::Read } else { SessionMode::Write },
        default_toolsets,
        limits: TenantLimits { calls_per_minute: 1_000_000, ..TenantLimits::default() },
        ..suspended_config(tenant)
    }
}

/// The configuration of a tenant that may do nothing.
pub(super) fn suspended_config(tenant: &Tenant) -> TenantConfig {
    TenantConfig {
        tenant: tenant.clone(),
        mode: SessionMode::Read,
        default_toolsets: Vec::new(),
        sections: Default::default(),
        secrets: Default::default(),
        granted_secrets: Default::default(),
        warnings: Vec::new(),
        params: Default::default(),
        deny: Vec::new(),
        require_approval: Vec::new(),
        section_gates: Vec::new(),
        approval: ApprovalConfig::default(),
        limits: TenantLimits::default(),
        audit: AuditConfig::default(),
        rules: Vec::new(),
    }
}
