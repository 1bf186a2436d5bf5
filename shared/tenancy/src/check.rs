//! One tenant's text in; its configuration, or everything that is wrong with it, out.
//!
//! Each key is looked at on its own, so a mistake in one does not hide the next. What is missing has a default,
//! except the tenant's name.
//!
//! Not here: how values are read and refused (see `values`), YAML itself (see `yaml`).

mod clusters;
mod memory;
mod toolsets;
mod values;

use crate::config::{self, Approval, Limits, Memory, TenantConfig};
use crate::problem::{Problem, Report, shown};
use crate::yaml::{self, Node};
use domain::outcome::near;
use domain::run::OnReject;
use domain::{Mode, Tenant, ToolsetName};
use policy::{Gate, Pattern};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;
use values::{Values, or_nearest};

/// The keys of the file itself.
pub(crate) const ROOT: [&str; 8] =
    ["tenant", "mode", "default_toolsets", "clusters", "toolsets", "policy", "memory", "limits"];
/// The keys of a cluster.
pub(crate) const CLUSTER: [&str; 9] = [
    "name",
    "kubeconfig",
    "in_cluster",
    "sandbox",
    "namespaces",
    "default_namespace",
    "impersonate",
    "protected",
    "default",
];
/// The keys under `toolsets`.
pub(crate) const TOOLSETS: [&str; 2] = ["jenkins", "helm"];
/// The keys of a Jenkins server.
pub(crate) const JENKINS: [&str; 8] = ["name", "url", "user", "token", "ca", "run_id_parameter", "sandbox", "default"];
/// The keys under `toolsets.helm`.
pub(crate) const HELM: [&str; 1] = ["repositories"];
/// The keys of a chart repository.
pub(crate) const REPOSITORY: [&str; 3] = ["name", "url", "credential"];
/// The keys under `policy`.
pub(crate) const POLICY: [&str; 3] = ["deny", "require_approval", "approval"];
/// The keys under `policy.approval`.
pub(crate) const APPROVAL: [&str; 4] = ["expires", "execute_within", "deciders", "most_waiting"];
/// The keys of a rule that says more than a name.
pub(crate) const GATE: [&str; 2] = ["name", "on_reject"];
/// The keys under `memory`.
pub(crate) const MEMORY: [&str; 3] = ["review", "session_writes", "stores"];
/// The keys of one of `memory.stores`.
pub(crate) const STORE: [&str; 6] = ["name", "types", "writable", "promotable", "documents", "bytes"];
/// The keys under `limits`.
pub(crate) const LIMITS: [&str; 3] = ["calls_in_flight", "calls_per_minute", "result_bytes"];

/// Whether an address may be reached, or why not.
pub type Reachable<'a> = dyn Fn(&str) -> Result<(), String> + 'a;

/// What exists, so that a name nobody answers to is found before it is needed.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// Every toolset a tenant could load.
    pub toolsets: &'a [&'a str],
    /// Every tool a rule could mean.
    pub tools: &'a [&'a str],
    /// Whether a tenant may name a Jenkins server at this address, or why not.
    pub server: &'a Reachable<'a>,
    /// Whether a tenant may name a chart repository at this address, or why not.
    pub charts: &'a Reachable<'a>,
}

/// Checks one tenant's file; `file_label` is how problems name it. All problems come at once, in file order.
pub fn parse(file_label: &str, text: &str, known: &Known<'_>) -> Result<TenantConfig, Vec<Problem>> {
    let mut report = Report::of(file_label);
    let config = yaml::read(text, &mut report)
        .and_then(|root| Check { values: Values { report: &mut report }, known }.config(&root));
    report.judge(config)
}

struct Check<'r, 'f, 'k> {
    values: Values<'r, 'f>,
    known: &'k Known<'k>,
}

impl Check<'_, '_, '_> {
    /// The whole file. `None` only if there is no tenant to speak of; the report decides in any case.
    fn config(&mut self, root: &Node) -> Option<TenantConfig> {
        let fields = self.values.fields(root, "the file", &ROOT, None)?;
        let tenant = match fields.find("tenant") {
            Some(node) => self.tenant(node),
            None => {
                let hint = "add `tenant:` with the tenant's name".to_owned();
                self.values.report.add(root.at, "missing_key", "the key `tenant` is missing", Some(hint));
                None
            }
        };
        let mode = fields.find("mode").and_then(|node| self.mode(node)).unwrap_or(Mode::Read);
        let default_toolsets = fields.find("default_toolsets").map_or_else(Vec::new, |node| self.toolsets(node));
        let clusters = fields.find("clusters").map_or_else(Vec::new, |node| self.clusters(node));
        let (jenkins, repositories) =
            fields.find("toolsets").map_or_else(Default::default, |node| self.toolset_settings(node));
        let (deny, require_approval, approval) =
            fields.find("policy").map_or_else(Default::default, |node| self.policy(node));
        let memory = fields.find("memory").map_or_else(Memory::default, |node| self.memory(node));
        let limits = fields.find("limits").map_or_else(Limits::default, |node| self.limits(node));
        Some(TenantConfig {
            tenant: tenant?,
            mode,
            default_toolsets,
            clusters,
            jenkins,
            repositories,
            deny,
            require_approval,
            approval,
            memory,
            limits,
        })
    }

    fn tenant(&mut self, node: &Node) -> Option<Tenant> {
        let text = self.values.text(node, "`tenant`")?;
        let tenant = Tenant::parse(text);
        self.values.accept(node, tenant.map_err(|error| format!("{} is no tenant: {error}", shown(text))))
    }

    fn mode(&mut self, node: &Node) -> Option<Mode> {
        let text = self.values.text(node, "`mode`")?;
        let modes = [Mode::Read, Mode::Write];
        let mode = modes.into_iter().find(|mode| mode.as_str() == text);
        if mode.is_none() {
            let message = format!("{} is no mode", shown(text));
            self.values.report.add(node.at, "bad_value", message, Some("use `read` or `write`".to_owned()));
        }
        mode
    }

    fn toolsets(&mut self, node: &Node) -> Vec<ToolsetName> {
        let mut names: Vec<ToolsetName> = Vec::new();
        for item in self.values.list(node, "`default_toolsets`") {
            let Some(name) = self.toolset(item) else { continue };
            if names.contains(&name) {
                let message = format!("the toolset `{name}` is named twice");
                self.values.report.add(item.at, "repeated_value", message, Some("remove one of them".to_owned()));
            } else {
                names.push(name);
            }
        }
        names
    }

    fn toolset(&mut self, node: &Node) -> Option<ToolsetName> {
        let text = self.values.text(node, "a toolset's name")?;
        let name = ToolsetName::parse(text).map_err(|error| format!("{} is no toolset: {error}", shown(text)));
        let name = self.values.accept(node, name)?;
        if self.known.toolsets.contains(&text) {
            return Some(name);
        }
        let hint = or_nearest(text, self.known.toolsets, "known toolsets");
        self.values.report.add(node.at, "unknown_toolset", format!("there is no toolset `{name}`"), Some(hint));
        None
    }

    /// What `policy` says: `deny`, `require_approval` and `approval`.
    fn policy(&mut self, node: &Node) -> (Vec<Pattern>, Vec<Gate>, Approval) {
        let only = "a tenant's policy only tightens";
        let Some(fields) = self.values.fields(node, "`policy`", &POLICY, Some(only)) else {
            return Default::default();
        };
        let deny = fields.find("deny").map_or_else(Vec::new, |node| {
            let items = self.values.list(node, "`deny`");
            items.iter().filter_map(|item| self.pattern(item)).collect()
        });
        let gates = fields.find("require_approval").map_or_else(Vec::new, |node| {
            let items = self.values.list(node, "`require_approval`");
            items.iter().filter_map(|item| self.gate(item)).collect()
        });
        let approval = fields.find("approval").map_or_else(Approval::default, |node| self.approval(node));
        (deny, gates, approval)
    }

    /// A rule that asks: a pattern alone, or one with what a no means.
    fn gate(&mut self, node: &Node) -> Option<Gate> {
        if !matches!(node.value, yaml::Value::Map(_)) {
            return self.pattern(node).map(|pattern| Gate { pattern, on_reject: OnReject::Continue });
        }
        let fields = self.values.fields(node, "a rule", &GATE, None)?;
        let on_reject = match fields.find("on_reject") {
            None => Some(OnReject::Continue),
            Some(node) => self.on_reject(node),
        };
        let Some(name) = fields.find("name") else {
            let hint = "add `name:` with the tools it is about".to_owned();
            self.values.report.add(node.at, "missing_key", "the key `name` is missing", Some(hint));
            return None;
        };
        Some(Gate { pattern: self.pattern(name)?, on_reject: on_reject? })
    }

    fn on_reject(&mut self, node: &Node) -> Option<OnReject> {
        match self.values.text(node, "`on_reject`")? {
            "fail" => Some(OnReject::Fail),
            "continue" => Some(OnReject::Continue),
            other => {
                let message = format!("{} says nothing about a rejection", shown(other));
                self.values.report.add(node.at, "bad_value", message, Some("use `fail` or `continue`".to_owned()));
                None
            }
        }
    }

    fn approval(&mut self, node: &Node) -> Approval {
        let mut approval = Approval::default();
        let Some(fields) = self.values.fields(node, "`approval`", &APPROVAL, None) else { return approval };
        let spans = [
            ("expires", &mut approval.expires, Approval::EXPIRES),
            ("execute_within", &mut approval.execute_within, Approval::EXECUTE_WITHIN),
        ];
        for (key, slot, range) in spans {
            let told = fields.find(key).and_then(|node| self.span(node, key, &range));
            *slot = told.unwrap_or(*slot);
        }
        let numbers = [
            ("deciders", &mut approval.deciders, Approval::DECIDERS),
            ("most_waiting", &mut approval.most_waiting, Approval::MOST_WAITING),
        ];
        for (key, slot, range) in numbers {
            let told = fields.find(key).and_then(|node| self.values.number(node, key, &range));
            *slot = told.unwrap_or(*slot);
        }
        approval
    }

    fn span(&mut self, node: &Node, key: &str, range: &RangeInclusive<Duration>) -> Option<Duration> {
        let text = self.values.text(node, &format!("`{key}`"))?;
        let told = config::span(text);
        if told.is_none_or(|told| !range.contains(&told)) {
            let (least, most) = (range.start().as_secs(), range.end().as_secs());
            let message = format!("{} is no span between {least} s and {most} s", shown(text));
            let hint = "write a whole number and s, m, h or d, such as `30m`".to_owned();
            self.values.report.add(node.at, "out_of_range", message, Some(hint));
            return None;
        }
        told
    }

    fn pattern(&mut self, node: &Node) -> Option<Pattern> {
        let text = self.values.text(node, "a rule")?;
        let pattern = Pattern::parse(text).map_err(|error| format!("{} is no rule: {error}", shown(text)));
        let pattern = self.values.accept(node, pattern)?;
        if self.known.tools.iter().any(|tool| pattern.tool_matches(tool)) {
            return Some(pattern);
        }
        // A rule that protects nothing is most often a typo, and then something stands unprotected.
        let hint = match self.meant(text).as_slice() {
            [] => "`quartermaster tools` lists the names".to_owned(),
            names => format!("did you mean {}?", values::alternatives(names)),
        };
        self.values.report.add(node.at, "matches_no_tool", format!("{} matches no tool", shown(text)), Some(hint));
        None
    }

    /// Tools near the one a rule names; families of tools, if it names a beginning.
    fn meant(&self, rule: &str) -> Vec<String> {
        let tool = rule.split(':').next().unwrap_or(rule);
        let tools = self.known.tools.iter().copied();
        let Some(stem) = tool.strip_suffix('*') else { return near(tool, tools) };
        let families: BTreeSet<&str> = tools.filter_map(|tool| tool.find('_').map(|end| &tool[..=end])).collect();
        near(stem, families).into_iter().map(|family| family + "*").collect()
    }

    fn limits(&mut self, node: &Node) -> Limits {
        let mut limits = Limits::default();
        let Some(fields) = self.values.fields(node, "`limits`", &LIMITS, None) else { return limits };
        let Limits { calls_in_flight, calls_per_minute, result_bytes } = &mut limits;
        let slots: [(&mut u32, RangeInclusive<u32>); 3] = [
            (calls_in_flight, Limits::CALLS_IN_FLIGHT),
            (calls_per_minute, Limits::CALLS_PER_MINUTE),
            (result_bytes, Limits::RESULT_BYTES),
        ];
        for (key, (slot, range)) in LIMITS.into_iter().zip(slots) {
            let number = fields.find(key).and_then(|node| self.values.number(node, key, &range));
            *slot = number.unwrap_or(*slot);
        }
        limits
    }
}

#[cfg(test)]
mod tests;
