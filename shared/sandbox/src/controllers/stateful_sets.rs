//! StatefulSets: numbered pods, started in order and exchanged from the last to the first.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{conditions, replica_sets, revisions};
use crate::json;
use crate::world::ClusterWorld;

pub(super) fn look(world: &mut ClusterWorld) {
    for set in world.all("statefulsets.apps", "") {
        if !json::is_going(&set) {
            reconcile(world, &set);
        }
    }
}

fn ordinal(pod: &Value) -> i64 {
    json::name(pod).rsplit('-').next().and_then(|text| text.parse().ok()).unwrap_or(-1)
}

fn reconcile(world: &mut ClusterWorld, set: &Arc<Value>) {
    let revision = revisions::current(world, set);
    let hash = revisions::hash(set, &revision);
    let wanted = json::int(set, "/spec/replicas", 1);
    let parallel = set["spec"]["podManagementPolicy"] == "Parallel";
    let mut pods = world.owned("pods", set);
    pods.sort_by_key(|pod| ordinal(pod));
    let settled = |pod: &Arc<Value>| conditions::holds(pod, "Ready") && !json::is_going(pod);
    for number in 0..wanted {
        match pods.iter().find(|pod| ordinal(pod) == number) {
            Some(pod) if settled(pod) || parallel => {}
            // A pod of an older template that never became ready is exchanged, or a mended template would wait forever.
            Some(pod) if !json::is_going(pod) && !revisions::is_of(pod, &hash) => {
                replica_sets::stop_pod(world, pod);
                return status(world, set, &revision, &hash);
            }
            Some(_) => return status(world, set, &revision, &hash),
            None => {
                claim_volumes(world, set, number);
                let name = format!("{}-{number}", json::name(set));
                let label = "/spec/template/metadata/labels/statefulset.kubernetes.io~1pod-name";
                let index = "/spec/template/metadata/labels/apps.kubernetes.io~1pod-index";
                let extra = [
                    (label, json!(name)),
                    (index, json!(number.to_string())),
                    ("/spec/template/spec/hostname", json!(name)),
                ];
                revisions::make_pod(world, set, &name, &hash, &extra);
                if !parallel {
                    return status(world, set, &revision, &hash);
                }
            }
        }
    }
    if let Some(surplus) = pods.iter().rev().find(|pod| ordinal(pod) >= wanted) {
        if !json::is_going(surplus) {
            replica_sets::stop_pod(world, surplus);
        }
    } else if set["spec"]["updateStrategy"]["type"] != "OnDelete" {
        let partition = json::int(set, "/spec/updateStrategy/rollingUpdate/partition", 0);
        let old = pods.iter().rev().find(|pod| ordinal(pod) >= partition && !revisions::is_of(pod, &hash));
        if let Some(old) = old.filter(|_| pods.iter().all(settled)) {
            replica_sets::stop_pod(world, old);
        }
    }
    status(world, set, &revision, &hash);
}

fn claim_volumes(world: &mut ClusterWorld, set: &Value, number: i64) {
    for template in json::list(set, "/spec/volumeClaimTemplates") {
        let name = format!("{}-{}-{number}", json::name(template), json::name(set));
        let namespace = json::namespace(set);
        if world.objects.find("persistentvolumeclaims", namespace, &name).is_none() {
            let metadata =
                json!({ "name": name, "namespace": namespace, "labels": set["spec"]["selector"]["matchLabels"] });
            world.make("persistentvolumeclaims", json!({ "metadata": metadata, "spec": template["spec"] }));
        }
    }
}

fn status(world: &mut ClusterWorld, set: &Value, revision: &Value, hash: &str) {
    let pods = replica_sets::active(world.owned("pods", set));
    let minimum = json::int(set, "/spec/minReadySeconds", 0);
    let updated = pods.iter().filter(|pod| revisions::is_of(pod, hash)).count();
    let ready = pods.iter().filter(|pod| conditions::holds(pod, "Ready")).count();
    let available = pods.iter().filter(|pod| replica_sets::is_available(world, pod, minimum)).count();
    let wanted = usize::try_from(json::int(set, "/spec/replicas", 1)).unwrap_or_default();
    world.change("statefulsets.apps", set, |set| {
        let before = json::text(set, "/status/currentRevision").map(str::to_owned);
        let done = updated == wanted && ready == wanted && pods.len() == wanted;
        let current = before.filter(|_| !done).unwrap_or_else(|| json::name(revision).to_owned());
        let on_current = pods.iter().filter(|pod| revisions::is_of(pod, &current)).count();
        json::set(
            set,
            "/status",
            json!({
                "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "readyReplicas": ready,
                "availableReplicas": available, "updatedReplicas": updated, "currentReplicas": on_current,
                "currentRevision": current, "updateRevision": json::name(revision), "collisionCount": 0,
            }),
        );
    });
}
