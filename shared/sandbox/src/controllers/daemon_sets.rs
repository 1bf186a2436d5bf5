//! DaemonSets: one pod on every node that fits.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{conditions, replica_sets, revisions, scheduler};
use crate::json;
use crate::world::{self, ClusterWorld};

pub(super) fn look(world: &mut ClusterWorld) {
    for set in world.all("daemonsets.apps", "") {
        if !json::is_going(&set) {
            reconcile(world, &set);
        }
    }
}

fn reconcile(world: &mut ClusterWorld, set: &Arc<Value>) {
    let revision = revisions::current(world, set);
    let hash = revisions::hash(set, &revision);
    let mut model = set["spec"]["template"].clone();
    // Pods of a DaemonSet stay on cordoned nodes.
    let toleration = json!({ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" });
    json::list_mut(&mut model, "/spec/tolerations").push(toleration);
    let tolerations = model["spec"]["tolerations"].clone();
    let nodes = world.all("nodes", "").into_iter().filter(|node| scheduler::refusal(&model, node).is_none());
    let nodes: Vec<Arc<Value>> = nodes.collect();
    let pods = world.owned("pods", set);
    let on = |pod: &Value, node: &Value| json::text(pod, "/spec/nodeName") == Some(json::name(node));
    for node in &nodes {
        if !pods.iter().any(|pod| on(pod, node)) {
            let name = format!("{}-{}", json::name(set), world::name_suffix());
            let extra = [
                ("/spec/template/spec/nodeName", json!(json::name(node))),
                ("/spec/template/spec/tolerations", tolerations.clone()),
            ];
            revisions::make_pod(world, set, &name, &hash, &extra);
        }
    }
    for pod in replica_sets::active(pods.clone()) {
        if !nodes.iter().any(|node| on(&pod, node)) {
            replica_sets::stop_pod(world, &pod);
        }
    }
    if set["spec"]["updateStrategy"]["type"] != "OnDelete" {
        exchange(world, set, &pods, (&hash, nodes.len()));
    }
    status(world, set, &hash, nodes.len());
}

/// Stops old pods, as many as may be missing at once; those that do not serve go first.
fn exchange(world: &mut ClusterWorld, set: &Value, pods: &[Arc<Value>], (hash, nodes): (&str, usize)) {
    let whole = i64::try_from(nodes).unwrap_or_default();
    let missing = set.pointer("/spec/updateStrategy/rollingUpdate/maxUnavailable");
    let missing = json::part_of(missing, whole, true, &json!(1)).max(1);
    let ready = |pod: &Arc<Value>| conditions::holds(pod, "Ready") && !json::is_going(pod);
    let mut room = missing - (whole - i64::try_from(pods.iter().filter(|pod| ready(pod)).count()).unwrap_or_default());
    let old: Vec<_> = pods.iter().filter(|pod| !revisions::is_of(pod, hash) && !json::is_going(pod)).collect();
    for pod in old {
        if !ready(pod) {
            replica_sets::stop_pod(world, pod);
        } else if room > 0 {
            replica_sets::stop_pod(world, pod);
            room -= 1;
        }
    }
}

fn status(world: &mut ClusterWorld, set: &Value, hash: &str, wanted: usize) {
    let pods = replica_sets::active(world.owned("pods", set));
    let updated = pods.iter().filter(|pod| revisions::is_of(pod, hash)).count();
    let ready = pods.iter().filter(|pod| conditions::holds(pod, "Ready")).count();
    world.change("daemonsets.apps", set, |set| {
        let mut status = json!({
            "observedGeneration": set["metadata"]["generation"], "desiredNumberScheduled": wanted,
            "currentNumberScheduled": pods.len(), "numberMisscheduled": 0, "numberReady": ready,
            "numberAvailable": ready, "updatedNumberScheduled": updated,
        });
        if wanted > ready {
            status["numberUnavailable"] = json!(wanted - ready);
        }
        json::set(set, "/status", status);
    });
}
