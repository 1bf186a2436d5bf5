//! Two schemas of one Rust type: the strict one that validates calls, and the lean one the model reads.
//!
//! The lean schema only ever leaves constraints out, so whatever the strict one accepts, it accepts too.
//! A field may carry `x-wire`: `"plain"` leaves even the enum out, a list such as `["maximum"]` keeps these bounds.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// What may be kept by naming it in `x-wire`.
const BOUNDS: [&str; 6] = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"];

/// The strict schema of a type of arguments: types, enums, bounds, grammars; sub-schemas in place, no `$ref`.
pub fn strict<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    drop_titles(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.entry("type").or_insert_with(|| json!("object"));
        root.entry("properties").or_insert_with(|| json!({}));
        root.remove("description");
    }
    schema
}

/// The schema of a type of results. What can be gated answers `run` and `preview` instead, so nothing is required there.
pub fn output<T: JsonSchema>(gated: bool) -> Value {
    let mut schema = strict::<T>();
    drop_prose(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        root.remove("additionalProperties");
        if let Some(Value::Object(fields)) = root.get_mut("properties") {
            // Legacy revisions allow only objects here, and a schema of `true` is not one.
            fields.values_mut().filter(|f| !f.is_object()).for_each(|f| *f = json!({}));
        }
    }
    if gated {
        allow_run(&mut schema);
    }
    schema
}

/// Lets a result be a run instead: `run`, `preview` and `result` may be there, and nothing must be.
pub fn allow_run(schema: &mut Value) {
    let Some(root) = schema.as_object_mut() else { return };
    root.remove("required");
    if let Some(Value::Object(fields)) = root.get_mut("properties") {
        fields.insert("run".into(), json!({ "type": "object" }));
        fields.insert("preview".into(), json!({ "type": "object" }));
        fields.insert("result".into(), json!({}));
    }
}

/// The same for a schema that somebody else wrote. A plain one keeps its properties; whatever says more than that may
/// rule a run out in a way that nobody can see through, so nothing but the object is left of it.
pub fn allow_run_in_any(schema: &mut Value) {
    const PLAIN: [&str; 7] =
        ["$schema", "type", "properties", "required", "additionalProperties", "title", "description"];
    let plain = |root: &Map<String, Value>| {
        root.keys().all(|key| PLAIN.contains(&key.as_str())) && root.get("properties").is_some_and(Value::is_object)
    };
    match schema.as_object_mut().filter(|root| plain(root)) {
        Some(root) => {
            root.remove("additionalProperties");
            allow_run(schema);
        }
        None => *schema = json!({ "type": "object" }),
    }
}

fn drop_titles(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A property may itself be called `title`; then it holds a schema and not a string.
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            map.remove("format");
            map.values_mut().for_each(drop_titles);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_titles),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Results are checked by programs, so the prose for readers of the code is left out.
fn drop_prose(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(drop_prose);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_prose),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The lean schema as the model reads it, from the strict one.
pub fn lean(strict: &Value) -> Value {
    let Some(object) = strict.as_object() else { return json!({}) };
    if let Some(inner) = the_only_real_branch(object) {
        let mut inner = lean(&inner);
        // What the field itself says about the wire holds for its type as well.
        if object.get("x-wire") == Some(&json!("plain")) {
            inner.as_object_mut().map(|o| o.remove("enum"));
        }
        return inner;
    }
    let mut out = Map::new();
    if let Some(kind) = object.get("type") {
        out.insert("type".into(), not_null(kind));
    }
    let wire = object.get("x-wire");
    let plain = wire == Some(&json!("plain"));
    for bound in BOUNDS {
        let kept = wire.and_then(Value::as_array).is_some_and(|kept| kept.iter().any(|k| k == bound));
        if let (true, Some(value)) = (kept, object.get(bound)) {
            out.insert(bound.into(), value.clone());
        }
    }
    if let (false, Some(Value::Array(choices))) = (plain, object.get("enum")) {
        out.insert("enum".into(), choices.iter().filter(|c| !c.is_null()).cloned().collect());
    }
    if let Some(Value::Object(fields)) = object.get("properties") {
        out.insert("properties".into(), fields.iter().map(|(k, v)| (k.clone(), lean(v))).collect());
    }
    if let Some(required) = object.get("required").filter(|r| r.as_array().is_some_and(|r| !r.is_empty())) {
        out.insert("required".into(), required.clone());
    }
    if let Some(items) = object.get("items") {
        out.insert("items".into(), lean(items));
    }
    if let Some(values) = object.get("additionalProperties").filter(|v| v.is_object()) {
        out.insert("additionalProperties".into(), lean(values));
    }
    if let Some(Value::Array(branches)) = object.get("anyOf") {
        out.insert("anyOf".into(), branches.iter().map(lean).collect());
    }
    Value::Object(out)
}

/// `Option<T>` arrives as a choice between `T` and null, and an enum whose variants have comments as a choice of
/// constants. Both have a plain form.
fn the_only_real_branch(object: &Map<String, Value>) -> Option<Value> {
    let branches = object.get("anyOf").or_else(|| object.get("oneOf")).or_else(|| object.get("allOf"))?.as_array()?;
    let real: Vec<&Value> = branches.iter().filter(|b| b.get("type") != Some(&json!("null"))).collect();
    let constants: Option<Vec<&[Value]>> = real.iter().map(|b| choices(b)).collect();
    match (real.as_slice(), constants) {
        (_, Some(constants)) if !constants.is_empty() => Some(json!({ "type": "string", "enum": constants.concat() })),
        ([only], _) => Some((*only).clone()),
        _ => None,
    }
}

fn choices(branch: &Value) -> Option<&[Value]> {
    branch.get("const").map(std::slice::from_ref).or_else(|| branch.get("enum")?.as_array().map(Vec::as_slice))
}

fn not_null(kind: &Value) -> Value {
    match kind {
        Value::Array(kinds) => match kinds.iter().filter(|k| *k != "null").collect::<Vec<_>>().as_slice() {
            [only] => (*only).clone(),
            _ => kind.clone(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => kind.clone(),
    }
}

/// Writes a lean schema with `type` first and required properties before the others, as a person would.
/// `serde_json` alone would sort the keys, and models read what comes first.
pub fn write(schema: &Value, out: &mut String) {
    const FIRST: [&str; 3] = ["type", "properties", "required"];
    let object = match schema {
        Value::Object(object) => object,
        Value::Array(items) => return write_items(items, out),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return out.push_str(&schema.to_string()),
    };
    let first = FIRST.iter().filter_map(|key| object.get_key_value(*key));
    let rest = object.iter().filter(|(key, _)| !FIRST.contains(&key.as_str()));
    let required = object.get("required");
    out.push('{');
    for (n, (key, value)) in first.chain(rest).enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => write_fields(fields, required, out),
            _ => write(value, out),
        }
    }
    out.push('}');
}

fn write_items(items: &[Value], out: &mut String) {
    out.push('[');
    for (n, item) in items.iter().enumerate() {
        if n > 0 {
            out.push(',');
        }
        write(item, out);
    }
    out.push(']');
}

fn write_fields(fields: &Map<String, Value>, required: Option<&Value>, out: &mut String) {
    let required: Vec<&str> =
        required.and_then(Value::as_array).map(|r| r.iter().filter_map(Value::as_str).collect()).unwrap_or_default();
    let first = required.iter().filter_map(|key| fields.get_key_value(*key));
    let rest = fields.iter().filter(|(key, _)| !required.contains(&key.as_str()));
    out.push('{');
    for (n, (key, value)) in first.chain(rest).enumerate() {
        if n > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(key.as_str()).to_string());
        out.push(':');
        write(value, out);
    }
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        /// With a comment, so that the schema is a choice of constants.
        Note,
        Runbook,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Args {
        path: String,
        kind: Kind,
        #[schemars(range(min = 1, max = 20), extend("x-wire" = ["maximum"]))]
        limit: Option<u8>,
        #[schemars(extend("x-wire" = "plain"))]
        other: Option<Kind>,
        #[schemars(length(max = 3))]
        tags: Option<Vec<String>>,
    }

    #[derive(Serialize, JsonSchema)]
    struct Found {
        title: String,
        note: Option<String>,
        any: Value,
    }

    #[test]
    fn the_lean_schema_is_what_a_model_needs_and_no_more() {
        let mut text = String::new();
        write(&lean(&strict::<Args>()), &mut text);
        assert_eq!(
            text,
            r#"{"type":"object","properties":{"path":{"type":"string"},"kind":{"type":"string","enum":["runbook","note"]},"limit":{"type":"integer","maximum":20},"other":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}},"required":["path","kind"]}"#
        );
    }

    #[test]
    fn the_strict_schema_keeps_bounds_and_refuses_the_unknown() {
        let schema = strict::<Args>();
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(schema["properties"]["limit"]["maximum"], json!(20));
        assert_eq!(schema["properties"]["tags"]["maxItems"], json!(3));
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none());
    }

    #[test]
    fn a_result_of_somebody_else_can_be_a_run_whatever_its_schema_said() {
        let mut plain = json!({
            "type": "object", "properties": { "n": { "type": "integer" } },
            "required": ["n"], "additionalProperties": false,
        });
        let run = json!({ "run": { "id": "run_1" } });
        assert!(!jsonschema::is_valid(&plain, &run));
        allow_run_in_any(&mut plain);
        assert!(jsonschema::is_valid(&plain, &run) && !jsonschema::is_valid(&plain, &json!({ "n": "x" })));
        for said in [
            json!({ "type": "object", "anyOf": [{ "required": ["n"] }] }),
            json!({ "type": "object", "properties": {}, "minProperties": 7 }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "required": ["n"] } } }),
            json!({ "type": "object", "required": ["n"] }),
            json!(false),
        ] {
            let mut schema = said.clone();
            allow_run_in_any(&mut schema);
            assert!(jsonschema::is_valid(&schema, &run), "{said}");
        }
    }

    #[test]
    fn a_gated_result_requires_nothing_and_holds_only_object_schemas() {
        let (plain, gated) = (output::<Found>(false), output::<Found>(true));
        assert_eq!(plain["required"], json!(["title", "any"]));
        assert!(gated.get("required").is_none() && gated["properties"]["run"].is_object());
        assert!(plain["properties"].as_object().unwrap().values().all(Value::is_object));
        assert_eq!(plain["properties"]["title"]["type"], json!("string"), "a property called title is kept");
    }
}
