//! `Tenant`: the configuration of a tenant of the gateway.

#![expect(unreachable_pub, reason = "the macro that makes the schema copies the type into a function")]

use super::language_tool::TokenReference;
use super::{conditions, pod_object};
use crate::status::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a tenant may do, as in its file.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "quartermaster.dev",
    version = "v1alpha1",
    kind = "Tenant",
    root = "TenantResource",
    doc = "The configuration of the tenant that is called like its namespace.",
    namespaced,
    status = "TenantResourceStatus",
    derive = "PartialEq",
    shortname = "qmt",
    category = "quartermaster",
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type==\"Accepted\")].status"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Served", type_ = "string", json_path = ".status.servedBy.ready"),
    printcolumn(name = "Replicas", type_ = "string", json_path = ".status.servedBy.total"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63").message("a tenant is named with 63 characters at most")
)]
#[serde(rename_all = "camelCase")]
pub struct TenantResourceSpec {
    /// What stands in a tenant's file, without `tenant`, which is the resource's name.
    #[schemars(schema_with = "pod_object")]
    pub config: Map<String, Value>,
    /// Where the secrets are that `config` names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub secret_refs: Vec<SecretReference>,
}

/// A secret of a tenant.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct SecretReference {
    /// The name by which `config` refers to it.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$"))]
    pub name: String,
    /// A key of a Secret in the same namespace.
    pub secret_key_ref: TokenReference,
}

/// What became of it.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct TenantResourceStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest of the text that is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<String>,
    /// The replicas of the gateway that serve exactly that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_by: Option<ServingReplicas>,
    /// What is wrong with the text that is wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ConfigMistake>,
    /// The last text that was accepted: what a replica falls back to that finds a faulty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedText>,
    /// `Accepted`, `ResolvedRefs`, `Programmed` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// How many replicas serve something.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ServingReplicas {
    /// Those that do.
    pub ready: u32,
    /// All of them.
    pub total: u32,
}

/// A mistake in a tenant's configuration.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ConfigMistake {
    /// Where it is in `config`.
    pub path: String,
    /// The line of the text that `config` becomes; 0 if it became none.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
    /// The kind of mistake, as `quartermaster check` names it.
    pub code: String,
    /// What is wrong.
    pub message: String,
}

/// A text that replicas took.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct AcceptedText {
    /// Its digest.
    pub digest: String,
    /// Word for word.
    pub text: String,
}
