//! What a Rollout says of itself, read from one look at the object. Pure.

use crate::k8s::images;
use domain::Moment;
use serde_json::Value;

/// Where a Rollout and what belongs to it note their revision.
pub(super) const REVISION: &str = "rollout.argoproj.io/revision";

/// How new versions come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Canary,
    BlueGreen,
    /// One this version does not know, or none.
    Other,
}

impl Strategy {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Strategy::Canary => "canary",
            Strategy::BlueGreen => "blue-green",
            Strategy::Other => "unknown",
        }
    }
}

/// A Rollout, looked at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RolloutView<'a> {
    object: &'a Value,
}

impl<'a> RolloutView<'a> {
    pub(crate) fn of(object: &'a Value) -> RolloutView<'a> {
        RolloutView { object }
    }

    fn spec(self) -> &'a Value {
        &self.object["spec"]
    }

    fn status(self) -> &'a Value {
        &self.object["status"]
    }

    /// Phase, and why. Until the controller has looked at the latest change, what it said before says nothing.
    pub(crate) fn phase(self) -> (String, Option<String>) {
        let waiting = |why: &str| ("Progressing".to_owned(), Some(why.to_owned()));
        if !self.is_observed() {
            return waiting("waiting for the controller to see the latest change");
        }
        if self.is_unpausing() {
            return waiting("waiting for the controller to lift the pause");
        }
        let message = self.status()["message"].as_str().filter(|text| !text.is_empty()).map(redact::message);
        (redact::message(self.status()["phase"].as_str().unwrap_or("Progressing")), message)
    }

    /// Whether the controller has seen the latest change. A generation that is no number is that of an old controller.
    pub(super) fn is_observed(self) -> bool {
        let generation = self.object["metadata"]["generation"].as_i64().unwrap_or_default();
        let observed = self.status()["observedGeneration"].as_str().and_then(|text| text.parse::<i64>().ok());
        observed.is_none_or(|observed| observed >= generation)
    }

    /// Somebody lifted the pause, and the controller has not acted on it yet: a promote is under way.
    pub(super) fn is_unpausing(self) -> bool {
        self.status()["controllerPause"] == true && self.holds().is_empty()
    }

    pub(super) fn strategy(self) -> Strategy {
        match &self.spec()["strategy"] {
            strategy if strategy["canary"].is_object() => Strategy::Canary,
            strategy if strategy["blueGreen"].is_object() => Strategy::BlueGreen,
            _ => Strategy::Other,
        }
    }

    /// The strategy as it stands there.
    pub(super) fn strategy_text(self) -> &'a Value {
        &self.spec()["strategy"]
    }

    pub(super) fn steps(self) -> &'a [Value] {
        self.spec()["strategy"]["canary"]["steps"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The step it is at, from 0; as many as there are means all of them are done. Only a canary has steps.
    pub(super) fn step(self) -> Option<usize> {
        let count = self.steps().len();
        let index = self.status()["currentStepIndex"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        (count > 0).then_some(index.min(count))
    }

    /// `2/5`: how many steps are done, of how many.
    pub(super) fn step_text(self) -> Option<String> {
        self.step().map(|step| format!("{step}/{}", self.steps().len()))
    }

    /// The share of the traffic that is meant for the new version at a step, in percent.
    pub(super) fn weight_at(self, step: usize) -> u64 {
        let steps = self.steps();
        if step >= steps.len() {
            return 100;
        }
        steps[..=step].iter().rev().find_map(|step| step["setWeight"].as_u64()).unwrap_or(0)
    }

    /// The share of the traffic that is meant for the new version now, in percent.
    pub(super) fn weight(self) -> Option<u64> {
        match (self.strategy(), self.step()) {
            (Strategy::Canary, _) if self.is_promoted() => Some(100),
            (Strategy::Canary, _) if self.is_aborted() => Some(0),
            (Strategy::Canary, Some(step)) => Some(self.weight_at(step)),
            (Strategy::Canary, None) => Some(100),
            (Strategy::BlueGreen | Strategy::Other, _) => None,
        }
    }

    /// Whether a person paused it.
    pub(super) fn is_paused(self) -> bool {
        self.spec()["paused"] == true
    }

    /// What it waits for by its own steps: reason and beginning of each pause.
    pub(super) fn holds(self) -> &'a [Value] {
        self.status()["pauseConditions"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// When the last pause ended, if none stands.
    pub(super) fn lifted(self) -> Option<Moment> {
        let conditions = self.status()["conditions"].as_array()?;
        let paused = conditions.iter().find(|one| one["type"] == "Paused" && one["status"] == "False")?;
        Moment::parse(paused["lastTransitionTime"].as_str()?)
    }

    pub(super) fn is_aborted(self) -> bool {
        self.status()["abort"] == true
    }

    pub(super) fn is_promoting_fully(self) -> bool {
        self.status()["promoteFull"] == true
    }

    /// The template that is wanted, by its hash.
    pub(super) fn current_hash(self) -> &'a str {
        self.status()["currentPodHash"].as_str().unwrap_or_default()
    }

    /// The template that serves, by its hash.
    pub(super) fn stable_hash(self) -> &'a str {
        self.status()["stableRS"].as_str().unwrap_or_default()
    }

    /// Whether the wanted template is the one that serves.
    pub(super) fn is_promoted(self) -> bool {
        self.current_hash() == self.stable_hash()
    }

    /// Whether the analysis of the current step came to no conclusion.
    pub(super) fn is_inconclusive(self) -> bool {
        self.status()["canary"]["currentStepAnalysisRunStatus"]["status"] == "Inconclusive"
    }

    /// The analysis of the current step: its name and phase.
    pub(super) fn analysis(self) -> Option<(String, String)> {
        let run = &self.status()["canary"]["currentStepAnalysisRunStatus"];
        Some((redact::message(run["name"].as_str()?), redact::message(run["status"].as_str().unwrap_or("Pending"))))
    }

    pub(super) fn revision(self) -> Option<u64> {
        self.object["metadata"]["annotations"][REVISION].as_str()?.parse().ok()
    }

    pub(super) fn restart_at(self) -> Option<&'a str> {
        self.spec()["restartAt"].as_str()
    }

    pub(super) fn generation(self) -> Option<u64> {
        self.object["metadata"]["generation"].as_u64()
    }

    pub(super) fn template(self) -> &'a Value {
        &self.spec()["template"]
    }

    /// The workload that it takes its template from, if it has none of its own.
    pub(super) fn workload_ref(self) -> Option<&'a Value> {
        Some(&self.spec()["workloadRef"]).filter(|reference| reference.is_object())
    }

    pub(super) fn images(self) -> Vec<String> {
        images::named(self.template()).into_values().collect()
    }

    pub(super) fn replicas(self) -> u64 {
        self.spec()["replicas"].as_u64().unwrap_or(1)
    }

    pub(super) fn ready(self) -> u64 {
        self.status()["readyReplicas"].as_u64().unwrap_or_default()
    }

    pub(super) fn max_unavailable(self) -> String {
        match &self.spec()["strategy"]["canary"]["maxUnavailable"] {
            Value::String(text) => redact::message(text),
            Value::Number(number) => number.to_string(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => "25%".to_owned(),
        }
    }
}

/// A step as people say it.
pub(super) fn step_words(step: &Value) -> String {
    if let Some(weight) = step["setWeight"].as_u64() {
        return format!("set weight {weight}%");
    }
    if let Some(pause) = step["pause"].as_object() {
        return match pause.get("duration") {
            Some(Value::String(span)) => format!("pause for {}", redact::message(span)),
            Some(Value::Number(seconds)) => format!("pause for {seconds}s"),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
                "pause until promoted".to_owned()
            }
        };
    }
    let templates = |of: &Value| {
        let all = of["templates"].as_array().into_iter().flatten();
        let names: Vec<String> =
            all.filter_map(|one| one["templateName"].as_str().or(one["name"].as_str())).map(redact::message).collect();
        if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) }
    };
    for (key, word) in [("analysis", "analysis"), ("experiment", "experiment")] {
        if step[key].is_object() {
            return format!("{word}{}", templates(&step[key]));
        }
    }
    let keys: Vec<&str> = step.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    redact::message(&keys.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn canary(status: Value) -> Value {
        let steps = json!([{ "setWeight": 20 }, { "pause": {} }, { "setWeight": 60 }]);
        json!({
            "metadata": { "generation": 3, "annotations": { REVISION: "2" } },
            "spec": { "strategy": { "canary": { "steps": steps } } }, "status": status,
        })
    }

    #[test]
    fn the_phase_is_the_controllers_once_it_has_looked() {
        let phase = |status: Value| RolloutView::of(&canary(status)).phase();
        let paused = json!({ "phase": "Paused", "message": "CanaryPauseStep", "observedGeneration": "3",
            "controllerPause": true, "pauseConditions": [{ "reason": "CanaryPauseStep" }] });
        assert_eq!(phase(paused.clone()), ("Paused".to_owned(), Some("CanaryPauseStep".to_owned())));
        let mut lifted = paused.clone();
        lifted["pauseConditions"] = Value::Null;
        assert_eq!(phase(lifted).0, "Progressing");
        let mut behind = paused;
        behind["observedGeneration"] = json!("2");
        assert_eq!(phase(behind).0, "Progressing");
        assert_eq!(phase(json!({ "phase": "Healthy", "observedGeneration": "6b9f" })).0, "Healthy");
        assert_eq!(phase(json!({})).0, "Progressing");
    }

    #[test]
    fn a_weight_is_the_last_one_set() {
        let at = |index: u64, more: Value| {
            let mut status = json!({ "currentStepIndex": index, "currentPodHash": "b", "stableRS": "a" });
            status.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let object = canary(status);
            (RolloutView::of(&object).weight().unwrap(), RolloutView::of(&object).step_text().unwrap())
        };
        assert_eq!(at(0, json!({})), (20, "0/3".to_owned()));
        assert_eq!(at(1, json!({})), (20, "1/3".to_owned()));
        assert_eq!(at(3, json!({})), (100, "3/3".to_owned()));
        assert_eq!(at(99, json!({})), (100, "3/3".to_owned()), "an index beyond the steps is the last one");
        assert_eq!(at(1, json!({ "abort": true })).0, 0);
        assert_eq!(at(0, json!({ "stableRS": "b" })).0, 100);
    }

    #[test]
    fn steps_are_said_in_words() {
        let words = |step: Value| step_words(&step);
        assert_eq!(words(json!({ "setWeight": 5 })), "set weight 5%");
        assert_eq!(words(json!({ "pause": {} })), "pause until promoted");
        assert_eq!(words(json!({ "pause": { "duration": "1h" } })), "pause for 1h");
        assert_eq!(words(json!({ "pause": { "duration": 30 } })), "pause for 30s");
        assert_eq!(words(json!({ "analysis": { "templates": [{ "templateName": "a" }] } })), "analysis of a");
        assert_eq!(words(json!({ "setHeaderRoute": {} })), "setHeaderRoute");
    }
}
