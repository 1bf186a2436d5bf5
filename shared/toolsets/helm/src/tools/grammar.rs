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

/// The values of a chart. They are data: whatever looks like a template in them is text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct ChartValues(Map<String, Value>);

impl ChartValues {
    /// The document helm reads. JSON is YAML.
    pub(super) fn document(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }

    /// As a value.
    pub(super) fn value(&self) -> Value {
        Value::Object(self.0.clone())
    }
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
    fn nothing_that_bends_a_command_line_is_a_name() {
        let hostile =
            ["", "-x", "--kubeconfig=/etc", "a b", "a/b", "../a", "a\nb", "A", "a.b", "a;b", "$(a)", "{{ .a }}", "a\0"];
        for text in hostile {
            assert!(ReleaseName::try_from(text.to_owned()).is_err(), "{text:?}");
        }
        assert!(ReleaseName::try_from("a".repeat(53)).is_ok() && ReleaseName::try_from("a".repeat(54)).is_err());
        let long: Map<String, Value> = [("a".to_owned(), Value::from("x".repeat(MOST_BYTES)))].into_iter().collect();
        assert!(ChartValues::try_from(long).is_err());
    }
}
