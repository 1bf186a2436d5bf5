//! The tenant's own parameters, and the values that refer to them.
//!
//! A value is wholly one reference, or text with references. A secret only ever stands alone: put into a text it would
//! no longer be known for one.

use super::values::or_nearest;
use super::{ConfigCheck, TENANT_PARAM};
use crate::problem::shown;
use crate::resolve;
use crate::server::{ParameterValue, TenantParam};
use crate::yaml::{Value, YamlNode};
use std::collections::BTreeMap;

/// How many parameters a tenant may declare.
const MOST: usize = 64;

impl ConfigCheck<'_, '_, '_> {
    /// Declared parameters. One with a mistake stays known by its name, so that a mistake is told once.
    pub(super) fn tenant_params(&mut self, node: &YamlNode) -> BTreeMap<String, TenantParam> {
        let mut params = BTreeMap::new();
        for (key, node) in self.values.entries(node, "`params`", MOST) {
            if !self.values.param_name(key.at, &key.text) {
                continue;
            }
            match self.tenant_param(&key.text, node) {
                Some(param) => drop(params.insert(key.text.clone(), param)),
                None => drop(self.unusable.insert(key.text.clone())),
            }
        }
        params
    }

    fn tenant_param(&mut self, name: &str, node: &YamlNode) -> Option<TenantParam> {
        let fields = self.values.fields(node, &format!("the parameter `{name}`"), &TENANT_PARAM, None)?;
        let description = fields.find("description").and_then(|node| self.values.words(node, "`description`"));
        let (default, from) = (fields.find("default"), fields.find("from"));
        let secret = fields.find("secret").map(|node| self.values.yes(node, "`secret`"));
        let value = match (secret, default, from) {
            (Some(None), _, _) => return None,
            (Some(Some(())), Some(default), _) => {
                let message = format!("the secret parameter `{name}` stands here in plain text");
                let hint =
                    "leave `default` out; the value is the tenant's secret of that name, or of the name in `from`";
                self.values.report.add(default.at, "secret_literal", message, Some(hint.to_owned()));
                return None;
            }
            (Some(Some(())), None, Some(from)) => ParameterValue::Secret(self.secret_name(from)?),
            (Some(Some(())), None, None) => ParameterValue::Secret(name.to_owned()),
            (None, _, Some(from)) => {
                let message = format!("the secret `{name}` would be read into a parameter that is not marked as one");
                self.values.report.add(from.at, "secret_leak", message, Some("add `secret: true`".to_owned()));
                return None;
            }
            (None, Some(default), None) => ParameterValue::Text(self.values.plain(default, "`default`")?),
            (None, None, None) => {
                let hint = "add `default:`, or `secret: true` if it stands for a secret of the tenant".to_owned();
                let message = format!("nobody gives the parameter `{name}` a value");
                self.values.report.add(node.at, "missing_param", message, Some(hint));
                return None;
            }
        };
        Some(TenantParam { description, value })
    }

    /// What a text gives, its references resolved.
    pub(super) fn given(&mut self, node: &YamlNode, place: &str) -> Option<ParameterValue> {
        let text = self.values.text(node, place)?;
        if text.is_empty() {
            return Some(ParameterValue::Text(String::new()));
        }
        let template = self.values.template(node, place, resolve::VALUE_BYTES)?;
        let mut sound = true;
        for name in template.names().filter(|name| !self.params.contains_key(*name)) {
            sound = false;
            if !self.unusable.contains(name) {
                let known: Vec<&str> = self.params.keys().map(String::as_str).collect();
                let hint = or_nearest(name, &known, "the tenant's `params`");
                let message = format!("the tenant has no parameter {}", shown(name));
                self.values.report.add(node.at, "unknown_param", message, Some(hint));
            }
        }
        if let Some(param) = template.only().and_then(|name| self.params.get(name)) {
            return Some(param.value.clone());
        }
        let filled = template.fill(|name| match self.params.get(name).map(|param| &param.value) {
            Some(ParameterValue::Text(text)) => Ok(text.clone()),
            Some(ParameterValue::Secret(_)) => Err(Some(name.to_owned())),
            None => Err(None),
        });
        match filled {
            Ok(text) if sound => {
                let fits = resolve::check_value(&text).map_err(|why| format!("{place} {why}"));
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

    /// A secret of the tenant: `token: { secret: NAME }`, or a reference to a parameter that is marked as one.
    pub(super) fn secret(&mut self, node: &YamlNode, key: &str, what: &str) -> Option<String> {
        let hint = format!("{what} is a secret: write `{key}: {{ secret: NAME }}`, or refer to a secret parameter");
        if let Value::Scalar { text, .. } = &node.value
            && text.contains("{{")
        {
            return match self.given(node, &format!("`{key}`"))? {
                ParameterValue::Secret(name) => Some(name),
                ParameterValue::Text(_) => {
                    let message = format!("`{key}` refers to a parameter that is not marked as a secret");
                    self.values.report.add(
                        node.at,
                        "auth_not_secret",
                        message,
                        Some("add `secret: true` to it".into()),
                    );
                    None
                }
            };
        }
        let fields = self.values.fields(node, &format!("`{key}`"), &["secret"], Some(&hint))?;
        let Some(secret) = fields.find("secret") else {
            self.values.report.add(node.at, "missing_key", "the key `secret` is missing", Some(hint));
            return None;
        };
        self.secret_name(secret)
    }
}
