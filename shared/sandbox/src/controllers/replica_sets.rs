//! ReplicaSets: the wanted number of pods of one template.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Occurrence;
use super::conditions;
use crate::clock;
use crate::json;
use crate::world::{self, ClusterWorld};

/// The most pods made or taken in one look.
const BURST: usize = 50;

pub(super) fn look(world: &mut ClusterWorld) {
    for set in world.all("replicasets.apps", "") {
        if !json::is_going(&set) {
            reconcile(world, &set);
        }
    }
}

fn reconcile(world: &mut ClusterWorld, set: &Arc<Value>) {
    let pods = active(world.owned("pods", set));
    let wanted = usize::try_from(json::int(set, "/spec/replicas", 1)).unwrap_or_default();
    for _ in pods.len()..wanted.min(pods.len() + BURST) {
        if let Err(refused) = make_pod(world, set, &format!("{}-{}", json::name(set), world::name_suffix())) {
            let message = format!("Error creating: {refused}");
            let what = Occurrence {
                warning: true,
                reason: "FailedCreate",
                message: &message,
                source: "replicaset-controller",
            };
            world.note(set, what);
            break;
        }
    }
    for pod in least_missed(&pods).into_iter().take(pods.len().saturating_sub(wanted)) {
        stop_pod(world, &pod);
        let message = format!("Deleted pod: {}", json::name(&pod));
        let what = Occurrence {
            warning: false,
            reason: "SuccessfulDelete",
            message: &message,
            source: "replicaset-controller",
        };
        world.note(set, what);
    }
    let pods = active(world.owned("pods", set));
    let status = counts(world, set, &pods);
    world.change("replicasets.apps", set, |set| json::set(set, "/status", status));
}

fn counts(world: &ClusterWorld, set: &Value, pods: &[Arc<Value>]) -> Value {
    let minimum = json::int(set, "/spec/minReadySeconds", 0);
    let ready = pods.iter().filter(|pod| conditions::holds(pod, "Ready")).count();
    let available = pods.iter().filter(|pod| is_available(world, pod, minimum)).count();
    let mut status = json!({
        "replicas": pods.len(), "fullyLabeledReplicas": pods.len(), "observedGeneration": set["metadata"]["generation"],
    });
    if ready > 0 {
        status["readyReplicas"] = json!(ready);
    }
    if available > 0 {
        status["availableReplicas"] = json!(available);
    }
    status
}

/// Ready for at least the given seconds.
pub(super) fn is_available(world: &ClusterWorld, pod: &Value, minimum: i64) -> bool {
    let ready =
        json::list(pod, "/status/conditions").iter().find(|one| one["type"] == "Ready" && one["status"] == "True");
    let Some(ready) = ready else { return false };
    let since = json::text(ready, "/lastTransitionTime").and_then(clock::read);
    minimum == 0 || since.is_some_and(|since| clock::since(since, world.now()).as_secs() >= minimum.unsigned_abs())
}

/// Pods that are neither going nor done.
pub(super) fn active(pods: Vec<Arc<Value>>) -> Vec<Arc<Value>> {
    let done = |pod: &Value| matches!(json::text(pod, "/status/phase"), Some("Succeeded" | "Failed"));
    pods.into_iter().filter(|pod| !json::is_going(pod) && !done(pod)).collect()
}

/// Pods in the order in which they are taken away: not ready first, then the youngest.
pub(super) fn least_missed(pods: &[Arc<Value>]) -> Vec<Arc<Value>> {
    let mut pods = pods.to_vec();
    let age = |pod: &Value| json::text_or_empty(pod, "/metadata/creationTimestamp").to_owned();
    pods.sort_by(|one, other| {
        let ready = |pod: &Value| conditions::holds(pod, "Ready");
        ready(one).cmp(&ready(other)).then_with(|| age(other).cmp(&age(one)))
    });
    pods
}

/// Makes a pod from a workload's template. A quota may refuse it.
pub(super) fn make_pod(world: &mut ClusterWorld, owner: &Value, name: &str) -> Result<Arc<Value>, String> {
    let namespace = json::namespace(owner);
    let template = &owner["spec"]["template"];
    let mut metadata = template.get("metadata").cloned().unwrap_or_else(|| json!({}));
    for (key, value) in [
        ("name", json!(name)),
        ("namespace", json!(namespace)),
        ("ownerReferences", json!([world::owner_reference(owner)])),
    ] {
        json::object_of(&mut metadata).insert(key.to_owned(), value);
    }
    json::object_of(&mut metadata).remove("creationTimestamp");
    if let Some(prefix) = name.strip_suffix(name.rsplit('-').next().unwrap_or_default()) {
        json::object_of(&mut metadata).insert("generateName".to_owned(), json!(prefix));
    }
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] });
    if let Some(kind) = world.kinds.of_resource("pods") {
        world.check_quota(&kind, namespace, &pod).map_err(|refused| refused.message)?;
    }
    let pod = world.make("pods", pod);
    let source = source_of(owner);
    let message = format!("Created pod: {name}");
    world.note(owner, Occurrence { warning: false, reason: "SuccessfulCreate", message: &message, source: &source });
    Ok(pod)
}

fn source_of(owner: &Value) -> String {
    format!("{}-controller", json::text_or_empty(owner, "/kind").to_lowercase())
}

/// Asks for a pod's graceful end.
pub(super) fn stop_pod(world: &mut ClusterWorld, pod: &Value) {
    let Some(kind) = world.kinds.of_resource("pods") else { return };
    let how = crate::write::DeletionOptions::default();
    if let Err(refused) = world.delete(&kind, (json::namespace(pod), json::name(pod)), &how) {
        tracing::debug!(%refused, "a pod was gone before it was stopped");
    }
}
