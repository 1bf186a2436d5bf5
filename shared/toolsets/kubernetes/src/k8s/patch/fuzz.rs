//! What every patch of a stranger is held to: it is applied to an object here, by the letter of the standards, and what it
//! turns out to do is compared with what was said of it before.

use super::*;
use crate::risks;
use domain::{RunId, json};
use serde_json::json;

/// Whatever it says: it is refused, or it leaves alone what is nobody's to patch, and is as dangerous as it was judged.
pub fn patch(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (lifetime, risky) = (touches_lifetime(text), is_risky(text));
    let before = object();
    for form in [None, Some(PatchForm::Merge), Some(PatchForm::Strategic), Some(PatchForm::Json)] {
        let Ok(asked) = CheckedPatch::read(text, form) else { continue };
        asked.suits(true).ok();
        let Ok(body) = json::read(text.as_bytes()) else { panic!("it was read: {text:?}") };
        let run = RunId::from_random([7; 16]);
        for annotated in [false, true] {
            asked.patch(Some(run), annotated);
        }
        let mut after = before.clone();
        match body.as_array() {
            Some(operations) => {
                if operations.iter().try_for_each(|operation| step(&mut after, operation)).is_none() {
                    continue;
                }
            }
            None => merge_into(&mut after, &body),
        }
        // An object of another kind is another object; clusters refuse that.
        if ["apiVersion", "kind"].iter().any(|what| before[what] != after[what]) {
            continue;
        }
        for own in ["/status", "/metadata/managedFields", "/metadata/annotations/quartermaster~1run"] {
            // What the whole of the annotations is given as holds no mark; the cluster is asked whether there is one.
            let gone = own.contains("annotations") && !asked.is_marked();
            assert!(gone || before.pointer(own) == after.pointer(own), "{own} is touched by {text:?}");
        }
        for part in ["/metadata/finalizers", "/metadata/ownerReferences"] {
            assert!(lifetime || before.pointer(part) == after.pointer(part), "{part} is touched by {text:?}");
        }
        let brought = risks::of_change(Some(&before), &after);
        let worst = brought.iter().find(|risk| risk.rule.disrupts());
        assert!(worst.is_none() || risky || lifetime, "{worst:?} is brought by {text:?}");
    }
}

fn object() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {
            "name": "web", "namespace": "shop", "labels": { "app": "web" }, "managedFields": [{ "manager": "x" }],
            "annotations": { "a": "b", marker::RUN: "run_1" }, "finalizers": ["example.com/hold"],
            "ownerReferences": [{ "kind": "X", "name": "x" }],
        },
        "spec": {
            "replicas": 3,
            "template": { "spec": {
                "containers": [{ "name": "web", "image": "web:1", "securityContext": { "capabilities": { "add": [] } } }],
                "volumes": [],
                "securityContext": {},
            } },
        },
        "status": { "replicas": 3 },
    })
}

/// RFC 7396, and the directives by which a strategic patch takes things out.
fn merge_into(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(target) = target.as_object_mut() else { return };
    if fields.get("$patch").is_some_and(|how| how == "replace" || how == "delete") {
        // What it may not touch is refused elsewhere; here only what it may.
        target.retain(|key, _| matches!(key.as_str(), "status" | "managedFields" | "annotations"));
    }
    if let Some(kept) = fields.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|key, _| {
            kept.iter().any(|name| name == key) || matches!(key.as_str(), "status" | "managedFields" | "annotations")
        });
    }
    for (key, value) in fields {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            if let (Some(Value::Array(items)), Value::Array(gone)) = (target.get_mut(list), value) {
                items.retain(|item| !gone.contains(item));
            }
        } else if value.is_null() {
            target.remove(key);
        } else {
            merge_into(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// One step of RFC 6902; `None` where the whole patch fails.
fn step(target: &mut Value, operation: &Value) -> Option<()> {
    let (op, path) = (operation["op"].as_str()?, operation["path"].as_str()?);
    let value = operation["value"].clone();
    let (parent, key) = path.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    if op == "test" {
        return (target.pointer(path) == Some(&value)).then_some(());
    }
    match target.pointer_mut(parent)? {
        Value::Object(fields) => {
            match op {
                "add" => drop(fields.insert(key, value)),
                "replace" => *fields.get_mut(&key)? = value,
                _ => drop(fields.remove(&key)?),
            }
            Some(())
        }
        Value::Array(items) => {
            let at = if key == "-" { items.len() } else { key.parse().ok()? };
            match op {
                "add" if at <= items.len() => items.insert(at, value),
                "replace" if at < items.len() => items[at] = value,
                "remove" if at < items.len() => drop(items.remove(at)),
                _ => return None,
            }
            Some(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
