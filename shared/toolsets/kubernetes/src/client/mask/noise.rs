//! Bookkeeping that says nothing to whoever asks what an object is.

use crate::client::marker::RUN;
use serde_json::Value;

/// Leaves the bookkeeping out, in an object, a list, or any part of one.
pub(super) fn drop_from(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::Object(meta)) = map.get_mut("metadata") {
                meta.remove("managedFields");
                meta.remove("selfLink");
                if let Some(Value::Object(annotations)) = meta.get_mut("annotations") {
                    annotations.remove(RUN);
                    if annotations.is_empty() {
                        meta.remove("annotations");
                    }
                }
            }
            if let Some(Value::Array(tolerations)) = map.get_mut("tolerations") {
                tolerations.retain(|toleration| !is_default(toleration));
                if tolerations.is_empty() {
                    map.remove("tolerations");
                }
            }
            for key in ["volumes", "volumeMounts"] {
                if let Some(Value::Array(items)) = map.get_mut(key) {
                    items.retain(|item| !is_token(item));
                    if items.is_empty() {
                        map.remove(key);
                    }
                }
            }
            map.values_mut().for_each(drop_from);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_from),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What admission adds to every pod.
fn is_default(toleration: &Value) -> bool {
    matches!(toleration["key"].as_str(), Some("node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable"))
        && toleration["tolerationSeconds"] == 300
}

fn is_token(item: &Value) -> bool {
    item["name"].as_str().is_some_and(|name| name.starts_with("kube-api-access-"))
}
