//! Jobs and folders: what a seed says of them, and what the server keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::build::{ParameterSetting, SimulatedBuild};
use super::plan::{BuildResult, BuildScript};

/// A job or folder, by its full name `a/b/c`. The slash of a branch is written `%2F`, as Jenkins itself does.
#[derive(Debug, Clone)]
pub struct SimulatedJob {
    pub(super) path: String,
    pub(super) kind: SimulatedJobKind,
    pub(super) description: String,
    pub(super) disabled: bool,
    pub(super) concurrent: bool,
    pub(super) quiet: Duration,
    /// A label that an agent must have; nobody has one.
    pub(super) label: Option<String>,
    pub(super) parameters: Vec<JobParameter>,
    pub(super) source: Option<SimulatedScm>,
    pub(super) script: String,
    pub(super) plan: BuildScript,
    pub(super) past: Vec<(Duration, BuildScript)>,
    pub(super) builds: BTreeMap<u64, SimulatedBuild>,
    pub(super) next: u64,
    /// When the last build ended, so that one that waited for it starts then.
    pub(super) free_since: Timestamp,
}

/// What kind of item it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SimulatedJobKind {
    Folder,
    Multibranch,
    Pipeline,
    Freestyle,
}

/// Where the source comes from.
#[derive(Debug, Clone)]
pub(super) struct SimulatedScm {
    pub(super) url: String,
    pub(super) branch: String,
    pub(super) credentials: bool,
}

/// A parameter a job declares.
#[derive(Debug, Clone)]
pub struct JobParameter {
    pub(super) name: String,
    pub(super) form: ParameterForm,
    pub(super) description: String,
}

#[derive(Debug, Clone)]
pub(super) enum ParameterForm {
    Text(String),
    Lines(String),
    Flag(bool),
    Choice(Vec<String>),
    Password(String),
}

impl JobParameter {
    /// A line of text with a default.
    pub fn text(name: &str, default: &str) -> JobParameter {
        JobParameter::of(name, ParameterForm::Text(default.to_owned()))
    }

    /// Text of several lines with a default.
    pub fn lines(name: &str, default: &str) -> JobParameter {
        JobParameter::of(name, ParameterForm::Lines(default.to_owned()))
    }

    /// Yes or no.
    pub fn flag(name: &str, default: bool) -> JobParameter {
        JobParameter::of(name, ParameterForm::Flag(default))
    }

    /// One of some texts; the first is the default.
    pub fn choice(name: &str, choices: &[&str]) -> JobParameter {
        JobParameter::of(name, ParameterForm::Choice(choices.iter().map(|choice| (*choice).to_owned()).collect()))
    }

    /// A secret, with a default that is never shown.
    pub fn password(name: &str, default: &str) -> JobParameter {
        JobParameter::of(name, ParameterForm::Password(default.to_owned()))
    }

    /// What people are told about it.
    #[must_use]
    pub fn describe(mut self, description: &str) -> JobParameter {
        description.clone_into(&mut self.description);
        self
    }

    fn of(name: &str, form: ParameterForm) -> JobParameter {
        JobParameter { name: name.to_owned(), form, description: String::new() }
    }

    /// The setting a build gets if nothing is said.
    pub(super) fn default(&self) -> ParameterSetting {
        let value = match &self.form {
            ParameterForm::Text(text) | ParameterForm::Lines(text) | ParameterForm::Password(text) => json!(text),
            ParameterForm::Flag(flag) => json!(flag),
            ParameterForm::Choice(choices) => json!(choices.first()),
        };
        self.setting(value)
    }

    /// The setting for a text of a form; a choice must be one of those offered.
    pub(super) fn read(&self, text: &str) -> Result<ParameterSetting, String> {
        let value = match &self.form {
            ParameterForm::Text(_) | ParameterForm::Lines(_) | ParameterForm::Password(_) => json!(text),
            // Anything but a clear yes is a no, also `1`.
            ParameterForm::Flag(_) => json!(text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("on")),
            ParameterForm::Choice(choices) if choices.iter().any(|choice| choice == text) => json!(text),
            ParameterForm::Choice(_) => return Err(format!("Illegal choice for parameter {}: {text}", self.name)),
        };
        Ok(self.setting(value))
    }

    fn setting(&self, value: Value) -> ParameterSetting {
        let class = match &self.form {
            ParameterForm::Text(_) | ParameterForm::Choice(_) => "hudson.model.StringParameterValue",
            ParameterForm::Lines(_) => "hudson.model.TextParameterValue",
            ParameterForm::Flag(_) => "hudson.model.BooleanParameterValue",
            ParameterForm::Password(_) => "hudson.model.PasswordParameterValue",
        };
        ParameterSetting { class, name: self.name.clone(), value }
    }

    pub(super) fn class(&self) -> &'static str {
        match &self.form {
            ParameterForm::Text(_) => "StringParameterDefinition",
            ParameterForm::Lines(_) => "TextParameterDefinition",
            ParameterForm::Flag(_) => "BooleanParameterDefinition",
            ParameterForm::Choice(_) => "ChoiceParameterDefinition",
            ParameterForm::Password(_) => "PasswordParameterDefinition",
        }
    }
}

impl SimulatedJob {
    /// A folder.
    pub fn folder(path: &str) -> SimulatedJob {
        SimulatedJob::of(path, SimulatedJobKind::Folder)
    }

    /// A multibranch project; its branches are pipelines below it.
    pub fn multibranch(path: &str) -> SimulatedJob {
        SimulatedJob::of(path, SimulatedJobKind::Multibranch)
    }

    /// A pipeline.
    pub fn pipeline(path: &str) -> SimulatedJob {
        SimulatedJob::of(path, SimulatedJobKind::Pipeline)
    }

    /// A freestyle project.
    pub fn freestyle(path: &str) -> SimulatedJob {
        SimulatedJob::of(path, SimulatedJobKind::Freestyle)
    }

    /// What people are told about it.
    #[must_use]
    pub fn describe(mut self, description: &str) -> SimulatedJob {
        description.clone_into(&mut self.description);
        self
    }

    /// Declares a parameter.
    #[must_use]
    pub fn parameter(mut self, parameter: JobParameter) -> SimulatedJob {
        self.parameters.push(parameter);
        self
    }

    /// Nobody may build it.
    #[must_use]
    pub fn disabled(mut self) -> SimulatedJob {
        self.disabled = true;
        self
    }

    /// Several builds may run at once.
    #[must_use]
    pub fn concurrent(mut self) -> SimulatedJob {
        self.concurrent = true;
        self
    }

    /// How long a build waits in the queue for more of the same.
    #[must_use]
    pub fn quiet(mut self, period: Duration) -> SimulatedJob {
        self.quiet = period;
        self
    }

    /// It wants an agent with this label, which there is not: its builds stay in the queue.
    #[must_use]
    pub fn on_agent(mut self, label: &str) -> SimulatedJob {
        self.label = Some(label.to_owned());
        self
    }

    /// The Git repository and branch it builds.
    #[must_use]
    pub fn source(mut self, url: &str, branch: &str) -> SimulatedJob {
        self.source = Some(SimulatedScm { url: url.to_owned(), branch: branch.to_owned(), credentials: false });
        self
    }

    /// It reaches its repository with stored credentials.
    #[must_use]
    pub fn with_credentials(mut self) -> SimulatedJob {
        if let Some(source) = &mut self.source {
            source.credentials = true;
        }
        self
    }

    /// The script of a pipeline.
    #[must_use]
    pub fn script(mut self, text: &str) -> SimulatedJob {
        text.clone_into(&mut self.script);
        self
    }

    /// What its builds do.
    #[must_use]
    pub fn plan(mut self, plan: BuildScript) -> SimulatedJob {
        self.plan = plan;
        self
    }

    /// A build that was started so long ago; given in the order they were built.
    #[must_use]
    pub fn past(mut self, ago: Duration, plan: BuildScript) -> SimulatedJob {
        self.past.push((ago, plan));
        self
    }

    fn of(path: &str, kind: SimulatedJobKind) -> SimulatedJob {
        SimulatedJob {
            path: path.to_owned(),
            kind,
            description: String::new(),
            disabled: false,
            concurrent: false,
            quiet: Duration::from_secs(1),
            label: None,
            parameters: Vec::new(),
            source: None,
            script: "pipeline { agent any; stages { stage('Build') { steps { sh 'make all' } } } }\n".to_owned(),
            plan: BuildScript::lasting(Duration::from_secs(3)),
            past: Vec::new(),
            builds: BTreeMap::new(),
            next: 1,
            free_since: Timestamp::UNIX_EPOCH,
        }
    }

    pub(super) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub(super) fn parent(&self) -> &str {
        self.path.rsplit_once('/').map(|(parent, _)| parent).unwrap_or_default()
    }

    /// Only jobs have builds.
    pub(super) fn is_job(&self) -> bool {
        match self.kind {
            SimulatedJobKind::Pipeline | SimulatedJobKind::Freestyle => true,
            SimulatedJobKind::Folder | SimulatedJobKind::Multibranch => false,
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.builds.values().any(|build| !build.over)
    }

    /// The newest build that ended in one of these ways; of those that ended at all if none is named.
    pub(super) fn last(&self, outcomes: &[BuildResult]) -> Option<&SimulatedBuild> {
        let fits = |build: &&SimulatedBuild| build.over && (outcomes.is_empty() || outcomes.contains(&build.outcome));
        self.builds.values().rev().find(fits)
    }
}
