//! ControllerRevisions: the kept templates of StatefulSets and DaemonSets.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::json;
use crate::world::{self, ClusterWorld};

const RESOURCE: &str = "controllerrevisions.apps";

/// What a revision keeps: a patch that brings the template back.
fn content(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    json::object_of(&mut template).insert("$patch".to_owned(), json!("replace"));
    json!({ "spec": { "template": template } })
}

/// The revision of the current template, made if it is new; one that came back becomes the newest.
pub(super) fn current(world: &mut ClusterWorld, owner: &Value) -> Arc<Value> {
    let data = content(owner);
    let known = world.owned(RESOURCE, owner);
    let newest = known.iter().map(|one| json::int(one, "/revision", 0)).max().unwrap_or(0);
    if let Some(same) = known.iter().find(|one| one["data"] == data) {
        if json::int(same, "/revision", 0) == newest {
            return same.clone();
        }
        let moved = world.change(RESOURCE, same, |one| json::set(one, "/revision", newest + 1));
        return moved.unwrap_or_else(|| same.clone());
    }
    let hash = world::short_hash(&data);
    let mut labels = owner.pointer("/spec/template/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    json::object_of(&mut labels).insert("controller-revision-hash".to_owned(), json!(hash));
    let mut metadata = json!({
        "name": format!("{}-{hash}", json::name(owner)), "namespace": json::namespace(owner), "labels": labels,
        "ownerReferences": [world::owner_reference(owner)],
    });
    if let Some(annotations) = owner.pointer("/metadata/annotations") {
        metadata["annotations"] = annotations.clone();
    }
    world.make(RESOURCE, json!({ "metadata": metadata, "data": data, "revision": newest + 1 }))
}

/// The hash label that tells pods of this revision.
pub(super) fn hash(owner: &Value, revision: &Value) -> String {
    let hash = json::text_or_empty(revision, "/metadata/labels/controller-revision-hash");
    if owner["kind"] == "StatefulSet" { json::name(revision).to_owned() } else { hash.to_owned() }
}

/// Whether a pod was made from a revision.
pub(super) fn is_of(pod: &Value, hash: &str) -> bool {
    json::text(pod, "/metadata/labels/controller-revision-hash") == Some(hash)
}

/// Makes a pod of a revision.
pub(super) fn make_pod(world: &mut ClusterWorld, owner: &Value, name: &str, hash: &str, extra: &[(&str, Value)]) {
    let mut owner = owner.clone();
    json::set(&mut owner, "/spec/template/metadata/labels/controller-revision-hash", hash);
    for (at, value) in extra {
        json::set(&mut owner, at, value.clone());
    }
    if let Err(refused) = super::replica_sets::make_pod(world, &owner, name) {
        tracing::debug!(%refused, "a pod was not made");
    }
}
