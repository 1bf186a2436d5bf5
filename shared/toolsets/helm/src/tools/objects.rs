//! What a chart renders, read from helm's text into objects, and as much of it as may be shown.
//!
//! The text was written by a chart somebody else made: reading it is bounded, and whatever cannot be read is refused
//! rather than shown as it is.

use domain::Failure;
use kubernetes::client::{BroughtTexts, Cluster, HiddenText, KnownSecrets, ObjectPair};
use kubernetes::k8s::diff_text::{plain, unified, whole};
use serde_json::Value;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use std::collections::BTreeMap;

/// More than a cluster can keep of one release.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The most objects.
const MOST_OBJECTS: usize = 5_000;

/// The objects of a manifest, in its order. Not masked.
pub(crate) fn read(text: &str) -> Result<Vec<Value>, Failure> {
    if text.len() > MOST_BYTES {
        return Err(unreadable("the manifest is larger than is taken"));
    }
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, bounds())
        .map_err(|_| unreadable("what the chart renders is no manifest"))?;
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(ref fields) if fields.is_empty() => {}
            Value::Object(ref fields) if is_list(fields) => {
                objects.extend(fields.get("items").and_then(Value::as_array).into_iter().flatten().cloned());
            }
            object @ Value::Object(_) => objects.push(object),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(unreadable("what the chart renders is not made of objects"));
            }
        }
    }
    if objects.len() > MOST_OBJECTS {
        return Err(unreadable("the chart renders more objects than are taken"));
    }
    Ok(objects)
}

fn is_list(fields: &serde_json::Map<String, Value>) -> bool {
    fields.get("kind").and_then(Value::as_str) == Some("List") && fields.get("items").is_some_and(Value::is_array)
}

fn unreadable(message: &str) -> Failure {
    Failure::new(crate::codes::RENDER_FAILED, message).next("correct the values or the chart and call again")
}

/// Which object it is: kind, and namespace and name as far as the manifest says.
pub(crate) fn identity(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let name = if name.is_empty() { text("/metadata/generateName") } else { name };
    let shown: String = match text("/metadata/namespace") {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    };
    shown.chars().filter(|c| !c.is_control()).take(300).collect()
}

/// The group as part of the identity, so that two kinds of one name stay apart.
fn key(object: &Value) -> String {
    let group =
        object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
    format!("{} {group}", identity(object))
}

/// What becomes of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// `create`, `change` or `remove`.
    pub(crate) action: &'static str,
    /// Which object.
    pub(crate) object: String,
    /// How it would differ.
    pub(crate) text: String,
    /// What of that is hidden from whoever decides.
    pub(crate) hidden: Vec<HiddenText>,
}

/// What differs between two manifests, object by object, masked. Those that stay as they are are left out.
pub(crate) fn differences(
    cluster: &Cluster<'_>,
    known: &KnownSecrets,
    now: &[Value],
    then: &[Value],
) -> Vec<Difference> {
    let by_key = |objects: &[Value]| -> BTreeMap<String, Value> {
        objects.iter().map(|object| (key(object), cluster.masked_object(object.clone(), known))).collect()
    };
    let (now, then) = (by_key(now), by_key(then));
    let mut found = Vec::new();
    for (key, after) in &then {
        let before = now.get(key);
        let pair = cluster.compared(before, Some(after));
        if let Some(text) = unified(pair.now.as_ref(), pair.then.as_ref()) {
            let action = if before.is_some() { "change" } else { "create" };
            found.push(Difference { action, object: identity(after), text, hidden: Vec::new() });
        }
    }
    for (_, before) in now.iter().filter(|(key, _)| !then.contains_key(*key)) {
        let pair = cluster.compared(Some(before), None);
        let text = unified(pair.now.as_ref(), None).unwrap_or_default();
        found.push(Difference { action: "remove", object: identity(before), text, hidden: Vec::new() });
    }
    found
}

/// The same for whoever decides: all of it, with what would be rendered as it is.
pub(crate) fn decided_differences(
    cluster: &Cluster<'_>,
    known: &KnownSecrets,
    brought: &BroughtTexts,
    (now, then): (&[Value], &[Value]),
) -> Vec<Difference> {
    let by_key = |objects: &[Value]| -> BTreeMap<String, (Value, Value)> {
        let masked = |object: &Value| (cluster.masked_object(object.clone(), known), object.clone());
        objects.iter().map(|object| (key(object), masked(object))).collect()
    };
    let (now, then) = (by_key(now), by_key(then));
    let mut found = Vec::new();
    for (key, (after, rendered)) in &then {
        let before = now.get(key).map(|(before, _)| before);
        let (pair, mut hidden) = ObjectPair::for_deciders(cluster, before, Some(after), brought);
        if let Some(text) = whole(pair.now.as_ref(), pair.then.as_ref()) {
            let action = if before.is_some() { "change" } else { "create" };
            let kind = after["kind"].as_str().unwrap_or_default();
            let changed = |one: &HiddenText| before.and_then(|old| old.pointer(&one.path)) != after.pointer(&one.path);
            hidden.extend(cluster.hide_contents(kind, &mut rendered.clone()).into_iter().filter(changed));
            found.push(Difference { action, object: identity(after), text, hidden });
        }
    }
    for (_, (before, _)) in now.iter().filter(|(key, _)| !then.contains_key(*key)) {
        let (pair, _) = ObjectPair::for_deciders(cluster, Some(before), None, brought);
        let text = whole(pair.now.as_ref(), None).unwrap_or_default();
        found.push(Difference { action: "remove", object: identity(before), text, hidden: Vec::new() });
    }
    found
}

/// Objects as text, masked.
pub(crate) fn shown(cluster: &Cluster<'_>, known: &KnownSecrets, objects: &[Value]) -> String {
    let texts: Vec<String> =
        objects.iter().map(|object| plain(&cluster.masked_object(object.clone(), known))).collect();
    texts.join("---\n")
}

/// Wide enough for the largest charts, and small enough that no text grows by being read.
fn bounds() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_documents: 2 * MOST_OBJECTS,
            max_depth: 128,
            flow_nesting_limit: 128,
            max_nodes: 2_000_000,
            max_events: 6_000_000,
            max_anchors: 256,
            max_aliases: 1_024,
            max_merge_keys: 256,
            max_recorded_anchor_events: 100_000,
            max_recorded_anchor_bytes: 1024 * 1024,
            max_total_scalar_bytes: 2 * MOST_BYTES,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 100_000,
            max_replay_stack_depth: 16,
            max_alias_expansions_per_anchor: 256,
        },
        // As helm reads it: the last of two equal keys counts.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_lists_and_comments_are_read() {
        let text = "---\n# Source: a/b.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n# nothing\n---\n\
                    apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: b, namespace: c}}\n";
        let objects = read(text).unwrap();
        assert_eq!(objects.iter().map(identity).collect::<Vec<_>>(), ["ConfigMap a", "Secret c/b"]);
        assert_eq!(read("").unwrap(), Vec::<Value>::new());
        assert_eq!(read("just text").unwrap_err().code, crate::codes::RENDER_FAILED);
        assert_eq!(read("a: [").unwrap_err().code, crate::codes::RENDER_FAILED);
    }
}
