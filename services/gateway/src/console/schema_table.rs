//! The arguments of a tool as a table: its JSON Schema in rows that people read.
//!
//! A schema may come from an external server, so nothing about it is believed: rows and depth are bounded, a reference is
//! followed only within the schema, and what is not understood is called by its own words.

use console::catalog::ArgumentRow;
use serde_json::Value;

/// Rows of one tool.
const MOST_ROWS: usize = 150;
/// How deep parts of arguments are written out.
const DEEPEST: usize = 4;
/// The longest text of a cell.
const LONGEST: usize = 600;

/// The rows of a schema.
pub(super) fn rows(schema: &Value) -> Vec<ArgumentRow> {
    let mut rows = Vec::new();
    write(schema, schema, "", 0, &mut rows);
    rows
}

fn write(root: &Value, schema: &Value, within: &str, depth: usize, rows: &mut Vec<ArgumentRow>) {
    let schema = resolved(root, schema);
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        if rows.len() == MOST_ROWS {
            return;
        }
        let path = if within.is_empty() { name.clone() } else { format!("{within}.{name}") };
        let said = part["description"].as_str();
        let part = resolved(root, part);
        let description = said.or_else(|| part["description"].as_str()).unwrap_or_default();
        rows.push(ArgumentRow {
            name: cut(&path),
            kind: cut(&kind(root, part, 0)),
            required: required.contains(&name.as_str()),
            description: cut(description),
        });
        if depth < DEEPEST {
            let items = &part["items"];
            let (part, path) = if items.is_object() { (items, format!("{path}[]")) } else { (part, path) };
            write(root, part, &path, depth + 1, rows);
        }
    }
}

/// What a part is, in words.
fn kind(root: &Value, part: &Value, depth: usize) -> String {
    let part = resolved(root, part);
    if depth > DEEPEST {
        return "a deeper value".to_owned();
    }
    let list = |values: &[Value]| {
        let words: Vec<String> = values.iter().take(20).map(word).collect();
        let more = if values.len() > 20 { " and more" } else { "" };
        format!("one of {}{more}", words.join(", "))
    };
    if let Some(values) = part["enum"].as_array() {
        return list(values);
    }
    if !part["const"].is_null() {
        return format!("always {}", word(&part["const"]));
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(ways) = part[key].as_array() {
            let mut ways: Vec<String> = ways.iter().take(10).map(|way| kind(root, way, depth + 1)).collect();
            ways.retain(|way| way != "nothing");
            ways.dedup();
            return ways.join(", or ");
        }
    }
    let names: Vec<&str> = match &part["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).filter(|name| *name != "null").collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let mut text = match names.as_slice() {
        ["array"] => format!("a list: {}", kind(root, &part["items"], depth + 1)),
        ["null"] => "nothing".to_owned(),
        [] => "anything".to_owned(),
        names => names.iter().map(|name| in_words(name)).collect::<Vec<_>>().join(" or "),
    };
    for (key, words) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("minItems", "entries at least"),
        ("maxItems", "entries at most"),
        ("pattern", "like"),
        ("default", "by default"),
    ] {
        if !part[key].is_null() {
            text = format!("{text}, {words} {}", word(&part[key]));
        }
    }
    text
}

fn in_words(name: &str) -> &str {
    match name {
        "string" => "text",
        "integer" => "whole number",
        "number" => "number",
        "boolean" => "yes or no",
        "object" => "object",
        other => other,
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The schema that a reference within the same schema means.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    // A reference may lead to a reference; one that leads back to itself ends somewhere too.
    for _ in 0..DEEPEST {
        let Some(path) = schema["$ref"].as_str().and_then(|path| path.strip_prefix('#')) else { break };
        match root.pointer(path) {
            Some(meant) => schema = meant,
            None => break,
        }
    }
    schema
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    if end == text.len() { text.to_owned() } else { format!("{}…", &text[..end]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(name: &str, kind: &str, required: bool, description: &str) -> ArgumentRow {
        ArgumentRow { name: name.into(), kind: kind.into(), required, description: description.into() }
    }

    #[test]
    fn a_schema_is_a_table() {
        let schema = json!({ "required": ["name"], "properties": {
            "name": { "type": "string", "maxLength": 63, "description": "Its name." },
            "kind": { "$ref": "#/$defs/Kind", "description": "Which kind." },
            "limit": { "type": ["integer", "null"], "minimum": 1, "default": 50 },
            "where": { "anyOf": [{ "type": "null" }, { "type": "object", "properties": { "label": { "type": "string" } } }] },
            "steps": { "type": "array", "items": { "type": "object", "required": ["do"], "properties": { "do": { "const": "x" } } } },
            "any": true,
        }, "$defs": { "Kind": { "enum": ["Pod", "Node"] } } });
        assert_eq!(
            rows(&schema),
            [
                row("any", "anything", false, ""),
                row("kind", "one of Pod, Node", false, "Which kind."),
                row("limit", "whole number, at least 1, by default 50", false, ""),
                row("name", "text, characters at most 63", true, "Its name."),
                row("steps", "a list: object", false, ""),
                row("steps[].do", "always x", true, ""),
                row("where", "object", false, ""),
            ]
        );
    }

    #[test]
    fn a_hostile_schema_is_bounded() {
        let itself = json!({ "properties": { "a": { "$ref": "#" } }, "$ref": "#" });
        assert!(rows(&itself).len() <= MOST_ROWS);
        let many: serde_json::Map<String, Value> =
            (0..1_000).map(|n| (format!("a{n}"), json!({ "description": "x".repeat(5_000) }))).collect();
        let many = rows(&json!({ "properties": many }));
        assert_eq!((many.len(), many[0].description.chars().count()), (MOST_ROWS, LONGEST + 1));
        assert!(rows(&json!("no schema")).is_empty() && rows(&json!({ "properties": [] })).is_empty());
    }
}
