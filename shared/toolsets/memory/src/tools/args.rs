//! The schemas of arguments whose grammar is the memory's own.

use crate::documents::path::{MOST_BYTES, MOST_SEGMENTS, SEGMENT};
use crate::documents::{DocumentKind, DocumentScope};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// A text that is only a schema: what a call gives is parsed by the memory.
macro_rules! schema_of {
    ($(#[$doc:meta])* $name:ident, $title:literal, $schema:tt) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $title.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

schema_of!(
    /// The path of a document.
    PathText, "DocPath",
    { "type": "string", "maxLength": MOST_BYTES,
      "pattern": format!("^(session|user|tenant)(/{SEGMENT}){{2,{}}}$", MOST_SEGMENTS - 1) }
);

schema_of!(
    /// A place to list.
    PrefixText, "Prefix",
    { "type": "string", "maxLength": MOST_BYTES,
      "pattern": format!("^(session|user|tenant)(/{SEGMENT}){{0,{}}}/?$", MOST_SEGMENTS - 1) }
);

schema_of!(
    /// The name of a type of documents.
    KindName, "Kind",
    { "type": "string", "enum": DocumentKind::ALL.map(DocumentKind::as_str) }
);

schema_of!(
    /// The name of a scope.
    ScopeName, "Scope",
    { "type": "string", "enum": DocumentScope::ALL.map(DocumentScope::as_str) }
);
