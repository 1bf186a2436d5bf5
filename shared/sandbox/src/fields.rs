//! Field ownership: which manager set which fields of an object.
//!
//! A set of fields is a set of paths; an element is written as in `managedFields`:
//! `f:name` a field, `k:{"name":"web"}` an item by its keys, `v:"x"` an item of a set.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::schema::{SchemaNode, Sharing, Types};

/// The way to one field.
pub(crate) type Path = Vec<String>;

/// A set of fields.
pub(crate) type FieldSet = BTreeSet<Path>;

/// Metadata the server itself writes, which nobody owns.
const UNOWNED_METADATA: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
];

/// The fields that are set in an object.
pub(crate) fn fields_of(object: &Value, types: &Types, place: &SchemaNode) -> FieldSet {
    let mut fields = FieldSet::new();
    collect(object, types, place, &mut Vec::new(), &mut fields);
    fields.retain(|path| !is_unowned(path));
    fields
}

fn is_unowned(path: &Path) -> bool {
    match path.first().map(String::as_str) {
        Some("f:apiVersion" | "f:kind") => true,
        Some("f:metadata") => path.get(1).is_none_or(|second| UNOWNED_METADATA.contains(&&second[2..])),
        _ => false,
    }
}

fn collect(value: &Value, types: &Types, place: &SchemaNode, path: &mut Path, fields: &mut FieldSet) {
    if let Value::Object(map) = value
        && !map.is_empty()
        && !types.is_atomic(place)
    {
        for (key, value) in map {
            let below = types.below(place, key).unwrap_or(SchemaNode::UNKNOWN);
            path.push(format!("f:{key}"));
            collect(value, types, &below, path, fields);
            path.pop();
        }
        return;
    }
    if let Value::Array(items) = value
        && !items.is_empty()
        && matches!(place.sharing, Sharing::Keyed(_) | Sharing::Set)
    {
        let below = types.items(place);
        for item in items {
            path.push(item_element(item, &place.sharing));
            fields.insert(path.clone());
            if item.is_object() {
                collect(item, types, &below, path, fields);
            }
            path.pop();
        }
        return;
    }
    fields.insert(path.clone());
}

/// How an item of a list is named in a path.
pub(crate) fn item_element(item: &Value, sharing: &Sharing) -> String {
    let Sharing::Keyed(keys) = sharing else { return format!("v:{item}") };
    let keyed: Map<String, Value> = keys.iter().filter_map(|key| Some((key.clone(), key_value(item, key)?))).collect();
    format!("k:{}", Value::Object(keyed))
}

/// The value of a list key; a protocol that is not said is TCP, as the server defaults it.
fn key_value(item: &Value, key: &str) -> Option<Value> {
    item.get(key).cloned().or_else(|| (key == "protocol").then(|| json!("TCP")))
}

/// What stands at a path, if anything does.
pub(crate) fn value_at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |here, element| step(here, element))
}

fn step<'a>(here: &'a Value, element: &str) -> Option<&'a Value> {
    if let Some(key) = element.strip_prefix("f:") {
        return here.get(key);
    }
    here.as_array()?.iter().find(|item| is_item(item, element))
}

/// Whether a list item is the one an element names.
pub(crate) fn is_item(item: &Value, element: &str) -> bool {
    let Ok(wanted) = serde_json::from_str::<Value>(&element[2..]) else { return false };
    if element.starts_with("v:") {
        return *item == wanted;
    }
    let wanted = wanted.as_object().cloned().unwrap_or_default();
    wanted.iter().all(|(key, value)| key_value(item, key).as_ref() == Some(value))
}

/// Takes what stands at a path out of an object; parents that become empty stay.
pub(crate) fn remove_at(object: &mut Value, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut here = object;
    for element in parents {
        let next = match element.strip_prefix("f:") {
            Some(key) => here.get_mut(key),
            None => here.as_array_mut().and_then(|items| items.iter_mut().find(|item| is_item(item, element))),
        };
        let Some(next) = next else { return };
        here = next;
    }
    match (last.strip_prefix("f:"), here) {
        (Some(key), Value::Object(map)) => drop(map.remove(key)),
        (None, Value::Array(items)) => items.retain(|item| !is_item(item, last)),
        _ => {}
    }
}

/// A path as people read it: `.spec.containers[name="web"].image`.
pub(crate) fn shown(path: &[String]) -> String {
    let part = |element: &String| {
        if let Some(key) = element.strip_prefix("f:") {
            return format!(".{key}");
        }
        if let Some(value) = element.strip_prefix("v:") {
            return format!("[={value}]");
        }
        let keys: Map<String, Value> = serde_json::from_str(&element[2..]).unwrap_or_default();
        format!("[{}]", keys.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(","))
    };
    path.iter().map(part).collect()
}

/// The tree form of `fieldsV1`.
pub(crate) fn to_tree(fields: &FieldSet) -> Value {
    let mut tree = json!({});
    for path in fields {
        let mut here = &mut tree;
        for element in path {
            here = crate::json::object_of(here).entry(element.clone()).or_insert_with(|| json!({}));
        }
        if fields.iter().any(|other| other.len() > path.len() && other.starts_with(path)) {
            crate::json::object_of(here).insert(".".to_owned(), json!({}));
        }
    }
    tree
}

/// The set a `fieldsV1` tree stands for.
pub(crate) fn from_tree(tree: &Value) -> FieldSet {
    fn walk(tree: &Value, path: &mut Path, fields: &mut FieldSet) {
        let below = tree.as_object().filter(|map| !map.is_empty());
        let Some(below) = below else {
            fields.insert(path.clone());
            return;
        };
        for (key, tree) in below {
            if key == "." {
                fields.insert(path.clone());
            } else {
                path.push(key.clone());
                walk(tree, path, fields);
                path.pop();
            }
        }
    }
    let mut fields = FieldSet::new();
    if tree.as_object().is_some_and(|map| !map.is_empty()) {
        walk(tree, &mut Vec::new(), &mut fields);
    }
    fields
}
