//! Where the rules of a tenant's file stand, for whoever explains a decision.
//!
//! It is read from the text a second time, beside the configuration: rules that decide carry no line numbers, because
//! two texts that say the same must decide the same.

use crate::check::gates_of;
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
    /// One of `servers`.
    Server,
    /// `access.allowlist` of a server.
    Allowlist,
    /// A tool in an allowlist that waits for a person.
    AllowedIfApproved,
}

impl RuleKind {
    /// The key under which such a rule stands.
    pub const fn as_str(self) -> &'static str {
        match self {
            RuleKind::Mode => "mode",
            RuleKind::Deny => "policy.deny",
            RuleKind::RequireApproval => "policy.require_approval",
            RuleKind::Section(key) => key,
            RuleKind::Server => "servers",
            RuleKind::Allowlist => "servers.access.allowlist",
            RuleKind::AllowedIfApproved => "servers.access.allowlist.require_approval",
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
    /// The server it belongs to.
    pub server: Option<String>,
    /// The line, counted from 1.
    pub line: u32,
    /// The character in the line, counted from 1.
    pub column: u32,
}

impl RuleAt {
    /// A rule that stands at a node and is about these calls.
    pub fn new(kind: RuleKind, node: &YamlNode, patterns: Vec<Pattern>) -> RuleAt {
        let text = node.scalar().unwrap_or_default().to_owned();
        RuleAt { kind, text, patterns, on_reject: None, server: None, line: node.at.line, column: node.at.column }
    }

    /// Whether it is about this call.
    pub fn matches(&self, tool: &str, about: Option<&str>) -> bool {
        self.patterns.iter().any(|pattern| pattern.matches(tool, about))
    }
}

/// The rules of a text that [`parse`](crate::parse) accepts with these sections, in the order in which they are asked.
pub fn trace(text: &str, sections: &[Section]) -> Vec<RuleAt> {
    let Some(root) = yaml::read(text, "", &mut ProblemReport::of("")) else { return Vec::new() };
    let mode = root.find("mode").map(|node| RuleAt::new(RuleKind::Mode, node, Vec::new()));
    let policy = |key: &str| root.find("policy").and_then(|policy| policy.find(key)).map_or(&[][..], YamlNode::items);
    let deny = policy("deny").iter().map(|node| RuleAt::new(RuleKind::Deny, node, pattern_of(node)));
    let asks = policy("require_approval").iter().map(asking);
    let servers = root.find("servers").map_or(&[][..], YamlNode::items).iter().flat_map(of_server);
    let of_section = |section: &Section| {
        let node = match section.place {
            Place::Root => root.find(section.key),
            Place::Toolsets => root.find("toolsets").and_then(|toolsets| toolsets.find(section.key)),
        };
        node.map_or_else(Vec::new, |node| section.rules(node))
    };
    let of_sections = sections.iter().flat_map(of_section);
    mode.into_iter().chain(deny).chain(asks).chain(of_sections).chain(servers).collect()
}

fn pattern_of(node: &YamlNode) -> Vec<Pattern> {
    node.scalar().and_then(|text| Pattern::parse(text).ok()).into_iter().collect()
}

fn asking(node: &YamlNode) -> RuleAt {
    let name = node.find("name").unwrap_or(node);
    let on_reject = Some(on_reject(node));
    RuleAt { on_reject, ..RuleAt::new(RuleKind::RequireApproval, name, pattern_of(name)) }
}

fn on_reject(node: &YamlNode) -> OnReject {
    match node.find("on_reject").and_then(YamlNode::scalar) {
        Some("fail") => OnReject::Fail,
        Some(_) | None => OnReject::Continue,
    }
}

fn of_server(node: &YamlNode) -> Vec<RuleAt> {
    let named = ["id", "use", "name"].into_iter().find_map(|key| node.find(key));
    let Some(id) = named.and_then(YamlNode::scalar) else { return Vec::new() };
    let server = Some(id.to_owned());
    let mut rules =
        vec![RuleAt { text: id.to_owned(), server: server.clone(), ..RuleAt::new(RuleKind::Server, node, Vec::new()) }];
    let Some(list) = node.find("access").and_then(|access| access.find("allowlist")) else { return rules };
    let names = list.items().iter().map(|item| (item, item.find("name").unwrap_or(item)));
    let patterns = names.clone().flat_map(|(_, name)| pattern_of(name)).collect();
    let text = names.clone().filter_map(|(_, name)| name.scalar()).collect::<Vec<_>>().join(", ");
    rules.push(RuleAt { text, server: server.clone(), ..RuleAt::new(RuleKind::Allowlist, list, patterns) });
    for (item, name) in names {
        let Some(asks) = item.find("require_approval") else { continue };
        let on_reject = on_reject(asks);
        let gates = pattern_of(name).iter().flat_map(|pattern| gates_of(id, pattern, on_reject)).collect::<Vec<_>>();
        let patterns = gates.into_iter().map(|gate| gate.pattern).collect();
        let at = RuleAt::new(RuleKind::AllowedIfApproved, name, patterns);
        rules.push(RuleAt { on_reject: Some(on_reject), server: server.clone(), ..at });
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_found_where_it_stands() {
        let text = "tenant: acme\nmode: write\nservers:\n- use: wiki\n  access:\n    allowlist:\n    - 'read-*'\n    - name: drop\n      require_approval: { on_reject: fail }\npolicy:\n  deny: [k8s_exec, 'k8s_get:secrets']\n  require_approval:\n  - helm_*\n  - { name: k8s_get, on_reject: fail }\n";
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
        11:10 policy.deny k8s_exec [k8s_exec]
        11:20 policy.deny k8s_get:secrets [k8s_get:secrets]
        13:5 policy.require_approval helm_* [helm_*] continue
        14:13 policy.require_approval k8s_get [k8s_get] fail
        4:3 servers wiki []
        7:7 servers.access.allowlist read-*, drop [read-* drop]
        8:13 servers.access.allowlist.require_approval drop [mcp_wiki__drop mcp_wiki__drop_d90ee9cc] fail
        ");
    }

    #[test]
    fn what_is_no_configuration_has_no_rules() {
        for odd in ["", "[", "- a", "policy: x", "servers: [x, {}, { use: [] }]", "policy: { deny: [[], {}] }"] {
            assert!(trace(odd, &[]).iter().all(|rule| rule.patterns.is_empty()), "{odd}");
        }
    }
}
