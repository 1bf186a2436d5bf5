//! The pods of a node: which of them go when it is drained, which stay, and which must not be taken away.

use crate::client::{Cluster, ListQuery, Wildcard};
use crate::codes;
use crate::k8s::measure::{cpu_milli, memory_mi};
use crate::k8s::pages;
use domain::Failure;
use serde_json::{Value, json};

/// How many pods a sentence names.
const NAMED: usize = 5;
/// The mark of a pod that the node itself started from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// What a drain may take away for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DrainAllowance {
    /// Data in emptyDir volumes.
    pub(super) emptydir: bool,
    /// Pods that nobody starts again.
    pub(super) unmanaged: bool,
}

/// One pod.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pod {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) labels: Value,
    /// Kind and name of whoever starts it again.
    pub(super) owner: Option<String>,
    /// It keeps data that goes with it.
    pub(super) emptydir: bool,
    /// It has ended; there is nothing left to lose.
    finished: bool,
    pub(super) cpu_m: u64,
    pub(super) memory_mi: u64,
}

impl std::fmt::Display for Pod {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The pods of a node, sorted.
#[derive(Debug, Default, PartialEq)]
pub(super) struct DrainGroups {
    /// To be asked to go.
    pub(super) evict: Vec<Pod>,
    /// On their way out already.
    pub(super) leaving: Vec<Pod>,
    /// Left where they are, and why.
    pub(super) skipped: Vec<String>,
    /// Those with data that would be lost, and not allowed to be.
    pub(super) with_data: Vec<Pod>,
    /// Those that nobody starts again, and not allowed to go.
    pub(super) unmanaged: Vec<Pod>,
}

/// The pods of a node.
pub(super) async fn on(cluster: &Cluster<'_>, node: &str, allowed: DrainAllowance) -> Result<DrainGroups, Failure> {
    let kind = cluster.kind("v1/Pod").await?;
    let place = cluster.place(&kind, Some("*"), Wildcard::Allowed).await?;
    let query = ListQuery { fields: Some(format!("spec.nodeName={node}")), ..ListQuery::default() };
    let found = pages::all(cluster, &place, query).await?;
    // The selector is a wish; the server's answer is checked.
    Ok(sort(found.iter().filter(|pod| pod["spec"]["nodeName"] == node), allowed))
}

fn sort<'a>(pods: impl IntoIterator<Item = &'a Value>, allowed: DrainAllowance) -> DrainGroups {
    let mut sorted = DrainGroups::default();
    for object in pods {
        let pod = Pod::read(object);
        let meta = &object["metadata"];
        let by_daemon = pod.owner.as_deref().is_some_and(|owner| owner.starts_with("DaemonSet "));
        if meta["annotations"][MIRROR].is_string() {
            sorted.skipped.push(format!("{pod}: started by the node itself"));
        } else if by_daemon {
            sorted.skipped.push(format!("{pod}: of a DaemonSet"));
        } else if meta["deletionTimestamp"].is_string() {
            sorted.leaving.push(pod);
        } else if pod.owner.is_none() && !pod.finished && !allowed.unmanaged {
            sorted.unmanaged.push(pod);
        } else if pod.emptydir && !pod.finished && !allowed.emptydir {
            sorted.with_data.push(pod);
        } else {
            sorted.evict.push(pod);
        }
    }
    sorted
}

impl DrainGroups {
    /// How many pods keep the node from being drained.
    pub(super) fn remaining(&self) -> u64 {
        let all = self.evict.len() + self.leaving.len() + self.with_data.len() + self.unmanaged.len();
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    /// Wants no pod that must not be taken away.
    pub(super) fn none_refused(&self, node: &str) -> Result<(), Failure> {
        let told = |code, pods: &[Pod], why: &str, next: &str| {
            let names: Vec<String> = pods.iter().map(ToString::to_string).collect();
            let message = format!("node {node} is left alone: {} {why}: {}", names.len(), some(&names));
            Err(Failure::new(code, message).next(next).details(json!({ "pods": names })))
        };
        if !self.unmanaged.is_empty() {
            let why = "pods have no controller that would start them again";
            return told(codes::UNMANAGED_PODS, &self.unmanaged, why, "move them first, or set force to lose them");
        }
        if !self.with_data.is_empty() {
            let why = "pods keep data in emptyDir volumes that would be lost";
            return told(
                codes::EMPTYDIR_DATA,
                &self.with_data,
                why,
                "save it first, or set delete_emptydir to lose it",
            );
        }
        Ok(())
    }

    /// Those among the evicted that lose something for good. These are what an approver weighs; the others come back.
    pub(super) fn losing(&self) -> Vec<String> {
        let loses = |pod: &&Pod| !pod.finished && (pod.emptydir || pod.owner.is_none());
        let mut names: Vec<String> = self.evict.iter().filter(loses).map(ToString::to_string).collect();
        names.sort_unstable();
        names
    }
}

/// The first of some names, and how many more.
pub(super) fn some(names: &[String]) -> String {
    let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

impl Pod {
    fn read(object: &Value) -> Pod {
        let (meta, spec) = (&object["metadata"], &object["spec"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let controller = list(&meta["ownerReferences"]).into_iter().find(|owner| owner["controller"] == true);
        let asked = |resource: &str| -> Vec<String> {
            let containers = list(&spec["containers"]);
            containers.iter().map(|c| text(&c["resources"]["requests"][resource])).collect()
        };
        Pod {
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            labels: meta["labels"].clone(),
            owner: controller.map(|owner| format!("{} {}", text(&owner["kind"]), text(&owner["name"]))),
            emptydir: list(&spec["volumes"]).iter().any(|volume| volume["emptyDir"].is_object()),
            finished: matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed")),
            cpu_m: asked("cpu").iter().filter_map(|text| cpu_milli(text)).sum(),
            memory_mi: asked("memory").iter().filter_map(|text| memory_mi(text)).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: DrainAllowance = DrainAllowance { emptydir: false, unmanaged: false };
    const ALL: DrainAllowance = DrainAllowance { emptydir: true, unmanaged: true };

    fn pod(name: &str, owner: Option<&str>, more: Value) -> Value {
        let owners: Vec<Value> =
            owner.iter().map(|kind| json!({ "kind": kind, "name": "x", "controller": true })).collect();
        let mut pod = json!({ "metadata": { "namespace": "shop", "name": name, "uid": name, "ownerReferences": owners },
            "spec": { "containers": [{ "resources": { "requests": { "cpu": "250m", "memory": "1Gi" } } }] } });
        if let (Value::Object(pod), Value::Object(more)) = (&mut pod, more) {
            for (key, fields) in more {
                for (field, value) in fields.as_object().unwrap() {
                    pod.entry(key.clone()).or_insert_with(|| json!({}))[field] = value.clone();
                }
            }
        }
        pod
    }

    fn on_the_node() -> Vec<Value> {
        let data = json!({ "spec": { "volumes": [{ "emptyDir": {} }] } });
        vec![
            pod("web", Some("ReplicaSet"), json!({})),
            pod("agent", Some("DaemonSet"), json!({})),
            pod("static", None, json!({ "metadata": { "annotations": { MIRROR: "x" } } })),
            pod("cache", Some("ReplicaSet"), data.clone()),
            pod("lonely", None, json!({})),
            pod("ended", None, json!({ "status": { "phase": "Succeeded" } })),
            pod("going", Some("ReplicaSet"), json!({ "metadata": { "deletionTimestamp": "2025-11-16T08:00:00Z" } })),
        ]
    }

    fn names(pods: &[Pod]) -> Vec<&str> {
        pods.iter().map(|pod| pod.name.as_str()).collect()
    }

    #[test]
    fn what_would_be_lost_is_refused_unless_allowed() {
        let sorted = sort(&on_the_node(), NOTHING);
        assert_eq!(names(&sorted.evict), ["web", "ended"]);
        assert_eq!((names(&sorted.leaving), sorted.skipped.len()), (vec!["going"], 2));
        assert_eq!((names(&sorted.with_data), names(&sorted.unmanaged)), (vec!["cache"], vec!["lonely"]));
        assert_eq!((sorted.remaining(), sorted.losing()), (5, vec![]));
        let sorted = sort(&on_the_node(), ALL);
        assert_eq!(names(&sorted.evict), ["web", "cache", "lonely", "ended"]);
        assert_eq!(sorted.losing(), ["shop/cache", "shop/lonely"]);
        assert_eq!((sorted.evict[0].cpu_m, sorted.evict[0].memory_mi), (250, 1024));
    }

    #[test]
    fn a_refusal_names_the_pods_and_the_way_out() {
        let refused = |allowed| sort(&on_the_node(), allowed).none_refused("n1").unwrap_err();
        let failure = refused(NOTHING);
        assert_eq!(failure.code, codes::UNMANAGED_PODS);
        assert!(failure.message.ends_with("shop/lonely"), "{}", failure.message);
        let failure = refused(DrainAllowance { unmanaged: true, ..NOTHING });
        assert_eq!(failure.code, codes::EMPTYDIR_DATA);
        assert_eq!(failure.next.as_deref(), Some("save it first, or set delete_emptydir to lose it"));
        sort(&on_the_node(), ALL).none_refused("n1").unwrap();
    }

    #[test]
    fn a_sentence_names_a_few() {
        let names: Vec<String> = (0..7).map(|n| format!("p{n}")).collect();
        assert_eq!(some(&names), "p0, p1, p2, p3, p4 and 2 more");
        assert_eq!(some(&names[..2]), "p0, p1");
    }
}
