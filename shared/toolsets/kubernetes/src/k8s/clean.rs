//! What is left out of an object that is compared or shown whole: bookkeeping that says nothing about the thing itself.
//!
//! Not here: masking, and the noise that every short view goes without; the cluster's handles do both.

use serde_json::{Map, Value};

/// The annotation by which a run finds its own traces; nobody else has a use for it.
pub(crate) const RUN_MARK: &str = "quartermaster/run";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Drops what a full view leaves out as well: what nobody is shown, and `managedFields`, which are often longer than the
/// rest of the object.
pub(crate) fn full(object: &mut Value) {
    hidden(object);
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// Drops what nobody is shown: the mark of a run, and the last applied text of a Secret, which would be the secret once
/// more.
pub(crate) fn hidden(object: &mut Value) {
    let secret = object.get("kind").and_then(Value::as_str) == Some("Secret");
    if let Some(annotations) = annotations(object) {
        annotations.remove(RUN_MARK);
        if secret {
            annotations.remove(LAST_APPLIED);
        }
    }
}

/// Leaves what two versions of an object can differ in: no status, no bookkeeping of the server.
pub(crate) fn for_diff(object: &mut Value) {
    bookkeeping(object);
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut) {
        for key in ["uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"] {
            metadata.remove(key);
        }
    }
}

fn bookkeeping(object: &mut Value) {
    full(object);
    if let Some(annotations) = annotations(object) {
        annotations.remove(LAST_APPLIED);
    }
    if let Some(metadata) = object.pointer_mut("/metadata").and_then(Value::as_object_mut)
        && metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty)
    {
        metadata.remove("annotations");
    }
}

fn annotations(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.pointer_mut("/metadata/annotations")?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn even_a_full_view_hides_the_mark_and_the_second_copy_of_a_secret() {
        let mut secret =
            json!({ "kind": "Secret", "metadata": { "annotations": { LAST_APPLIED: "x", RUN_MARK: "y", "a": "b" } } });
        full(&mut secret);
        assert_eq!(secret["metadata"]["annotations"], json!({ "a": "b" }));
        let mut map = json!({ "kind": "ConfigMap", "metadata": { "annotations": { LAST_APPLIED: "x" } } });
        full(&mut map);
        assert_eq!(map["metadata"]["annotations"], json!({ LAST_APPLIED: "x" }));
    }

    #[test]
    fn a_full_view_goes_without_managed_fields() {
        let mut object = json!({ "metadata": { "name": "a", "managedFields": [{}] } });
        hidden(&mut object);
        assert!(object["metadata"]["managedFields"].is_array());
        full(&mut object);
        assert_eq!(object, json!({ "metadata": { "name": "a" } }));
    }

    #[test]
    fn a_diff_sees_neither_status_nor_versions() {
        let mut object = json!({ "metadata": { "uid": "u", "generation": 4, "name": "a" }, "status": {}, "spec": {} });
        for_diff(&mut object);
        assert_eq!(object, json!({ "metadata": { "name": "a" }, "spec": {} }));
    }
}
