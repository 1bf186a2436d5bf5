//! `LanguageAgent`: a workload that uses tools.

#![expect(unreachable_pub, reason = "the macro that makes the schema copies the type into a function")]

use super::{conditions, pod_object};
use crate::status::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An agent's pods and its tools.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "langop.io",
    version = "v1alpha1",
    kind = "LanguageAgent",
    doc = "A workload that uses LanguageTools of its namespace.",
    namespaced,
    status = "LanguageAgentStatus",
    derive = "PartialEq",
    shortname = "lagent",
    category = "langop",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Tools", type_ = "string", json_path = ".status.tools[*].name"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name becomes a label: 63 characters at most")
)]
#[serde(rename_all = "camelCase")]
pub struct LanguageAgentSpec {
    /// The tools it uses, in the order in which `MCP_SERVERS` has them.
    #[serde(default)]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tools: Vec<ToolReference>,
    /// How many pods; without it, nobody is overruled who scales the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<u32>,
    /// The pod template, as in a Deployment. The operator adds what connects it to its tools.
    #[schemars(schema_with = "pod_object")]
    pub template: Map<String, Value>,
}

/// A tool that an agent uses.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct ToolReference {
    /// A LanguageTool of the same namespace.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Whether the agent gets it.
    #[serde(default = "yes")]
    pub enabled: bool,
}

/// What became of it.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LanguageAgentStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Pending`, `Running` or `Failed`: the conditions in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// The tools that it was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<AgentToolStatus>,
    /// `Accepted`, `ResolvedRefs` and `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// A tool that an agent was given.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq)]
pub struct AgentToolStatus {
    /// The LanguageTool.
    pub name: String,
    /// Where the agent reaches it.
    pub endpoint: String,
}

fn yes() -> bool {
    true
}
