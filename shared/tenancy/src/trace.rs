//! Where the rules of a tenant's file stand, for whoever explains a decision.
//!
//! It is read beside the configuration: rules that decide carry no line numbers, because two texts that say the same must
//! decide the same.

use crate::problem::ProblemReport;
use crate::section::{Place, Section};
use crate::yaml::{self, YamlNode};
use domain::run::OnReject;
use policy::Pattern;

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    /// `mode`: the most a session may be for.
    Mode,
    /// One of `policy.deny`.
    Deny,
    /// One of `policy.require_approval`.
    RequireApproval,
    /// A rule of a section, by the key under which it stands.
    Section(&'static str),
}

impl RuleKind {
    /// The key under which such a rule stands.
    pub const fn as_str(self) -> &'static str {
        match self {
            RuleKind::Mode => "mode",
            RuleKind::Deny => "policy.deny",
            RuleKind::RequireApproval => "policy.require_approval",
            RuleKind::Section(key) => key,
        }
    }
}

/// A rule and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleAt {
    /// What it does.
    pub kind: RuleKind,
    /// As it is written.
    pub text: String,
    /// Which calls it is about; none, if it is not about single ones.
    pub patterns: Vec<Pattern>,
    /// What a no means, if it asks.
    pub on_reject: Option<OnReject>,
    /// The entry of a section that it belongs to, such as the id of a server.
    pub entry: Option<String>,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
}

impl RuleAt {
    /// A rule that stands at a node and is about these calls.
    pub fn new(kind: RuleKind, node: &YamlNode, patterns: Vec<Pattern>) -> RuleAt {
        let text = node.scalar().unwrap_or_default().to_owned();
        RuleAt { kind, text, patterns, on_reject: None, entry: None, line: node.at.line, column: node.at.column }
    }

    /// Whether it is about this call.
    pub fn matches(&self, tool: &str, about: Option<&str>) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(tool, about))
    }
}

/// The rules of a text that [`parse`](crate::parse) accepts with these sections, in the order in which they are asked.
pub fn trace(text: &str, sections: &[Section]) -> Vec<RuleAt> {
    yaml::read(text, "", &mut ProblemReport::of("")).map_or_else(Vec::new, |root| rules_of(&root, sections))
}

/// The same for a text that was read.
pub(crate) fn rules_of(root: &YamlNode, sections: &[Section]) -> Vec<RuleAt> {
    let mode = root.find("mode").map(|node| RuleAt::new(RuleKind::Mode, node, Vec::new()));
    let policy = |key: &str| root.find("policy").and_then(|policy| policy.find(key)).map_or(&[][..], YamlNode::items);
    let deny = policy("deny").iter().map(|node| RuleAt::new(RuleKind::Deny, node, pattern_of(node)));
    let asks = policy("require_approval").iter().map(asking);
    let of_section = |section: &Section| {
        let node = match section.place {
            Place::Root => root.find(section.key),
            Place::Toolsets => root.find("toolsets").and_then(|toolsets| toolsets.find(section.key)),
            Place::Policy => root.find("policy").and_then(|policy| policy.find(section.key)),
        };
        node.map_or_else(Vec::new, |node| section.rules(node))
    };
    let of_sections = sections.iter().flat_map(of_section);
    mode.into_iter().chain(deny).chain(asks).chain(of_sections).collect()
}

/// The pattern that stands at a node.
pub fn pattern_of(node: &YamlNode) -> Vec<Pattern> {
    node.scalar().and_then(|text| Pattern::parse(text).ok()).into_iter().collect()
}

fn asking(node: &YamlNode) -> RuleAt {
    let name = node.find("name").unwrap_or(node);
    let on_reject = Some(on_reject(node));
    RuleAt { on_reject, ..RuleAt::new(RuleKind::RequireApproval, name, pattern_of(name)) }
}

/// What a rejection means, as the mapping at a node says it.
pub fn on_reject(node: &YamlNode) -> OnReject {
    match node.find("on_reject").and_then(YamlNode::scalar) {
        Some("fail") => OnReject::Fail,
        Some(_) | None => OnReject::Continue,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_where_it_stands() {
        let text = "tenant: acme\nmode: write\npolicy:\n  deny: [k8s_exec, 'k8s_get:secrets']\n  require_approval:\n  - helm_*\n  - { name: k8s_get, on_reject: fail }\n";
        let told: Vec<String> = trace(text, &[])
            .iter()
            .map(|rule| {
                let patterns: Vec<String> = rule.patterns.iter().map(ToString::to_string).collect();
                let no = rule.on_reject.map_or("", |no| if no == OnReject::Fail { " fail" } else { " continue" });
                format!(
                    "{}:{} {} {} [{}]{no}",
                    rule.line,
                    rule.column,
                    rule.kind.as_str(),
                    rule.text,
                    patterns.join(" ")
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @"
        2:7 mode write []
        4:10 policy.deny k8s_exec [k8s_exec]
        4:20 policy.deny k8s_get:secrets [k8s_get:secrets]
        6:5 policy.require_approval helm_* [helm_*] continue
        7:13 policy.require_approval k8s_get [k8s_get] fail
        ");
    }

    #[test]
    fn what_is_no_configuration_has_no_rules() {
        for odd in ["", "[", "- a", "policy: x", "policy: { deny: [[], {}] }"] {
            assert!(trace(odd, &[]).iter().all(|rule| rule.patterns.is_empty()), "{odd}");
        }
    }
}
