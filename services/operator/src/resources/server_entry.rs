//! `ServerEntry`: an external MCP server of a tenant, at an address or as a LanguageTool of the cluster.

#![expect(unreachable_pub, reason = "the macro that makes the schema copies the type into a function")]

use super::language_tool::TokenReference;
use super::{conditions, pod_object};
use crate::status::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Where the server is, and what of it the tenant uses.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "quartermaster.dev",
    version = "v1alpha1",
    kind = "ServerEntry",
    doc = "An external MCP server of the tenant of its namespace.",
    namespaced,
    status = "ServerEntryStatus",
    derive = "PartialEq",
    plural = "serverentries",
    shortname = "qms",
    category = "quartermaster",
    printcolumn(name = "Url", type_ = "string", json_path = ".status.url"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type==\"Accepted\")].status"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 32 && self.metadata.name.matches('^[a-z0-9-]+$')")
        .message("the name becomes part of the names of tools: a-z, 0-9 and dashes, 32 at most")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.url) != has(self.toolRef)").message("either url or toolRef says where the server is")
)]
pub struct ServerEntrySpec {
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub url: Option<String>,
    /// A LanguageTool of the same namespace, instead of an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_ref: Option<ServerToolReference>,
    /// `http` or `sse`.
    #[serde(default)]
    pub transport: ServerTransport,
    /// What the server is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ServerAuth>,
    /// Further headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// Which of its tools may be used, as in a tenant's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub access: Option<Map<String, Value>>,
    /// `first` or `each`, as in a tenant's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
}

/// A LanguageTool.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ServerToolReference {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// How a server is spoken to.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum ServerTransport {
    /// Streamable HTTP.
    #[default]
    Http,
    /// The older HTTP with server-sent events.
    Sse,
}

/// A credential.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct ServerAuth {
    /// A key of a Secret in the same namespace.
    pub secret_key_ref: TokenReference,
    /// The header that carries it; `Authorization` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// `bearer` or `raw`; `bearer` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
}

/// What became of it.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ServerEntryStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `Accepted`, `ResolvedRefs` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}
