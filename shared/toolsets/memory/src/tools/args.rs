//! The schemas of arguments whose grammar is the memory's own.

use crate::documents::DocumentKind;
use crate::documents::path::{MOST_BYTES, MOST_SEGMENTS, SEGMENT};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// The path of a document.
pub(super) struct PathText;

impl JsonSchema for PathText {
    fn schema_name() -> Cow<'static, str> {
        "DocPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": MOST_BYTES,
            "pattern": format!("^(session|user|tenant)(/{SEGMENT}){{2,{}}}$", MOST_SEGMENTS - 1),
        })
    }
}

/// A place to list.
pub(super) struct PrefixText;

impl JsonSchema for PrefixText {
    fn schema_name() -> Cow<'static, str> {
        "Prefix".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": MOST_BYTES,
            "pattern": format!("^(session|user|tenant)(/{SEGMENT}){{0,{}}}/?$", MOST_SEGMENTS - 1),
        })
    }
}

/// The name of a type of documents.
pub(super) struct KindName;

impl JsonSchema for KindName {
    fn schema_name() -> Cow<'static, str> {
        "Kind".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": DocumentKind::ALL.map(DocumentKind::as_str) })
    }
}

/// The name of a scope.
pub(super) struct ScopeName;

impl JsonSchema for ScopeName {
    fn schema_name() -> Cow<'static, str> {
        "Scope".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": crate::documents::DocumentScope::ALL.map(crate::documents::DocumentScope::as_str) })
    }
}
