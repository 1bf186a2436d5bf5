//! What the reader of a section may ask of the rest of the tenant's file, and what it tells about itself.

use super::SectionValues;
use crate::check::{AddressCheck, AddressUse};
use crate::params::{self, ParameterValue, TenantParams};
use crate::problem::shown;
use crate::values::{ValueReader, or_nearest};
use crate::yaml::{YamlNode, YamlValue};
use domain::Tenant;
use policy::Gate;
use std::any::Any;
use std::collections::BTreeSet;

/// Reads one section.
///
/// Values are read with [`SectionReader::values`]. What else a section means for the tenant is told with
/// [`SectionReader::add_gate`] and [`SectionReader::add_tools`].
pub struct SectionReader<'r> {
    /// Reads values, and notes what is wrong with them.
    pub values: ValueReader<'r>,
    /// The section that is read.
    pub(crate) key: &'static str,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) params: TenantParams,
    pub(crate) addresses: &'r AddressCheck<'r>,
    /// The sections that have been read.
    pub(crate) sections: SectionValues,
    pub(crate) secrets: BTreeSet<String>,
    pub(crate) gates: Vec<Gate>,
    pub(crate) tools: Vec<ToolFamily>,
    /// Tools whose whole names are known, each with its toolset.
    pub(crate) named_tools: Vec<(&'static str, String)>,
}

/// Tools of which nothing is known yet but their toolset and how their names begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFamily {
    /// Their toolset.
    pub toolset: String,
    /// What their names begin with.
    pub prefix: String,
}

impl<'r> SectionReader<'r> {
    pub(crate) fn new(values: ValueReader<'r>, addresses: &'r AddressCheck<'r>) -> SectionReader<'r> {
        SectionReader {
            values,
            key: "",
            tenant: None,
            params: TenantParams::default(),
            addresses,
            sections: SectionValues::default(),
            secrets: BTreeSet::new(),
            gates: Vec::new(),
            tools: Vec::new(),
            named_tools: Vec::new(),
        }
    }

    /// Whose file it is; `None` if the file does not say it in a way that can be read.
    pub fn tenant(&self) -> Option<&Tenant> {
        self.tenant.as_ref()
    }

    /// What a section says that was read before this one; `None` if the file does not have it. That it has another type
    /// is a problem of the service, which is reported at `node`.
    pub fn earlier<T: Any + Clone>(&mut self, key: &str, node: &YamlNode) -> Option<T> {
        match self.sections.get::<T>(key) {
            Ok(section) => section.cloned(),
            Err(error) => {
                self.values.report.add(node.at, "internal", error.to_string(), None);
                None
            }
        }
    }

    /// A rule that asks a person, which follows from the section.
    pub fn add_gate(&mut self, gate: Gate) {
        self.gates.push(gate);
    }

    /// Tools that the section brings, so that rules and `default_toolsets` may name them.
    pub fn add_tools(&mut self, family: ToolFamily) {
        self.tools.push(family);
    }

    /// A tool that the section brings, by its whole name, so that rules and `default_toolsets` may name it.
    pub fn add_tool(&mut self, toolset: &'static str, name: String) {
        self.named_tools.push((toolset, name));
    }

    /// What stands for a parameter of the tenant. One that the tenant does not have is reported at `node`.
    pub fn parameter(&mut self, node: &YamlNode, name: &str) -> Option<ParameterValue> {
        let TenantParams { params, unusable } = &self.params;
        let value = params.get(name).map(|param| param.value.clone());
        if value.is_none() && !unusable.contains(name) {
            let names: Vec<&str> = params.keys().map(String::as_str).collect();
            let hint = or_nearest(name, &names, "the tenant's `params`");
            let message = format!("the tenant has no parameter {}", shown(name));
            self.values.report.add(node.at, "unknown_param", message, Some(hint));
        }
        if let Some(ParameterValue::Secret(secret)) = &value {
            self.secrets.insert(secret.clone());
        }
        value
    }

    /// Whether the operator lets the section name this address, or why not.
    pub fn may_reach(&self, address: &str) -> Result<(), String> {
        (self.addresses)(&AddressUse { section: self.key, tenant: self.tenant.as_ref(), address })
    }

    /// The `url` of something, which the operator lets tenants reach.
    pub fn address(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.values.text(node, "`url`")?;
        let reached = self.may_reach(text).map(|()| text.to_owned());
        self.values.accept(node, reached.map_err(|why| format!("{} cannot be used: {why}", shown(text))))
    }

    /// What a text gives, its references to the tenant's parameters resolved. A value is wholly one reference, or text
    /// with references. A secret only ever stands alone: put into a text it would no longer be known for one.
    pub fn given(&mut self, node: &YamlNode, place: &str) -> Option<ParameterValue> {
        let text = self.values.text(node, place)?;
        if text.is_empty() {
            return Some(ParameterValue::Text(String::new()));
        }
        let template = self.values.template(node, place, params::VALUE_BYTES)?;
        if let Some(name) = template.only() {
            return self.parameter(node, name);
        }
        let mut sound = true;
        for name in template.names().filter(|name| !self.params.params.contains_key(*name)).collect::<Vec<_>>() {
            sound = false;
            self.parameter(node, name);
        }
        let params = &self.params.params;
        let filled = template.fill(|name| match params.get(name).map(|param| &param.value) {
            Some(ParameterValue::Text(text)) => Ok(text.clone()),
            Some(ParameterValue::Secret(_)) => Err(Some(name.to_owned())),
            None => Err(None),
        });
        match filled {
            Ok(text) if sound => {
                let fits = params::check_value(&text).map_err(|why| format!("{place} {why}"));
                self.values.accept(node, fits).map(|()| ParameterValue::Text(text))
            }
            Err(Some(secret)) => {
                let message = format!("the secret `{secret}` is mixed into a text");
                let hint = format!("a secret stands alone: `\"{{{{ params.{secret} }}}}\"`");
                self.values.report.add(node.at, "secret_leak", message, Some(hint));
                None
            }
            Ok(_) | Err(None) => None,
        }
    }

    /// The name of a secret of the tenant: `token: { secret: NAME }`, or a reference to a parameter that is marked as one.
    /// `what` is what it is for people ("an API token"). The schema of such a value is [`SecretValue`](crate::SecretValue).
    pub fn secret(&mut self, node: &YamlNode, key: &str, what: &str) -> Option<String> {
        let hint = format!("{what} is a secret: write `{key}: {{ secret: NAME }}`, or refer to a secret parameter");
        if let YamlValue::Scalar { text, .. } = &node.value
            && text.contains("{{")
        {
            return match self.given(node, &format!("`{key}`"))? {
                ParameterValue::Secret(name) => Some(name),
                ParameterValue::Text(_) => {
                    let message = format!("`{key}` refers to a parameter that is not marked as a secret");
                    let hint = "add `secret: true` to it".to_owned();
                    self.values.report.add(node.at, "auth_not_secret", message, Some(hint));
                    None
                }
            };
        }
        let fields = self.values.fields(node, &format!("`{key}`"), &["secret"], Some(&hint))?;
        let Some(secret) = fields.find("secret") else {
            self.values.report.add(node.at, "missing_key", "the key `secret` is missing", Some(hint));
            return None;
        };
        let name = self.values.secret_name(secret)?;
        self.secrets.insert(name.clone());
        Some(name)
    }
}
