//! What a caller brings against what the cluster holds.
//!
//! Whoever may compare the two can guess: one call with many guesses, and the equal one is right. So only those who may
//! write are told whether a secret value is the same, one preview or dry run at a time. For everybody else the cluster is
//! asked with placeholders in place of the secret values, and masked values read alike on both sides. Then nothing that
//! comes back, be it a difference, a conflict or a refusal, depends on a guess.

use super::marks::{self, BLANK};
use super::{MaskDetail, Masker};
use crate::client::cluster::Cluster;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::{Effect, TokenScope};
use redact::looks::is_mark;
use serde_json::{Map, Value, json};

/// An object as it is and as it would be, with its secrets as the caller may see them.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectPair {
    /// As it is.
    pub now: Option<Value>,
    /// As it would be.
    pub then: Option<Value>,
}

impl ObjectPair {
    /// Two states with their secrets by the name of their key, and whether a value is another one; for those who may know.
    pub fn named(now: Option<&Value>, then: Option<&Value>) -> ObjectPair {
        let mut pair = ObjectPair { now: now.cloned(), then: then.cloned() };
        if let Some(then) = &mut pair.then {
            name_only(then, now, "(secret, another one)");
        }
        if let Some(now) = &mut pair.now {
            name_only(now, None, "(secret)");
        }
        pair
    }

    /// Two states with nothing to tell masked values apart.
    pub fn blind(now: Option<&Value>, then: Option<&Value>) -> ObjectPair {
        ObjectPair { now: now.map(without_marks), then: then.map(without_marks) }
    }
}

/// A value with marks that tell nothing apart.
pub fn without_marks(value: &Value) -> Value {
    let mut value = value.clone();
    marks::each_text(&mut value, &|text: &str| marks::replace_marks(text, |_| BLANK.to_owned()));
    value
}

impl Cluster<'_> {
    /// Whether the caller may be told if a secret value equals another.
    pub fn compares_secrets(&self) -> bool {
        match self.permit.effect() {
            Effect::Read => self.permit.call().caller.scopes.allow(TokenScope::ToolsWrite),
            Effect::Change | Effect::Disrupt => true,
        }
    }

    /// Two states of an object as they may be shown beside each other: secrets by the name of their key only, with whether
    /// they are the same for those who may know.
    pub fn compared(&self, now: Option<&Value>, then: Option<&Value>) -> ObjectPair {
        if self.compares_secrets() { ObjectPair::named(now, then) } else { ObjectPair::blind(now, then) }
    }

    /// Whether something in this value would be masked.
    pub fn masks(&self, value: &Value) -> bool {
        let mut shown = value.clone();
        self.masker().object(&mut shown, MaskDetail::Full);
        shown != *value
    }

    /// Whether objects of this kind are secrets as a whole.
    pub fn is_secret_kind(&self, kind: &str) -> bool {
        self.masker().is_secret_kind(kind)
    }

    /// The digest of what is judged about this cluster. A cluster that was moved since is another one, whatever its name.
    pub fn judged_digest(&self) -> super::JudgedDigest {
        self.masker().digest(self.connection.place())
    }

    /// What is sent of a body to try it, for this caller.
    pub(in crate::client) fn tried_body(&self, body: Value, kind: &str) -> Value {
        if self.compares_secrets() { body } else { self.masker().placeholders(body, kind) }
    }
}

impl Masker {
    /// A body of this kind with a placeholder for each secret value. A Secret takes only what is encoded, and of some types
    /// only what reads as its type says.
    fn placeholders(&self, mut body: Value, kind: &str) -> Value {
        let had_kind = body.get("kind").is_some();
        if !body.is_object() {
            return body;
        }
        body["kind"] = json!(kind);
        self.for_call().object(&mut body, MaskDetail::Full);
        if self.is_secret_kind(kind) {
            for (field, encoded) in [("data", true), ("stringData", false)] {
                if let Some(data) = body.get_mut(field).and_then(Value::as_object_mut) {
                    data.iter_mut().for_each(|(key, value)| fill(key, value, encoded));
                }
            }
        }
        if let Some(fields) = body.as_object_mut().filter(|_| !had_kind) {
            fields.remove("kind");
        }
        body
    }
}

/// Makes a placeholder one that a Secret takes. `null` takes a key away and stays.
fn fill(key: &str, value: &mut Value, encoded: bool) {
    let Some(mark) = value.as_str().map(str::to_owned) else { return };
    let text = match key {
        ".dockerconfigjson" => json!({ "auths": { mark.as_str(): {} } }).to_string(),
        ".dockercfg" => json!({ mark.as_str(): {} }).to_string(),
        _ => mark,
    };
    *value = Value::String(if encoded { STANDARD.encode(text) } else { text });
}

/// Secrets by the name of their key: whether a value is another one is said, and nothing about it.
fn name_only(value: &mut Value, before: Option<&Value>, otherwise: &str) {
    match value {
        Value::String(text) if is_mark(text) => {
            let same = before.is_none_or(|before| before.as_str() == Some(text.as_str()));
            *text = if same { "(secret)".to_owned() } else { otherwise.to_owned() };
        }
        Value::Object(fields) => name_fields(fields, before, otherwise),
        Value::Array(items) => {
            for (n, item) in items.iter_mut().enumerate() {
                name_only(item, before.and_then(|before| before.get(n)), otherwise);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn name_fields(fields: &mut Map<String, Value>, before: Option<&Value>, otherwise: &str) {
    for (key, value) in fields {
        // A key that was not there before has no former value to differ from.
        name_only(value, before.and_then(|before| before.get(key.as_str())), otherwise);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Tenant;

    #[test]
    fn a_body_is_tried_with_placeholders_that_a_secret_takes() {
        let masker = Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[]);
        let encoded = STANDARD.encode("hunter22");
        let tried = masker.placeholders(
            json!({
                "data": { "k": encoded, ".dockerconfigjson": encoded, ".dockercfg": encoded, "gone": null },
                "stringData": { "s": "hunter22" },
            }),
            "Secret",
        );
        assert!(tried.get("kind").is_none(), "{tried}");
        assert!(tried["data"]["gone"].is_null() && is_mark(tried["stringData"]["s"].as_str().unwrap()), "{tried}");
        let decoded = |key: &str| {
            let bytes = STANDARD.decode(tried["data"][key].as_str().unwrap()).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let only_key = |value: &Value| value.as_object().unwrap().keys().next().unwrap().clone();
        assert!(is_mark(&decoded("k")));
        let config: Value = serde_json::from_str(&decoded(".dockerconfigjson")).unwrap();
        assert!(is_mark(&only_key(&config["auths"])), "{config}");
        let old: Value = serde_json::from_str(&decoded(".dockercfg")).unwrap();
        assert!(is_mark(&only_key(&old)), "{old}");
    }

    #[test]
    fn a_body_of_another_kind_is_tried_without_what_is_secret_in_it() {
        let masker = Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[]);
        let map = json!({ "kind": "ConfigMap", "data": { "DB_PASSWORD": "hunter22", "mode": "fast" } });
        let tried = masker.placeholders(map, "ConfigMap");
        assert_eq!((&tried["kind"], &tried["data"]["mode"]), (&json!("ConfigMap"), &json!("fast")));
        assert!(is_mark(tried["data"]["DB_PASSWORD"].as_str().unwrap()), "{tried}");
        assert_eq!(masker.placeholders(json!(null), "ConfigMap"), json!(null), "what is no object has no fields");
    }
}
