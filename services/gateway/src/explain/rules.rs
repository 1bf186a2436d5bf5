//! The rules of a tenant's configuration with their lines, looked up for a decision that has been made.

use super::verdict::ExplainAnswer;
use domain::run::OnReject;
use serde::Serialize;
use tenancy::{RuleAt, RuleKind, Section, TenantConfig};

/// A rule and its position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct RulePosition {
    pub(crate) key: &'static str,
    pub(crate) text: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// Every rule of one file.
pub(crate) struct FileRules {
    file: String,
    rules: Vec<RuleAt>,
}

impl FileRules {
    pub(crate) fn of(file: &str, text: &str, sections: &[Section]) -> FileRules {
        FileRules { file: file.to_owned(), rules: tenancy::trace(text, sections) }
    }

    /// The rules of a configuration that was read, in the text that is called so.
    pub(crate) fn of_config(source: &str, config: &TenantConfig) -> FileRules {
        FileRules { file: source.to_owned(), rules: config.rules.clone() }
    }

    /// The first rule that denies such a call.
    pub(crate) fn denies(&self, tool: &str, about: Option<&str>) -> Option<RulePosition> {
        let mut denying = self.rules.iter().filter(|rule| rule.kind == RuleKind::Deny && rule.matches(tool, about));
        denying.next().map(|rule| self.position(rule))
    }

    /// The rule that requires approval of such a call: of several the first with `on_reject: fail`, as in policy.
    pub(crate) fn asks(&self, tool: &str, about: Option<&str>) -> Option<(RulePosition, OnReject)> {
        let asking = self.rules.iter().filter(|rule| rule.kind != RuleKind::Deny && rule.matches(tool, about));
        let asking: Vec<(&RuleAt, OnReject)> = asking.filter_map(|rule| Some((rule, rule.on_reject?))).collect();
        let (rule, on_reject) = asking.iter().find(|(_, on_reject)| *on_reject == OnReject::Fail).or(asking.first())?;
        Some((self.position(rule), *on_reject))
    }

    /// Where the tenant sets the maximum session mode.
    pub(crate) fn mode(&self) -> Option<RulePosition> {
        self.rules.iter().find(|rule| rule.kind == RuleKind::Mode).map(|rule| self.position(rule))
    }

    /// Adds the line to an answer that a rule about a server decided.
    pub(crate) fn place(&self, answer: ExplainAnswer) -> ExplainAnswer {
        let Some((kind, id)) = &answer.of_server else { return answer };
        let rule = self.rules.iter().find(|rule| rule.kind == *kind && rule.entry.as_ref() == Some(id));
        ExplainAnswer { rule: rule.map(|rule| self.position(rule)), ..answer }
    }

    fn position(&self, rule: &RuleAt) -> RulePosition {
        let (file, text) = (self.file.clone(), rule.text.clone());
        RulePosition { key: rule.kind.as_str(), text, file, line: rule.line, column: rule.column }
    }
}
