//! The small values of the helm tools, each parsed by its own grammar. What got through needs no check later.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::time::Duration;
use target::checked_text;
use target::grammar::is_label;

checked_text!(
    /// The name of a release.
    ReleaseName, |text| text.len() <= 53 && is_label(text), "a release is named by 1 to 53 of a-z, 0-9 and '-', neither first nor last a dash",
    { "type": "string", "minLength": 1, "maxLength": 53, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" }
);

/// The longest values document.
const MOST_BYTES: usize = 256 * 1024;

/// The values of a chart. They are data, as far as the chart leaves them alone: one that calls `tpl` on a value evaluates
/// whatever template stands there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct ChartValues(Map<String, Value>);

impl ChartValues {
    /// The document helm reads. JSON is YAML.
    pub(super) fn document(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// The values as a map.
    pub(super) fn fields(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The same over stored ones, as helm merges them: a null takes away what is stored.
    pub(super) fn over(&self, stored: Value) -> ChartValues {
        let Value::Object(mut merged) = stored else { return self.clone() };
        merge(&mut merged, &self.0);
        ChartValues(merged)
    }

    /// As a value.
    pub(super) fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }
}

fn merge(stored: &mut Map<String, Value>, given: &Map<String, Value>) {
    for (key, value) in given {
        match (stored.get_mut(key), value) {
            (_, Value::Null) => {
                stored.remove(key);
            }
            (Some(Value::Object(stored)), Value::Object(given)) => merge(stored, given),
            (_, given) => {
                stored.insert(key.clone(), given.clone());
            }
        }
    }
}

/// The place of the first text that a chart could take for a template: it holds `{{`, or ends in a brace that the next
/// text may complete.
pub(super) fn template_in(values: &Map<String, Value>) -> Option<String> {
    values.iter().find_map(|(key, value)| in_text(key).then(|| key.clone()).or_else(|| in_value(key, value)))
}

fn in_value(at: &str, value: &Value) -> Option<String> {
    match value {
        Value::String(text) => in_text(text).then(|| at.to_owned()),
        Value::Array(items) => items.iter().enumerate().find_map(|(n, item)| in_value(&format!("{at}[{n}]"), item)),
        Value::Object(fields) => template_in(fields).map(|inner| format!("{at}.{inner}")),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn in_text(text: &str) -> bool {
    text.contains("{{") || text.trim_end().ends_with('{')
}

impl TryFrom<Map<String, Value>> for ChartValues {
    type Error = String;

    fn try_from(values: Map<String, Value>) -> Result<ChartValues, String> {
        let size = serde_json::to_string(&values).map_or(usize::MAX, |text| text.len());
        match size <= MOST_BYTES {
            true => Ok(ChartValues(values)),
            false => Err(format!("values have {size} bytes and {MOST_BYTES} are allowed")),
        }
    }
}

impl JsonSchema for ChartValues {
    fn schema_name() -> Cow<'static, str> {
        "Values".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// How long helm may wait for anything, unless the call says otherwise.
const TIMEOUT_S: u32 = 300;
/// What may come on top, before the tool's own deadline is over: an end that is asked for, and a look afterwards.
const MARGIN: Duration = Duration::from_secs(15);
/// The longest any of them may take.
pub(super) const LONGEST: Duration = Duration::from_secs(900 + 30);

/// How long one call may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct HelmTimeout {
    seconds: u32,
}

impl HelmTimeout {
    pub(super) fn of(timeout_s: Option<u32>) -> HelmTimeout {
        HelmTimeout { seconds: timeout_s.unwrap_or(TIMEOUT_S) }
    }

    /// What helm is told: it reports by itself before it is ended.
    pub(super) fn helms_own(self) -> String {
        format!("{}s", self.seconds)
    }

    /// After which it is ended.
    pub(super) fn ours(self) -> Duration {
        Duration::from_secs(self.seconds.into()) + MARGIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_values_lie_over_stored_ones() {
        let given =
            serde_json::json!({ "a": { "b": 2, "gone": null }, "list": [3], "new": { "x": null }, "gone": null });
        let stored =
            serde_json::json!({ "a": { "b": 1, "c": 1, "gone": 1 }, "list": [1, 2], "kept": true, "gone": {} });
        let given: ChartValues = serde_json::from_value(given).unwrap();
        let wanted = serde_json::json!({ "a": { "b": 2, "c": 1 }, "list": [3], "new": { "x": null }, "kept": true });
        assert_eq!(given.over(stored).value(), wanted);
    }

    #[test]
    fn nothing_that_bends_a_command_line_is_a_name() {
        let hostile =
            ["", "-x", "--kubeconfig=/etc", "a b", "a/b", "../a", "a\nb", "A", "a.b", "a;b", "$(a)", "{{ .a }}", "a\0"];
        for text in hostile {
            assert!(ReleaseName::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        assert!(ReleaseName::try_from("a".repeat(53)).is_ok() && ReleaseName::try_from("a".repeat(54)).is_err());
        let template = |values: Value| template_in(values.as_object().unwrap());
        let list = serde_json::json!({ "a": 1, "extra": ["x", { "b": "{{ lookup }}" }] });
        assert_eq!(template(list).as_deref(), Some("extra[1].b"));
        assert_eq!(
            template(serde_json::json!({ "a": ["{ ", "{ x }}"] })).as_deref(),
            Some("a[0]"),
            "joined by a chart"
        );
        assert_eq!(template(serde_json::json!({ "a{{": 1 })).as_deref(), Some("a{{"));
        assert_eq!(template(serde_json::json!({ "a": "{\"json\": {}}", "b": "${X}", "c": "}}" })), None);
        let long: Map<String, Value> = [("a".to_owned(), Value::from("x".repeat(MOST_BYTES)))].into_iter().collect();
        assert!(ChartValues::try_from(long).is_err());
    }
}
