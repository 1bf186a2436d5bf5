//! What a text over HTTP may say: what the tenant's file gives, or less.
//!
//! The operator writes the file, the tenant's admin the text. Each section compares itself ([`Section::bounded`]); what
//! belongs to no section is compared here. A section without such a comparison can only be what it is in the file.

use crate::config::{ApprovalConfig, AuditConfig, AuditContents, TenantConfig, TenantLimits, UnwritableAudit};
use crate::problem::{Problem, ProblemReport};
use crate::section::{Section, position};
use crate::yaml;
use policy::Gate;
use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

/// So much of a value is repeated in a sentence.
const MOST_SHOWN: usize = 200;

/// The code of a problem that is no mistake: the text asks for more than the tenant's file gives.
pub const BEYOND: &str = "operator_only";

/// Something that a text asks for and the tenant's file does not give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excess {
    /// Where it stands, as a JSON pointer into the section, or into the file for what belongs to no section.
    pub at: String,
    /// The key, and whose it is: `` `namespaces` of the cluster `prod` ``.
    pub key: String,
    /// What the file gives.
    pub given: String,
    /// What the text asks for.
    pub asked: String,
}

impl Excess {
    /// At this place, for this key.
    pub fn new(
        at: impl Into<String>,
        key: impl Into<String>,
        given: impl fmt::Display,
        asked: impl fmt::Display,
    ) -> Excess {
        let short = |value: &dyn fmt::Display| value.to_string().chars().take(MOST_SHOWN).collect();
        Excess { at: at.into(), key: key.into(), given: short(&given), asked: short(&asked) }
    }
}

/// One use of a secret: which section hands it to whom.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretUse {
    /// The key of the section.
    pub section: &'static str,
    /// The name of the secret.
    pub secret: String,
    /// What it is there and where it goes, such as `token https://ci.example/`.
    pub place: String,
}

/// Every use that a configuration makes of secrets.
pub fn secret_uses(sections: &[Section], config: &TenantConfig) -> BTreeSet<SecretUse> {
    sections.iter().flat_map(|section| section.secret_uses(&config.sections)).collect()
}

/// What the configuration `asked`, read from this text, takes that the tenant's file does not give.
pub fn exceeding(
    label: &str,
    text: &str,
    sections: &[Section],
    file: &TenantConfig,
    asked: &TenantConfig,
) -> Vec<Problem> {
    let sections = sections.iter().flat_map(|section| section.exceeding(&file.sections, &asked.sections));
    let found: Vec<Excess> = outside_sections(file, asked).into_iter().chain(sections).collect();
    let tree = yaml::read(text, "", &mut ProblemReport::of(label));
    let mut report = ProblemReport::of(label);
    for Excess { at, key, given, asked } in found {
        let at = tree.as_ref().map_or(crate::Position::START, |tree| position(tree, &at));
        let message = format!("{key}: the tenant's file gives {given}, and this asks for {asked}");
        let hint = "a text over HTTP can only narrow what the file gives; ask the operator to change the file";
        report.add(at, BEYOND, message, Some(hint.to_owned()));
    }
    report.into_problems()
}

fn outside_sections(file: &TenantConfig, asked: &TenantConfig) -> Vec<Excess> {
    let mut found = Vec::new();
    if asked.mode > file.mode {
        found.push(Excess::new("/mode", "`mode`", file.mode.as_str(), asked.mode.as_str()));
    }
    for rule in file.deny.iter().filter(|rule| !asked.deny.iter().any(|asked| asked.covers(rule))) {
        found.push(Excess::new("/policy/deny", "`deny`", format!("the rule `{rule}`"), listed(&asked.deny)));
    }
    // What is refused needs nobody's approval.
    let held = |gate: &Gate| {
        asked.require_approval.iter().any(|asked| asked.covers(gate))
            || asked.deny.iter().any(|asked| asked.covers(&gate.pattern))
    };
    for gate in file.require_approval.iter().filter(|gate| !held(gate)) {
        let asked = listed(asked.require_approval.iter().map(told));
        let given = format!("the rule {}", told(gate));
        found.push(Excess::new("/policy/require_approval", "`require_approval`", given, asked));
    }
    found.extend(approval(&file.approval, &asked.approval));
    let TenantLimits { calls_in_flight, calls_per_minute, result_bytes } = asked.limits;
    let limits = [
        ("calls_in_flight", calls_in_flight, file.limits.calls_in_flight),
        ("calls_per_minute", calls_per_minute, file.limits.calls_per_minute),
        ("result_bytes", result_bytes, file.limits.result_bytes),
    ];
    let limits = limits.into_iter().filter(|(_, asked, given)| asked > given);
    found.extend(
        limits.map(|(key, asked, given)| Excess::new(format!("/limits/{key}"), format!("`{key}`"), given, asked)),
    );
    found.extend(audit(&file.audit, &asked.audit));
    found
}

/// What is recorded is the operator's evidence as well: a text can neither make it less, nor keep what the file does not.
fn audit(file: &AuditConfig, asked: &AuditConfig) -> Vec<Excess> {
    let contents = |config: &AuditConfig| match config.contents {
        AuditContents::Full => "full",
        AuditContents::Digests => "digests",
    };
    let seconds = |config: &AuditConfig| format!("{} s", config.keep.as_secs());
    let unwritable = |config: &AuditConfig| match config.unwritable {
        UnwritableAudit::Refuse => "refuse",
        UnwritableAudit::AllowReads => "allow_reads",
    };
    let unrecorded = (file.unwritable, asked.unwritable) == (UnwritableAudit::Refuse, UnwritableAudit::AllowReads);
    let all = [
        ("contents", asked.contents != file.contents, contents(file).to_owned(), contents(asked).to_owned()),
        ("keep", asked.keep < file.keep, seconds(file), seconds(asked)),
        ("unwritable", unrecorded, unwritable(file).to_owned(), unwritable(asked).to_owned()),
    ];
    let wider = all.into_iter().filter(|(_, wider, _, _)| *wider);
    wider.map(|(key, _, given, asked)| Excess::new(format!("/audit/{key}"), format!("`{key}`"), given, asked)).collect()
}

fn approval(file: &ApprovalConfig, asked: &ApprovalConfig) -> Vec<Excess> {
    let ApprovalConfig { expires, execute_within, deciders, most_waiting } = *asked;
    let seconds = |span: Duration| format!("{} s", span.as_secs());
    let all = [
        ("expires", expires > file.expires, seconds(file.expires), seconds(expires)),
        ("execute_within", execute_within > file.execute_within, seconds(file.execute_within), seconds(execute_within)),
        ("deciders", deciders < file.deciders, file.deciders.to_string(), deciders.to_string()),
        ("most_waiting", most_waiting > file.most_waiting, file.most_waiting.to_string(), most_waiting.to_string()),
    ];
    let wider = all.into_iter().filter(|(_, wider, _, _)| *wider);
    wider
        .map(|(key, _, given, asked)| Excess::new(format!("/policy/approval/{key}"), format!("`{key}`"), given, asked))
        .collect()
}

fn told(gate: &Gate) -> String {
    match gate.on_reject {
        domain::run::OnReject::Fail => format!("`{}` with `on_reject: fail`", gate.pattern),
        domain::run::OnReject::Continue => format!("`{}`", gate.pattern),
    }
}

/// Values as a sentence names them.
pub fn listed(values: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let all: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests;
