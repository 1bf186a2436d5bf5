//! One job: how it is, what it may be given, and its newest builds.

use crate::client::jobs::{BuildNumberBody, JobKind, JobStatus};
use crate::client::mask;
use crate::client::path::JobPath;
use crate::client::request::{ServerRequest, Verb};
use crate::client::server::PermittedServer;
use crate::codes;
use domain::Failure;
use serde::Deserialize;
use serde_json::Value;
use std::ops::Range;

const ROUTE: &str = "/job/{job}/api/json";
const SUMMARY: &str = "_class,fullName,color,buildable,inQueue,nextBuildNumber,healthReport[score],\
     lastBuild[number],lastSuccessfulBuild[number],lastFailedBuild[number],\
     property[parameterDefinitions[_class,name,type,description,choices,defaultParameterValue[value]]]";

/// One job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JenkinsJob {
    /// What it is.
    pub kind: JobKind,
    /// How it is.
    pub status: Option<JobStatus>,
    /// Whether a build runs.
    pub running: bool,
    /// Whether it can be built; a folder and a disabled job cannot.
    pub buildable: bool,
    /// Whether it waits in the queue.
    pub in_queue: bool,
    /// The worst of its health scores, 0 to 100.
    pub health: Option<u8>,
    /// Its newest build.
    pub last: Option<u32>,
    /// Its newest build that succeeded.
    pub last_success: Option<u32>,
    /// Its newest build that failed.
    pub last_failure: Option<u32>,
    /// The number its next build gets.
    pub next_build: Option<u32>,
    /// What it may be given.
    pub parameters: Vec<ParameterDefinition>,
}

/// One parameter that a job declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterDefinition {
    /// Its name.
    pub name: String,
    /// What it takes.
    pub kind: ParameterKind,
    /// What can be chosen, where there is a choice.
    pub choices: Vec<String>,
    /// What it is if nothing is given. Never that of a secret.
    pub default: Option<String>,
    /// Whether it must be given, because the job has nothing to put in its place.
    pub required: bool,
    /// What its author says about it.
    pub description: Option<String>,
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// A line.
    String,
    /// Several lines.
    Text,
    /// Yes or no.
    Boolean,
    /// One of several.
    Choice,
    /// A secret.
    Password,
    /// A file, which cannot be sent through this service.
    File,
    /// A build of another job.
    Run,
    /// The id of a stored credential.
    Credentials,
    /// What a plugin brings.
    Other,
}

impl ParameterKind {
    fn of(kind: &str) -> ParameterKind {
        match kind.rsplit('.').next().unwrap_or_default() {
            "StringParameterDefinition" => ParameterKind::String,
            "TextParameterDefinition" => ParameterKind::Text,
            "BooleanParameterDefinition" => ParameterKind::Boolean,
            "ChoiceParameterDefinition" => ParameterKind::Choice,
            // A plugin's own kind of secret is one as well.
            name if name.contains("Password") || name.contains("Secret") => ParameterKind::Password,
            "FileParameterDefinition" => ParameterKind::File,
            "RunParameterDefinition" => ParameterKind::Run,
            "CredentialsParameterDefinition" => ParameterKind::Credentials,
            _ => ParameterKind::Other,
        }
    }
}

/// One build of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildListItem {
    /// Its number.
    pub number: u32,
    /// How it ended; `None` while it runs.
    pub result: Option<String>,
    /// Whether it runs.
    pub running: bool,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it took; nothing while it runs.
    pub duration_ms: u64,
    /// What it is called, if not by its number.
    pub name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JobBody {
    #[serde(rename = "_class", default)]
    class: String,
    color: Option<String>,
    #[serde(default)]
    buildable: bool,
    #[serde(default)]
    in_queue: bool,
    next_build_number: Option<u32>,
    #[serde(default)]
    health_report: Vec<JobHealth>,
    last_build: Option<BuildNumberBody>,
    last_successful_build: Option<BuildNumberBody>,
    last_failed_build: Option<BuildNumberBody>,
    #[serde(default)]
    property: Vec<Property>,
}

#[derive(Deserialize)]
struct JobHealth {
    score: Option<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property {
    #[serde(default)]
    parameter_definitions: Vec<WireDefinition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDefinition {
    #[serde(rename = "_class", default)]
    class: String,
    name: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    description: Option<String>,
    choices: Option<Vec<String>>,
    default_parameter_value: Option<WireDefault>,
}

#[derive(Deserialize)]
struct WireDefault {
    value: Option<Value>,
}

/// `builds` would end at the newest hundred.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireBuilds {
    #[serde(default)]
    all_builds: Vec<WireRow>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRow {
    number: u32,
    result: Option<String>,
    #[serde(default)]
    building: bool,
    #[serde(default)]
    timestamp: u64,
    #[serde(default)]
    duration: u64,
    display_name: Option<String>,
}

impl PermittedServer<'_> {
    /// One job, or a failure that names near ones.
    pub async fn job(&self, job: &JobPath) -> Result<JenkinsJob, Failure> {
        let read = self.read_json(&ServerRequest::job(Verb::Get, job, "/api/json", ROUTE).tree(SUMMARY)).await;
        let wire: JobBody = match read {
            Err(failure) if failure.code == codes::JOB_NOT_FOUND => {
                return Err(self.explained(failure, Some(job)).await);
            }
            other => other?,
        };
        Ok(JenkinsJob::from(wire))
    }

    /// Some of its builds, newest first.
    pub async fn builds(&self, job: &JobPath, range: Range<usize>) -> Result<Vec<BuildListItem>, Failure> {
        let Range { start, end } = range;
        let tree = format!("allBuilds[number,result,building,timestamp,duration,displayName]{{{start},{end}}}");
        let read = self.read_json(&ServerRequest::job(Verb::Get, job, "/api/json", ROUTE).tree(tree)).await;
        let wire: WireBuilds = match read {
            Err(failure) if failure.code == codes::JOB_NOT_FOUND => {
                return Err(self.explained(failure, Some(job)).await);
            }
            other => other?,
        };
        Ok(wire.all_builds.into_iter().map(BuildListItem::from).collect())
    }
}

impl From<JobBody> for JenkinsJob {
    fn from(wire: JobBody) -> JenkinsJob {
        let number = |build: Option<BuildNumberBody>| build.map(|build| build.number);
        let (status, running) = JobStatus::of(wire.color.as_deref().unwrap_or_default());
        JenkinsJob {
            kind: JobKind::of(&wire.class),
            status,
            running,
            buildable: wire.buildable,
            in_queue: wire.in_queue,
            health: wire.health_report.iter().filter_map(|report| report.score).min(),
            last: number(wire.last_build),
            last_success: number(wire.last_successful_build),
            last_failure: number(wire.last_failed_build),
            next_build: wire.next_build_number,
            parameters: wire
                .property
                .into_iter()
                .flat_map(|p| p.parameter_definitions)
                .map(ParameterDefinition::from)
                .collect(),
        }
    }
}

impl From<WireDefinition> for ParameterDefinition {
    fn from(wire: WireDefinition) -> ParameterDefinition {
        let kind = ParameterKind::of(wire.kind.as_deref().unwrap_or(&wire.class));
        let required = wire.default_parameter_value.is_none();
        let default = wire.default_parameter_value.and_then(|default| plain(default.value?));
        let secret = kind == ParameterKind::Password;
        ParameterDefinition {
            default: default.filter(|_| !secret).map(|value| mask::parameter(&wire.name, &value, false)),
            name: wire.name,
            kind,
            choices: wire.choices.unwrap_or_default(),
            required,
            description: wire.description.filter(|text| !text.is_empty()).map(|text| mask::line(&text)),
        }
    }
}

/// A value as it stands in a form.
pub(in crate::client) fn plain(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

impl From<WireRow> for BuildListItem {
    fn from(wire: WireRow) -> BuildListItem {
        BuildListItem {
            number: wire.number,
            result: wire.result,
            running: wire.building,
            started_ms: wire.timestamp,
            duration_ms: wire.duration,
            name: wire.display_name.filter(|name| *name != format!("#{}", wire.number)).map(|name| mask::line(&name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_secret_has_no_default_and_what_lacks_one_is_required() {
        let wire = json!({ "_class": "hudson.model.FreeStyleProject", "buildable": true, "color": "red_anime",
            "healthReport": [{ "score": 80 }, { "score": 20 }], "lastBuild": { "number": 7 },
            "property": [{}, { "parameterDefinitions": [
                { "name": "ENV", "type": "ChoiceParameterDefinition", "choices": ["a", "b"], "defaultParameterValue": { "value": "a" } },
                { "name": "KEY", "type": "PasswordParameterDefinition", "defaultParameterValue": { "value": "hunter2" } },
                { "name": "FLAG", "type": "BooleanParameterDefinition", "defaultParameterValue": { "value": false } },
                { "name": "FILE", "_class": "hudson.model.FileParameterDefinition", "defaultParameterValue": null } ] }] });
        let job = JenkinsJob::from(serde_json::from_value::<JobBody>(wire).unwrap());
        assert_eq!((job.kind, job.running, job.health, job.last), (JobKind::Freestyle, true, Some(20), Some(7)));
        let told: Vec<_> = job.parameters.iter().map(|p| (p.kind, p.default.as_deref(), p.required)).collect();
        assert_eq!(
            told,
            [
                (ParameterKind::Choice, Some("a"), false),
                (ParameterKind::Password, None, false),
                (ParameterKind::Boolean, Some("false"), false),
                (ParameterKind::File, None, true),
            ]
        );
    }
}
