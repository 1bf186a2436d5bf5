//! Deployments: a ReplicaSet per template, exchanged step by step within the bounds of the strategy.

mod rolling;
mod status;

use std::sync::Arc;

use serde_json::{Value, json};

use super::Occurrence;
use crate::json;
use crate::world::{self, ClusterWorld};

const REVISION: &str = "deployment.kubernetes.io/revision";
const HASH: &str = "pod-template-hash";

pub(super) fn look(world: &mut ClusterWorld) {
    for deployment in world.all("deployments.apps", "") {
        if !json::is_going(&deployment) {
            reconcile(world, &deployment);
        }
    }
}

fn reconcile(world: &mut ClusterWorld, deployment: &Arc<Value>) {
    let sets = world.owned("replicasets.apps", deployment);
    let new = sets.iter().find(|set| same_template(deployment, set)).cloned();
    let paused = json::is_true(deployment, "/spec/paused");
    let new = match new {
        Some(new) => Some(keep_current(world, deployment, &new, &sets)),
        None if paused => None,
        None => Some(make_set(world, deployment, &sets)),
    };
    let sets = world.owned("replicasets.apps", deployment);
    let (new, old): (Vec<_>, Vec<_>) =
        sets.into_iter().partition(|set| new.as_ref().is_some_and(|new| json::uid(new) == json::uid(set)));
    let new = new.into_iter().next();
    if paused {
        rolling::scale_paused(world, deployment, new.as_ref(), &old);
    } else if let Some(new) = &new {
        rolling::roll(world, deployment, new, &old);
        forget_history(world, deployment, &old);
    }
    status::write(world, deployment, new.as_ref());
}

/// The template without the label that tells the ReplicaSets apart.
fn bare_template(object: &Value) -> Value {
    let mut template = json::at(object, "/spec/template").cloned().unwrap_or_default();
    json::take(&mut template, &format!("/metadata/labels/{HASH}"));
    json::take(&mut template, "/metadata/creationTimestamp");
    template
}

fn same_template(deployment: &Value, set: &Value) -> bool {
    bare_template(deployment) == bare_template(set)
}

fn revision_of(object: &Value) -> i64 {
    json::annotation(object, REVISION).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Annotations of the Deployment that its ReplicaSets carry on.
fn carried_annotations(deployment: &Value) -> Vec<(String, Value)> {
    let all = json::map(deployment, "/metadata/annotations").into_iter().flatten();
    let carried = all.filter(|(key, _)| {
        key.as_str() != REVISION && key.as_str() != "kubectl.kubernetes.io/last-applied-configuration"
    });
    carried.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The current set is always the newest revision, also when an old template came back.
fn keep_current(world: &mut ClusterWorld, deployment: &Value, new: &Arc<Value>, sets: &[Arc<Value>]) -> Arc<Value> {
    let others = sets.iter().filter(|set| json::uid(set) != json::uid(new));
    let newest = others.map(|set| revision_of(set)).max().unwrap_or(0);
    let revision = revision_of(new).max(newest + 1);
    let annotations = carried_annotations(deployment);
    let kept = world.change("replicasets.apps", new, |set| {
        for (key, value) in annotations {
            json::set(set, &format!("/metadata/annotations/{}", json::escaped(&key)), value);
        }
        json::set(set, &format!("/metadata/annotations/{}", json::escaped(REVISION)), revision.to_string());
    });
    note_revision(world, deployment, revision);
    kept.unwrap_or_else(|| new.clone())
}

fn make_set(world: &mut ClusterWorld, deployment: &Value, sets: &[Arc<Value>]) -> Arc<Value> {
    let template = bare_template(deployment);
    let hash = world::short_hash(&template);
    let revision = sets.iter().map(|set| revision_of(set)).max().unwrap_or(0) + 1;
    let mut set = json!({
        "metadata": {
            "name": format!("{}-{hash}", json::name(deployment)), "namespace": json::namespace(deployment),
            "labels": template["metadata"]["labels"], "annotations": {},
            "ownerReferences": [world::owner_reference(deployment)],
        },
        "spec": { "replicas": 0, "selector": deployment["spec"]["selector"], "template": template },
    });
    for (key, value) in carried_annotations(deployment) {
        json::set(&mut set, &format!("/metadata/annotations/{}", json::escaped(&key)), value);
    }
    json::set(&mut set, &format!("/metadata/annotations/{}", json::escaped(REVISION)), revision.to_string());
    for at in ["/metadata/labels", "/spec/selector/matchLabels", "/spec/template/metadata/labels"] {
        json::set(&mut set, &format!("{at}/{HASH}"), hash.clone());
    }
    if let Some(minimum) = json::at(deployment, "/spec/minReadySeconds") {
        json::set(&mut set, "/spec/minReadySeconds", minimum.clone());
    }
    note_revision(world, deployment, revision);
    world.make("replicasets.apps", set)
}

fn note_revision(world: &mut ClusterWorld, deployment: &Value, revision: i64) {
    world.change("deployments.apps", deployment, |deployment| {
        json::set(deployment, &format!("/metadata/annotations/{}", json::escaped(REVISION)), revision.to_string());
    });
}

/// Sets the size of a ReplicaSet and tells it.
fn scale(world: &mut ClusterWorld, deployment: &Value, set: &Value, to: i64) {
    let from = json::int(set, "/spec/replicas", 0);
    if from == to {
        return;
    }
    world.change("replicasets.apps", set, |set| {
        json::set(set, "/spec/replicas", to);
        ClusterWorld::count_generation(set);
    });
    let direction = if to > from { "up" } else { "down" };
    let message = format!("Scaled {direction} replica set {} from {from} to {to}", json::name(set));
    let what =
        Occurrence { warning: false, reason: "ScalingReplicaSet", message: &message, source: "deployment-controller" };
    world.note(deployment, what);
}

/// Removes the oldest empty sets beyond the limit.
fn forget_history(world: &mut ClusterWorld, deployment: &Value, old: &[Arc<Value>]) {
    let limit = usize::try_from(json::int(deployment, "/spec/revisionHistoryLimit", 10)).unwrap_or_default();
    let is_empty = |set: &Value| json::int(set, "/spec/replicas", 0) == 0 && json::int(set, "/status/replicas", 0) == 0;
    let mut empty: Vec<_> = old.iter().filter(|set| is_empty(set)).collect();
    empty.sort_by_key(|set| revision_of(set));
    let surplus = empty.len().saturating_sub(limit);
    for set in empty.into_iter().take(surplus) {
        world.objects.remove("replicasets.apps", json::namespace(set), json::name(set));
    }
}
