//! The tenant's own parameters: `params:` of its file, to which values anywhere in the file may refer.
//!
//! They belong to the tenant and not to a toolset: a kubeconfig, a token and a parameter of an external server may all
//! refer to the same one.

use crate::problem::{Position, shown};
use crate::template::{self, ParameterTemplate};
use crate::values::ValueReader;
use crate::yaml::YamlNode;
use std::collections::{BTreeMap, BTreeSet};

/// The keys of one of the tenant's `params`.
pub(crate) const TENANT_PARAM: [&str; 4] = ["description", "default", "secret", "from"];
/// How long a value may be.
pub const VALUE_BYTES: usize = 1_024;
/// How many parameters a tenant may declare.
const MOST: usize = 64;

/// What somebody gives for a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterValue {
    /// This text.
    Text(String),
    /// The tenant's secret of this name.
    Secret(String),
}

/// A parameter of the tenant, for references in its own file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantParam {
    /// What it is, for people.
    pub description: Option<String>,
    /// What stands for it.
    pub value: ParameterValue,
}

/// The tenant's parameters as far as they could be read.
#[derive(Debug, Default)]
pub(crate) struct TenantParams {
    pub(crate) params: BTreeMap<String, TenantParam>,
    /// Names of parameters that are declared with a mistake.
    pub(crate) unusable: BTreeSet<String>,
}

/// Whether a text may be the value of a parameter at all, or what is wrong with it.
pub fn check_value(value: &str) -> Result<(), String> {
    if value.len() > VALUE_BYTES {
        return Err(format!("is longer than {VALUE_BYTES} bytes"));
    }
    if value.chars().any(char::is_control) {
        return Err("holds a control character".to_owned());
    }
    Ok(())
}

impl ValueReader<'_> {
    /// The tenant's parameters. One with a mistake stays known by its name, so that a mistake is told once.
    pub(crate) fn tenant_params(&mut self, node: &YamlNode) -> TenantParams {
        let mut params = TenantParams::default();
        for (key, node) in self.entries(node, "`params`", MOST) {
            if !self.param_name(key.at, &key.text) {
                continue;
            }
            match self.tenant_param(&key.text, node) {
                Some(param) => drop(params.params.insert(key.text.clone(), param)),
                None => drop(params.unusable.insert(key.text.clone())),
            }
        }
        params
    }

    fn tenant_param(&mut self, name: &str, node: &YamlNode) -> Option<TenantParam> {
        let fields = self.fields(node, &format!("the parameter `{name}`"), &TENANT_PARAM, None)?;
        let description = fields.find("description").and_then(|node| self.words(node, "`description`"));
        let (default, from) = (fields.find("default"), fields.find("from"));
        let secret = fields.find("secret").map(|node| self.yes(node, "`secret`"));
        let value = match (secret, default, from) {
            (Some(None), _, _) => return None,
            (Some(Some(())), Some(default), _) => {
                let message = format!("the secret parameter `{name}` stands here in plain text");
                let hint =
                    "leave `default` out; the value is the tenant's secret of that name, or of the name in `from`";
                self.report.add(default.at, "secret_literal", message, Some(hint.to_owned()));
                return None;
            }
            (Some(Some(())), None, Some(from)) => ParameterValue::Secret(self.secret_name(from)?),
            (Some(Some(())), None, None) => ParameterValue::Secret(name.to_owned()),
            (None, _, Some(from)) => {
                let message = format!("the secret `{name}` would be read into a parameter that is not marked as one");
                self.report.add(from.at, "secret_leak", message, Some("add `secret: true`".to_owned()));
                return None;
            }
            (None, Some(default), None) => ParameterValue::Text(self.plain(default, "`default`")?),
            (None, None, None) => {
                let hint = "add `default:`, or `secret: true` if it stands for a secret of the tenant".to_owned();
                let message = format!("nobody gives the parameter `{name}` a value");
                self.report.add(node.at, "missing_param", message, Some(hint));
                return None;
            }
        };
        Some(TenantParam { description, value })
    }

    /// A value that refers to nothing.
    pub fn plain(&mut self, node: &YamlNode, place: &str) -> Option<String> {
        let text = self.text(node, place)?;
        let plain = match ParameterTemplate::parse(text) {
            Ok(template) if template.names().next().is_none() => check_value(text),
            Ok(_) | Err(_) => Err("refers to something, and only plain text is understood here".to_owned()),
        };
        self.accept(node, plain.map(|()| text.to_owned()).map_err(|why| format!("{place} {why}")))
    }

    /// Whether a parameter may be called so; if not, that is reported.
    pub fn param_name(&mut self, at: Position, name: &str) -> bool {
        let fits = template::is_name(name);
        if !fits {
            let message = format!("{} is no name of a parameter", shown(name));
            let hint = "use 1 to 64 letters, digits, `_` and `-`, beginning with a letter".to_owned();
            self.report.add(at, "bad_value", message, Some(hint));
        }
        fits
    }

    /// Text with references.
    pub fn template(&mut self, node: &YamlNode, place: &str, bytes: usize) -> Option<ParameterTemplate> {
        let text = self.text(node, place)?;
        if text.is_empty() || text.len() > bytes || text.chars().any(char::is_control) {
            let message = format!("{place} is one line of 1 to {bytes} bytes");
            self.report.add(node.at, "bad_value", message, None);
            return None;
        }
        self.accept(node, ParameterTemplate::parse(text).map_err(|error| format!("{place}: {error}")))
    }
}
