//! `LanguageTool`: an image that speaks MCP, and how it is run.

#![expect(unreachable_pub, reason = "the macro that makes the schema copies the type into a function")]

use super::{conditions, pod_list, pod_object};
use crate::status::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a tool is run.
#[derive(CustomResource, KubeSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[kube(
    group = "langop.io",
    version = "v1alpha1",
    kind = "LanguageTool",
    doc = "A service that speaks the Model Context Protocol, and how it is run.",
    namespaced,
    status = "LanguageToolStatus",
    derive = "PartialEq",
    shortname = "ltool",
    category = "langop",
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.deploymentMode"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Endpoint", type_ = "string", json_path = ".status.endpoint"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    validation = Rule::new("self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')")
        .message("the name becomes the name of a Service: a letter, then letters, digits and dashes, 63 at most")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.deploymentMode != 'sidecar' || !(has(self.replicas) || has(self.serviceAccountName) || has(self.imagePullSecrets) || has(self.podSecurityContext) || has(self.nodeSelector) || has(self.tolerations) || has(self.affinity) || has(self.podLabels) || has(self.podAnnotations))")
        .message("a sidecar has no pod of its own: replicas, serviceAccountName, imagePullSecrets, podSecurityContext, nodeSelector, tolerations, affinity, podLabels and podAnnotations belong to the agent"),
    validation = Rule::new("self.deploymentMode != 'sidecar' || !has(self.tokenSecretRef)")
        .message("nobody asks a sidecar from outside of its pod, so it has no tokenSecretRef")
)]
pub struct LanguageToolSpec {
    /// The container image.
    #[schemars(length(min = 1, max = 1024))]
    pub image: String,
    /// The protocol. There is one.
    #[serde(default, rename = "type")]
    pub protocol: ToolProtocol,
    /// `service`: one Deployment and Service that agents share. `sidecar`: a container in the pod of each agent.
    #[serde(default)]
    pub deployment_mode: DeploymentMode,
    /// The port that the tool listens on.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Where the operator asks for the list of tools.
    #[serde(default = "default_path")]
    #[schemars(length(max = 256), regex(pattern = r"^/[A-Za-z0-9/._~-]*$"))]
    pub path: String,
    /// How many pods; without it, nobody is overruled who scales the Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<u32>,
    /// A Secret with the bearer token that the operator shows when it asks for the list of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_secret_ref: Option<TokenReference>,
    /// The command, instead of the image's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// Environment variables, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_list")]
    pub env: Option<Vec<Value>>,
    /// Environment variables from whole ConfigMaps and Secrets, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_list")]
    pub env_from: Option<Vec<Value>>,
    /// Requests and limits, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub resources: Option<Map<String, Value>>,
    /// When to restart the container, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub liveness_probe: Option<Map<String, Value>>,
    /// When it is ready; by default when `GET /health` at its port returns 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub readiness_probe: Option<Map<String, Value>>,
    /// When it has started, as in a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub startup_probe: Option<Map<String, Value>>,
    /// The container's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub security_context: Option<Map<String, Value>>,
    /// `Always`, `IfNotPresent` or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Volumes of the pod; for a sidecar they are added to the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_list")]
    pub volumes: Option<Vec<Value>>,
    /// Mounts of the container; those of a sidecar may name a volume of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_list")]
    pub volume_mounts: Option<Vec<Value>>,
    /// The ServiceAccount of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secrets for pulling the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_list")]
    pub image_pull_secrets: Option<Vec<Value>>,
    /// The pod's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub pod_security_context: Option<Map<String, Value>>,
    /// Labels that a node must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Taints that the pods tolerate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_list")]
    pub tolerations: Option<Vec<Value>>,
    /// Where the pods are scheduled, as in a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "pod_object")]
    pub affinity: Option<Map<String, Value>>,
    /// Labels of the pods, besides the operator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_labels: Option<BTreeMap<String, String>>,
    /// Annotations of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_annotations: Option<BTreeMap<String, String>>,
}

/// The protocol that a tool speaks.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum ToolProtocol {
    /// The Model Context Protocol.
    #[default]
    Mcp,
}

/// Where the container of a tool runs.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
pub enum DeploymentMode {
    /// In pods of its own, behind a Service.
    #[default]
    Service,
    /// In the pod of each agent.
    Sidecar,
}

/// A key of a Secret in the same namespace.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq, Eq, Hash)]
pub struct TokenReference {
    /// The Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in it.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// What became of it.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, Default, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct LanguageToolStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Pending`, `Running` or `Failed`: the conditions in one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Where agents reach it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Pods that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i64>,
    /// The names of its tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub available_tools: Vec<String>,
    /// Its tools, as `tools/list` returned them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_schemas: Vec<ToolSchema>,
    /// `Accepted`, `ResolvedRefs`, `Ready` and `SchemaSynced`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
}

/// One tool of a LanguageTool.
#[derive(JsonSchema, Serialize, Deserialize, Debug, Clone, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct ToolSchema {
    /// Its name.
    pub name: String,
    /// What it says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    #[schemars(schema_with = "pod_object")]
    pub input_schema: Map<String, Value>,
}

fn default_port() -> u16 {
    8080
}

fn default_path() -> String {
    "/mcp".to_owned()
}
