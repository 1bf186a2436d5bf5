//! The status of a Deployment: counts and the two conditions people look at.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::super::conditions::{self, DesiredCondition};
use super::rolling;
use crate::clock;
use crate::json;
use crate::world::ClusterWorld;

/// Sums up the ReplicaSets and says how the rollout stands.
pub(super) fn write(world: &mut ClusterWorld, deployment: &Value, new: Option<&Arc<Value>>) {
    let new = new.and_then(|new| world.find("replicasets.apps", json::namespace(new), json::name(new)));
    let sets = world.owned("replicasets.apps", deployment);
    let sum = |at: &str| sets.iter().map(|set| json::int(set, at, 0)).sum::<i64>();
    let wanted = json::int(deployment, "/spec/replicas", 1);
    let (total, ready, available) =
        (sum("/status/replicas"), sum("/status/readyReplicas"), sum("/status/availableReplicas"));
    let updated = new.as_ref().map_or(0, |new| json::int(new, "/status/replicas", 0));
    let updated_available = new.as_ref().map_or(0, |new| json::int(new, "/status/availableReplicas", 0));
    let counts = Counts { wanted, total, updated, available, updated_available };
    let now = world.now();
    world.change("deployments.apps", deployment, |deployment| {
        let before = deployment.get("status").cloned().unwrap_or_default();
        json::set(deployment, "/status/observedGeneration", deployment["metadata"]["generation"].clone());
        for (field, count) in [
            ("replicas", total),
            ("updatedReplicas", updated),
            ("readyReplicas", ready),
            ("availableReplicas", available),
            ("unavailableReplicas", (total.max(wanted) - available).max(0)),
        ] {
            if count > 0 {
                json::set(deployment, &format!("/status/{field}"), count);
            } else {
                json::take(deployment, &format!("/status/{field}"));
            }
        }
        available_condition(deployment, &counts, &clock::stamp(now));
        progressing_condition(deployment, &before, &counts, new.as_deref(), now);
    });
}

struct Counts {
    wanted: i64,
    total: i64,
    updated: i64,
    available: i64,
    updated_available: i64,
}

fn available_condition(deployment: &mut Value, counts: &Counts, now: &str) {
    let (_, missing) = rolling::bounds(deployment);
    let enough = counts.available >= counts.wanted - missing;
    let (reason, message) = if enough {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let before = find(deployment, "Available");
    conditions::set(deployment, &DesiredCondition { kind: "Available", holds: enough, reason, message }, now);
    touch(deployment, "Available", &before, now);
}

fn progressing_condition(
    deployment: &mut Value,
    before: &Value,
    counts: &Counts,
    new: Option<&Value>,
    now: jiff::Timestamp,
) {
    let stamp = clock::stamp(now);
    let last = find(deployment, "Progressing");
    let name = new.map(json::name).unwrap_or_default();
    let done = new.is_some()
        && counts.updated == counts.wanted
        && counts.total == counts.wanted
        && counts.updated_available >= counts.wanted;
    let moved = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
        .iter()
        .any(|field| before.get(*field) != deployment["status"].get(*field))
        || before.get("observedGeneration") != deployment["status"].get("observedGeneration");
    let condition = |holds, reason, message| DesiredCondition { kind: "Progressing", holds, reason, message };
    if json::is_true(deployment, "/spec/paused") {
        let next = condition(true, "DeploymentPaused", "Deployment is paused");
        conditions::set(deployment, &next, &stamp);
    } else if done {
        let message = format!("ReplicaSet {name:?} has successfully progressed.");
        conditions::set(deployment, &condition(true, "NewReplicaSetAvailable", &message), &stamp);
    } else if moved || last.is_null() || last["reason"] == "DeploymentPaused" {
        let reason = if last.is_null() { "NewReplicaSetCreated" } else { "ReplicaSetUpdated" };
        let message = format!("ReplicaSet {name:?} is progressing.");
        conditions::set(deployment, &condition(true, reason, &message), &stamp);
        if let Some(one) = find_mut(deployment, "Progressing") {
            json::set(one, "/lastUpdateTime", stamp);
        }
        return;
    } else {
        let since = json::text(&last, "/lastUpdateTime").and_then(clock::read);
        let limit = json::int(deployment, "/spec/progressDeadlineSeconds", 600).unsigned_abs();
        let late = since.is_some_and(|since| clock::since(since, now) > Duration::from_secs(limit));
        if late && last["reason"] != "NewReplicaSetAvailable" {
            let message = format!("ReplicaSet {name:?} has timed out progressing.");
            conditions::set(deployment, &condition(false, "ProgressDeadlineExceeded", &message), &stamp);
        }
    }
    touch(deployment, "Progressing", &last, &stamp);
}

fn find(deployment: &Value, kind: &str) -> Value {
    let found = json::list(deployment, "/status/conditions").iter().find(|one| one["type"] == kind);
    found.cloned().unwrap_or_default()
}

fn find_mut<'a>(deployment: &'a mut Value, kind: &str) -> Option<&'a mut Value> {
    json::list_mut(deployment, "/status/conditions").iter_mut().find(|one| one["type"] == kind)
}

/// Moves the update time of a condition when its reason turned.
fn touch(deployment: &mut Value, kind: &str, before: &Value, now: &str) {
    if let Some(one) = find_mut(deployment, kind)
        && (before["reason"] != one["reason"] || one.get("lastUpdateTime").is_none())
    {
        json::set(one, "/lastUpdateTime", now);
    }
}
