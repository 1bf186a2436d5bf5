//! What the small values of calls are made with: a checked text has a grammar and a strict schema, and a value that got
//! through needs no check later.

pub use domain::text::{is_label, is_subdomain};

/// Declares a checked text: it parses by `$check`, and its strict schema is `$schema`.
#[macro_export]
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr, $says:expr, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            /// The text as it was given.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                let fits: fn(&str) -> bool = $check;
                if fits(&text) { Ok($name(text)) } else { Err($says.to_owned()) }
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

/// Gives a text that is parsed by its own file its strict schema, and its text back.
#[macro_export]
macro_rules! bounded_text {
    ($name:ident, $most:expr) => {
        impl From<$name> for String {
            fn from(parsed: $name) -> String {
                parsed.text
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "minLength": 1, "maxLength": $most })
            }
        }
    };
}

checked_text!(
    /// A DNS-1123 label: a namespace, a container, a cluster.
    Label, is_label, "a name here is 1 to 63 of a-z, 0-9 and '-', neither first nor last a dash",
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" }
);
