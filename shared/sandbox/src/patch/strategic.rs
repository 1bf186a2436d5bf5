//! Strategic merge patch: lists of the built-in kinds are merged by their keys.
//!
//! Directives: `$patch: delete | replace | merge` in an item or object, `$retainKeys`,
//! `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.

use serde_json::{Map, Value};

use crate::json;
use crate::schema::{SchemaNode, Sharing, Types};
use crate::status::ApiStatus;

/// Folds a patch into an object of a known type.
pub(crate) fn apply(target: &mut Value, patch: &Value, types: &Types, place: &SchemaNode) -> Result<(), ApiStatus> {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return Ok(());
    };
    match changes.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *target = Value::Object(without_directives(changes));
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => {
            return Err(ApiStatus::bad_request(format!("invalid patch type {other:?} in strategic merge patch")));
        }
    }
    if let Some(kept) = changes.get("$retainKeys").and_then(Value::as_array) {
        json::object_of(target).retain(|key, _| kept.iter().any(|one| one.as_str() == Some(key)));
    }
    for (key, change) in changes {
        if let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") {
            let going = change.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(items)) = target.get_mut(field) {
                items.retain(|item| !going.contains(item));
            }
        } else if !key.starts_with('$') {
            apply_field(json::object_of(target), key, change, (types, place))?;
        }
    }
    for (key, order) in changes {
        if let Some(field) = key.strip_prefix("$setElementOrder/") {
            let below = types.below(place, field).unwrap_or(SchemaNode::UNKNOWN);
            reorder(target.get_mut(field), order, &below.sharing);
        }
    }
    Ok(())
}

fn apply_field(
    target: &mut Map<String, Value>,
    key: &str,
    change: &Value,
    (types, place): (&Types, &SchemaNode),
) -> Result<(), ApiStatus> {
    if change.is_null() {
        target.remove(key);
        return Ok(());
    }
    let below = types.below(place, key).unwrap_or(SchemaNode::UNKNOWN);
    let Value::Array(items) = change else {
        return apply(target.entry(key.to_owned()).or_insert(Value::Null), change, types, &below);
    };
    let slot = target.entry(key.to_owned()).or_insert_with(|| Value::Array(Vec::new()));
    let Value::Array(live) = slot else {
        *slot = change.clone();
        return Ok(());
    };
    match &below.sharing {
        Sharing::Keyed(keys) if !keys.is_empty() => merge_items(live, items, &keys[0], types, &types.items(&below)),
        Sharing::Set => {
            for item in items.iter().filter(|item| !live.contains(item)).cloned().collect::<Vec<_>>() {
                live.push(item);
            }
            Ok(())
        }
        Sharing::Keyed(_) | Sharing::Atomic | Sharing::Granular => {
            *live = items.iter().filter(|item| item.get("$patch").is_none()).cloned().collect();
            Ok(())
        }
    }
}

fn merge_items(
    live: &mut Vec<Value>,
    items: &[Value],
    key: &str,
    types: &Types,
    place: &SchemaNode,
) -> Result<(), ApiStatus> {
    if items.iter().any(|item| item.get("$patch").and_then(Value::as_str) == Some("replace")) {
        *live = items.iter().filter(|item| item.get("$patch").is_none()).cloned().collect();
        return Ok(());
    }
    for item in items {
        let Some(id) = item.get(key) else {
            let shown = Value::Array(items.to_vec());
            return Err(ApiStatus::bad_request(format!("map: {shown} does not contain declared merge key: {key}")));
        };
        let found = live.iter().position(|one| one.get(key) == Some(id));
        match (item.get("$patch").and_then(Value::as_str), found) {
            (Some("delete"), Some(at)) => drop(live.remove(at)),
            (Some("delete"), None) => {}
            (_, Some(at)) => apply(&mut live[at], item, types, place)?,
            (_, None) => {
                let mut fresh = Value::Object(Map::new());
                apply(&mut fresh, item, types, place)?;
                live.push(fresh);
            }
        }
    }
    Ok(())
}

fn reorder(target: Option<&mut Value>, order: &Value, sharing: &Sharing) {
    let (Some(Value::Array(items)), Some(order)) = (target, order.as_array()) else { return };
    let place = |item: &Value| {
        order.iter().position(|wanted| match sharing {
            Sharing::Keyed(keys) => keys.first().is_some_and(|key| wanted.get(key) == item.get(key)),
            Sharing::Set | Sharing::Atomic | Sharing::Granular => wanted == item,
        })
    };
    items.sort_by_key(|item| place(item).unwrap_or(usize::MAX));
}

fn without_directives(changes: &Map<String, Value>) -> Map<String, Value> {
    changes.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod_spec(mut spec: Value, patch: &Value) -> Value {
        apply(&mut spec, patch, &Types::builtin(), &SchemaNode::of_type("core.v1.PodSpec")).unwrap();
        spec
    }

    #[test]
    fn containers_merge_by_name_and_arguments_are_replaced() {
        let spec =
            json!({ "containers": [{ "name": "a", "image": "a:1", "args": ["x"] }, { "name": "b", "image": "b:1" }] });
        let patch = json!({ "containers": [{ "name": "a", "image": "a:2", "args": ["y"] }, { "name": "b", "$patch": "delete" }] });
        let after = pod_spec(spec, &patch);
        assert_eq!(after, json!({ "containers": [{ "name": "a", "image": "a:2", "args": ["y"] }] }));
    }

    #[test]
    fn environment_ports_and_volumes_have_their_own_keys() {
        let spec = json!({
            "containers": [{ "name": "a", "env": [{ "name": "X", "value": "1" }], "ports": [{ "containerPort": 80 }] }],
            "volumes": [{ "name": "v", "emptyDir": {} }],
        });
        let patch = json!({
            "containers": [{ "name": "a", "env": [{ "name": "Y", "value": "2" }], "ports": [{ "containerPort": 80, "name": "http" }] }],
            "volumes": [{ "name": "v", "$retainKeys": ["name", "configMap"], "configMap": { "name": "c" } }],
        });
        let after = pod_spec(spec, &patch);
        assert_eq!(after["containers"][0]["env"].as_array().unwrap().len(), 2);
        assert_eq!(after["containers"][0]["ports"], json!([{ "containerPort": 80, "name": "http" }]));
        assert_eq!(after["volumes"], json!([{ "name": "v", "configMap": { "name": "c" } }]));
    }
}
