//! One tenant's text in; its configuration, or everything that is wrong with it, out.
//!
//! Each key is looked at on its own, so a mistake in one does not hide the next. What is missing has a default,
//! except the tenant's name.
//!
//! Not here: how values are read and refused (see `values`), what toolsets say about their own parts of the file (see
//! `section`), YAML itself (see `yaml`).

use crate::bounds::secret_uses;
use crate::config::{ApprovalConfig, AuditConfig, AuditContents, TenantConfig, TenantLimits, UnwritableAudit};
use crate::problem::{Problem, ProblemReport, shown};
use crate::section::{Place, Section, SectionReader, SectionValues, keys_at};
use crate::values::{self, MappingFields, ValueReader, or_nearest};
use crate::{
    environment, trace,
    yaml::{self, YamlNode},
};
use domain::outcome::near;
use domain::run::OnReject;
use domain::{SessionMode, Tenant, ToolsetName};
use policy::{Gate, Pattern};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The keys of the file itself, besides those of sections.
pub(crate) const ROOT: [&str; 8] =
    ["tenant", "mode", "default_toolsets", "params", "toolsets", "policy", "limits", "audit"];
/// The keys under `policy`.
pub(crate) const POLICY: [&str; 3] = ["deny", "require_approval", "approval"];
/// The keys under `policy.approval`.
pub(crate) const APPROVAL: [&str; 4] = ["expires", "execute_within", "deciders", "most_waiting"];
/// The keys of a rule that says more than a name.
pub(crate) const GATE: [&str; 2] = ["name", "on_reject"];
/// The keys under `limits`.
pub(crate) const LIMITS: [&str; 3] = ["calls_in_flight", "calls_per_minute", "result_bytes"];

/// The keys under `audit`.
pub(crate) const AUDIT: [&str; 3] = ["contents", "keep", "unwritable"];

/// An address that a section names.
#[derive(Debug, Clone, Copy)]
pub struct AddressUse<'a> {
    /// The section's key.
    pub section: &'a str,
    /// Whose file it is; `None` if the file does not say it in a way that can be read.
    pub tenant: Option<&'a Tenant>,
    /// The address.
    pub address: &'a str,
}

/// Whether the operator lets a tenant name an address, or why not.
pub type AddressCheck<'a> = dyn Fn(&AddressUse<'_>) -> Result<(), String> + 'a;

/// What exists, so that a name nobody answers to is found before it is needed.
#[derive(Clone, Copy)]
pub struct KnownNames<'a> {
    /// Every toolset a tenant could load.
    pub toolsets: &'a [&'a str],
    /// Every tool a rule could mean.
    pub tools: &'a [&'a str],
    /// The sections that toolsets own, in the order in which they are read.
    pub sections: &'a [Section],
    /// Whether the operator lets a section name an address, or why not.
    pub addresses: &'a AddressCheck<'a>,
}

impl<'a> KnownNames<'a> {
    /// These sections and nothing else, with every address allowed. For tests of a section on its own.
    pub fn only(sections: &'a [Section]) -> KnownNames<'a> {
        KnownNames { toolsets: &[], tools: &[], sections, addresses: &|_| Ok(()) }
    }
}

/// Checks one tenant's file; `file_label` is how problems name it. All problems come at once, in file order.
pub fn parse(file_label: &str, text: &str, known: &KnownNames<'_>) -> Result<TenantConfig, Vec<Problem>> {
    let mut report = ProblemReport::of(file_label);
    let config = yaml::read(text, BEGIN, &mut report).and_then(|mut root| {
        environment::refuse(&mut root, &mut report);
        ConfigCheck::new(&mut report, known).config(&root)
    });
    report.judge(config)
}

/// Checks a file that holds one section and `params`, and belongs to no tenant. All problems come at once, in file order;
/// beside the section stands what is allowed and somebody should look at.
pub fn parse_section(
    file_label: &str,
    text: &str,
    section: &Section,
) -> Result<(SectionValues, Vec<Problem>), Vec<Problem>> {
    let mut report = ProblemReport::of(file_label);
    let known = KnownNames::only(std::slice::from_ref(section));
    let begin = format!("begin with `{}:`", section.key);
    let read = yaml::read(text, &begin, &mut report).and_then(|mut root| {
        environment::refuse(&mut root, &mut report);
        let mut check = ConfigCheck::new(&mut report, &known);
        let fields = check.reader.values.fields(&root, "the file", &["params", section.key], None)?;
        if let Some(node) = fields.find("params") {
            check.reader.params = check.reader.values.tenant_params(node);
        }
        if let Some(node) = fields.find(section.key) {
            section.read(&mut check.reader, node);
        }
        let warnings = check.reader.values.report.take_warnings();
        Some((std::mem::take(&mut check.reader.sections), warnings))
    });
    report.judge(read)
}

/// How a tenant's file begins.
const BEGIN: &str = "begin with `tenant:` and the tenant's name";

struct ConfigCheck<'r> {
    reader: SectionReader<'r>,
    known: &'r KnownNames<'r>,
}

impl<'r> ConfigCheck<'r> {
    fn new(report: &'r mut ProblemReport, known: &'r KnownNames<'r>) -> ConfigCheck<'r> {
        let reader = SectionReader::new(ValueReader { report }, known.addresses);
        ConfigCheck { reader, known }
    }
}

impl ConfigCheck<'_> {
    /// The whole file. `None` only if there is no tenant to speak of; the report decides in any case.
    fn config(&mut self, root: &YamlNode) -> Option<TenantConfig> {
        let keys = keys_at(Place::Root, &ROOT, self.known.sections);
        let fields = self.reader.values.fields(root, "the file", &keys, None)?;
        let tenant = match fields.find("tenant") {
            Some(node) => self.tenant(node),
            None => {
                let hint = "add `tenant:` with the tenant's name".to_owned();
                self.reader.values.report.add(root.at, "missing_key", "the key `tenant` is missing", Some(hint));
                None
            }
        };
        let mode = fields.find("mode").and_then(|node| self.mode(node)).unwrap_or(SessionMode::Read);
        // What others refer to comes first, wherever it stands.
        self.reader.tenant = tenant.clone();
        if let Some(node) = fields.find("params") {
            self.reader.params = self.reader.values.tenant_params(node);
        }
        let policy = fields.find("policy").and_then(|node| {
            let keys = keys_at(Place::Policy, &POLICY, self.known.sections);
            self.reader.values.fields(node, "`policy`", &keys, Some("a tenant's policy only tightens"))
        });
        self.sections(&fields, policy.as_ref());
        let default_toolsets = fields.find("default_toolsets").map_or_else(Vec::new, |node| self.toolsets(node));
        let (deny, require_approval, approval) = policy.map_or_else(Default::default, |fields| self.policy(&fields));
        let limits = fields.find("limits").map_or_else(TenantLimits::default, |node| self.limits(node));
        let audit = fields.find("audit").map_or_else(AuditConfig::default, |node| self.audit(node));
        let mut config = TenantConfig {
            tenant: tenant?,
            mode,
            default_toolsets,
            sections: std::mem::take(&mut self.reader.sections),
            secrets: std::mem::take(&mut self.reader.secrets),
            granted_secrets: BTreeSet::new(),
            params: std::mem::take(&mut self.reader.params.params),
            warnings: self.reader.values.report.take_warnings(),
            deny,
            require_approval,
            section_gates: std::mem::take(&mut self.reader.gates),
            approval,
            limits,
            audit,
            rules: trace::rules_of(root, self.known.sections),
        };
        config.granted_secrets = secret_uses(self.known.sections, &config);
        Some(config)
    }

    /// The sections of toolsets, at their three places.
    fn sections(&mut self, root: &MappingFields<'_>, policy: Option<&MappingFields<'_>>) {
        let toolsets = root.find("toolsets").and_then(|node| {
            let keys = keys_at(Place::Toolsets, &[], self.known.sections);
            self.reader.values.fields(node, "`toolsets`", &keys, None)
        });
        for section in self.known.sections {
            let node = match section.place {
                Place::Root => root.find(section.key),
                Place::Toolsets => toolsets.as_ref().and_then(|fields| fields.find(section.key)),
                Place::Policy => policy.and_then(|fields| fields.find(section.key)),
            };
            if let Some(node) = node {
                section.read(&mut self.reader, node);
            }
        }
    }

    fn tenant(&mut self, node: &YamlNode) -> Option<Tenant> {
        let text = self.reader.values.text(node, "`tenant`")?;
        let tenant = Tenant::parse(text);
        self.reader.values.accept(node, tenant.map_err(|error| format!("{} is no tenant: {error}", shown(text))))
    }

    fn mode(&mut self, node: &YamlNode) -> Option<SessionMode> {
        let text = self.reader.values.text(node, "`mode`")?;
        let modes = [SessionMode::Read, SessionMode::Write];
        let mode = modes.into_iter().find(|mode| mode.as_str() == text);
        if mode.is_none() {
            let message = format!("{} is no mode", shown(text));
            self.reader.values.report.add(node.at, "bad_value", message, Some("use `read` or `write`".to_owned()));
        }
        mode
    }

    fn toolsets(&mut self, node: &YamlNode) -> Vec<ToolsetName> {
        let mut names: Vec<ToolsetName> = Vec::new();
        for item in self.reader.values.list(node, "`default_toolsets`") {
            let Some(name) = self.toolset(item) else { continue };
            if names.contains(&name) {
                let message = format!("the toolset `{name}` is named twice");
                self.reader.values.report.add(
                    item.at,
                    "repeated_value",
                    message,
                    Some("remove one of them".to_owned()),
                );
            } else {
                names.push(name);
            }
        }
        names
    }

    fn toolset(&mut self, node: &YamlNode) -> Option<ToolsetName> {
        let text = self.reader.values.text(node, "a toolset's name")?;
        let name = ToolsetName::parse(text).map_err(|error| format!("{} is no toolset: {error}", shown(text)));
        let name = self.reader.values.accept(node, name)?;
        let of_sections = self.reader.tools.iter().map(|family| family.toolset.as_str());
        let of_tools = self.reader.named_tools.iter().map(|(toolset, _)| *toolset);
        let mut known: Vec<&str> = self.known.toolsets.iter().copied().chain(of_sections).chain(of_tools).collect();
        known.dedup();
        if known.contains(&text) {
            return Some(name);
        }
        let hint = or_nearest(text, &known, "known toolsets");
        self.reader.values.report.add(node.at, "unknown_toolset", format!("there is no toolset `{name}`"), Some(hint));
        None
    }

    /// What `policy` says: `deny`, `require_approval` and `approval`.
    fn policy(&mut self, fields: &MappingFields<'_>) -> (Vec<Pattern>, Vec<Gate>, ApprovalConfig) {
        let deny = fields.find("deny").map_or_else(Vec::new, |node| {
            let items = self.reader.values.list(node, "`deny`");
            items.iter().filter_map(|item| self.pattern(item)).collect()
        });
        let gates = fields.find("require_approval").map_or_else(Vec::new, |node| {
            let items = self.reader.values.list(node, "`require_approval`");
            items.iter().filter_map(|item| self.gate(item)).collect()
        });
        let approval = fields.find("approval").map_or_else(ApprovalConfig::default, |node| self.approval(node));
        (deny, gates, approval)
    }

    /// A rule that asks: a pattern alone, or one with what a no means.
    fn gate(&mut self, node: &YamlNode) -> Option<Gate> {
        if !matches!(node.value, yaml::YamlValue::Map(_)) {
            return self.pattern(node).map(|pattern| Gate { pattern, on_reject: OnReject::Continue });
        }
        let fields = self.reader.values.fields(node, "a rule", &GATE, None)?;
        let on_reject = match fields.find("on_reject") {
            None => Some(OnReject::Continue),
            Some(node) => self.reader.values.on_reject(node),
        };
        let Some(name) = fields.find("name") else {
            let hint = "add `name:` with the tools it is about".to_owned();
            self.reader.values.report.add(node.at, "missing_key", "the key `name` is missing", Some(hint));
            return None;
        };
        Some(Gate { pattern: self.pattern(name)?, on_reject: on_reject? })
    }

    fn approval(&mut self, node: &YamlNode) -> ApprovalConfig {
        let mut approval = ApprovalConfig::default();
        let Some(fields) = self.reader.values.fields(node, "`approval`", &APPROVAL, None) else { return approval };
        let spans = [
            ("expires", &mut approval.expires, ApprovalConfig::EXPIRES),
            ("execute_within", &mut approval.execute_within, ApprovalConfig::EXECUTE_WITHIN),
        ];
        for (key, slot, range) in spans {
            let span = fields.find(key).and_then(|node| self.reader.values.span(node, key, &range));
            *slot = span.unwrap_or(*slot);
        }
        let numbers = [
            ("deciders", &mut approval.deciders, ApprovalConfig::DECIDERS),
            ("most_waiting", &mut approval.most_waiting, ApprovalConfig::MOST_WAITING),
        ];
        for (key, slot, range) in numbers {
            let number = fields.find(key).and_then(|node| self.reader.values.number(node, key, &range));
            *slot = number.unwrap_or(*slot);
        }
        approval
    }

    fn pattern(&mut self, node: &YamlNode) -> Option<Pattern> {
        let text = self.reader.values.text(node, "a rule")?;
        let pattern = Pattern::parse(text).map_err(|error| format!("{} is no rule: {error}", shown(text)));
        let pattern = self.reader.values.accept(node, pattern)?;
        if self.tools().any(|tool| pattern.tool_matches(tool)) || self.may_meet_family(text) {
            return Some(pattern);
        }
        // A rule that protects nothing is most often a typo, and then something stands unprotected.
        let hint = match self.meant(text).as_slice() {
            [] => "`quartermaster tools` lists the names".to_owned(),
            names => format!("did you mean {}?", values::alternatives(names)),
        };
        self.reader.values.report.add(
            node.at,
            "matches_no_tool",
            format!("{} matches no tool", shown(text)),
            Some(hint),
        );
        None
    }

    /// Whether a rule may be about tools that a section brings. Those are not known here, so the prefix decides. Such
    /// tools never say what their arguments are about.
    fn may_meet_family(&self, rule: &str) -> bool {
        let meets = |prefix: &str| match rule.strip_suffix('*') {
            Some(stem) => stem.starts_with(prefix) || prefix.starts_with(stem),
            None => rule.len() > prefix.len() && rule.starts_with(prefix),
        };
        !rule.contains(':') && self.prefixes().any(meets)
    }

    /// The tools whose whole names are known.
    fn tools(&self) -> impl Iterator<Item = &str> + Clone {
        self.known.tools.iter().copied().chain(self.reader.named_tools.iter().map(|(_, name)| name.as_str()))
    }

    /// How the names of tools begin of which nothing else is known.
    fn prefixes(&self) -> impl Iterator<Item = &str> {
        self.reader.tools.iter().map(|family| family.prefix.as_str())
    }

    /// Tools near the one a rule names; families of tools, if it names a beginning.
    fn meant(&self, rule: &str) -> Vec<String> {
        let tool = rule.split(':').next().unwrap_or(rule);
        let tools = self.tools();
        let Some(stem) = tool.strip_suffix('*') else { return near(tool, tools) };
        let families = tools.filter_map(|tool| tool.find('_').map(|end| &tool[..=end]));
        let families: BTreeSet<&str> = families.chain(self.prefixes()).collect();
        near(stem, families).into_iter().map(|family| family + "*").collect()
    }

    fn limits(&mut self, node: &YamlNode) -> TenantLimits {
        let mut limits = TenantLimits::default();
        let Some(fields) = self.reader.values.fields(node, "`limits`", &LIMITS, None) else { return limits };
        let TenantLimits { calls_in_flight, calls_per_minute, result_bytes } = &mut limits;
        let slots: [(&mut u32, RangeInclusive<u32>); 3] = [
            (calls_in_flight, TenantLimits::CALLS_IN_FLIGHT),
            (calls_per_minute, TenantLimits::CALLS_PER_MINUTE),
            (result_bytes, TenantLimits::RESULT_BYTES),
        ];
        for (key, (slot, range)) in LIMITS.into_iter().zip(slots) {
            let number = fields.find(key).and_then(|node| self.reader.values.number(node, key, &range));
            *slot = number.unwrap_or(*slot);
        }
        limits
    }

    fn audit(&mut self, node: &YamlNode) -> AuditConfig {
        let mut audit = AuditConfig::default();
        let values = &mut self.reader.values;
        let Some(fields) = values.fields(node, "`audit`", &AUDIT, None) else { return audit };
        let contents = fields.find("contents");
        audit.contents = contents
            .and_then(|node| values.choice(node, "`contents`", &AuditContents::CHOICES))
            .unwrap_or(audit.contents);
        audit.keep =
            fields.find("keep").and_then(|node| values.span(node, "keep", &AuditConfig::KEEP)).unwrap_or(audit.keep);
        let unwritable = fields.find("unwritable");
        audit.unwritable = unwritable
            .and_then(|node| values.choice(node, "`unwritable`", &UnwritableAudit::CHOICES))
            .unwrap_or(audit.unwritable);
        audit
    }
}

#[cfg(test)]
mod tests;
