//! JSON Patch (RFC 6902): a list of operations, all or none.

use serde_json::Value;

use crate::json;
use crate::status::ApiStatus;

/// The most operations one patch may hold, as on the real server.
const MOST_OPERATIONS: usize = 10_000;

/// Carries out every operation in order; the first that fails refuses the whole patch.
pub(crate) fn apply(target: &mut Value, patch: &Value) -> Result<(), ApiStatus> {
    let Some(operations) = patch.as_array() else {
        return Err(ApiStatus::bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch"));
    };
    if operations.len() > MOST_OPERATIONS {
        return Err(ApiStatus::too_large());
    }
    for operation in operations {
        step(target, operation).map_err(|why| {
            tracing::debug!(%why, "a JSON Patch does not apply");
            ApiStatus::unprocessable()
        })?;
    }
    Ok(())
}

fn step(target: &mut Value, operation: &Value) -> Result<(), String> {
    let path = json::text(operation, "/path").ok_or("operation has no path")?;
    let value = || operation.get("value").cloned().ok_or_else(|| "operation has no value".to_owned());
    match json::text_or_empty(operation, "/op") {
        "add" => add(target, path, value()?),
        "remove" => remove(target, path).map(drop),
        "replace" => {
            let slot = target.pointer_mut(path);
            *slot.ok_or_else(|| missing("replace", path))? = value()?;
            Ok(())
        }
        "move" => {
            let from = json::text(operation, "/from").ok_or("operation has no from")?;
            let moved = remove(target, from)?;
            add(target, path, moved)
        }
        "copy" => {
            let from = json::text(operation, "/from").ok_or("operation has no from")?;
            let copied = target.pointer(from).cloned().ok_or_else(|| missing("copy", from))?;
            add(target, path, copied)
        }
        "test" => {
            let wanted = operation.get("value").unwrap_or(&Value::Null);
            let have = target.pointer(path).unwrap_or(&Value::Null);
            if have == wanted { Ok(()) } else { Err(format!("testing value {path} failed: test failed")) }
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

fn missing(operation: &str, path: &str) -> String {
    format!("{operation} operation does not apply: doc is missing key: {path}: missing value")
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let Some((parent, key)) = path.rsplit_once('/') else {
        *target = value;
        return Ok(());
    };
    let key = key.replace("~1", "/").replace("~0", "~");
    let slot = target.pointer_mut(parent);
    let slot =
        slot.ok_or_else(|| format!("add operation does not apply: doc is missing path: {path:?}: missing value"))?;
    if let Value::Object(fields) = slot {
        fields.insert(key, value);
        return Ok(());
    }
    let Value::Array(items) = slot else { return Err(missing("add", path)) };
    if key == "-" {
        items.push(value);
        return Ok(());
    }
    let at: usize = key.parse().map_err(|_| missing("add", path))?;
    if at > items.len() {
        return Err(format!("add operation does not apply: index out of bounds: {at}"));
    }
    items.insert(at, value);
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, String> {
    let refused = || format!("remove operation does not apply: doc is missing path: {path:?}: missing value");
    let (parent, key) = path.rsplit_once('/').ok_or_else(refused)?;
    let key = key.replace("~1", "/").replace("~0", "~");
    let slot = target.pointer_mut(parent).ok_or_else(refused)?;
    if let Value::Object(fields) = slot {
        return fields.remove(&key).ok_or_else(refused);
    }
    let Value::Array(items) = slot else { return Err(refused()) };
    let at: usize = key.parse().map_err(|_| refused())?;
    if at < items.len() { Ok(items.remove(at)) } else { Err(refused()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_operation_does_what_it_says() {
        let mut object = json!({ "a": [1, 2], "b": { "x/y": 1 } });
        let patch = json!([
            { "op": "test", "path": "/a/0", "value": 1 },
            { "op": "add", "path": "/a/-", "value": 3 },
            { "op": "add", "path": "/a/0", "value": 0 },
            { "op": "remove", "path": "/b/x~1y" },
            { "op": "copy", "from": "/a", "path": "/c" },
            { "op": "move", "from": "/a", "path": "/d" },
            { "op": "replace", "path": "/c/0", "value": 9 },
        ]);
        apply(&mut object, &patch).unwrap();
        assert_eq!(object, json!({ "b": {}, "c": [9, 1, 2, 3], "d": [0, 1, 2, 3] }));
    }

    #[test]
    fn a_failed_test_refuses_the_patch() {
        let refused = apply(&mut json!({ "a": 1 }), &json!([{ "op": "test", "path": "/a", "value": 2 }])).unwrap_err();
        assert_eq!(refused.code, 422);
        assert_eq!(refused.message, "the server rejected our request due to an error in our request");
    }
}
