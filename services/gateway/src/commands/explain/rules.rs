//! The rules of the tenant's file with their lines, found again for a decision that has been made.

use super::verdict::ExplainAnswer;
use domain::run::OnReject;
use serde::Serialize;
use tenancy::{RuleAt, RuleKind, Section};

/// A rule as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct ShownRule {
    pub(super) key: &'static str,
    pub(super) text: String,
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
}

/// Every rule of one file.
pub(super) struct FileRules {
    file: String,
    rules: Vec<RuleAt>,
}

impl FileRules {
    pub(super) fn of(file: &str, text: &str, sections: &[Section]) -> FileRules {
        FileRules { file: file.to_owned(), rules: tenancy::trace(text, sections) }
    }

    /// The first rule that denies such a call.
    pub(super) fn denies(&self, tool: &str, about: Option<&str>) -> Option<ShownRule> {
        let mut found = self.rules.iter().filter(|rule| rule.kind == RuleKind::Deny && rule.matches(tool, about));
        found.next().map(|rule| self.shown(rule))
    }

    /// The rule that asks about such a call: of several the first one that ends the step, as policy has it.
    pub(super) fn asks(&self, tool: &str, about: Option<&str>) -> Option<(ShownRule, OnReject)> {
        let asking = self.rules.iter().filter(|rule| rule.kind != RuleKind::Deny && rule.matches(tool, about));
        let asking: Vec<(&RuleAt, OnReject)> = asking.filter_map(|rule| Some((rule, rule.on_reject?))).collect();
        let found = asking.iter().find(|(_, no)| *no == OnReject::Fail).or(asking.first())?;
        Some((self.shown(found.0), found.1))
    }

    /// Where the tenant says what sessions are for.
    pub(super) fn mode(&self) -> Option<ShownRule> {
        self.rules.iter().find(|rule| rule.kind == RuleKind::Mode).map(|rule| self.shown(rule))
    }

    /// Finds the line of what was settled by a rule about a server.
    pub(super) fn place(&self, explained: ExplainAnswer) -> ExplainAnswer {
        let Some((kind, id)) = &explained.of_server else { return explained };
        let found = self.rules.iter().find(|rule| rule.kind == *kind && rule.entry.as_ref() == Some(id));
        ExplainAnswer { rule: found.map(|rule| self.shown(rule)), ..explained }
    }

    fn shown(&self, rule: &RuleAt) -> ShownRule {
        let (file, text) = (self.file.clone(), rule.text.clone());
        ShownRule { key: rule.kind.as_str(), text, file, line: rule.line, column: rule.column }
    }
}
