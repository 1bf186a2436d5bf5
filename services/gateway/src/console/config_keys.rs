//! The keys of a tenant's configuration, read from its JSON Schema.

use console::config_keys::KeyView;
use serde_json::Value;

/// How deep keys are followed. What stands below is named by its kind.
const DEEPEST: usize = 6;

/// The keys of a schema, by name.
pub(super) fn of(schema: &Value) -> Vec<KeyView> {
    keys(schema, schema, DEEPEST)
}

fn keys(root: &Value, of: &Value, depth: usize) -> Vec<KeyView> {
    let required = |name: &str| of["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let properties = of["properties"].as_object();
    let one =
        |(name, property): (&String, &Value)| KeyView { required: required(name), ..key(root, name, property, depth) };
    properties.into_iter().flatten().map(one).collect()
}

fn key(root: &Value, name: &str, property: &Value, depth: usize) -> KeyView {
    let shape = followed(root, property);
    let meaning = property["description"].as_str().or(shape["description"].as_str()).unwrap_or_default().to_owned();
    // Empty defaults of the schema stand for "what the service does anyway", which the meaning says.
    let default = property.get("default").filter(|value| !is_nothing(value)).map(short);
    let below = if depth == 0 { Vec::new() } else { below(root, shape, depth - 1) };
    KeyView {
        name: name.to_owned(),
        kind: kind(root, shape),
        meaning,
        default,
        required: false,
        values: values(shape),
        below,
    }
}

/// What stands below a value: the keys of an object, of the entries of a list, or of a map.
fn below(root: &Value, shape: &Value, depth: usize) -> Vec<KeyView> {
    if shape["properties"].is_object() {
        return keys(root, shape, depth);
    }
    for inner in ["items", "additionalProperties"] {
        if shape[inner].is_object() {
            return below(root, followed(root, &shape[inner]), depth);
        }
    }
    // Of several shapes the one with keys is the one to explain.
    let choices = ["anyOf", "oneOf"].into_iter().filter_map(|key| shape[key].as_array()).flatten();
    choices.map(|choice| below(root, followed(root, choice), depth)).find(|keys| !keys.is_empty()).unwrap_or_default()
}

/// The definition that a value refers to.
fn followed<'a>(root: &'a Value, value: &'a Value) -> &'a Value {
    let name = value["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/"));
    name.map_or(value, |name| &root["$defs"][name])
}

fn kind(root: &Value, shape: &Value) -> String {
    if shape["enum"].is_array()
        || shape["oneOf"].as_array().is_some_and(|all| all.iter().all(|one| one.get("const").is_some()))
    {
        return "one of".to_owned();
    }
    match shape["type"].as_str() {
        Some("array") => match kind(root, followed(root, &shape["items"])).as_str() {
            "keys" => "list of entries with keys".to_owned(),
            "text" => "list of texts".to_owned(),
            other => format!("list of {other}"),
        },
        Some("object") if shape["properties"].is_object() => "keys".to_owned(),
        Some("object") => "names of your own, each with a value".to_owned(),
        Some("integer" | "number") => "number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("string") => "text".to_owned(),
        Some(other) => other.to_owned(),
        None => "text or keys".to_owned(),
    }
}

fn values(shape: &Value) -> Vec<(String, String)> {
    let named = shape["enum"].as_array().into_iter().flatten().map(|value| (short(value), String::new()));
    let told = shape["oneOf"].as_array().into_iter().flatten().filter_map(|one| {
        one.get("const").map(|value| (short(value), one["description"].as_str().unwrap_or_default().to_owned()))
    });
    named.chain(told).collect()
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Bool(_) => false,
    }
}

fn short(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_through_references_lists_and_choices() {
        let schema = serde_json::json!({
            "$defs": {
                "Part": { "type": "object", "properties": { "name": { "type": "string", "description": "Which." } }, "required": ["name"] },
                "Mode": { "oneOf": [{ "const": "read", "description": "Looks." }, { "const": "write" }] },
                "Either": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/Part" }] },
                "Loop": { "type": "object", "properties": { "again": { "$ref": "#/$defs/Loop" } } },
            },
            "properties": {
                "mode": { "$ref": "#/$defs/Mode", "default": "read", "description": "The most." },
                "parts": { "type": "array", "items": { "$ref": "#/$defs/Either" } },
                "loop": { "$ref": "#/$defs/Loop" },
            },
        });
        let found = of(&schema);
        let [ever, mode, parts] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((mode.meaning.as_str(), mode.default.as_deref(), mode.values.len()), ("The most.", Some("read"), 2));
        assert_eq!((parts.below[0].name.as_str(), parts.below[0].required), ("name", true));
        assert_eq!(parts.kind, "list of text or keys");
        let depth = std::iter::successors(Some(ever), |key| key.below.first()).count();
        assert_eq!(depth, DEEPEST + 1, "what refers to itself ends");
    }
}
