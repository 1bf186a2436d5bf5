//! Small ways into JSON trees, so that the rest reads as Kubernetes and not as pointer arithmetic.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// The value at a slash-separated place, as `Value::pointer` finds it. That one copies every key on its way twice, and
/// the controllers ask for places all the time.
pub(crate) fn at<'a>(value: &'a Value, at: &str) -> Option<&'a Value> {
    at.split('/').skip(1).try_fold(value, |here, part| match here {
        Value::Object(map) => map.get(&*unescaped(part)),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// A part of a place as the key it names.
fn unescaped(part: &str) -> Cow<'_, str> {
    if part.contains('~') { part.replace("~1", "/").replace("~0", "~").into() } else { part.into() }
}

/// The text at a slash-separated place, or nothing.
pub(crate) fn text<'a>(value: &'a Value, place: &str) -> Option<&'a str> {
    at(value, place)?.as_str()
}

/// The text at a place, or the empty text.
pub(crate) fn text_or_empty<'a>(value: &'a Value, at: &str) -> &'a str {
    text(value, at).unwrap_or_default()
}

/// The whole number at a place, or what is said instead.
pub(crate) fn int(value: &Value, place: &str, otherwise: i64) -> i64 {
    at(value, place).and_then(Value::as_i64).unwrap_or(otherwise)
}

/// Whether `true` stands at a place.
pub(crate) fn is_true(value: &Value, place: &str) -> bool {
    at(value, place).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at a place; an absent one is empty.
pub(crate) fn list<'a>(value: &'a Value, place: &str) -> &'a [Value] {
    at(value, place).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The object at a place, or nothing.
pub(crate) fn map<'a>(value: &'a Value, place: &str) -> Option<&'a Map<String, Value>> {
    at(value, place)?.as_object()
}

/// Puts a value at a slash-separated place of object keys, making the objects on the way.
pub(crate) fn set(value: &mut Value, at: &str, to: impl Into<Value>) {
    let mut here = value;
    for part in at.split('/').skip(1) {
        here = object_of(here).entry(unescaped(part)).or_insert(Value::Null);
    }
    *here = to.into();
}

/// Puts a value at a place only if nothing stands there.
pub(crate) fn set_default(value: &mut Value, place: &str, to: impl Into<Value>) {
    if at(value, place).is_none_or(Value::is_null) {
        set(value, place, to);
    }
}

/// Takes the value at a place of object keys away; says what stood there.
pub(crate) fn take(value: &mut Value, at: &str) -> Option<Value> {
    let (parent, key) = at.rsplit_once('/')?;
    value.pointer_mut(parent)?.as_object_mut()?.remove(&*unescaped(key))
}

/// The list at a place for changing, made if it was absent.
pub(crate) fn list_mut<'a>(value: &'a mut Value, place: &str) -> &'a mut Vec<Value> {
    if !at(value, place).is_some_and(Value::is_array) {
        set(value, place, Value::Array(Vec::new()));
    }
    let Some(Value::Array(items)) = value.pointer_mut(place) else { unreachable!("the list was made the line before") };
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
    at(object, "/metadata/deletionTimestamp").is_some()
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
