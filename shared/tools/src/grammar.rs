//! What the small values of calls are made with: a checked text has a grammar and a strict schema, and a value that got
//! through needs no check later.

/// Declares a checked text: it parses by `$check`, and its strict schema is `$schema`.
macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $check:expr, $says:expr, $schema:tt) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String")]
        pub(crate) struct $name(String);

        impl $name {
            /// The text as it was given.
            pub(crate) fn as_str(&self) -> &str {
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
pub(crate) use checked_text;

/// Gives a text that is parsed by its own file its strict schema, and its text back.
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
pub(crate) use bounded_text;

checked_text!(
    /// A DNS-1123 label: a namespace, a container, a cluster.
    Label, is_label, "a name here is 1 to 63 of a-z, 0-9 and '-', neither first nor last a dash",
    { "type": "string", "minLength": 1, "maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" }
);

pub(crate) fn is_label(text: &str) -> bool {
    (1..=63).contains(&text.len()) && is_part(text)
}

/// A DNS-1123 subdomain: labels with dots between.
pub(crate) fn is_subdomain(text: &str) -> bool {
    (1..=253).contains(&text.len()) && text.split('.').all(is_part)
}

fn is_part(text: &str) -> bool {
    let letter = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(letter)
        && bytes.last().is_some_and(letter)
        && bytes.iter().all(|b| letter(b) || *b == b'-')
}
