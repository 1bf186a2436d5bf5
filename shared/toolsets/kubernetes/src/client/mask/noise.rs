//! Bookkeeping that says nothing to whoever asks what an object is.

use crate::client::marker::RUN;
use serde_json::{Map, Value, json};

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
            drop_token_volume(map);
            map.values_mut().for_each(drop_from);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_from),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What admission adds to every pod, to the letter. Anything more or less is somebody's wish.
fn is_default(toleration: &Value) -> bool {
    ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].iter().any(|key| {
        *toleration == json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 })
    })
}

/// Where admission mounts the token of a pod's service account.
const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Leaves out the volume that admission adds to every pod for its token, and the mounts of it. It is recognised by what
/// it holds and where it is mounted: its name is anybody's to choose.
fn drop_token_volume(spec: &mut Map<String, Value>) {
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    let tokens: Vec<String> =
        volumes.filter(|volume| is_token(volume)).filter_map(|v| Some(v["name"].as_str()?.to_owned())).collect();
    if tokens.is_empty() {
        return;
    }
    let of_token = |item: &Value| item["name"].as_str().is_some_and(|name| tokens.iter().any(|token| token == name));
    retain(spec, "volumes", |volume| !of_token(volume));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(container) = container {
                retain(container, "volumeMounts", |mount| !(of_token(mount) && mount["mountPath"] == TOKEN_PATH));
            }
        }
    }
}

fn retain(map: &mut Map<String, Value>, key: &str, keep: impl Fn(&Value) -> bool) {
    if let Some(Value::Array(items)) = map.get_mut(key) {
        items.retain(keep);
        if items.is_empty() {
            map.remove(key);
        }
    }
}

/// Whether a volume holds a token, the cluster's certificate and the namespace, and nothing else.
fn is_token(volume: &Value) -> bool {
    let only = |value: &Value, key: &str| {
        value.as_object().is_some_and(|fields| fields.len() == 1 && fields.contains_key(key))
    };
    let usual = |source: &Value| {
        only(source, "serviceAccountToken")
            || (only(source, "configMap") && source["configMap"]["name"] == "kube-root-ca.crt")
            || (only(source, "downwardAPI")
                && source["downwardAPI"]["items"].as_array().is_some_and(|items| {
                    items.iter().all(|item| item["fieldRef"]["fieldPath"] == "metadata.namespace")
                }))
    };
    let sources = volume["projected"]["sources"].as_array();
    let two = volume.as_object().is_some_and(|fields| fields.len() == 2);
    two && sources.is_some_and(|sources| {
        sources.iter().any(|source| only(source, "serviceAccountToken")) && sources.iter().all(usual)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str) -> Value {
        json!({ "name": name, "projected": { "defaultMode": 420, "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" } }] } },
        ] } })
    }

    fn pod(volume: Value, path: &str) -> Value {
        let name = volume["name"].clone();
        json!({ "spec": { "volumes": [volume], "containers": [{ "name": "a", "volumeMounts": [{ "name": name, "mountPath": path, "readOnly": true }] }] } })
    }

    #[test]
    fn the_token_volume_is_left_out_whatever_it_is_called() {
        for name in ["kube-api-access-x7x2p", "anything"] {
            let mut pod = pod(token(name), TOKEN_PATH);
            drop_from(&mut pod);
            assert_eq!(pod, json!({ "spec": { "containers": [{ "name": "a" }] } }));
        }
    }

    #[test]
    fn a_volume_that_only_has_the_name_of_a_token_stays() {
        let mut more = token("kube-api-access-a");
        more["projected"]["sources"].as_array_mut().unwrap().push(json!({ "secret": { "name": "x" } }));
        let with = |at: usize, source: Value| {
            let mut volume = token("kube-api-access-b");
            volume["projected"]["sources"][at] = source;
            volume
        };
        let other_map = with(1, json!({ "configMap": { "name": "mine" } }));
        let labels = json!({ "items": [{ "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } }] });
        let other_field = with(2, json!({ "downwardAPI": labels }));
        let host = json!({ "name": "kube-api-access-host", "hostPath": { "path": "/" } });
        for volume in [host, more, other_map, other_field] {
            let before = pod(volume, TOKEN_PATH);
            let mut after = before.clone();
            drop_from(&mut after);
            assert_eq!(after, before);
        }
        let mut elsewhere = pod(token("t"), "/tokens");
        drop_from(&mut elsewhere);
        assert_eq!(elsewhere["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/tokens");
    }

    #[test]
    fn only_the_tolerations_of_admission_are_left_out() {
        let usual =
            |key: &str| json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 });
        let other = json!({ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 300 });
        let mut spec = json!({ "tolerations": [usual("node.kubernetes.io/not-ready"), usual("mine"), other.clone()] });
        drop_from(&mut spec);
        assert_eq!(spec, json!({ "tolerations": [usual("mine"), other] }));
    }
}
