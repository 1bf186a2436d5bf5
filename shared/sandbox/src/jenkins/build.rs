//! One build, as the server remembers it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::plan::{BuildResult, BuildScript};
use crate::clock;

/// A build that has begun.
#[derive(Debug, Clone)]
pub(super) struct SimulatedBuild {
    pub(super) number: u64,
    pub(super) queue_id: u64,
    pub(super) began: Timestamp,
    /// When it ends, as far as is known now.
    pub(super) due: Timestamp,
    pub(super) over: bool,
    pub(super) outcome: BuildResult,
    pub(super) plan: BuildScript,
    pub(super) order: Order,
    pub(super) display_name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) keep: bool,
    /// Who stopped it, and how hard.
    pub(super) stopped: Vec<String>,
    /// The commit it was made of.
    pub(super) revision: String,
}

/// What was asked for: it waits in the queue first and is carried over into the build.
#[derive(Debug, Clone, Default)]
pub(super) struct Order {
    pub(super) causes: Vec<SimulatedCause>,
    pub(super) settings: Vec<ParameterSetting>,
    /// The script to run instead of the job's own.
    pub(super) script: Option<String>,
    /// The commit to build instead of the newest.
    pub(super) revision: Option<String>,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ParameterSetting {
    pub(super) class: &'static str,
    pub(super) name: String,
    pub(super) value: Value,
}

/// Why a build was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SimulatedCause {
    User(String),
    Timer,
    Commit,
    Replay(u64),
}

impl SimulatedBuild {
    pub(super) fn name(&self) -> String {
        self.display_name.clone().unwrap_or_else(|| format!("#{}", self.number))
    }

    /// How long it took, or takes so far.
    pub(super) fn elapsed(&self, now: Timestamp) -> Duration {
        clock::since(self.began, if self.over { self.due } else { now })
    }

    /// Such a build cannot be replayed.
    pub(super) fn has_password(&self) -> bool {
        self.order.settings.iter().any(ParameterSetting::is_secret)
    }
}

impl ParameterSetting {
    pub(super) fn is_secret(&self) -> bool {
        self.class == "hudson.model.PasswordParameterValue"
    }

    /// As the API shows it: never a secret's value.
    pub(super) fn shown(&self) -> Value {
        if self.is_secret() {
            return json!({ "_class": self.class, "name": self.name });
        }
        json!({ "_class": self.class, "name": self.name, "value": self.value })
    }

    /// As the queue's `params` line shows it.
    pub(super) fn line(&self) -> String {
        let value = match self.value.as_str() {
            _ if self.is_secret() => "****".to_owned(),
            Some(text) => text.to_owned(),
            None => self.value.to_string(),
        };
        format!("{}={value}", self.name)
    }
}

impl SimulatedCause {
    pub(super) fn shown(&self) -> Value {
        let text = self.text();
        match self {
            SimulatedCause::User(user) => json!({
                "_class": "hudson.model.Cause$UserIdCause", "shortDescription": text, "userId": user, "userName": user,
            }),
            SimulatedCause::Timer => {
                json!({ "_class": "hudson.triggers.TimerTrigger$TimerTriggerCause", "shortDescription": text })
            }
            SimulatedCause::Commit => {
                json!({ "_class": "hudson.triggers.SCMTrigger$SCMTriggerCause", "shortDescription": text })
            }
            SimulatedCause::Replay(_) => {
                json!({ "_class": "org.jenkinsci.plugins.workflow.cps.replay.ReplayCause", "shortDescription": text })
            }
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            SimulatedCause::User(user) => format!("Started by user {user}"),
            SimulatedCause::Timer => "Started by timer".to_owned(),
            SimulatedCause::Commit => "Started by an SCM change".to_owned(),
            SimulatedCause::Replay(number) => format!("Replayed #{number}"),
        }
    }
}

impl Order {
    /// Whether a parameter has this value.
    pub(super) fn has(&self, parameter: &str, value: &str) -> bool {
        self.settings.iter().any(|setting| setting.name == parameter && setting.value == value)
    }
}
