//! What a wait waits for: a condition, a finished rollout, being there or gone, or a field with a value.

use super::pick::Pick;
use super::rollout_rules::{condition, standing};
use domain::Failure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use target::bounded_text;

const MOST_BYTES: usize = 320;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct WaitCondition {
    text: String,
    goal: Goal,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Goal {
    Condition { name: String, status: String },
    Rollout,
    Exists,
    Deleted,
    Field { pick: Pick, value: String },
}

/// How far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct WaitProgress {
    /// It is so.
    pub(crate) met: bool,
    /// It cannot come to be without somebody doing something.
    pub(crate) hopeless: bool,
    /// In words.
    pub(crate) state: String,
}

impl WaitProgress {
    fn new(met: bool, state: impl Into<String>) -> WaitProgress {
        WaitProgress { met, hopeless: false, state: state.into() }
    }
}

impl Default for WaitCondition {
    fn default() -> WaitCondition {
        let goal = Goal::Condition { name: "Ready".to_owned(), status: "True".to_owned() };
        WaitCondition { text: "Ready".to_owned(), goal }
    }
}

impl WaitCondition {
    /// Whether an absent object is part of the question instead of an error.
    pub(crate) fn allows_absence(&self) -> bool {
        match self.goal {
            Goal::Exists | Goal::Deleted => true,
            Goal::Condition { .. } | Goal::Rollout | Goal::Field { .. } => false,
        }
    }

    /// Whether it can be judged at all for this kind.
    pub(crate) fn suits(&self, kind: &str) -> Result<(), Failure> {
        if self.goal == Goal::Rollout && standing(kind, &Value::Null).is_none() {
            return Err(Failure::new(crate::codes::UNSUPPORTED_KIND, format!("a {kind} has no rollout"))
                .next("wait for a condition such as Ready, or for a field such as status.phase=Running"));
        }
        Ok(())
    }

    /// How far an object is; `None` for one that is not there.
    pub(crate) fn judge(&self, kind: &str, object: Option<&Value>) -> WaitProgress {
        let Some(object) = object else {
            return WaitProgress::new(self.goal == Goal::Deleted, "not there");
        };
        match &self.goal {
            Goal::Exists => WaitProgress::new(true, "there"),
            Goal::Deleted => {
                let going = object["metadata"]["deletionTimestamp"].is_string();
                WaitProgress::new(false, if going { "being deleted" } else { "there, and nobody is deleting it" })
            }
            Goal::Rollout => match standing(kind, object) {
                Some(standing) => {
                    WaitProgress { met: standing.done, hopeless: standing.failed, state: standing.message }
                }
                None => WaitProgress::new(false, "no rollout to judge"),
            },
            Goal::Condition { name, status } => by_condition(name, status, object),
            Goal::Field { pick, value } => match pick.find(object) {
                Some(found) => {
                    let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                    let shown: String = text.chars().take(120).collect();
                    WaitProgress::new(text == *value, format!("{}={shown}", pick.as_str()))
                }
                None => WaitProgress::new(false, format!("{} is not set", pick.as_str())),
            },
        }
    }
}

fn by_condition(name: &str, status: &str, object: &Value) -> WaitProgress {
    let Some(found) = condition(&object["status"], name) else {
        // A finished job is the one case where another condition settles the question.
        let failed =
            name == "Complete" && condition(&object["status"], "Failed").is_some_and(|c| c["status"] == "True");
        let state = if failed { "Failed=True" } else { "the condition is not reported yet" };
        return WaitProgress { met: false, hopeless: failed, state: state.to_owned() };
    };
    let is = found["status"].as_str().unwrap_or("Unknown");
    let reason = found["reason"].as_str().map(|r| format!(" ({r})")).unwrap_or_default();
    WaitProgress::new(is.eq_ignore_ascii_case(status), format!("{name}={is}{reason}"))
}

impl TryFrom<String> for WaitCondition {
    type Error = String;

    fn try_from(text: String) -> Result<WaitCondition, String> {
        let told = || {
            "until is a condition such as Ready or Available=False, rollout, exists, deleted, or path=value".to_owned()
        };
        if text.is_empty() || text.len() > MOST_BYTES || text.chars().any(char::is_control) {
            return Err(told());
        }
        let goal = match (text.as_str(), text.split_once('=')) {
            ("rollout", _) => Goal::Rollout,
            ("exists", _) => Goal::Exists,
            ("deleted", _) => Goal::Deleted,
            (name, None) if is_condition(name) => Goal::Condition { name: name.to_owned(), status: "True".to_owned() },
            (_, Some((name, status @ ("True" | "False" | "Unknown" | "true" | "false")))) if is_condition(name) => {
                Goal::Condition { name: name.to_owned(), status: status.to_owned() }
            }
            (_, Some((path, value))) if path.contains(['.', '[']) => {
                let pick = Pick::try_from(path.to_owned()).map_err(|_| told())?;
                Goal::Field { pick, value: value.to_owned() }
            }
            (_, _) => return Err(told()),
        };
        Ok(WaitCondition { text, goal })
    }
}

/// A condition's type, perhaps with the domain of whoever sets it.
fn is_condition(text: &str) -> bool {
    let name = text.rsplit('/').next().unwrap_or_default();
    name.bytes().next().is_some_and(|b| b.is_ascii_uppercase())
        && text.len() <= 128
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'/' | b'.'))
}

bounded_text!(WaitCondition, MOST_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn until(text: &str) -> WaitCondition {
        WaitCondition::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn each_goal_is_judged_by_its_own_rule() {
        let ready = json!({ "status": { "phase": "Running", "n": 3, "conditions": [{ "type": "Ready", "status": "True" }, { "type": "Disk", "status": "False", "reason": "Full" }] } });
        for (text, met, state) in [
            ("Ready", true, "Ready=True"),
            ("Ready=False", false, "Ready=True"),
            ("Disk=False", true, "Disk=False (Full)"),
            ("Available", false, "the condition is not reported yet"),
            ("status.phase=Running", true, "status.phase=Running"),
            ("status.n=3", true, "status.n=3"),
            ("status.x=3", false, "status.x is not set"),
            ("status.conditions[0].type=Ready", true, "status.conditions[0].type=Ready"),
            ("exists", true, "there"),
            ("deleted", false, "there, and nobody is deleting it"),
        ] {
            assert_eq!(until(text).judge("Pod", Some(&ready)), WaitProgress::new(met, state), "{text}");
        }
        assert!(until("deleted").judge("Pod", None).met && !until("exists").judge("Pod", None).met);
        assert!(until("deleted").allows_absence() && !until("Ready").allows_absence());
        assert!(WaitCondition::default().judge("Pod", Some(&ready)).met);
    }

    #[test]
    fn what_cannot_come_is_said_at_once() {
        let failed = json!({ "status": { "conditions": [{ "type": "Failed", "status": "True" }] } });
        assert!(until("Complete").judge("Job", Some(&failed)).hopeless);
        let stuck =
            json!({ "status": { "conditions": [{ "type": "Progressing", "reason": "ProgressDeadlineExceeded" }] } });
        assert!(until("rollout").judge("Deployment", Some(&stuck)).hopeless);
        assert_eq!(until("rollout").suits("Pod").unwrap_err().code, crate::codes::UNSUPPORTED_KIND);
        assert!(until("rollout").suits("Rollout").is_ok() && until("Ready").suits("Pod").is_ok());
    }

    #[test]
    fn what_is_no_goal_is_refused() {
        for bad in [
            "",
            "ready",
            "phase=Running",
            "=x",
            "Ready=Maybe",
            "a..b=c",
            "Ready\n",
            "Ready True",
            "x",
            &"A".repeat(200),
        ] {
            assert!(WaitCondition::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
