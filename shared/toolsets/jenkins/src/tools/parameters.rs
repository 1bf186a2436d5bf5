//! What a build is given, held against what its job declares.
//!
//! Jenkins drops what a job does not declare without a word, and answers a wrong choice as if it had failed itself. So
//! everything is judged here, before anything is sent.

use crate::client::mask::{self, MASKED};
use crate::client::{ParameterDefinition, ParameterKind};
use crate::codes;
use domain::outcome::near;
use domain::{Code, Failure, RunId};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

const MOST: usize = 50;
const MOST_BYTES: usize = 64 * 1024;

/// Values by the names of parameters: texts, numbers, yes and no.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct Parameters(Map<String, Value>);

impl TryFrom<Map<String, Value>> for Parameters {
    type Error = String;

    fn try_from(given: Map<String, Value>) -> Result<Parameters, String> {
        let size: usize =
            given.iter().map(|(name, value)| name.len() + plain(value).map_or(0, |text| text.len())).sum();
        if given.len() > MOST || size > MOST_BYTES {
            return Err(format!("at most {MOST} parameters of {MOST_BYTES} bytes together"));
        }
        match given.iter().find(|(_, value)| plain(value).is_none()) {
            Some(_) => Err("a parameter is a text, a number, true or false".to_owned()),
            None => Ok(Parameters(given)),
        }
    }
}

impl JsonSchema for Parameters {
    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        // A pattern that every name fits says of all values what they are, and a model need not read it.
        json_schema!({ "type": "object", "maxProperties": MOST,
            "patternProperties": { "": { "type": ["string", "number", "boolean"] } } })
    }
}

/// One parameter of the build to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BuildSetting {
    pub(super) name: String,
    /// What is sent; `None` if the job's own default is taken.
    value: Option<String>,
    /// What whoever decides is shown: what is given, but for the value of a password parameter.
    pub(super) shown: String,
    /// How many characters of it are hidden.
    pub(super) hidden: Option<usize>,
    pub(super) default: Option<String>,
}

impl BuildSetting {
    /// Whether the call says something other than the job does.
    pub(super) fn is_given(&self) -> bool {
        self.value.is_some()
    }
}

impl Parameters {
    /// Every parameter of the job with what it will be.
    pub(super) fn settled(
        &self,
        definitions: &[ParameterDefinition],
        run_id_parameter: &str,
        run: Option<RunId>,
    ) -> Result<Vec<BuildSetting>, Failure> {
        let names = || definitions.iter().map(|definition| definition.name.as_str());
        for name in self.0.keys() {
            if name == run_id_parameter && names().any(|known| known == name) {
                return Err(Failure::new(Code::InvalidArgument, format!("{name} is filled in by this service"))
                    .next("leave it out"));
            }
            if !names().any(|known| known == name) {
                return Err(unknown(name, definitions, run_id_parameter));
            }
        }
        definitions.iter().map(|definition| self.one(definition, run_id_parameter, run)).collect()
    }

    fn one(
        &self,
        definition: &ParameterDefinition,
        run_id_parameter: &str,
        run: Option<RunId>,
    ) -> Result<BuildSetting, Failure> {
        let name = definition.name.clone();
        if name == run_id_parameter {
            let (value, shown) = (run.map(|run| run.to_string()), "the id of this run".to_owned());
            return Ok(BuildSetting { name, value, shown, hidden: None, default: None });
        }
        let value = self.0.get(&name).and_then(plain);
        let default = definition.default.clone();
        let Some(value) = value else {
            if definition.required {
                return Err(missing(definition));
            }
            let shown = if definition.kind == ParameterKind::Password {
                MASKED.to_owned()
            } else {
                default.clone().unwrap_or_default()
            };
            return Ok(BuildSetting { name, value: None, shown, hidden: None, default });
        };
        fits(definition, &value)?;
        let (shown, hidden) = match definition.kind == ParameterKind::Password {
            true => (MASKED.to_owned(), Some(value.chars().count())),
            false => (value.clone(), None),
        };
        Ok(BuildSetting { shown, hidden, value: Some(value), name, default })
    }

    /// Hides the values of password parameters in the arguments that people are shown.
    pub(super) fn hide_passwords(&self, definitions: &[ParameterDefinition], shown: &mut Value) {
        for name in self.0.keys() {
            if definitions.iter().any(|d| d.name == *name && d.kind == ParameterKind::Password) {
                shown[name] = json!(MASKED);
            }
        }
    }
}

/// The fields of the form: what is given, and nothing else.
pub(super) fn form(settings: Vec<BuildSetting>) -> Vec<(String, String)> {
    settings.into_iter().filter_map(|setting| Some((setting.name, setting.value?))).collect()
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn fits(definition: &ParameterDefinition, value: &str) -> Result<(), Failure> {
    let name = &definition.name;
    match definition.kind {
        ParameterKind::Choice if !definition.choices.iter().any(|choice| choice == value) => {
            let choices = definition.choices.iter().map(String::as_str);
            Err(Failure::new(codes::INVALID_CHOICE, format!("{name} does not take that value"))
                .next(format!("choose one of: {}", listed(&definition.choices)))
                .did_you_mean(near(value, choices)))
        }
        // Jenkins would take anything else for no.
        ParameterKind::Boolean if !matches!(value, "true" | "false") => {
            Err(Failure::new(codes::INVALID_CHOICE, format!("{name} is true or false"))
                .next("choose one of: true, false"))
        }
        ParameterKind::File => {
            Err(Failure::new(target::codes::UNSUPPORTED, format!("{name} is a file, and files cannot be sent"))
                .next("leave it out, or start the build in Jenkins"))
        }
        // A line break in a line would become part of a name in somebody's script.
        ParameterKind::String | ParameterKind::Run | ParameterKind::Credentials
            if value.contains(['\n', '\r', '\0']) =>
        {
            Err(Failure::new(Code::InvalidArgument, format!("{name} is one line")).next("leave line breaks out"))
        }
        ParameterKind::String
        | ParameterKind::Text
        | ParameterKind::Boolean
        | ParameterKind::Choice
        | ParameterKind::Password
        | ParameterKind::Run
        | ParameterKind::Credentials
        | ParameterKind::Other => Ok(()),
    }
}

fn unknown(name: &str, definitions: &[ParameterDefinition], run_id_parameter: &str) -> Failure {
    let known: Vec<String> =
        definitions.iter().map(|d| d.name.clone()).filter(|name| name != run_id_parameter).collect();
    let next = match known.is_empty() {
        true => "leave parameters out: the job has none".to_owned(),
        false => format!("use some of: {}", listed(&known)),
    };
    let meant = near(name, known.iter().map(String::as_str));
    Failure::new(codes::UNKNOWN_PARAMETER, "the job has no parameter of that name").next(next).did_you_mean(meant)
}

fn missing(definition: &ParameterDefinition) -> Failure {
    let name = &definition.name;
    match definition.kind {
        ParameterKind::File => Failure::new(target::codes::UNSUPPORTED, format!("the job wants a file as {name}"))
            .next("start the build in Jenkins: files cannot be sent"),
        ParameterKind::String
        | ParameterKind::Text
        | ParameterKind::Boolean
        | ParameterKind::Choice
        | ParameterKind::Password
        | ParameterKind::Run
        | ParameterKind::Credentials
        | ParameterKind::Other => {
            Failure::new(Code::InvalidArgument, format!("the job wants {name}, which has no default"))
                .next(format!("add {name} to parameters"))
        }
    }
}

/// The first of some names.
fn listed(names: &[String]) -> String {
    const MOST: usize = 20;
    let mut text = names.iter().take(MOST).map(|name| mask::line(name)).collect::<Vec<_>>().join(", ");
    if names.len() > MOST {
        text.push_str(", …");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str, kind: ParameterKind, default: Option<&str>) -> ParameterDefinition {
        let (choices, default) = (vec!["a".to_owned(), "b".to_owned()], default.map(str::to_owned));
        ParameterDefinition {
            name: name.to_owned(),
            kind,
            choices,
            required: default.is_none(),
            default,
            description: None,
        }
    }

    fn job() -> Vec<ParameterDefinition> {
        vec![
            definition("WHERE", ParameterKind::Choice, Some("a")),
            definition("DRY", ParameterKind::Boolean, Some("false")),
            definition("KEY", ParameterKind::Password, Some("")),
            definition("NOTE", ParameterKind::Text, Some("x")),
            definition("LINE", ParameterKind::String, Some("")),
            definition("RUN", ParameterKind::String, Some("")),
        ]
    }

    fn settled(given: Value) -> Result<Vec<BuildSetting>, Failure> {
        let parameters: Parameters = serde_json::from_value(given).unwrap();
        parameters.settled(&job(), "RUN", Some(RunId::from_random([1; 16])))
    }

    #[test]
    fn what_is_given_goes_into_the_form_and_secrets_are_not_shown() {
        let settings = settled(json!({ "WHERE": "b", "DRY": true, "KEY": "hunter2", "NOTE": "one\ntwo" })).unwrap();
        assert!(settings.iter().all(|setting| setting.shown != "hunter2"));
        let form = form(settings);
        let names: Vec<_> = form.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let run = RunId::from_random([1; 16]).to_string();
        assert_eq!(
            names,
            [("WHERE", "b"), ("DRY", "true"), ("KEY", "hunter2"), ("NOTE", "one\ntwo"), ("RUN", run.as_str())]
        );
    }

    #[test]
    fn what_jenkins_would_drop_or_bend_is_refused_here() {
        for (given, code) in [
            (json!({ "WHEER": "a" }), codes::UNKNOWN_PARAMETER),
            (json!({ "token": "a" }), codes::UNKNOWN_PARAMETER),
            (json!({ "WHERE": "c" }), codes::INVALID_CHOICE),
            (json!({ "DRY": "yes" }), codes::INVALID_CHOICE),
            (json!({ "RUN": "mine" }), Code::InvalidArgument),
            (json!({ "LINE": "a\nb" }), Code::InvalidArgument),
        ] {
            assert_eq!(settled(given.clone()).unwrap_err().code, code, "{given}");
        }
        assert_eq!(settled(json!({ "WHEER": "a" })).unwrap_err().did_you_mean, ["WHERE"]);
        let file = [definition("UPLOAD", ParameterKind::File, None)];
        assert_eq!(Parameters::default().settled(&file, "RUN", None).unwrap_err().code, target::codes::UNSUPPORTED);
        let build = [definition("FROM", ParameterKind::Run, None)];
        assert_eq!(Parameters::default().settled(&build, "RUN", None).unwrap_err().code, Code::InvalidArgument);
    }

    #[test]
    fn only_plain_values_in_bounds_are_parameters() {
        let many: Map<String, Value> = (0..51).map(|n| (n.to_string(), json!(1))).collect();
        for bad in [
            json!({ "a": [1] }),
            json!({ "a": {} }),
            json!({ "a": null }),
            json!(many),
            json!({ "a": "x".repeat(65_536) }),
        ] {
            assert!(serde_json::from_value::<Parameters>(bad).is_err());
        }
    }
}
