//! PodDisruptionBudgets: how many pods may be taken away on purpose right now.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conditions::{self, DesiredCondition};
use crate::json;
use crate::selector::Labels;
use crate::world::{ClusterWorld, controller_of};

const RESOURCE: &str = "poddisruptionbudgets.policy";

pub(super) fn look(world: &mut ClusterWorld) {
    for budget in world.all(RESOURCE, "") {
        let status = assess(world, &budget);
        let now = world.stamp();
        world.change(RESOURCE, &budget, |budget| {
            let conditions = json::at(budget, "/status/conditions").cloned();
            json::set(budget, "/status", status);
            if let Some(conditions) = conditions {
                json::set(budget, "/status/conditions", conditions);
            }
            let enough = json::int(budget, "/status/disruptionsAllowed", 0) > 0;
            let reason = if enough { "SufficientPods" } else { "InsufficientPods" };
            let condition = DesiredCondition { kind: "DisruptionAllowed", holds: enough, reason, message: "" };
            conditions::set(budget, &condition, &now);
        });
    }
}

/// The pods a budget protects.
pub(crate) fn protected(world: &ClusterWorld, budget: &Value) -> Vec<Arc<Value>> {
    let labels = Labels::of_object(json::at(budget, "/spec/selector").unwrap_or(&Value::Null));
    let pods = world
        .objects
        .within("pods", json::namespace(budget))
        .filter(|pod| labels.matches(pod) && !matches!(json::text(pod, "/status/phase"), Some("Succeeded" | "Failed")));
    pods.cloned().collect()
}

/// Counts a budget's pods: expected, wanted, healthy, and what may go.
pub(crate) fn assess(world: &ClusterWorld, budget: &Value) -> Value {
    let pods = protected(world, budget);
    let expected = expected_pods(world, &pods);
    let healthy = pods.iter().filter(|pod| conditions::holds(pod, "Ready") && !json::is_going(pod)).count();
    let healthy = i64::try_from(healthy).unwrap_or_default();
    let wanted = match (json::at(budget, "/spec/minAvailable"), json::at(budget, "/spec/maxUnavailable")) {
        (Some(minimum), _) => json::part_of(Some(minimum), expected, true, &json!(0)),
        (None, Some(missing)) => expected - json::part_of(Some(missing), expected, true, &json!(0)),
        (None, None) => 1,
    };
    json!({
        "observedGeneration": budget["metadata"]["generation"], "expectedPods": expected,
        "desiredHealthy": wanted.max(0), "currentHealthy": healthy,
        "disruptionsAllowed": if expected == 0 { 0 } else { (healthy - wanted.max(0)).max(0) },
    })
}

/// What the controllers of the pods want in total.
fn expected_pods(world: &ClusterWorld, pods: &[Arc<Value>]) -> i64 {
    let mut seen: Vec<&str> = Vec::new();
    let mut expected = 0;
    for pod in pods {
        let Some((kind, uid)) = controller_of(pod) else {
            expected += 1;
            continue;
        };
        if seen.contains(&uid) {
            continue;
        }
        seen.push(uid);
        let resource = match kind {
            "ReplicaSet" => "replicasets.apps",
            "StatefulSet" => "statefulsets.apps",
            _ => {
                let same = |pod: &&Arc<Value>| controller_of(pod).is_some_and(|(_, other)| other == uid);
                expected += i64::try_from(pods.iter().filter(same).count()).unwrap_or_default();
                continue;
            }
        };
        let owner = world.objects.within(resource, json::namespace(pod)).find(|owner| json::uid(owner) == uid);
        expected += owner.map_or(1, |owner| json::int(owner, "/spec/replicas", 1));
    }
    expected
}
