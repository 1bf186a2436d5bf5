//! Where the rules about a tenant's servers stand, for whoever explains a decision.

use super::access::gates_of;
use tenancy::trace::{self, pattern_of};
use tenancy::{RuleAt, RuleKind, YamlNode};

/// One of `servers`.
pub const SERVER: RuleKind = RuleKind::Section("servers");
/// `access.allowlist` of a server.
pub const ALLOWLIST: RuleKind = RuleKind::Section("servers.access.allowlist");
/// A tool in an allowlist that waits for a person.
pub const ALLOWED_IF_APPROVED: RuleKind = RuleKind::Section("servers.access.allowlist.require_approval");

/// The rules of every server.
pub(super) fn rules(node: &YamlNode) -> Vec<RuleAt> {
    node.items().iter().flat_map(of_server).collect()
}

fn of_server(node: &YamlNode) -> Vec<RuleAt> {
    let named = ["id", "use", "name"].into_iter().find_map(|key| node.find(key));
    let Some(id) = named.and_then(YamlNode::scalar) else { return Vec::new() };
    let entry = Some(id.to_owned());
    let mut rules = vec![RuleAt { text: id.to_owned(), entry: entry.clone(), ..RuleAt::new(SERVER, node, Vec::new()) }];
    let Some(list) = node.find("access").and_then(|access| access.find("allowlist")) else { return rules };
    let names = list.items().iter().map(|item| (item, item.find("name").unwrap_or(item)));
    let patterns = names.clone().flat_map(|(_, name)| pattern_of(name)).collect();
    let text = names.clone().filter_map(|(_, name)| name.scalar()).collect::<Vec<_>>().join(", ");
    rules.push(RuleAt { text, entry: entry.clone(), ..RuleAt::new(ALLOWLIST, list, patterns) });
    for (item, name) in names {
        let Some(asks) = item.find("require_approval") else { continue };
        let on_reject = trace::on_reject(asks);
        let gates = pattern_of(name).iter().flat_map(|pattern| gates_of(id, pattern, on_reject)).collect::<Vec<_>>();
        let patterns = gates.into_iter().map(|gate| gate.pattern).collect();
        let at = RuleAt::new(ALLOWED_IF_APPROVED, name, patterns);
        rules.push(RuleAt { on_reject: Some(on_reject), entry: entry.clone(), ..at });
    }
    rules
}

#[cfg(test)]
mod tests {
    use crate::curated::ServerCatalog;
    use crate::section::sections;
    use domain::run::OnReject;

    #[test]
    fn every_rule_stands_where_it_is_written() {
        let text = "tenant: acme\nservers:\n- use: wiki\n  access:\n    allowlist:\n    - 'read-*'\n    - name: drop\n      require_approval: { on_reject: fail }\n";
        let rules = tenancy::trace(text, &sections(&ServerCatalog::none()));
        let printed: Vec<String> = rules
            .iter()
            .map(|rule| {
                let patterns: Vec<String> = rule.patterns.iter().map(ToString::to_string).collect();
                let fail = if rule.on_reject == Some(OnReject::Fail) { " fail" } else { "" };
                format!(
                    "{}:{} {} {} [{}]{fail}",
                    rule.line,
                    rule.column,
                    rule.kind.as_str(),
                    rule.text,
                    patterns.join(" ")
                )
            })
            .collect();
        insta::assert_snapshot!(printed.join("\n"), @"
        3:3 servers wiki []
        6:7 servers.access.allowlist read-*, drop [read-* drop]
        7:13 servers.access.allowlist.require_approval drop [mcp_wiki__drop mcp_wiki__drop_d90ee9cc] fail
        ");
    }

    #[test]
    fn what_is_no_list_of_servers_has_no_rules() {
        for odd in ["servers: x", "servers: [x, {}, { use: [] }]"] {
            let rules = tenancy::trace(odd, &sections(&ServerCatalog::none()));
            assert!(rules.iter().all(|rule| rule.patterns.is_empty()), "{odd}");
        }
    }
}
