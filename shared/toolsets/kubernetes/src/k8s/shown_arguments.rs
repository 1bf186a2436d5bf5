//! The arguments of a call as people are shown them: the values of Secrets, and whatever reads like a secret, are marks.
//! A command line is shown as it is, because its exact words are what is signed for.
//!
//! The run keeps the arguments as they were given, because that is what is carried out; what is listed, shown, posted and
//! logged of them is this.

use super::manifest::ObjectManifest;
use crate::client::{Cluster, MaskDetail, SealedValue, without_marks};
use serde_json::{Value, json};
pub(super) use target::marked::marked;

/// A manifest whose objects are shown as the cluster would show them.
pub(super) fn manifest(cluster: &Cluster<'_>, manifest: &ObjectManifest) -> Option<String> {
    let objects = manifest.objects().ok()?;
    let shown: Vec<Value> = objects.iter().map(|object| masked(cluster, object.value.clone())).collect();
    let differs = objects.iter().zip(&shown).any(|(object, shown)| object.value != *shown);
    let texts = shown.iter().map(|object| serde_json::to_string_pretty(object).unwrap_or_default());
    differs.then(|| texts.collect::<Vec<_>>().join("\n---\n"))
}

/// A value as the cluster would show it. What a caller brought needs no marks to be compared by.
fn masked(cluster: &Cluster<'_>, value: Value) -> Value {
    without_marks(&SealedValue::from(value).shown(cluster, MaskDetail::Full))
}

/// A patch of a kind: everything it puts into a Secret is marked, and of other kinds what the cluster would mask.
pub(super) fn patch(cluster: &Cluster<'_>, kind: &str, text: &str) -> Option<String> {
    let given: Value = serde_json::from_str(text).ok()?;
    let shown = match given.clone() {
        Value::Array(operations) => {
            let shown = operations.into_iter().map(|op| operation(cluster, kind, op));
            Value::Array(shown.collect())
        }
        other @ (Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null) => {
            let mut framed = other;
            let named = framed.get("kind").is_some();
            framed["kind"] = json!(kind);
            let mut shown = masked(cluster, framed);
            if !named && let Some(fields) = shown.as_object_mut() {
                fields.remove("kind");
            }
            shown
        }
    };
    (shown != given).then(|| shown.to_string())
}

/// One step of a JSON Patch. Its value is put where it would stand, so that it is masked by its place.
fn operation(cluster: &Cluster<'_>, kind: &str, mut operation: Value) -> Value {
    let path = operation["path"].as_str().unwrap_or_default().to_owned();
    if operation["value"].is_null() {
        return operation;
    }
    let plain = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    let segments: Vec<String> = path.split('/').skip(1).map(plain).collect();
    let is_place = |segment: &str| segment == "-" || segment.bytes().all(|b| b.is_ascii_digit());
    let mut framed = segments.iter().rev().fold(operation["value"].clone(), |inner, segment| {
        if is_place(segment) { json!([inner]) } else { json!({ segment.as_str(): inner }) }
    });
    if !framed.is_object() {
        return operation;
    }
    framed["kind"] = json!(kind);
    let mut shown = &masked(cluster, framed);
    for segment in &segments {
        shown = if is_place(segment) { &shown[0] } else { &shown[segment.as_str()] };
    }
    operation["value"] = shown.clone();
    operation
}
