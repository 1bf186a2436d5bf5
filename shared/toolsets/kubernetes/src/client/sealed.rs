//! An object as the cluster holds it, secrets and all, for writing it back.

use crate::client::cluster::Cluster;
use crate::client::mask::MaskDetail;
use serde_json::Value;

/// A value that may hold secrets. It can be taken apart, changed and written; it can be shown only masked.
///
/// This is what a rollback or a Job from a CronJob is made of: writing back what was read masked would destroy it.
#[derive(Clone, PartialEq)]
pub struct SealedValue {
    pub(in crate::client) value: Value,
    /// Whether it is part of a Secret, so that every string of it is one.
    secret: bool,
}

impl SealedValue {
    pub(in crate::client) fn of(value: Value, secret: bool) -> SealedValue {
        SealedValue { value, secret }
    }

    /// A part, by JSON pointer.
    pub fn part(&self, pointer: &str) -> Option<SealedValue> {
        let value = self.value.pointer(pointer)?.clone();
        Some(SealedValue { value, secret: self.secret })
    }

    /// Sets a part, by JSON pointer. The parents are made where they are missing.
    pub fn set(&mut self, pointer: &str, part: impl Into<SealedValue>) {
        let part = part.into();
        self.secret |= part.secret;
        set(&mut self.value, pointer, part.value);
    }

    /// Takes a part out, by JSON pointer.
    pub fn remove(&mut self, pointer: &str) {
        let Some((parent, key)) = pointer.rsplit_once('/') else { return };
        let key = key.replace("~1", "/").replace("~0", "~");
        match self.value.pointer_mut(parent) {
            Some(Value::Object(map)) => {
                map.remove(&key);
            }
            Some(Value::Array(items)) => {
                if let Some(n) = key.parse().ok().filter(|n| *n < items.len()) {
                    items.remove(n);
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
    }

    /// What may be seen of it.
    pub fn shown(&self, cluster: &Cluster<'_>, detail: MaskDetail) -> Value {
        let mut value = self.value.clone();
        let framed = value["kind"].as_str().is_some_and(|kind| cluster.masker().is_secret_kind(kind));
        if self.secret && !framed {
            cluster.masker().contents(&mut value);
        }
        cluster.masker().object(&mut value, detail);
        value
    }
}

impl From<Value> for SealedValue {
    fn from(value: Value) -> SealedValue {
        SealedValue { value, secret: false }
    }
}

impl std::fmt::Debug for SealedValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealed(..)")
    }
}

/// Sets a part, by JSON pointer. Whatever stands in the way of the path gives way.
pub(in crate::client) fn set(value: &mut Value, pointer: &str, part: Value) {
    let mut at = value;
    for key in pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")) {
        let item = at.as_array().and_then(|items| key.parse::<usize>().ok().filter(|n| *n < items.len()));
        if let Some(n) = item {
            at = &mut at[n];
            continue;
        }
        if !at.is_object() {
            *at = Value::Object(serde_json::Map::new());
        }
        at = &mut at[key.as_str()];
    }
    *at = part;
}
