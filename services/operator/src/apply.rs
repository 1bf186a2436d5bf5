//! Writes to the API server: by server-side apply, and none where nothing changed.
//!
//! An object is written if what is there does not hold what is wanted. Fields that others set beside ours are theirs and
//! count for nothing. A field that is no longer wanted is found by the digest that the object carries, and taken away by
//! the API server, because nobody but us owns it.
//! The API server writes some values its own way (`1000m` becomes `1`). So that this is not taken for a change for ever,
//! what it made of our last write is remembered, and an object that still looks so is left alone.

use crate::names::{DIGEST, FIELD_MANAGER};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use telemetry::metrics;

/// Objects that are remembered; more than that, and the memory begins anew, which costs a write each at most.
const REMEMBERED: usize = 10_000;

/// How the API server begins to say that it does not know a field of what is applied.
const UNKNOWN_FIELD: &str = "failed to create typed patch object";

/// What was applied to each object, and how it looked afterwards.
#[derive(Debug, Default)]
pub struct Applier {
    settled: Mutex<HashMap<String, Settled>>,
}

#[derive(Debug, PartialEq, Eq)]
struct Settled {
    wanted: String,
    live: String,
}

/// Why something is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// There is an object of this name that is somebody else's.
    #[error("the {kind} `{name}` is there already and belongs to somebody else")]
    NotOurs {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
    },
    /// The API server does not take it as it is written.
    #[error("the {kind} `{name}` is refused: {message}")]
    Refused {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// What the API server says.
        message: String,
    },
    /// The API server could not be asked.
    #[error("could not write the {kind} `{name}`")]
    Api {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: kube::Error,
    },
}

impl ApplyError {
    /// The reason of the condition `Accepted`, if only another resource than the one that is there could be applied.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            ApplyError::NotOurs { .. } => Some("NameTaken"),
            ApplyError::Refused { .. } => Some("Refused"),
            ApplyError::Api { .. } => None,
        }
    }
}

/// An object that is to be there, of one owner.
#[derive(Debug, Clone)]
pub struct WantedObject {
    /// What kind it is.
    pub resource: ApiResource,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Labels, and everything besides `metadata`.
    pub labels: Value,
    /// The rest of the object.
    pub body: Map<String, Value>,
    /// Who owns it.
    pub owner: OwnerReference,
}

impl WantedObject {
    /// The object as it is sent, with the digest of itself.
    fn manifest(&self) -> (Value, String) {
        let mut manifest = self.body.clone();
        manifest.insert("apiVersion".to_owned(), json!(self.resource.api_version));
        manifest.insert("kind".to_owned(), json!(self.resource.kind));
        let mut metadata = json!({
            "name": self.name,
            "namespace": self.namespace,
            "labels": self.labels,
            "ownerReferences": [self.owner],
        });
        manifest.insert("metadata".to_owned(), metadata.clone());
        let digest = digest(&Value::Object(manifest.clone()));
        metadata["annotations"] = json!({ DIGEST: digest });
        manifest.insert("metadata".to_owned(), metadata);
        (Value::Object(manifest), digest)
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        Api::namespaced_with(client.clone(), &self.namespace, &self.resource)
    }

    fn failed(&self, error: kube::Error) -> ApplyError {
        let (kind, name) = (self.resource.kind.clone(), self.name.clone());
        // 400 and 422: as it is written it can never be; a quota or an admission rule says 403. A field that the API server
        // does not know is a 500 when it is applied.
        if let kube::Error::Api(status) = &error
            && (matches!(status.code, 400 | 403 | 422) || status.message.starts_with(UNKNOWN_FIELD))
        {
            return ApplyError::Refused { kind, name, message: status.message.clone() };
        }
        ApplyError::Api { kind, name, source: error }
    }

    fn is_owned(&self, live: &DynamicObject) -> bool {
        live.owner_references().iter().any(|owner| owner.controller == Some(true) && owner.uid == self.owner.uid)
    }
}

impl Applier {
    /// Makes the object be as it is wanted, and returns how it is.
    pub async fn apply(&self, client: &Client, wanted: &WantedObject) -> Result<DynamicObject, ApplyError> {
        let api = wanted.api(client);
        let (manifest, digest) = wanted.manifest();
        let key = format!("{} {}/{}", wanted.resource.kind, wanted.namespace, wanted.name);
        let live = api.get_opt(&wanted.name).await.map_err(|error| wanted.failed(error))?;
        if let Some(live) = live {
            if !wanted.is_owned(&live) {
                return Err(ApplyError::NotOurs { kind: wanted.resource.kind.clone(), name: wanted.name.clone() });
            }
            let settled = Settled { wanted: digest.clone(), live: look(&live) };
            if holds(&plain(&live), &manifest) || self.is_settled(&key, &settled) {
                return Ok(live);
            }
        }
        let params = PatchParams::apply(FIELD_MANAGER).force().validation_strict();
        let made =
            api.patch(&wanted.name, &params, &Patch::Apply(&manifest)).await.map_err(|error| wanted.failed(error))?;
        metrics::OPERATOR_WRITES.add([&wanted.resource.kind], 1);
        self.remember(key, Settled { wanted: digest, live: look(&made) });
        Ok(made)
    }

    /// Takes an object away that its owner does not want any more; what is somebody else's stays.
    pub async fn remove(&self, client: &Client, unwanted: &WantedObject) -> Result<(), ApplyError> {
        let api = unwanted.api(client);
        let live = api.get_opt(&unwanted.name).await.map_err(|error| unwanted.failed(error))?;
        let Some(live) = live.filter(|live| unwanted.is_owned(live) && live.metadata.deletion_timestamp.is_none())
        else {
            return Ok(());
        };
        // This very object: another one of the same name may have been made meanwhile.
        let this = Preconditions { uid: live.uid(), resource_version: None };
        let params = DeleteParams::background().preconditions(this);
        match api.delete(&unwanted.name, &params).await {
            Ok(_) => metrics::OPERATOR_WRITES.add([&unwanted.resource.kind], 1),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(unwanted.failed(error)),
        }
        Ok(())
    }

    /// The object as it is, if it is there and its owner's.
    pub async fn find(&self, client: &Client, wanted: &WantedObject) -> Result<Option<DynamicObject>, ApplyError> {
        let live = wanted.api(client).get_opt(&wanted.name).await.map_err(|error| wanted.failed(error))?;
        Ok(live.filter(|live| wanted.is_owned(live)))
    }

    /// Writes the status of a resource if it is another one than before; tells whether it did.
    pub async fn write_status<K, S>(&self, api: &Api<K>, of: &K, before: &S, now: &S) -> Result<bool, kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Debug,
        S: Serialize + PartialEq,
    {
        let value = |status: &S| serde_json::to_value(status).unwrap_or_default();
        let (old, new) = (value(before), value(now));
        let key = format!("status of {} {}", K::kind(&()), of.meta().uid.clone().unwrap_or_default());
        let settled = |live: &Value| Settled { wanted: digest(&new), live: digest(live) };
        if old == new || self.is_settled(&key, &settled(&old)) {
            return Ok(false);
        }
        let name = of.name_any();
        let manifest = json!({
            "apiVersion": K::api_version(&()),
            "kind": K::kind(&()),
            "metadata": { "name": name },
            "status": new,
        });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let made = api.patch_status(&name, &params, &Patch::Apply(&manifest)).await?;
        metrics::OPERATOR_WRITES.add([&K::kind(&())], 1);
        self.remember(key, settled(&serde_json::to_value(&made).unwrap_or_default()["status"]));
        Ok(true)
    }

    fn is_settled(&self, key: &str, settled: &Settled) -> bool {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).get(key) == Some(settled)
    }

    fn remember(&self, key: String, settled: Settled) {
        let mut all = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= REMEMBERED {
            all.clear();
        }
        all.insert(key, settled);
    }
}

/// The digest of a value, in hexadecimal. Keys are in order, so the same value has the same digest.
pub fn digest(value: &Value) -> String {
    let bytes = Sha256::digest(value.to_string().as_bytes());
    bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn plain(object: &DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}

/// How an object looks, besides what changes by itself.
fn look(object: &DynamicObject) -> String {
    let mut value = plain(object);
    if let Some(object) = value.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
        metadata.remove("generation");
    }
    digest(&value)
}

/// Whether what is there has everything that is wanted. It may have more.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(key, wanted)| match live.get(key) {
            Some(live) => holds(live, wanted),
            // The API server does not keep what is empty.
            None => is_empty(wanted),
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            let is_keyed = wanted.iter().all(|item| merge_key(item).is_some());
            if is_keyed && !wanted.is_empty() {
                wanted.iter().all(|wanted| live.iter().any(|live| is_same_item(live, wanted) && holds(live, wanted)))
            } else {
                live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| holds(live, wanted))
            }
        }
        (live, wanted) => live == wanted,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Lists of named things are maps to the API server, and others may have added to them.
fn merge_key(item: &Value) -> Option<&Value> {
    ["mountPath", "containerPort", "uid", "name"].iter().find_map(|key| item.get(key))
}

fn is_same_item(live: &Value, wanted: &Value) -> bool {
    merge_key(wanted) == merge_key(live)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_added_is_no_difference() {
        let live = json!({ "a": 1, "extra": true, "list": [{ "name": "x", "v": 1, "more": 2 }, { "name": "theirs" }] });
        assert!(holds(&live, &json!({ "a": 1, "list": [{ "name": "x", "v": 1 }] })));
        assert!(!holds(&live, &json!({ "list": [{ "name": "x", "v": 2 }] })));
        assert!(!holds(&live, &json!({ "list": [{ "name": "y" }] })));
        assert!(!holds(&live, &json!({ "b": 1 })));
    }

    #[test]
    fn lists_without_names_are_compared_whole() {
        assert!(holds(&json!({ "args": ["a", "b"] }), &json!({ "args": ["a", "b"] })));
        assert!(!holds(&json!({ "args": ["a", "b"] }), &json!({ "args": ["a"] })));
        assert!(!holds(&json!({ "args": ["b", "a"] }), &json!({ "args": ["a", "b"] })));
        let from = |n: u8| json!({ "from": [{ "podSelector": { "n": n } }] });
        assert!(!holds(&from(1), &from(2)));
    }

    #[test]
    fn what_is_empty_need_not_be_there() {
        assert!(holds(&json!({}), &json!({ "labels": {}, "list": [], "none": null, "text": "" })));
        assert!(!holds(&json!({ "list": [1] }), &json!({ "list": [] })));
        assert!(!holds(&json!({}), &json!({ "flag": false })));
    }

    #[test]
    fn a_dropped_field_changes_the_digest() {
        let with = digest(&json!({ "spec": { "nodeSelector": { "a": "b" } } }));
        assert_ne!(with, digest(&json!({ "spec": {} })));
        assert_eq!(with.len(), 32);
    }
}
