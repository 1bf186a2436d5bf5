//! The revisions of a workload: what its pods were made from, then and now.
//!
//! A Deployment keeps its old ReplicaSets, the other two keep ControllerRevisions. Both are found by owner and not by
//! name, since anybody can name a thing alike.

use super::at::selector_text;
use crate::client::{Cluster, ListQuery, MaskDetail, ResourceRef, Wildcard};
use crate::codes;
use domain::Failure;
use serde_json::Value;

/// Where a Deployment and its ReplicaSets note their revision.
pub(crate) const REVISION: &str = "deployment.kubernetes.io/revision";
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";
/// What a ReplicaSet adds to the template it was given.
pub(crate) const TEMPLATE_HASH: &str = "pod-template-hash";
/// How many are looked through; a workload keeps ten unless told otherwise.
const MOST: u32 = 500;

/// There is no revision of this number among those that are there.
pub(crate) fn no_revision(wanted: u64, numbers: impl Iterator<Item = u64>) -> Failure {
    let numbers: Vec<String> = numbers.take(20).map(|number| number.to_string()).collect();
    Failure::new(codes::REVISION_NOT_FOUND, format!("there is no revision {wanted}"))
        .next(format!("choose from: {}", numbers.join(", ")))
}

/// A kind of workload that rolls out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    /// Pods by the number, replaced as ReplicaSets.
    Deployment,
    /// Pods with names of their own.
    StatefulSet,
    /// One pod on each node.
    DaemonSet,
}

impl Workload {
    /// The workload a plural stands for.
    pub(crate) fn of(plural: &str) -> Result<Workload, Failure> {
        match plural {
            "deployments" => Ok(Workload::Deployment),
            "statefulsets" => Ok(Workload::StatefulSet),
            "daemonsets" => Ok(Workload::DaemonSet),
            "rollouts" => Err(Failure::new(codes::UNSUPPORTED_KIND, "a Rollout is steered by Argo")
                .next("call load_toolset with toolset=argo, then argo_get or argo_rollout")),
            other => Err(Failure::new(codes::UNSUPPORTED_KIND, format!("{other} do not roll out"))
                .next("use a Deployment, StatefulSet or DaemonSet")),
        }
    }

    /// The kind without doubt.
    pub(crate) const fn kind_text(self) -> &'static str {
        match self {
            Workload::Deployment => "apps/v1/Deployment",
            Workload::StatefulSet => "apps/v1/StatefulSet",
            Workload::DaemonSet => "apps/v1/DaemonSet",
        }
    }

    /// The kind alone.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Workload::Deployment => "Deployment",
            Workload::StatefulSet => "StatefulSet",
            Workload::DaemonSet => "DaemonSet",
        }
    }

    /// The kind that keeps its revisions.
    pub(crate) const fn kept_as(self) -> &'static str {
        match self {
            Workload::Deployment => "apps/v1/ReplicaSet",
            Workload::StatefulSet | Workload::DaemonSet => "apps/v1/ControllerRevision",
        }
    }
}

/// One revision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkloadRevision {
    pub(crate) number: u64,
    /// The object that keeps it.
    pub(crate) name: String,
    pub(crate) created: Option<String>,
    pub(crate) change_cause: Option<String>,
    pub(crate) current: bool,
    /// The pod template, without what the controller added.
    pub(crate) template: Value,
}

impl WorkloadRevision {
    /// The images of its containers.
    pub(crate) fn images(&self) -> Vec<String> {
        let containers = self.template["spec"]["containers"].as_array();
        containers.into_iter().flatten().filter_map(|c| c["image"].as_str().map(str::to_owned)).collect()
    }
}

/// The revisions of a workload, newest first.
pub(crate) async fn revisions(
    cluster: &Cluster<'_>,
    workload: Workload,
    target: &ResourceRef,
    object: &Value,
) -> Result<Vec<WorkloadRevision>, Failure> {
    let Some(labels) = selector_text(&object["spec"]["selector"]) else { return Ok(Vec::new()) };
    let kind = cluster.kind(workload.kept_as()).await?;
    let place = cluster.place(&kind, target.namespace(), Wildcard::Refused).await?;
    let query = ListQuery { labels: Some(labels), limit: MOST, ..ListQuery::default() };
    let kept = cluster.list(&place, &query, MaskDetail::Clean).await?.items;
    Ok(of(workload, object, kept))
}

/// The pure part: which of these objects are revisions of this one, and what each was.
fn of(workload: Workload, object: &Value, kept: Vec<Value>) -> Vec<WorkloadRevision> {
    let uid = &object["metadata"]["uid"];
    let owned = |kept: &Value| {
        let owners = kept["metadata"]["ownerReferences"].as_array();
        uid.is_string() && owners.into_iter().flatten().any(|owner| owner["uid"] == *uid)
    };
    let mut revisions: Vec<WorkloadRevision> =
        kept.into_iter().filter(owned).filter_map(|kept| revision(workload, kept)).collect();
    revisions.sort_by_key(|r| std::cmp::Reverse(r.number));
    let newest = revisions.first().map(|r| r.number);
    let now = match workload {
        Workload::Deployment => object["metadata"]["annotations"][REVISION].as_str().and_then(|n| n.parse().ok()),
        Workload::StatefulSet => {
            let name = object["status"]["updateRevision"].as_str();
            revisions.iter().find(|r| Some(r.name.as_str()) == name).map(|r| r.number)
        }
        Workload::DaemonSet => newest,
    };
    let now: Option<u64> = now.or(newest);
    revisions.iter_mut().for_each(|r| r.current = Some(r.number) == now);
    revisions
}

fn revision(workload: Workload, mut kept: Value) -> Option<WorkloadRevision> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let number = match workload {
        Workload::Deployment => kept["metadata"]["annotations"][REVISION].as_str()?.parse().ok()?,
        Workload::StatefulSet | Workload::DaemonSet => kept["revision"].as_u64()?,
    };
    let mut template = match workload {
        Workload::Deployment => kept["spec"]["template"].take(),
        Workload::StatefulSet | Workload::DaemonSet => kept["data"]["spec"]["template"].take(),
    };
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(TEMPLATE_HASH);
    }
    if let Some(fields) = template.as_object_mut() {
        // A patch of its own kind, as the controller keeps it.
        fields.remove("$patch");
    }
    Some(WorkloadRevision {
        number,
        name: text(&kept["metadata"]["name"]).unwrap_or_default(),
        created: text(&kept["metadata"]["creationTimestamp"]),
        change_cause: text(&kept["metadata"]["annotations"][CHANGE_CAUSE]),
        current: false,
        template,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn replica_set(number: &str, owner: &str, image: &str) -> Value {
        json!({
            "metadata": { "name": format!("web-{number}"), "annotations": { REVISION: number, CHANGE_CAUSE: "why" }, "ownerReferences": [{ "uid": owner }] },
            "spec": { "template": { "metadata": { "labels": { "app": "web", TEMPLATE_HASH: "x" } }, "spec": { "containers": [{ "image": image }] } } },
        })
    }

    #[test]
    fn revisions_are_those_of_the_owner_and_newest_first() {
        let deployment = json!({ "metadata": { "uid": "u1", "annotations": { REVISION: "10" } } });
        let kept =
            vec![replica_set("9", "u1", "a:9"), replica_set("10", "u1", "a:10"), replica_set("11", "other", "evil")];
        let revisions = of(Workload::Deployment, &deployment, kept);
        let told: Vec<_> = revisions.iter().map(|r| (r.number, r.current, r.images())).collect();
        assert_eq!(told, [(10, true, vec!["a:10".to_owned()]), (9, false, vec!["a:9".to_owned()])]);
        assert_eq!(revisions[0].template["metadata"]["labels"], json!({ "app": "web" }));
        assert_eq!(revisions[0].change_cause.as_deref(), Some("why"));
        assert!(
            of(Workload::Deployment, &json!({}), vec![replica_set("1", "u1", "a")]).is_empty(),
            "no uid, no children"
        );
    }

    #[test]
    fn a_stateful_set_says_itself_which_revision_it_is_at() {
        let set = json!({ "metadata": { "uid": "u1" }, "status": { "updateRevision": "db-a" } });
        let kept = |name: &str, revision: u64| {
            json!({ "metadata": { "name": name, "ownerReferences": [{ "uid": "u1" }] }, "revision": revision,
                "data": { "spec": { "template": { "$patch": "replace", "spec": { "containers": [{ "image": "db:1" }] } } } } })
        };
        let revisions = of(Workload::StatefulSet, &set, vec![kept("db-a", 1), kept("db-b", 2)]);
        assert_eq!(revisions.iter().map(|r| (r.number, r.current)).collect::<Vec<_>>(), [(2, false), (1, true)]);
        assert!(revisions[0].template.get("$patch").is_none());
    }

    #[test]
    fn what_does_not_roll_out_is_told_where_to_go() {
        assert_eq!(
            Workload::of("rollouts").unwrap_err().next.as_deref(),
            Some("call load_toolset with toolset=argo, then argo_get or argo_rollout")
        );
        assert_eq!(Workload::of("pods").unwrap_err().code, codes::UNSUPPORTED_KIND);
        assert_eq!(Workload::of("daemonsets").unwrap(), Workload::DaemonSet);
    }
}
