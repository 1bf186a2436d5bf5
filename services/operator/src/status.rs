//! Conditions, as Gateway API and kstatus have them.

use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest message of a condition that the API server takes.
const LONGEST_MESSAGE: usize = 1024;

/// One thing that is so, or is not, or is not known.
#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    #[serde(default)]
    pub message: String,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Since when `status` is as it is.
    pub last_transition_time: String,
}

/// What is to be said of one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    kind: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl Verdict {
    /// It is so.
    pub fn yes(kind: &'static str, reason: &'static str) -> Verdict {
        Verdict { kind, status: "True", reason, message: String::new() }
    }

    /// It is not so.
    pub fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Verdict {
        Verdict { kind, status: "False", reason, message: message.into() }
    }

    /// It cannot be told yet.
    pub fn unknown(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Verdict {
        Verdict { kind, status: "Unknown", reason, message: message.into() }
    }

    /// Whether it is so.
    pub fn holds(&self) -> bool {
        self.status == "True"
    }
}

/// The conditions after a look: each with the time since when it is as it is, which a repeated look does not move.
pub fn conditions(before: &[Condition], verdicts: Vec<Verdict>, generation: Option<i64>) -> Vec<Condition> {
    let now = || Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default().to_string();
    let condition = |verdict: Verdict| {
        let old = before.iter().find(|old| old.kind == verdict.kind && old.status == verdict.status);
        Condition {
            kind: verdict.kind.to_owned(),
            status: verdict.status.to_owned(),
            reason: verdict.reason.to_owned(),
            message: verdict.message.chars().take(LONGEST_MESSAGE).collect(),
            observed_generation: generation,
            last_transition_time: old.map_or_else(now, |old| old.last_transition_time.clone()),
        }
    };
    verdicts.into_iter().map(condition).collect()
}

/// The conditions whose status or reason became another one: what people are told by an event.
pub fn changed<'n>(before: &[Condition], now: &'n [Condition]) -> Vec<&'n Condition> {
    let is_new = |condition: &&Condition| {
        let old = before.iter().find(|old| old.kind == condition.kind);
        old.is_none_or(|old| (&old.status, &old.reason) != (&condition.status, &condition.reason))
    };
    now.iter().filter(is_new).collect()
}

/// The conditions in one word.
pub fn phase(accepted: &Verdict, ready: &Verdict) -> &'static str {
    match (accepted.status, ready.status) {
        ("False", _) => "Failed",
        (_, "True") => "Running",
        (_, _) => "Pending",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_the_time_of_its_last_change() {
        let mut first = conditions(&[], vec![Verdict::no("Ready", "NoReplicas", "none yet")], Some(1));
        first[0].last_transition_time = "2026-01-01T00:00:00Z".to_owned();
        let again = conditions(&first, vec![Verdict::no("Ready", "Crashed", "it ended")], Some(2));
        assert_eq!(again[0].last_transition_time, "2026-01-01T00:00:00Z");
        assert_eq!((again[0].reason.as_str(), again[0].observed_generation), ("Crashed", Some(2)));
        let ready = conditions(&again, vec![Verdict::yes("Ready", "Serving")], Some(2));
        assert_ne!(ready[0].last_transition_time, "2026-01-01T00:00:00Z");
    }

    #[test]
    fn only_what_changed_is_told() {
        let before = conditions(&[], vec![Verdict::yes("Accepted", "Applied"), Verdict::yes("Ready", "Serving")], None);
        let now =
            conditions(&before, vec![Verdict::yes("Accepted", "Applied"), Verdict::no("Ready", "Gone", "")], None);
        let told: Vec<&str> = changed(&before, &now).iter().map(|condition| condition.kind.as_str()).collect();
        assert_eq!(told, ["Ready"]);
        assert!(changed(&now, &now).is_empty());
    }

    #[test]
    fn a_long_message_is_cut() {
        let long = conditions(&[], vec![Verdict::no("Accepted", "Refused", "ü".repeat(5_000))], None);
        assert_eq!(long[0].message.chars().count(), LONGEST_MESSAGE);
    }
}
