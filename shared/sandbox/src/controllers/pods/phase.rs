//! The phase and conditions of a pod, summed up from its containers.

use serde_json::Value;

use super::super::conditions::{self, DesiredCondition};
use crate::json;

pub(super) fn restart_policy(pod: &Value) -> &str {
    json::text(pod, "/spec/restartPolicy").unwrap_or("Always")
}

/// When an ended container starts again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restarts {
    Always,
    OnFailure,
    Never,
}

/// The rule for a container of a list: those before the others need to succeed only once, debug containers run once.
pub(super) fn restarts(pod: &Value, spec: &str) -> Restarts {
    match (spec, restart_policy(pod)) {
        ("ephemeralContainers", _) | (_, "Never") => Restarts::Never,
        ("initContainers", _) | (_, "OnFailure") => Restarts::OnFailure,
        _ => Restarts::Always,
    }
}

/// Whether something about the pod is not yet as its spec wants it.
pub(super) fn is_changing(pod: &Value) -> bool {
    let states = json::list(pod, "/status/containerStatuses");
    let debug = json::list(pod, "/spec/ephemeralContainers").len();
    states.len() != json::list(pod, "/spec/containers").len()
        || states.iter().any(|state| !json::is_true(state, "/ready") || image_moved(pod, state))
        || debug > json::list(pod, "/status/ephemeralContainerStatuses").len()
}

fn image_moved(pod: &Value, state: &Value) -> bool {
    let wanted = json::list(pod, "/spec/containers").iter().find(|one| one["name"] == state["name"]);
    wanted.is_some_and(|wanted| wanted["image"] != state["image"])
}

/// Writes phase and conditions.
pub(super) fn sum_up(pod: &mut Value, now: &str) {
    for state in json::list(pod, "/spec/containers").to_vec() {
        let image = state["image"].clone();
        let states = json::list_mut(pod, "/status/containerStatuses");
        if let Some(status) = states.iter_mut().find(|status| status["name"] == state["name"]) {
            json::set(status, "/image", image);
        }
    }
    let states = json::list(pod, "/status/containerStatuses").to_vec();
    let inits = json::list(pod, "/status/initContainerStatuses");
    let initialized = inits.iter().all(|state| json::int(state, "/state/terminated/exitCode", -1) == 0);
    let init_failed = restart_policy(pod) == "Never"
        && inits.iter().any(|state| json::int(state, "/state/terminated/exitCode", 0) != 0);
    let ended = !states.is_empty() && states.iter().all(|state| json::at(state, "/state/terminated").is_some());
    let well = states.iter().all(|state| json::int(state, "/state/terminated/exitCode", 1) == 0);
    let started = states.iter().any(|state| {
        json::at(state, "/state/running").is_some()
            || json::at(state, "/state/terminated").is_some()
            || json::at(state, "/lastState/terminated").is_some()
    });
    let ready = !ended && !states.is_empty() && states.iter().all(|state| json::is_true(state, "/ready"));
    if json::text(pod, "/status/reason") != Some("DeadlineExceeded") {
        let phase = match (ended || init_failed, well && !init_failed, started) {
            (true, true, _) => "Succeeded",
            (true, false, _) => "Failed",
            (false, _, true) => "Running",
            (false, _, false) => "Pending",
        };
        json::set(pod, "/status/phase", phase);
    }
    let names = |wanted: &dyn Fn(&Value) -> bool| {
        states.iter().filter(|state| wanted(state)).map(|state| json::text_or_empty(state, "/name")).collect::<Vec<_>>()
    };
    let unready = names(&|state| !json::is_true(state, "/ready"));
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let why = |holds: bool| match (holds, ended) {
        (true, _) => ("", ""),
        (false, true) => ("PodCompleted", ""),
        (false, false) => ("ContainersNotReady", message.as_str()),
    };
    for (kind, holds) in [("PodReadyToStartContainers", true), ("Initialized", initialized)] {
        conditions::set(pod, &DesiredCondition { kind, holds, reason: "", message: "" }, now);
    }
    for kind in ["Ready", "ContainersReady"] {
        let (reason, message) = why(ready);
        conditions::set(pod, &DesiredCondition { kind, holds: ready, reason, message }, now);
    }
    conditions::set(pod, &DesiredCondition { kind: "PodScheduled", holds: true, reason: "", message: "" }, now);
}
