//! The part of a tenant's file that belongs to one toolset: `toolsets.KEY`.
//!
//! The toolset says what may stand there and what is wrong with it. This crate finds the positions, and keeps the value
//! for [`TenantConfig::section`](crate::TenantConfig::section).

use crate::problem::Position;
use crate::yaml::{Value, YamlNode};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

/// One toolset's part of a tenant's file.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    /// Its key under `toolsets`.
    pub key: &'static str,
    /// Its JSON Schema, for editors.
    pub schema: fn() -> Json,
    /// Everything that is wrong with a value.
    pub check: fn(&Json) -> Vec<SectionProblem>,
}

/// A mistake in a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionProblem {
    /// Where it is, as a JSON pointer into the section; the nearest thing that stands in the file is shown.
    pub at: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Section {
    /// A section that is read as `T`, and then judged by `check`.
    pub fn read<T: DeserializeOwned>(value: &Json) -> Result<T, SectionProblem> {
        let wrong =
            |error: serde_json::Error| SectionProblem { at: String::new(), message: error.to_string(), hint: None };
        serde_json::from_value(value.clone()).map_err(wrong)
    }

    /// The JSON Schema of a section that is read as `T`.
    pub fn schema_of<T: JsonSchema>() -> Json {
        let mut settings = SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        if let Json::Object(fields) = &mut schema {
            fields.remove("$schema");
            fields.remove("title");
        }
        schema
    }
}

/// A node as JSON, as far as nothing in it was refused. Plain scalars are numbers and booleans where they look like it.
pub(crate) fn json(node: &YamlNode) -> Json {
    match &node.value {
        Value::Scalar { text, plain: true } => match text.as_str() {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            "null" | "~" | "" => Json::Null,
            other => other.parse::<serde_json::Number>().map_or_else(|_| Json::String(text.clone()), Json::Number),
        },
        Value::Scalar { text, plain: false } => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(entries) => Json::Object(entries.iter().map(|(key, node)| (key.text.clone(), json(node))).collect()),
        Value::Refused => Json::Null,
    }
}

/// Where the thing at a pointer stands, or the nearest that contains it.
pub(crate) fn position(node: &YamlNode, pointer: &str) -> Position {
    let mut here = node;
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let next = match &here.value {
            Value::List(items) => part.parse::<usize>().ok().and_then(|n| items.get(n)),
            Value::Map(entries) => entries.iter().find(|(key, _)| key.text == part).map(|(_, node)| node),
            Value::Scalar { .. } | Value::Refused => None,
        };
        match next {
            Some(node) => here = node,
            None => break,
        }
    }
    here.at
}
