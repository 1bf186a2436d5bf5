//! What a call is judged against: one tenant's catalog, policy and limits, swapped whole.
//!
//! A call holds the snapshot it began with, so it sees one version of everything from beginning to end.

use catalog::Catalog;
use policy::{Pattern, Policy};
use redact::Scrubber;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::RulePlace;

/// What a tenant says about approvals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalRules {
    /// How long a person may take.
    pub expires: Duration,
    /// How long a yes is good for.
    pub execute_within: Duration,
    /// How many people must say yes.
    pub deciders: u32,
    /// How many runs of one principal may wait at once; those that are reviewed are counted apart, up to the same number.
    pub most_waiting: usize,
    /// How long people may take for what they review at their own pace, if the tenant says; else the tool does.
    pub review: Option<Duration>,
}

/// What a tenant's audit log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditRules {
    /// Whether arguments and results are kept, and not only digests of them.
    pub contents: bool,
    /// How long entries are kept.
    pub keep: Duration,
    /// Whether reads run while the store takes no entries.
    pub unrecorded_reads: bool,
}

/// A rule of the tenant's configuration, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLine {
    /// Whether it asks a person; else it denies.
    pub asks: bool,
    /// Which calls it is about.
    pub patterns: Vec<Pattern>,
    /// Where it stands.
    pub place: RulePlace,
}

/// One version of one tenant.
pub struct Snapshot {
    /// Its tools.
    pub catalog: Arc<Catalog>,
    /// Names of tools that were offered and are withheld, because their definitions are not the accepted ones any more.
    pub withheld: BTreeSet<String>,
    /// Its rules.
    pub policy: Policy,
    /// How people are asked.
    pub approvals: ApprovalRules,
    /// Its secrets, to be taken out of whatever comes back.
    pub secrets: SecretsNow,
    /// How large one result may be.
    pub result_bytes: usize,
    /// How many of its calls may be under way in this process.
    pub in_flight: u32,
    /// What its audit log keeps.
    pub audit: AuditRules,
    /// Where its rules stand.
    pub rules: Vec<RuleLine>,
}

impl Snapshot {
    /// Where the rule stands that would ask a person about such a call now.
    pub fn asking_place(&self, tool: &str, about: Option<&str>) -> Option<RulePlace> {
        self.place_of(true, policy::asking_rule_of(&self.policy, tool, about)?)
    }

    /// Where a rule stands that asks a person, or denies.
    pub(crate) fn place_of(&self, asks: bool, rule: &Pattern) -> Option<RulePlace> {
        let line = self.rules.iter().find(|line| line.asks == asks && line.patterns.contains(rule))?;
        Some(line.place.clone())
    }
}

/// A tenant's secrets as they are at the moment of asking: a value that was changed while a call ran is looked for too.
#[derive(Clone)]
pub struct SecretsNow(Arc<dyn Fn() -> Arc<Scrubber> + Send + Sync>);

impl SecretsNow {
    /// Secrets that somebody else keeps.
    pub fn kept_by(keeper: impl Fn() -> Arc<Scrubber> + Send + Sync + 'static) -> SecretsNow {
        SecretsNow(Arc::new(keeper))
    }

    /// What takes them out of texts, now.
    pub(crate) fn now(&self) -> Arc<Scrubber> {
        (self.0)()
    }
}

/// No secrets.
impl Default for SecretsNow {
    fn default() -> SecretsNow {
        let none = Arc::default();
        SecretsNow::kept_by(move || Arc::clone(&none))
    }
}
