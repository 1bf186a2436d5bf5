//! Placing pods on nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Occurrence;
use super::conditions::{self, DesiredCondition};
use crate::json;
use crate::world::ClusterWorld;

pub(super) fn look(world: &mut ClusterWorld) {
    let is_waiting = |pod: &&Arc<Value>| json::text(pod, "/spec/nodeName").is_none() && !json::is_going(pod);
    let waiting: Vec<Arc<Value>> = world.objects.all("pods").filter(is_waiting).cloned().collect();
    if waiting.is_empty() {
        return;
    }
    let mut load: BTreeMap<String, usize> = BTreeMap::new();
    for pod in world.objects.all("pods") {
        if let Some(node) = json::text(pod, "/spec/nodeName") {
            *load.entry(node.to_owned()).or_default() += 1;
        }
    }
    let nodes = world.all("nodes", "");
    for pod in waiting {
        if !json::list(&pod, "/spec/schedulingGates").is_empty() {
            continue;
        }
        let fitting = nodes.iter().filter(|node| refusal(&pod, node).is_none());
        let name = |node: &Arc<Value>| json::name(node).to_owned();
        let best = fitting.min_by_key(|node| (load.get(json::name(node)).copied().unwrap_or(0), name(node)));
        match best {
            Some(node) => {
                *load.entry(name(node)).or_default() += 1;
                place(world, &pod, json::name(node));
            }
            None => leave(world, &pod, &nodes),
        }
    }
}

fn place(world: &mut ClusterWorld, pod: &Value, node: &str) {
    let now = world.stamp();
    let placed = world.change("pods", pod, |pod| {
        json::set(pod, "/spec/nodeName", node);
        conditions::set(pod, &DesiredCondition { kind: "PodScheduled", holds: true, reason: "", message: "" }, &now);
    });
    let message = format!("Successfully assigned {}/{} to {node}", json::namespace(pod), json::name(pod));
    let what = Occurrence { warning: false, reason: "Scheduled", message: &message, source: "default-scheduler" };
    if let Some(placed) = placed {
        world.note(&placed, what);
    }
}

fn leave(world: &mut ClusterWorld, pod: &Value, nodes: &[Arc<Value>]) {
    let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
    for refusal in nodes.iter().filter_map(|node| refusal(pod, node)) {
        *reasons.entry(refusal).or_default() += 1;
    }
    let reasons: Vec<String> = reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    let message = format!("0/{} nodes are available: {}.", nodes.len(), reasons.join(", "));
    let known = json::list(pod, "/status/conditions").iter().any(|one| one["message"] == json!(message));
    if known {
        return;
    }
    let now = world.stamp();
    world.change("pods", pod, |pod| {
        let condition =
            DesiredCondition { kind: "PodScheduled", holds: false, reason: "Unschedulable", message: &message };
        conditions::set(pod, &condition, &now);
    });
    let what = Occurrence { warning: true, reason: "FailedScheduling", message: &message, source: "default-scheduler" };
    world.note(pod, what);
}

/// Why a node does not take a pod.
pub(super) fn refusal(pod: &Value, node: &Value) -> Option<&'static str> {
    let tolerates = |key: &str| {
        json::list(pod, "/spec/tolerations").iter().any(|one| {
            json::text(one, "/key").is_none_or(|have| have == key)
                && (json::text(one, "/operator") == Some("Exists") || json::text(one, "/key").is_some())
        })
    };
    if json::is_true(node, "/spec/unschedulable") && !tolerates("node.kubernetes.io/unschedulable") {
        return Some("node(s) were unschedulable");
    }
    let tainted = json::list(node, "/spec/taints").iter().any(|taint| {
        json::text(taint, "/effect") != Some("PreferNoSchedule") && !tolerates(json::text_or_empty(taint, "/key"))
    });
    if tainted && !json::is_true(node, "/spec/unschedulable") {
        return Some("node(s) had untolerated taint(s)");
    }
    let wanted = json::map(pod, "/spec/nodeSelector").into_iter().flatten();
    let labels = node.pointer("/metadata/labels").unwrap_or(&Value::Null);
    let matching = wanted.into_iter().all(|(key, value)| labels.get(key) == Some(value));
    (!matching).then_some("node(s) didn't match Pod's node affinity/selector")
}
