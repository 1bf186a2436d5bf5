//! Small ways into JSON trees, so that the rest reads as Kubernetes and not as pointer arithmetic.

use serde_json::{Map, Value};

/// The text at a slash-separated place, or nothing.
pub(crate) fn text<'a>(value: &'a Value, at: &str) -> Option<&'a str> {
    value.pointer(at)?.as_str()
}

/// The text at a place, or the empty text.
pub(crate) fn text_or_empty<'a>(value: &'a Value, at: &str) -> &'a str {
    text(value, at).unwrap_or_default()
}

/// The whole number at a place, or what is said instead.
pub(crate) fn int(value: &Value, at: &str, otherwise: i64) -> i64 {
    value.pointer(at).and_then(Value::as_i64).unwrap_or(otherwise)
}

/// Whether `true` stands at a place.
pub(crate) fn is_true(value: &Value, at: &str) -> bool {
    value.pointer(at).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at a place; an absent one is empty.
pub(crate) fn list<'a>(value: &'a Value, at: &str) -> &'a [Value] {
    value.pointer(at).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The object at a place, or nothing.
pub(crate) fn map<'a>(value: &'a Value, at: &str) -> Option<&'a Map<String, Value>> {
    value.pointer(at)?.as_object()
}

/// Puts a value at a slash-separated place of object keys, making the objects on the way.
pub(crate) fn set(value: &mut Value, at: &str, to: impl Into<Value>) {
    let mut here = value;
    for part in at.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        here = object_of(here).entry(part).or_insert(Value::Null);
    }
    *here = to.into();
}

/// Puts a value at a place only if nothing stands there.
pub(crate) fn set_default(value: &mut Value, at: &str, to: impl Into<Value>) {
    if value.pointer(at).is_none_or(Value::is_null) {
        set(value, at, to);
    }
}

/// Takes the value at a place of object keys away; says what stood there.
pub(crate) fn take(value: &mut Value, at: &str) -> Option<Value> {
    let (parent, key) = at.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    value.pointer_mut(parent)?.as_object_mut()?.remove(&key)
}

/// The list at a place for changing, made if it was absent.
pub(crate) fn list_mut<'a>(value: &'a mut Value, at: &str) -> &'a mut Vec<Value> {
    if !value.pointer(at).is_some_and(Value::is_array) {
        set(value, at, Value::Array(Vec::new()));
    }
    let Some(Value::Array(items)) = value.pointer_mut(at) else { unreachable!("the list was made the line before") };
    items
}

/// This value as an object, made into one if it is something else.
pub(crate) fn object_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else { unreachable!("the object was made the line before") };
    map
}

/// A key made fit to stand inside a pointer.
pub(crate) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// One label's or annotation's value.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// The object's name.
pub(crate) fn name(object: &Value) -> &str {
    text_or_empty(object, "/metadata/name")
}

/// The object's namespace, empty for cluster-wide kinds.
pub(crate) fn namespace(object: &Value) -> &str {
    text_or_empty(object, "/metadata/namespace")
}

/// The object's uid.
pub(crate) fn uid(object: &Value) -> &str {
    text_or_empty(object, "/metadata/uid")
}

/// Whether deletion of the object was asked for.
pub(crate) fn is_going(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

/// A number or percent of a whole, as rollout bounds are written; percents round up or down as asked.
pub(crate) fn part_of(value: Option<&Value>, whole: i64, round_up: bool, otherwise: &Value) -> i64 {
    let value = value.unwrap_or(otherwise);
    if let Some(number) = value.as_i64() {
        return number;
    }
    let percent = value.as_str().and_then(|text| text.strip_suffix('%')).and_then(|text| text.parse::<i64>().ok());
    let Some(percent) = percent else { return 0 };
    if round_up { (whole * percent + 99) / 100 } else { whole * percent / 100 }
}
