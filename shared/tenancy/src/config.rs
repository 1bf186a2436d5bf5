//! What a tenant may configure: plain data, already checked.
//!
//! Every rule here tightens. Nothing a tenant writes can lift an approval or widen a scope, because there is no
//! field to say so.

use crate::bounds::SecretUse;
use crate::params::TenantParam;
use crate::problem::Problem;
use crate::section::{SectionTypeError, SectionValues};
use crate::trace::RuleAt;
use domain::{SessionMode, Tenant, ToolsetName};
use policy::{Gate, Pattern};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

/// One tenant's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantConfig {
    /// Whose it is.
    pub tenant: Tenant,
    /// The most a session may ask for.
    pub mode: SessionMode,
    /// What a session has loaded, read-only, when it opens.
    pub default_toolsets: Vec<ToolsetName>,
    /// What the sections of toolsets say.
    pub sections: SectionValues,
    /// The secrets that the sections name.
    pub secrets: BTreeSet<String>,
    /// The uses in which a secret may be one that the operator brought: those of the tenant's file. A text over HTTP makes
    /// others only with secrets that were set over HTTP.
    pub granted_secrets: BTreeSet<SecretUse>,
    /// What its own file refers to by name.
    pub params: BTreeMap<String, TenantParam>,
    /// What is allowed and somebody should look at, with its place in the file.
    pub warnings: Vec<Problem>,
    /// Calls that are refused whoever asks.
    pub deny: Vec<Pattern>,
    /// Calls that wait for a person even if they only read, and what a no means.
    pub require_approval: Vec<Gate>,
    /// Rules that ask a person and follow from the sections.
    pub section_gates: Vec<Gate>,
    /// How people are asked.
    pub approval: ApprovalConfig,
    /// How much the tenant may use at once.
    pub limits: TenantLimits,
    /// What its audit log keeps.
    pub audit: AuditConfig,
    /// Where its rules stand in the text.
    pub rules: Vec<RuleAt>,
}

impl TenantConfig {
    /// What a toolset's section says; `None` if the file does not have it.
    pub fn section<T: Any>(&self, key: &str) -> Result<Option<&T>, SectionTypeError> {
        self.sections.get(key)
    }

    /// Whether a secret may be one that the operator brought in this use.
    pub fn grants(&self, used: &SecretUse) -> bool {
        self.granted_secrets.contains(used)
    }

    /// Every rule that asks a person: those the tenant wrote down, and those that follow from its other settings.
    pub fn gates(&self) -> Vec<Gate> {
        self.require_approval.iter().chain(&self.section_gates).cloned().collect()
    }
}

/// How people are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalConfig {
    /// How long a person may take.
    pub expires: Duration,
    /// How long a yes is good for.
    pub execute_within: Duration,
    /// How many people must say yes.
    pub deciders: u32,
    /// How many runs of one caller may wait at once.
    pub most_waiting: u32,
}

impl ApprovalConfig {
    /// What [`ApprovalConfig::expires`] may be: long enough to be read, short enough to be remembered.
    pub const EXPIRES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(30 * 24 * 3600);
    /// What [`ApprovalConfig::execute_within`] may be.
    pub const EXECUTE_WITHIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    /// What [`ApprovalConfig::deciders`] may be; zero would be no approval at all.
    pub const DECIDERS: RangeInclusive<u32> = 1..=10;
    /// What [`ApprovalConfig::most_waiting`] may be.
    pub const MOST_WAITING: RangeInclusive<u32> = 1..=1_000;
}

impl Default for ApprovalConfig {
    fn default() -> ApprovalConfig {
        ApprovalConfig {
            expires: Duration::from_secs(30 * 60),
            execute_within: Duration::from_secs(10 * 60),
            deciders: 1,
            most_waiting: 20,
        }
    }
}

/// A span of time as people write it: a whole number and one of `s`, `m`, `h`, `d`.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u64>().ok()?.checked_mul(seconds)?))
}

/// How much one tenant may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantLimits {
    /// Calls that may be on their way at the same time.
    pub calls_in_flight: u32,
    /// Calls that may begin within one minute.
    pub calls_per_minute: u32,
    /// The largest result that is handed out in one piece.
    pub result_bytes: u32,
}

impl TenantLimits {
    /// What [`TenantLimits::calls_in_flight`] may be; zero would lock the tenant out by accident.
    pub const CALLS_IN_FLIGHT: RangeInclusive<u32> = 1..=10_000;
    /// What [`TenantLimits::calls_per_minute`] may be.
    pub const CALLS_PER_MINUTE: RangeInclusive<u32> = 1..=1_000_000;
    /// What [`TenantLimits::result_bytes`] may be; below the floor not even an error with its hint would fit.
    pub const RESULT_BYTES: RangeInclusive<u32> = 4_096..=1_048_576;
}

impl Default for TenantLimits {
    fn default() -> TenantLimits {
        TenantLimits { calls_in_flight: 32, calls_per_minute: 600, result_bytes: 262_144 }
    }
}

/// What a tenant's audit log keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditConfig {
    /// What is kept of arguments and results.
    pub contents: AuditContents,
    /// How long entries are kept.
    pub keep: Duration,
    /// What runs while nothing can be recorded.
    pub unwritable: UnwritableAudit,
}

/// What runs while the audit log cannot be written. What changes anything never does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnwritableAudit {
    /// Nothing.
    #[default]
    Refuse,
    /// Reads, as far as the store still answers what they are judged by.
    AllowReads,
}

impl UnwritableAudit {
    /// Every choice, as it is written.
    pub(crate) const CHOICES: [(&'static str, UnwritableAudit); 2] =
        [("refuse", UnwritableAudit::Refuse), ("allow_reads", UnwritableAudit::AllowReads)];
}

/// What is kept of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuditContents {
    /// They themselves, sealed.
    #[default]
    Full,
    /// Digests of them.
    Digests,
}

impl AuditContents {
    /// Every choice, as it is written.
    pub(crate) const CHOICES: [(&'static str, AuditContents); 2] =
        [("full", AuditContents::Full), ("digests", AuditContents::Digests)];
}

impl AuditConfig {
    /// What [`AuditConfig::keep`] may be.
    pub const KEEP: RangeInclusive<Duration> = Duration::from_secs(24 * 3600)..=Duration::from_secs(3_650 * 24 * 3600);
}

impl Default for AuditConfig {
    fn default() -> AuditConfig {
        let keep = Duration::from_secs(90 * 24 * 3600);
        AuditConfig { contents: AuditContents::default(), keep, unwritable: UnwritableAudit::default() }
    }
}
