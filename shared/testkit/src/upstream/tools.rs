//! Definitions of tools: those a server has from the start, and bombs.

use serde_json::{Map, Value, json};

/// What a server offers from the start: `echo`, `whoami` and `progress` say that they only read, `keep` says nothing,
/// `erase` says that it destroys, and `fail` always fails. Every one but `fail` and `whoami` gives back its arguments.
pub fn stock() -> Vec<Value> {
    let reads = json!({ "readOnlyHint": true });
    vec![
        annotated("echo", reads.clone()),
        annotated("whoami", reads.clone()),
        annotated("progress", reads),
        named("keep"),
        annotated("erase", json!({ "readOnlyHint": false, "destructiveHint": true })),
        named("fail"),
    ]
}

/// A tool of this name that takes a text.
pub fn named(name: &str) -> Value {
    taking(name, json!({ "type": "object", "properties": { "text": { "type": "string" } } }))
}

/// A tool with this input schema.
pub fn taking(name: &str, schema: Value) -> Value {
    json!({ "name": name, "description": format!("The tool {name} of the double."), "inputSchema": schema })
}

/// A tool with these words about itself.
pub fn described(name: &str, description: &str) -> Value {
    let mut tool = named(name);
    tool["description"] = json!(description);
    tool
}

/// A tool with these annotations.
pub fn annotated(name: &str, annotations: Value) -> Value {
    let mut tool = named(name);
    tool["annotations"] = annotations;
    tool
}

/// An input schema with that many alternatives.
pub fn any_of(name: &str, alternatives: usize) -> Value {
    let each: Vec<Value> = (0..alternatives).map(|n| json!({ "const": n })).collect();
    taking(name, json!({ "type": "object", "properties": { "text": { "anyOf": each } } }))
}

/// An input schema nested that deep.
pub fn deep(name: &str, depth: usize) -> Value {
    let mut schema = json!({ "type": "string" });
    for _ in 0..depth {
        schema = json!({ "type": "object", "properties": { "in": schema } });
    }
    taking(name, schema)
}

/// An input schema that names itself.
pub fn recursive(name: &str) -> Value {
    taking(name, json!({ "type": "object", "properties": { "in": { "$ref": "#" } } }))
}

/// An input schema whose definitions go round in a circle without ever taking a step.
pub fn circular(name: &str) -> Value {
    let circle = json!({ "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } });
    taking(name, json!({ "type": "object", "properties": { "in": { "$ref": "#/$defs/a" } }, "$defs": circle }))
}

/// An input schema with a reference that is resolved while it is used, to itself.
pub fn dynamic(name: &str) -> Value {
    taking(
        name,
        json!({ "$dynamicAnchor": "node", "type": "object", "additionalProperties": { "$dynamicRef": "#node" } }),
    )
}

/// An input schema whose other half lies elsewhere.
pub fn remote(name: &str, url: &str) -> Value {
    taking(name, json!({ "type": "object", "properties": { "text": { "$ref": url } } }))
}

/// An input schema with a pattern on which a backtracking engine never comes to an end.
pub fn catastrophic(name: &str) -> Value {
    taking(name, json!({ "type": "object", "properties": { "text": { "type": "string", "pattern": "^(a+)+$" } } }))
}

/// An input schema of that many bytes.
pub fn fat(name: &str, bytes: usize) -> Value {
    let words: Vec<String> = (0..bytes / 1000).map(|n| format!("{n:0>990}")).collect();
    taking(name, json!({ "type": "object", "properties": { "text": { "enum": words } } }))
}

/// An input schema with that many properties.
pub fn wide(name: &str, properties: usize) -> Value {
    let each: Map<String, Value> = (0..properties).map(|n| (format!("p{n}"), json!({ "type": "string" }))).collect();
    taking(name, json!({ "type": "object", "properties": each }))
}
