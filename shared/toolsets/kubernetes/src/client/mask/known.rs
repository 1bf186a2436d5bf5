//! Secrets that are known because the same release holds them: wherever else they turn up, they are masked as well.
//!
//! A chart writes a password into a Secret, and into its notes, its values and a ConfigMap besides.

use super::{MaskDetail, Masker, walk};
use crate::client::cluster::Cluster;
use crate::client::sealed::SealedValue;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::BTreeSet;

/// A value this short is masked only where it stands alone: as a part of other texts it would be anything.
const PART_MIN: usize = 6;
/// A value shorter than this says nothing.
const ALONE_MIN: usize = 3;

/// The values of Secrets that are around.
#[derive(Clone, Default)]
pub struct KnownSecrets(BTreeSet<String>);

impl KnownSecrets {
    /// What the Secrets among these objects hold.
    pub fn of(cluster: &Cluster<'_>, objects: &[Value]) -> KnownSecrets {
        let mut known = KnownSecrets::default();
        for object in objects {
            if object["kind"].as_str().is_some_and(|kind| cluster.masker().is_secret_kind(kind)) {
                known.add(&object["stringData"], false);
                known.add(&object["data"], true);
            }
        }
        known
    }

    /// The two together.
    #[must_use]
    pub fn and(mut self, other: KnownSecrets) -> KnownSecrets {
        self.0.extend(other.0);
        self
    }

    pub(super) fn add(&mut self, data: &Value, encoded: bool) {
        for text in data.as_object().into_iter().flat_map(|data| data.values()).filter_map(Value::as_str) {
            let plain = match encoded {
                true => STANDARD.decode(text.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
                false => Some(text.to_owned()),
            };
            // A mark is no secret, and nothing to look for in other texts.
            let Some(plain) = plain.filter(|plain| !redact::looks::is_mark(plain)) else { continue };
            if plain.len() >= PART_MIN {
                self.0.insert(STANDARD.encode(&plain));
            }
            self.0.extend(plain.lines().filter(|line| line.len() >= PART_MIN).map(str::to_owned));
            if plain.len() >= ALONE_MIN {
                self.0.insert(plain);
            }
        }
    }

    /// The text with a mark for each that is in it.
    pub(super) fn hidden_in(&self, masker: &Masker, text: &str) -> String {
        let mut text = text.to_owned();
        self.hide(masker, &mut text);
        text
    }

    fn hide(&self, masker: &Masker, text: &mut String) {
        if redact::looks::is_mark(text) {
            return;
        }
        if self.0.contains(text.as_str()) {
            *text = masker.mark(text.as_bytes());
            return;
        }
        // The longest first: one may be a part of another.
        let mut parts: Vec<&String> =
            self.0.iter().filter(|part| part.len() >= PART_MIN && text.contains(part.as_str())).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.len()));
        for part in parts {
            *text = text.replace(part.as_str(), &masker.mark(part.as_bytes()));
        }
    }

    pub(super) fn hide_all(&self, masker: &Masker, value: &mut Value) {
        match value {
            Value::String(text) => self.hide(masker, text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_all(masker, item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.hide_all(masker, field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl std::fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KnownSecrets({})", self.0.len())
    }
}

impl Cluster<'_> {
    /// A text as it may be shown: by its looks, and without the secrets that are known.
    pub fn masked_text(&self, text: &str, known: &KnownSecrets) -> String {
        let mut text = text.to_owned();
        known.hide(self.masker(), &mut text);
        self.masker().text(&text)
    }

    /// An object as it may be shown.
    pub fn masked_object(&self, object: Value, known: &KnownSecrets) -> Value {
        let mut shown = SealedValue::from(object).shown(self, MaskDetail::Clean);
        known.hide_all(self.masker(), &mut shown);
        shown
    }

    /// The values of a chart as they may be shown: whatever stands under a name that says so is secret.
    pub fn masked_values(&self, mut values: Value, known: &KnownSecrets) -> Value {
        known.hide_all(self.masker(), &mut values);
        walk::settings(self.masker(), &mut values);
        self.masker().object(&mut values, MaskDetail::Full);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use domain::Tenant;
    use serde_json::json;

    #[test]
    fn what_a_secret_holds_is_masked_elsewhere_too() {
        let masker = Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[]);
        let mut known = KnownSecrets::default();
        known.add(&json!({ "a": "hunter2", "b": "abc" }), false);
        known.add(&json!({ "c": STANDARD.encode("s3cr3t-value") }), true);
        known.add(&json!({ "d": "-- top\nthe-second-line\nend" }), false);
        let hidden = |text: &str| {
            let mut text = text.to_owned();
            known.hide(&masker, &mut text);
            text
        };
        assert!(hidden("the password is hunter2, really").contains("is masked:"));
        assert!(!hidden(&format!("echo {} | base64 -d", STANDARD.encode("s3cr3t-value"))).contains("czNj"));
        assert!(hidden("abc").starts_with("masked:"));
        assert_eq!(hidden("abcdef"), "abcdef", "three letters are a part of anything");
        assert!(hidden("and the-second-line alone").contains("and masked:"), "a line of it is as secret as the whole");
        assert_eq!(hidden("the end"), "the end", "a short line is a part of anything");
    }

    #[test]
    fn values_are_masked_by_the_names_they_stand_under() {
        let masker = Masker::new(&[1; 32], &Tenant::parse("acme").unwrap(), &[]);
        let mut values = json!({
            "auth": { "rootPassword": "a", "existingSecretName": "db", "enabled": "yes" },
            "secrets": { "ANY": "b", "nested": [{ "deep": "c", "name": "d" }] },
            "image": { "tag": "1.0" }, "tokens": ["e"], "replicas": 3,
        });
        walk::settings(&masker, &mut values);
        let text = values.to_string();
        for hidden in ["\"a\"", "\"b\"", "\"c\"", "\"e\""] {
            assert!(!text.contains(hidden), "{hidden} in {text}");
        }
        for shown in ["\"db\"", "\"yes\"", "\"d\"", "\"1.0\""] {
            assert!(text.contains(shown), "{shown} in {text}");
        }
    }
}
