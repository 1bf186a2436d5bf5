//! Jobs and folders: what a seed says of them, and what the server keeps.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::build::{Build, Setting};
use super::plan::{Outcome, Plan};

/// A job or folder, by its full name `a/b/c`. The slash of a branch is written `%2F`, as Jenkins itself does.
#[derive(Debug, Clone)]
pub struct Job {
    pub(super) path: String,
    pub(super) kind: Kind,
    pub(super) description: String,
    pub(super) disabled: bool,
    pub(super) concurrent: bool,
    pub(super) quiet: Duration,
    /// A label that an agent must have; nobody has one.
    pub(super) label: Option<String>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) source: Option<Source>,
    pub(super) script: String,
    pub(super) plan: Plan,
    pub(super) past: Vec<(Duration, Plan)>,
    pub(super) builds: BTreeMap<u64, Build>,
    pub(super) next: u64,
    /// When the last build ended, so that one that waited for it starts then.
    pub(super) free_since: Timestamp,
}

/// What kind of item it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    Multibranch,
    Pipeline,
    Freestyle,
}

/// Where the source comes from.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub(super) url: String,
    pub(super) branch: String,
    pub(super) credentials: bool,
}

/// A parameter a job declares.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) description: String,
}

#[derive(Debug, Clone)]
pub(super) enum Form {
    Text(String),
    Lines(String),
    Flag(bool),
    Choice(Vec<String>),
    Password(String),
}

impl Parameter {
    /// A line of text with a default.
    pub fn text(name: &str, default: &str) -> Parameter {
        Parameter::of(name, Form::Text(default.to_owned()))
    }

    /// Text of several lines with a default.
    pub fn lines(name: &str, default: &str) -> Parameter {
        Parameter::of(name, Form::Lines(default.to_owned()))
    }

    /// Yes or no.
    pub fn flag(name: &str, default: bool) -> Parameter {
        Parameter::of(name, Form::Flag(default))
    }

    /// One of some texts; the first is the default.
    pub fn choice(name: &str, choices: &[&str]) -> Parameter {
        Parameter::of(name, Form::Choice(choices.iter().map(|choice| (*choice).to_owned()).collect()))
    }

    /// A secret, with a default that is never shown.
    pub fn password(name: &str, default: &str) -> Parameter {
        Parameter::of(name, Form::Password(default.to_owned()))
    }

    /// What people are told about it.
    #[must_use]
    pub fn describe(mut self, description: &str) -> Parameter {
        description.clone_into(&mut self.description);
        self
    }

    fn of(name: &str, form: Form) -> Parameter {
        Parameter { name: name.to_owned(), form, description: String::new() }
    }

    /// The setting a build gets if nothing is said.
    pub(super) fn default(&self) -> Setting {
        let value = match &self.form {
            Form::Text(text) | Form::Lines(text) | Form::Password(text) => json!(text),
            Form::Flag(flag) => json!(flag),
            Form::Choice(choices) => json!(choices.first()),
        };
        self.setting(value)
    }

    /// The setting for a text of a form; a choice must be one of those offered.
    pub(super) fn read(&self, text: &str) -> Result<Setting, String> {
        let value = match &self.form {
            Form::Text(_) | Form::Lines(_) | Form::Password(_) => json!(text),
            // Anything but a clear yes is a no, also `1`.
            Form::Flag(_) => json!(text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("on")),
            Form::Choice(choices) if choices.iter().any(|choice| choice == text) => json!(text),
            Form::Choice(_) => return Err(format!("Illegal choice for parameter {}: {text}", self.name)),
        };
        Ok(self.setting(value))
    }

    fn setting(&self, value: Value) -> Setting {
        let class = match &self.form {
            Form::Text(_) | Form::Choice(_) => "hudson.model.StringParameterValue",
            Form::Lines(_) => "hudson.model.TextParameterValue",
            Form::Flag(_) => "hudson.model.BooleanParameterValue",
            Form::Password(_) => "hudson.model.PasswordParameterValue",
        };
        Setting { class, name: self.name.clone(), value }
    }

    pub(super) fn class(&self) -> &'static str {
        match &self.form {
            Form::Text(_) => "StringParameterDefinition",
            Form::Lines(_) => "TextParameterDefinition",
            Form::Flag(_) => "BooleanParameterDefinition",
            Form::Choice(_) => "ChoiceParameterDefinition",
            Form::Password(_) => "PasswordParameterDefinition",
        }
    }
}

impl Job {
    /// A folder.
    pub fn folder(path: &str) -> Job {
        Job::of(path, Kind::Folder)
    }

    /// A multibranch project; its branches are pipelines below it.
    pub fn multibranch(path: &str) -> Job {
        Job::of(path, Kind::Multibranch)
    }

    /// A pipeline.
    pub fn pipeline(path: &str) -> Job {
        Job::of(path, Kind::Pipeline)
    }

    /// A freestyle project.
    pub fn freestyle(path: &str) -> Job {
        Job::of(path, Kind::Freestyle)
    }

    /// What people are told about it.
    #[must_use]
    pub fn describe(mut self, description: &str) -> Job {
        description.clone_into(&mut self.description);
        self
    }

    /// Declares a parameter.
    #[must_use]
    pub fn parameter(mut self, parameter: Parameter) -> Job {
        self.parameters.push(parameter);
        self
    }

    /// Nobody may build it.
    #[must_use]
    pub fn disabled(mut self) -> Job {
        self.disabled = true;
        self
    }

    /// Several builds may run at once.
    #[must_use]
    pub fn concurrent(mut self) -> Job {
        self.concurrent = true;
        self
    }

    /// How long a build waits in the queue for more of the same.
    #[must_use]
    pub fn quiet(mut self, period: Duration) -> Job {
        self.quiet = period;
        self
    }

    /// It wants an agent with this label, which there is not: its builds stay in the queue.
    #[must_use]
    pub fn on_agent(mut self, label: &str) -> Job {
        self.label = Some(label.to_owned());
        self
    }

    /// The Git repository and branch it builds.
    #[must_use]
    pub fn source(mut self, url: &str, branch: &str) -> Job {
        self.source = Some(Source { url: url.to_owned(), branch: branch.to_owned(), credentials: false });
        self
    }

    /// It reaches its repository with stored credentials.
    #[must_use]
    pub fn with_credentials(mut self) -> Job {
        if let Some(source) = &mut self.source {
            source.credentials = true;
        }
        self
    }

    /// The script of a pipeline.
    #[must_use]
    pub fn script(mut self, text: &str) -> Job {
        text.clone_into(&mut self.script);
        self
    }

    /// What its builds do.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Job {
        self.plan = plan;
        self
    }

    /// A build that was started so long ago; given in the order they were built.
    #[must_use]
    pub fn past(mut self, ago: Duration, plan: Plan) -> Job {
        self.past.push((ago, plan));
        self
    }

    fn of(path: &str, kind: Kind) -> Job {
        Job {
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
            plan: Plan::lasting(Duration::from_secs(3)),
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
            Kind::Pipeline | Kind::Freestyle => true,
            Kind::Folder | Kind::Multibranch => false,
        }
    }

    pub(super) fn runs(&self) -> bool {
        self.builds.values().any(|build| !build.over)
    }

    /// The newest build that ended in one of these ways; of those that ended at all if none is named.
    pub(super) fn last(&self, outcomes: &[Outcome]) -> Option<&Build> {
        let fits = |build: &&Build| build.over && (outcomes.is_empty() || outcomes.contains(&build.outcome));
        self.builds.values().rev().find(fits)
    }
}
