//! The types of a custom kind, read from the OpenAPI schema in its definition.

use serde_json::{Map, Value};

use super::{FieldShape, SchemaField, Sharing, Type, Types};
use crate::json;

/// Reads the schema of one version of a definition; the root type gets the given name.
pub(crate) fn read_custom(types: &mut Types, root: &str, schema: &Value) {
    let mut ty = read_type(types, root, schema);
    let plain = |shape| SchemaField { shape, sharing: Sharing::Granular, required: false, words: String::new() };
    ty.fields.insert("apiVersion".to_owned(), plain(FieldShape::Text));
    ty.fields.insert("kind".to_owned(), plain(FieldShape::Text));
    ty.fields.insert("metadata".to_owned(), plain(FieldShape::Struct("meta.v1.ObjectMeta".to_owned())));
    ty.open |= schema.get("properties").is_none();
    types.insert(root.to_owned(), ty);
}

fn read_type(types: &mut Types, name: &str, schema: &Value) -> Type {
    let required: Vec<&str> = json::list(schema, "/required").iter().filter_map(Value::as_str).collect();
    let empty = Map::new();
    let properties = json::map(schema, "/properties").unwrap_or(&empty);
    let mut ty = Type {
        words: json::text_or_empty(schema, "/description").to_owned(),
        atomic: json::text(schema, "/x-kubernetes-map-type") == Some("atomic"),
        open: json::is_true(schema, "/x-kubernetes-preserve-unknown-fields"),
        ..Type::default()
    };
    for (key, schema) in properties {
        let shape = read_shape(types, &format!("{name}.{key}"), schema);
        let sharing = match json::text(schema, "/x-kubernetes-list-type") {
            Some("map") => {
                let keys = json::list(schema, "/x-kubernetes-list-map-keys").iter().filter_map(Value::as_str);
                Sharing::Keyed(keys.map(str::to_owned).collect())
            }
            Some("set") => Sharing::Set,
            _ if matches!(shape, FieldShape::List(_)) => Sharing::Atomic,
            _ if json::text(schema, "/x-kubernetes-map-type") == Some("atomic") => Sharing::Atomic,
            _ => Sharing::Granular,
        };
        let words = json::text_or_empty(schema, "/description").to_owned();
        ty.fields
            .insert(key.clone(), SchemaField { shape, sharing, required: required.contains(&key.as_str()), words });
    }
    ty
}

fn read_shape(types: &mut Types, name: &str, schema: &Value) -> FieldShape {
    if json::is_true(schema, "/x-kubernetes-int-or-string") {
        return FieldShape::IntOrText;
    }
    match json::text_or_empty(schema, "/type") {
        "string" if json::text(schema, "/format") == Some("date-time") => FieldShape::Time,
        "string" => FieldShape::Text,
        "integer" => FieldShape::Int,
        "number" => FieldShape::Number,
        "boolean" => FieldShape::Bool,
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            FieldShape::List(Box::new(read_shape(types, &format!("{name}.item"), items)))
        }
        "object" if schema.get("properties").is_some() => {
            let ty = read_type(types, name, schema);
            types.insert(name.to_owned(), ty);
            FieldShape::Struct(name.to_owned())
        }
        "object" => match schema.get("additionalProperties") {
            Some(of) if of.is_object() => FieldShape::Map(Box::new(read_shape(types, &format!("{name}.value"), of))),
            _ => FieldShape::Any,
        },
        _ => FieldShape::Any,
    }
}
