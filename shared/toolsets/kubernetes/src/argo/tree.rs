//! What belongs to a Rollout: the ReplicaSets that keep its revisions, its analyses, its experiments.
//!
//! All of them are found by the uid of their controller and not by name, since anybody can name a thing alike.

use super::kinds::{self, ArgoKindArg};
use super::view::{REVISION, RolloutView, Strategy};
use crate::client::{Cluster, ListQuery, ResourceRef, Wildcard};
use crate::k8s::at::selector_text;
use crate::k8s::images;
use crate::k8s::pages;
use domain::Failure;
use serde_json::Value;

/// What a ReplicaSet adds to the template it was given.
pub(super) const TEMPLATE_HASH: &str = "rollouts-pod-template-hash";

/// One revision of a Rollout.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RolloutRevision {
    pub(super) number: u64,
    /// The ReplicaSet that keeps it.
    pub(super) name: String,
    pub(super) hash: String,
    pub(super) created: Option<String>,
    pub(super) desired: u64,
    pub(super) ready: u64,
    /// The pod template, without what the controller added.
    pub(super) template: Value,
}

impl RolloutRevision {
    /// The images of its containers.
    pub(super) fn images(&self) -> Vec<String> {
        images::named(&self.template).into_values().collect()
    }

    /// What it is to the Rollout now.
    pub(super) fn role(&self, view: RolloutView<'_>) -> Option<&'static str> {
        match self.hash.as_str() {
            "" => None,
            hash if hash == view.stable_hash() => Some("stable"),
            hash if hash == view.current_hash() => Some(match view.strategy() {
                Strategy::BlueGreen => "preview",
                Strategy::Canary | Strategy::Other => "canary",
            }),
            _ => None,
        }
    }
}

/// Whether an object is controlled by the one with this uid.
pub(super) fn is_owned(object: &Value, uid: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    uid.is_string() && owners.into_iter().flatten().any(|owner| owner["uid"] == *uid && owner["controller"] == true)
}

/// The revisions of a Rollout, newest first.
pub(super) async fn revisions(
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    live: &Value,
) -> Result<Vec<RolloutRevision>, Failure> {
    let kind = cluster.kind("apps/v1/ReplicaSet").await?;
    let place = cluster.place(&kind, target.namespace(), Wildcard::Refused).await?;
    // A Rollout that takes its template from elsewhere may leave its selector to that.
    let query = ListQuery { labels: selector_text(&live["spec"]["selector"]), ..ListQuery::default() };
    Ok(kept(live, pages::all(cluster, &place, query).await?))
}

/// The pure part: which of these ReplicaSets are revisions of this Rollout, and what each was.
fn kept(live: &Value, sets: Vec<Value>) -> Vec<RolloutRevision> {
    let uid = &live["metadata"]["uid"];
    let mut all: Vec<RolloutRevision> =
        sets.into_iter().filter(|set| is_owned(set, uid)).filter_map(revision).collect();
    all.sort_by_key(|kept| std::cmp::Reverse(kept.number));
    all
}

fn revision(mut set: Value) -> Option<RolloutRevision> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let mut template = set["spec"]["template"].take();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(TEMPLATE_HASH);
    }
    Some(RolloutRevision {
        number: set["metadata"]["annotations"][REVISION].as_str()?.parse().ok()?,
        name: text(&set["metadata"]["name"])?,
        hash: text(&set["metadata"]["labels"][TEMPLATE_HASH]).unwrap_or_default(),
        created: text(&set["metadata"]["creationTimestamp"]),
        desired: set["spec"]["replicas"].as_u64().unwrap_or(1),
        ready: set["status"]["readyReplicas"].as_u64().unwrap_or_default(),
        template,
    })
}

/// The AnalysisRuns or Experiments that belong to an object, newest first.
pub(super) async fn belonging(
    cluster: &Cluster<'_>,
    sort: ArgoKindArg,
    namespace: Option<&str>,
    uid: &Value,
) -> Result<Vec<Value>, Failure> {
    let kind = kinds::kind(cluster, sort).await?;
    let place = cluster.place(&kind, namespace, Wildcard::Refused).await?;
    let mut found = pages::all(cluster, &place, ListQuery::default()).await?;
    found.retain(|object| is_owned(object, uid));
    newest_first(&mut found);
    Ok(found)
}

/// The newest first; of the same second, by name.
fn newest_first(objects: &mut [Value]) {
    let key = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        // RFC 3339 in UTC sorts as text.
        (std::cmp::Reverse(text("creationTimestamp")), text("name"))
    };
    objects.sort_by_key(key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(number: &str, owner: &str, hash: &str) -> Value {
        json!({
            "metadata": { "name": format!("web-{hash}"), "annotations": { REVISION: number }, "labels": { TEMPLATE_HASH: hash },
                "ownerReferences": [{ "uid": owner, "controller": true }] },
            "spec": { "replicas": 1, "template": { "metadata": { "labels": { "app": "web", TEMPLATE_HASH: hash } },
                "spec": { "containers": [{ "name": "app", "image": format!("app:{number}") }] } } },
        })
    }

    #[test]
    fn revisions_are_those_of_the_owner_and_newest_first() {
        let live = json!({ "metadata": { "uid": "u1" }, "spec": { "strategy": { "canary": {} } },
            "status": { "stableRS": "aa", "currentPodHash": "cc" } });
        let all =
            kept(&live, vec![set("2", "u1", "bb"), set("10", "u1", "cc"), set("9", "u1", "aa"), set("11", "u2", "x")]);
        let view = RolloutView::of(&live);
        let told: Vec<_> = all.iter().map(|one| (one.number, one.role(view), one.images().remove(0))).collect();
        assert_eq!(
            told,
            [
                (10, Some("canary"), "app:10".to_owned()),
                (9, Some("stable"), "app:9".to_owned()),
                (2, None, "app:2".to_owned())
            ]
        );
        assert_eq!(all[0].template["metadata"]["labels"], json!({ "app": "web" }));
        assert!(kept(&json!({}), vec![set("1", "u1", "aa")]).is_empty(), "no uid, no children");
        let mut claimed = set("1", "u1", "aa");
        claimed["metadata"]["ownerReferences"][0]["controller"] = json!(false);
        assert!(kept(&live, vec![claimed]).is_empty(), "whoever only refers to it is none of its own");
    }
}
