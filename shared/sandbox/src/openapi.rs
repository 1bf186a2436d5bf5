//! OpenAPI documents, written from the table of types.
//!
//! Version 3 is told per group, as the real server does; version 2 is one small document for clients that insist.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::kinds::ApiKind;
use crate::reply::{self, SandboxReply};
use crate::schema::{FieldShape, SchemaField, Sharing, Types};
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

/// `/openapi/v3` and `/openapi/v3/apis/GROUP/VERSION`.
pub(crate) fn third(world: &ClusterWorld, path: &str) -> Result<SandboxReply, ApiStatus> {
    if path.is_empty() {
        return Ok(index(world));
    }
    let parts: Vec<&str> = path.split('/').collect();
    let (group, version) = match parts[..] {
        ["api", version] => ("", version),
        ["apis", group, version] => (group, version),
        _ => return Err(ApiStatus::no_such_path()),
    };
    let kinds: Vec<_> = world.kinds.of_group_version(group, version).cloned().collect();
    if kinds.is_empty() {
        return Err(ApiStatus::no_such_path());
    }
    let (mut schemas, mut paths) = (Map::new(), Map::new());
    let mut waiting: Vec<String> = Vec::new();
    for kind in &kinds {
        let name = if kind.type_name.is_empty() { custom_name(kind) } else { shown_name(&kind.type_name) };
        schemas.insert(name.clone(), root(world, kind));
        waiting.extend(named_in(&world.types, &kind.type_name));
        paths.extend(paths_of(kind, &name));
    }
    let mut seen: BTreeSet<String> = kinds.iter().map(|kind| kind.type_name.clone()).collect();
    while let Some(name) = waiting.pop() {
        if seen.insert(name.clone()) {
            schemas.insert(shown_name(&name), schema_of(&world.types, &name));
            waiting.extend(named_in(&world.types, &name));
        }
    }
    let document = json!({
        "openapi": "3.0.0", "info": { "title": "Kubernetes (simulated)", "version": crate::discovery::VERSION },
        "paths": paths, "components": { "schemas": schemas },
    });
    Ok(reply::object(StatusCode::OK, &document))
}

fn index(world: &ClusterWorld) -> SandboxReply {
    let mut paths = Map::new();
    for kind in world.kinds.iter() {
        let path = group_path(&kind.group, &kind.version);
        paths.entry(path.clone()).or_insert_with(|| json!({ "serverRelativeURL": format!("/openapi/v3/{path}") }));
    }
    reply::object(StatusCode::OK, &json!({ "paths": paths }))
}

fn group_path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

/// `/openapi/v2`: well-formed, with the definitions of the built-in kinds.
pub(crate) fn second(world: &ClusterWorld) -> SandboxReply {
    let mut definitions = Map::new();
    for (name, _) in world.types.iter() {
        definitions.insert(shown_name(name), schema_of(&world.types, name));
    }
    let mut paths = Map::new();
    for kind in world.kinds.iter().filter(|kind| !kind.type_name.is_empty()) {
        paths.extend(paths_of(kind, &shown_name(&kind.type_name)));
        definitions.insert(shown_name(&kind.type_name), root(world, kind));
    }
    let text = json!({
        "swagger": "2.0", "info": { "title": "Kubernetes (simulated)", "version": crate::discovery::VERSION },
        "paths": paths, "definitions": definitions,
    });
    let text = text.to_string().replace("#/components/schemas/", "#/definitions/");
    reply::with_type(StatusCode::OK, "application/json", text)
}

/// The operations clients look for: whether a kind takes `dryRun` and `fieldValidation`.
fn paths_of(kind: &ApiKind, name: &str) -> Vec<(String, Value)> {
    let base = format!("/{}", group_path(&kind.group, &kind.version));
    let base = if kind.namespaced { format!("{base}/namespaces/{{namespace}}") } else { base };
    let gvk = json!({ "group": kind.group, "version": kind.version, "kind": kind.kind });
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation", "force"]
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string", "uniqueItems": true } }))
        .collect();
    let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
    let operation = |action: &str| {
        json!({
            "operationId": format!("{action}{}", kind.kind), "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk, "parameters": parameters,
            "responses": { "200": { "description": "OK", "content": { "application/json": { "schema": schema } } } },
        })
    };
    if kind.read_only {
        return vec![(format!("{base}/{}", kind.plural), json!({ "get": operation("list") }))];
    }
    vec![
        (format!("{base}/{}", kind.plural), json!({ "get": operation("list"), "post": operation("post") })),
        (
            format!("{base}/{}/{{name}}", kind.plural),
            json!({ "get": operation("get"), "put": operation("put"), "patch": operation("patch"), "delete": operation("delete") }),
        ),
    ]
}

/// The schema of a kind's root, which says which kind it is.
fn root(world: &ClusterWorld, kind: &ApiKind) -> Value {
    let mut schema = if kind.type_name.is_empty() {
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "apiVersion": { "type": "string" }, "kind": { "type": "string" },
            "metadata": { "allOf": [{ "$ref": format!("#/components/schemas/{}", shown_name("meta.v1.ObjectMeta")) }] },
        } })
    } else {
        schema_of(&world.types, &kind.type_name)
    };
    schema["x-kubernetes-group-version-kind"] =
        json!([{ "group": kind.group, "version": kind.version, "kind": kind.kind }]);
    schema
}

/// The long name a type has in the real documents.
fn shown_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("meta.v1.") {
        return format!("io.k8s.apimachinery.pkg.apis.meta.v1.{rest}");
    }
    if let Some(rest) = name.strip_prefix("apiextensions.v1.") {
        return format!("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{rest}");
    }
    let builtin =
        name.split('.').nth(1).is_some_and(|part| part.starts_with('v') && part[1..].starts_with(char::is_numeric));
    if builtin { format!("io.k8s.api.{name}") } else { name.to_owned() }
}

fn custom_name(kind: &ApiKind) -> String {
    let group: Vec<&str> = kind.group.rsplit('.').collect();
    format!("{}.{}.{}", group.join("."), kind.version, kind.kind)
}

/// The types a type refers to.
fn named_in(types: &Types, name: &str) -> Vec<String> {
    let fields = types.find(name).into_iter().flat_map(|ty| ty.fields.values());
    let mut all: Vec<String> = fields.filter_map(|field| field.shape.named()).map(str::to_owned).collect();
    if name.is_empty() {
        all.push("meta.v1.ObjectMeta".to_owned());
    }
    all
}

fn schema_of(types: &Types, name: &str) -> Value {
    let Some(ty) = types.find(name) else { return json!({ "type": "object" }) };
    let mut schema = json!({ "type": "object" });
    if !ty.words.is_empty() {
        schema["description"] = json!(ty.words);
    }
    let properties: Map<String, Value> =
        ty.fields.iter().map(|(key, field)| (key.clone(), field_schema(field))).collect();
    if !properties.is_empty() {
        schema["properties"] = Value::Object(properties);
    }
    let required: Vec<&String> = ty.fields.iter().filter(|(_, field)| field.required).map(|(key, _)| key).collect();
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    if ty.atomic {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    schema
}

fn field_schema(field: &SchemaField) -> Value {
    let mut schema = shape_schema(&field.shape);
    if !field.words.is_empty() {
        schema["description"] = json!(field.words);
    }
    match (&field.sharing, &field.shape) {
        (Sharing::Keyed(keys), _) => {
            schema["x-kubernetes-list-type"] = json!("map");
            schema["x-kubernetes-list-map-keys"] = json!(keys);
            schema["x-kubernetes-patch-strategy"] = json!("merge");
            schema["x-kubernetes-patch-merge-key"] = json!(keys.first());
        }
        (Sharing::Set, _) => schema["x-kubernetes-list-type"] = json!("set"),
        (Sharing::Atomic, FieldShape::List(_)) => schema["x-kubernetes-list-type"] = json!("atomic"),
        (Sharing::Atomic, _) => schema["x-kubernetes-map-type"] = json!("atomic"),
        (Sharing::Granular, _) => {}
    }
    schema
}

fn shape_schema(shape: &FieldShape) -> Value {
    match shape {
        FieldShape::Text | FieldShape::Quantity => json!({ "type": "string" }),
        FieldShape::Bytes => json!({ "type": "string", "format": "byte" }),
        FieldShape::Time => json!({ "type": "string", "format": "date-time" }),
        FieldShape::IntOrText => {
            json!({ "format": "int-or-string", "oneOf": [{ "type": "integer" }, { "type": "string" }] })
        }
        FieldShape::Int => json!({ "type": "integer", "format": "int32" }),
        FieldShape::Number => json!({ "type": "number", "format": "double" }),
        FieldShape::Bool => json!({ "type": "boolean" }),
        FieldShape::Any => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        FieldShape::Struct(name) => {
            json!({ "allOf": [{ "$ref": format!("#/components/schemas/{}", shown_name(name)) }] })
        }
        FieldShape::Map(of) => json!({ "type": "object", "additionalProperties": shape_schema(of) }),
        FieldShape::List(of) => json!({ "type": "array", "items": shape_schema(of) }),
    }
}
