//! Labels, annotations and the names of what the operator makes.
//!
//! Names are functions of the resource's own name, so that an operator that was killed finds again what it made.

use std::collections::BTreeMap;

/// Who owns the fields that the operator writes.
pub const FIELD_MANAGER: &str = "quartermaster-operator";
/// Whom events name, and what the operator's own pods are called by their label.
pub const OPERATOR: &str = "quartermaster-operator";
/// On every object the operator makes.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// On the pods of a tool: its name.
pub const TOOL_LABEL: &str = "langop.io/tool";
/// On the pods of an agent: its name.
pub const AGENT_LABEL: &str = "langop.io/agent";
/// The digest of what was applied, on the object that it was applied to.
pub const DIGEST: &str = "langop.io/applied";
/// Where an agent finds its tools.
pub const CONFIG_FOLDER: &str = "/etc/agent";
/// The file in it, and the key in the ConfigMap.
pub const CONFIG_FILE: &str = "config.yaml";
/// The environment variable with the endpoints of an agent's tools.
pub const MCP_SERVERS: &str = "MCP_SERVERS";
/// The volume by which an agent gets its configuration.
pub const CONFIG_VOLUME: &str = "langop-agent-config";

/// The selector of watches: only what the operator made.
pub fn managed() -> String {
    format!("{MANAGED_BY}={OPERATOR}")
}

/// The labels of what belongs to a tool or an agent.
pub fn labels(label: &str, name: &str) -> BTreeMap<String, String> {
    [(MANAGED_BY, OPERATOR), (label, name)].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// The ConfigMap of an agent.
pub fn config_map(agent: &str) -> String {
    format!("{agent}-tools")
}
