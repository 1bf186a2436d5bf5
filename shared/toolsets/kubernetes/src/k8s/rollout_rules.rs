//! Whether a rollout is done, under way or stuck, judged as kubectl judges it, from one look at the object.

use crate::argo::RolloutView;
use serde_json::Value;

/// How a rollout stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RolloutStanding {
    /// All wanted replicas run the wanted template.
    pub(crate) done: bool,
    /// It will not get further by itself.
    pub(crate) failed: bool,
    /// In one sentence.
    pub(crate) message: String,
    /// Replicas that are wanted.
    pub(crate) desired: u64,
    /// Replicas of the wanted template.
    pub(crate) updated: u64,
    /// Replicas that are ready.
    pub(crate) ready: u64,
    /// Replicas that have been ready long enough.
    pub(crate) available: u64,
}

/// The standing of a workload; nothing for kinds without rollouts.
pub(crate) fn standing(kind: &str, object: &Value) -> Option<RolloutStanding> {
    let judge: fn(&Value) -> RolloutStanding = match kind {
        "Deployment" => deployment,
        "StatefulSet" => stateful_set,
        "DaemonSet" => daemon_set,
        "Rollout" => argo_rollout,
        _ => return None,
    };
    let mut standing = judge(object);
    let (seen, wanted) = (number(&object["status"]["observedGeneration"]), number(&object["metadata"]["generation"]));
    // Argo's own phase knows whether it has seen the latest change.
    if kind != "Rollout" && seen < wanted {
        standing.done = false;
        standing.failed = false;
        standing.message = "waiting for the controller to see the latest change".to_owned();
    }
    Some(standing)
}

fn deployment(object: &Value) -> RolloutStanding {
    let (spec, status) = (&object["spec"], &object["status"]);
    let counts = counts(spec["replicas"].as_u64().unwrap_or(1), status);
    let total = number(&status["replicas"]);
    let progressing = condition(status, "Progressing");
    if progressing.is_some_and(|c| c["reason"] == "ProgressDeadlineExceeded") {
        return RolloutStanding {
            failed: true,
            message: "the rollout exceeded its progress deadline".to_owned(),
            ..counts
        };
    }
    let message = if counts.updated < counts.desired {
        let paused = if spec["paused"] == true { " (paused)" } else { "" };
        format!("{} of {} replicas are updated{paused}", counts.updated, counts.desired)
    } else if total > counts.updated {
        format!("{} old replicas are about to end", total - counts.updated)
    } else if counts.available < counts.updated {
        format!("{} of {} updated replicas are available", counts.available, counts.updated)
    } else {
        return RolloutStanding { done: true, message: "rolled out".to_owned(), ..counts };
    };
    RolloutStanding { message, ..counts }
}

fn stateful_set(object: &Value) -> RolloutStanding {
    let (spec, status) = (&object["spec"], &object["status"]);
    let counts = counts(spec["replicas"].as_u64().unwrap_or(1), status);
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        let message = "updated only as pods are deleted (OnDelete), so there is no rollout to judge".to_owned();
        return RolloutStanding { done: counts.updated >= counts.desired, message, ..counts };
    }
    if counts.ready < counts.desired {
        return RolloutStanding {
            message: format!("{} of {} replicas are ready", counts.ready, counts.desired),
            ..counts
        };
    }
    let partition = number(&strategy["rollingUpdate"]["partition"]);
    if partition > 0 {
        let wanted = counts.desired.saturating_sub(partition);
        let message = format!("partition {partition}: {} of {wanted} replicas are updated", counts.updated);
        return RolloutStanding { done: counts.updated >= wanted, message, ..counts };
    }
    if status["updateRevision"] != status["currentRevision"] {
        return RolloutStanding {
            message: format!("{} of {} replicas are updated", counts.updated, counts.desired),
            ..counts
        };
    }
    RolloutStanding { done: true, message: "rolled out".to_owned(), ..counts }
}

fn daemon_set(object: &Value) -> RolloutStanding {
    let status = &object["status"];
    let counts = RolloutStanding {
        done: false,
        failed: false,
        message: String::new(),
        desired: number(&status["desiredNumberScheduled"]),
        updated: number(&status["updatedNumberScheduled"]),
        ready: number(&status["numberReady"]),
        available: number(&status["numberAvailable"]),
    };
    if object["spec"]["updateStrategy"]["type"] == "OnDelete" {
        let message = "updated only as pods are deleted (OnDelete), so there is no rollout to judge".to_owned();
        return RolloutStanding { done: counts.updated >= counts.desired, message, ..counts };
    }
    let message = if counts.updated < counts.desired {
        format!("{} of {} pods are updated", counts.updated, counts.desired)
    } else if counts.available < counts.desired {
        format!("{} of {} updated pods are available", counts.available, counts.desired)
    } else {
        return RolloutStanding { done: true, message: "rolled out".to_owned(), ..counts };
    };
    RolloutStanding { message, ..counts }
}

/// Argo says itself how its Rollout stands, unless it has not looked yet.
fn argo_rollout(object: &Value) -> RolloutStanding {
    let (spec, status) = (&object["spec"], &object["status"]);
    let counts = counts(spec["replicas"].as_u64().unwrap_or(1), status);
    let (phase, why) = RolloutView::of(object).phase();
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    let message = format!("phase {phase}{why}");
    RolloutStanding { done: phase == "Healthy", failed: phase == "Degraded", message, ..counts }
}

fn counts(desired: u64, status: &Value) -> RolloutStanding {
    RolloutStanding {
        done: false,
        failed: false,
        message: String::new(),
        desired,
        updated: number(&status["updatedReplicas"]),
        ready: number(&status["readyReplicas"]),
        available: number(&status["availableReplicas"]),
    }
}

/// A condition of an object by its type.
pub(crate) fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status["conditions"].as_array()?.iter().find(|c| c["type"] == name)
}

fn number(value: &Value) -> u64 {
    // Argo writes its generations as text.
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn judged(kind: &str, object: Value) -> (bool, bool, String) {
        let RolloutStanding { done, failed, message, .. } = standing(kind, &object).unwrap();
        (done, failed, message)
    }

    fn deployment(change: &[(&str, Value)]) -> Value {
        let mut object = json!({
            "metadata": { "generation": 2 }, "spec": { "replicas": 3 },
            "status": { "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3 },
        });
        for (pointer, value) in change {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[key] = value.clone();
        }
        object
    }

    #[test]
    fn a_deployment_is_judged_like_kubectl_does() {
        let told = |change: &[(&str, Value)]| judged("Deployment", deployment(change));
        assert_eq!(told(&[]), (true, false, "rolled out".into()));
        assert_eq!(
            told(&[("/status/observedGeneration", json!(1))]).2,
            "waiting for the controller to see the latest change"
        );
        assert_eq!(told(&[("/status/updatedReplicas", json!(1))]).2, "1 of 3 replicas are updated");
        assert_eq!(
            told(&[("/status/updatedReplicas", json!(1)), ("/spec/paused", json!(true))]).2,
            "1 of 3 replicas are updated (paused)"
        );
        assert_eq!(told(&[("/status/replicas", json!(4))]).2, "1 old replicas are about to end");
        assert_eq!(told(&[("/status/availableReplicas", json!(2))]).2, "2 of 3 updated replicas are available");
        let stuck = json!([{ "type": "Progressing", "reason": "ProgressDeadlineExceeded", "status": "False" }]);
        assert_eq!(
            told(&[("/status/conditions", stuck)]),
            (false, true, "the rollout exceeded its progress deadline".into())
        );
        assert!(told(&[("/spec/replicas", json!(0)), ("/status", json!({ "observedGeneration": 2 }))]).0);
    }

    #[test]
    fn a_stateful_set_knows_partitions_and_on_delete() {
        let set = |strategy: Value, updated: u64, current: &str| {
            json!({
                "metadata": { "generation": 1 }, "spec": { "replicas": 3, "updateStrategy": strategy },
                "status": { "observedGeneration": 1, "readyReplicas": 3, "updatedReplicas": updated, "updateRevision": "b", "currentRevision": current },
            })
        };
        let rolling = json!({ "type": "RollingUpdate" });
        assert_eq!(judged("StatefulSet", set(rolling.clone(), 3, "b")), (true, false, "rolled out".into()));
        assert_eq!(judged("StatefulSet", set(rolling, 1, "a")), (false, false, "1 of 3 replicas are updated".into()));
        let partition = json!({ "rollingUpdate": { "partition": 2 } });
        assert!(judged("StatefulSet", set(partition.clone(), 1, "a")).0);
        assert_eq!(
            judged("StatefulSet", set(partition, 0, "a")),
            (false, false, "partition 2: 0 of 1 replicas are updated".into())
        );
        assert!(!judged("StatefulSet", set(json!({ "type": "OnDelete" }), 1, "a")).0);
    }

    #[test]
    fn a_daemon_set_waits_for_its_pods() {
        let set = |updated: u64, available: u64| json!({ "metadata": {}, "status": { "desiredNumberScheduled": 4, "updatedNumberScheduled": updated, "numberAvailable": available } });
        assert!(judged("DaemonSet", set(4, 4)).0);
        assert_eq!(judged("DaemonSet", set(2, 4)).2, "2 of 4 pods are updated");
        assert_eq!(judged("DaemonSet", set(4, 3)).2, "3 of 4 updated pods are available");
    }

    #[test]
    fn a_rollout_says_itself_how_it_stands() {
        let rollout = |phase: &str| json!({ "status": { "phase": phase, "message": "step 2", "observedGeneration": "3" }, "metadata": { "generation": 3 } });
        assert_eq!(judged("Rollout", rollout("Healthy")), (true, false, "phase Healthy: step 2".into()));
        assert!(judged("Rollout", rollout("Degraded")).1);
        assert_eq!(judged("Rollout", rollout("Paused")), (false, false, "phase Paused: step 2".into()));
        let mut unseen = rollout("Healthy");
        unseen["metadata"]["generation"] = json!(4);
        assert!(!judged("Rollout", unseen).0, "what was healthy before the change says nothing about it");
        assert_eq!(standing("Pod", &json!({})), None);
    }
}
