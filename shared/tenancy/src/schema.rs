//! The tenant's file as JSON Schema, for editors that complete and underline while one types.
//!
//! It says less than [`crate::parse`]: which toolsets and tools exist is known only to the service.

use crate::config::{ApprovalConfig, TenantLimits};
use crate::section::{Place, Section};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use std::collections::BTreeMap;

/// The schema of a tenant's file with these sections (draft 2020-12).
pub fn json_schema(sections: &[Section]) -> serde_json::Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let properties: Vec<_> = sections.iter().map(|section| section.schema(&mut generator).to_value()).collect();
    let mut schema = generator.into_root_schema_for::<TenantFile>().to_value();
    for (section, property) in sections.iter().zip(properties) {
        let place = match section.place {
            Place::Root => &mut schema,
            Place::Toolsets => &mut schema["$defs"]["ToolsetsPart"],
            Place::Policy => &mut schema["$defs"]["PolicyPart"],
        };
        place["properties"][section.key] = property;
    }
    schema
}

/// A tenant's configuration of Quartermaster.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used; values are read with their positions")]
struct TenantFile {
    /// The tenant's name; the file is named after it.
    #[schemars(regex(pattern = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"))]
    tenant: String,
    /// The most a session may ask for; `read` unless said otherwise.
    #[schemars(default)]
    mode: ModeName,
    /// Toolsets a session has loaded, read-only, when it opens.
    #[schemars(default, extend("uniqueItems" = true))]
    default_toolsets: Vec<String>,
    /// What the file refers to as `{{ params.NAME }}`: plain values, and secrets of the tenant.
    #[schemars(default)]
    params: BTreeMap<String, TenantParamPart>,
    /// What toolsets act on besides clusters.
    #[schemars(default, with = "ToolsetsPart")]
    toolsets: Option<ToolsetsPart>,
    /// Rules for calls; they only tighten.
    #[schemars(default, with = "PolicyPart")]
    policy: Option<PolicyPart>,
    /// How much the tenant may use.
    #[schemars(default, with = "LimitsPart")]
    limits: Option<LimitsPart>,
    /// What the audit log keeps.
    #[schemars(default, with = "AuditPart")]
    audit: Option<AuditPart>,
}

/// What a session may be for.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum ModeName {
    #[default]
    Read,
    Write,
}

/// A parameter of the tenant: a plain value, or one of the tenant's secrets.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct TenantParamPart {
    /// What it is, for people.
    #[schemars(default, length(max = 1_000))]
    description: String,
    /// Its value; needed unless it is a secret.
    #[schemars(default, length(max = 1_024))]
    default: String,
    /// Whether it stands for a secret of the tenant.
    #[schemars(default, extend("const" = true))]
    secret: bool,
    /// The secret's name, where it is not that of the parameter.
    #[schemars(default, regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}$"))]
    from: String,
}

/// A secret by its name.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct SecretPart {
    secret: String,
}

/// A secret by its name, or a reference to a parameter that is marked as one. For the schemas of sections;
/// [`SectionReader::secret`](crate::SectionReader::secret) reads it.
#[derive(JsonSchema)]
#[schemars(untagged, description = "A secret by its name, or a reference to a parameter that is marked as one.")]
pub enum SecretValue {
    #[doc(hidden)]
    Named(SecretPart),
    #[doc(hidden)]
    Referred(#[schemars(regex(pattern = r"^\{\{ *params\.[A-Za-z][A-Za-z0-9_-]{0,63} *\}\}$"))] String),
}

/// What toolsets act on besides clusters.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
struct ToolsetsPart {}

/// Rules for calls, as tool names with an optional `*` at the end and an optional `:about`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct PolicyPart {
    /// Calls that are refused whoever asks.
    #[schemars(default)]
    deny: Vec<String>,
    /// Calls that wait for a person even if they only read.
    #[schemars(default)]
    require_approval: Vec<GatePart>,
    /// How people are asked.
    #[schemars(default, with = "ApprovalPart")]
    approval: Option<ApprovalPart>,
}

/// A rule that asks: a name alone, or one with what a no means.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum GatePart {
    Name(String),
    Rule(GateRule),
}

/// A rule and what a rejection means for the session.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct GateRule {
    name: String,
    #[schemars(default)]
    on_reject: OnRejectName,
}

/// What a rejection means. For the schemas of sections; [`ValueReader::on_reject`](crate::ValueReader::on_reject) reads it.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[schemars(description = "What a rejection means.")]
pub enum OnRejectName {
    #[doc(hidden)]
    Fail,
    #[default]
    #[doc(hidden)]
    Continue,
}

/// How people are asked.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct ApprovalPart {
    /// How long a person may take, such as `30m`.
    #[schemars(default, regex(pattern = r"^[0-9]+[smhd]$"))]
    expires: String,
    /// How long a yes is good for, such as `10m`.
    #[schemars(default, regex(pattern = r"^[0-9]+[smhd]$"))]
    execute_within: String,
    /// How many people must say yes.
    #[schemars(default, range(min = *ApprovalConfig::DECIDERS.start(), max = *ApprovalConfig::DECIDERS.end()))]
    deciders: u32,
    /// How many runs of one caller may wait at once.
    #[schemars(default, range(min = *ApprovalConfig::MOST_WAITING.start(), max = *ApprovalConfig::MOST_WAITING.end()))]
    most_waiting: u32,
}

/// How much the tenant may use.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct LimitsPart {
    /// Calls that may be on their way at the same time.
    #[schemars(default = "calls_in_flight", range(min = *TenantLimits::CALLS_IN_FLIGHT.start(), max = *TenantLimits::CALLS_IN_FLIGHT.end()))]
    calls_in_flight: u32,
    /// Calls that may begin within one minute.
    #[schemars(default = "calls_per_minute", range(min = *TenantLimits::CALLS_PER_MINUTE.start(), max = *TenantLimits::CALLS_PER_MINUTE.end()))]
    calls_per_minute: u32,
    /// The largest result that is handed out in one piece, in bytes.
    #[schemars(default = "result_bytes", range(min = *TenantLimits::RESULT_BYTES.start(), max = *TenantLimits::RESULT_BYTES.end()))]
    result_bytes: u32,
}

/// What the audit log keeps.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape is used")]
struct AuditPart {
    /// What is kept of arguments and results: they themselves, sealed, or digests of them.
    #[schemars(default)]
    contents: ContentsName,
    /// How long entries are kept, such as `90d`.
    #[schemars(default, regex(pattern = r"^[0-9]+[smhd]$"))]
    keep: String,
    /// What runs while the audit log cannot be written; what changes anything never does.
    #[schemars(default)]
    unwritable: UnwritableName,
}

/// What runs while the audit log cannot be written.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum UnwritableName {
    #[default]
    Refuse,
    AllowReads,
}

/// What is kept of arguments and results.
#[derive(JsonSchema, Serialize, Default)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its shape is used")]
enum ContentsName {
    #[default]
    Full,
    Digests,
}

fn calls_in_flight() -> u32 {
    TenantLimits::default().calls_in_flight
}

fn calls_per_minute() -> u32 {
    TenantLimits::default().calls_per_minute
}

fn result_bytes() -> u32 {
    TenantLimits::default().result_bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{AUDIT, LIMITS, POLICY, ROOT};
    use crate::params::TENANT_PARAM;
    use serde_json::Value;

    fn keys(schema: &Value) -> Vec<&str> {
        let mut keys: Vec<_> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        keys
    }

    fn sorted<const N: usize>(mut keys: [&str; N]) -> [&str; N] {
        keys.sort_unstable();
        keys
    }

    #[test]
    fn the_schema_knows_the_keys_the_reader_knows() {
        let schema = json_schema(&[]);
        let parts = &schema["$defs"];
        assert_eq!(keys(&schema), sorted(ROOT));
        assert_eq!(keys(&parts["PolicyPart"]), sorted(POLICY));
        assert_eq!(keys(&parts["LimitsPart"]), sorted(LIMITS));
        assert_eq!(keys(&parts["AuditPart"]), sorted(AUDIT));
        assert_eq!(keys(&parts["TenantParamPart"]), sorted(TENANT_PARAM));
    }

    #[test]
    fn the_schema_is_as_strict_as_the_reader() {
        let schema = json_schema(&[]);
        for part in [&schema, &schema["$defs"]["PolicyPart"], &schema["$defs"]["LimitsPart"]] {
            assert_eq!(part["additionalProperties"], false);
        }
        assert_eq!(schema["required"], serde_json::json!(["tenant"]));
        let bytes = &schema["$defs"]["LimitsPart"]["properties"]["result_bytes"];
        assert_eq!((&bytes["minimum"], &bytes["maximum"]), (&4_096.into(), &1_048_576.into()));
        assert_eq!((&bytes["type"], &bytes["default"]), (&"integer".into(), &262_144.into()));
        assert_eq!(schema["properties"]["mode"]["default"], "read");
        assert!(!schema.to_string().contains("null"), "an empty value is refused, so it is not offered");
    }
}
