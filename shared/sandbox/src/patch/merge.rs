//! JSON merge patch (RFC 7396): null takes away, objects go deep, everything else replaces.

use serde_json::Value;

use crate::json;

/// Folds a patch into a value.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    let target = json::object_of(target);
    for (key, change) in changes {
        if change.is_null() {
            target.remove(key);
        } else {
            apply(target.entry(key.clone()).or_insert(Value::Null), change);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn null_takes_away_and_lists_are_replaced() {
        let mut object = json!({ "a": { "b": 1, "c": 2 }, "l": [1, 2] });
        apply(&mut object, &json!({ "a": { "b": null, "d": { "e": null, "f": 1 } }, "l": [3] }));
        assert_eq!(object, json!({ "a": { "c": 2, "d": { "f": 1 } }, "l": [3] }));
    }
}
