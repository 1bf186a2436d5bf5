//! What a tenant's text is made of: its resource, the ServerEntries of its namespace, and the tools they name.

use crate::resources::{DeploymentMode, LanguageTool, ServerEntry};
use crate::tenant::text::ResolvedServer;
use crate::tool::endpoint;
use kube::ResourceExt;

/// The servers of a namespace that have an address, in the order of their names, and why the others have none.
#[derive(Debug, Default, PartialEq)]
pub struct ServerSources {
    /// Those that have one.
    pub servers: Vec<ResolvedServer>,
    /// The names of those that have none, each with a sentence.
    pub unresolved: Vec<(String, String)>,
}

/// Finds the address of each entry. What is being deleted counts as gone.
pub fn resolve(entries: &[ServerEntry], tools: &[LanguageTool], cluster_domain: &str) -> ServerSources {
    let mut sources = ServerSources::default();
    let mut entries: Vec<&ServerEntry> =
        entries.iter().filter(|entry| entry.metadata.deletion_timestamp.is_none()).collect();
    entries.sort_by_key(|entry| entry.name_any());
    for entry in entries {
        match address(entry, tools, cluster_domain) {
            Ok(url) => sources.servers.push(ResolvedServer { name: entry.name_any(), url, spec: entry.spec.clone() }),
            Err(why) => sources.unresolved.push((entry.name_any(), why)),
        }
    }
    sources
}

/// Where a server is, or why that is not known.
fn address(entry: &ServerEntry, tools: &[LanguageTool], cluster_domain: &str) -> Result<String, String> {
    if let Some(url) = &entry.spec.url {
        return Ok(url.clone());
    }
    let name = entry.spec.tool_ref.as_ref().map_or("", |tool| tool.name.as_str());
    let is_it = |tool: &&LanguageTool| tool.name_any() == name && tool.metadata.deletion_timestamp.is_none();
    let tool = tools.iter().find(is_it).ok_or_else(|| format!("there is no LanguageTool `{name}`"))?;
    match tool.spec.deployment_mode {
        DeploymentMode::Service => {
            let namespace = tool.namespace().unwrap_or_default();
            Ok(format!("{}{}", endpoint(name, &namespace, &tool.spec, cluster_domain), tool.spec.path))
        }
        DeploymentMode::Sidecar => Err(format!("the LanguageTool `{name}` is a sidecar, which nobody else reaches")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_of_the_cluster_is_used_by_its_name() {
        let entry = |name: &str, spec: serde_json::Value| -> ServerEntry {
            serde_json::from_value(json!({ "apiVersion": "quartermaster.dev/v1alpha1", "kind": "ServerEntry",
                "metadata": { "name": name, "namespace": "shop" }, "spec": spec }))
            .unwrap()
        };
        let tool = |name: &str, mode: &str| -> LanguageTool {
            serde_json::from_value(json!({ "apiVersion": "langop.io/v1alpha1", "kind": "LanguageTool",
                "metadata": { "name": name, "namespace": "shop" }, "spec": { "image": "i", "deploymentMode": mode, "path": "/x" } })).unwrap()
        };
        let entries = [
            entry("z", json!({ "url": "https://z.example/mcp" })),
            entry("a", json!({ "toolRef": { "name": "files" } })),
            entry("b", json!({ "toolRef": { "name": "gone" } })),
            entry("c", json!({ "toolRef": { "name": "aside" } })),
        ];
        let sources = resolve(&entries, &[tool("files", "service"), tool("aside", "sidecar")], "cluster.local");
        let urls: Vec<&str> = sources.servers.iter().map(|server| server.url.as_str()).collect();
        assert_eq!(urls, ["http://files.shop.svc.cluster.local:8080/x", "https://z.example/mcp"]);
        let missing: Vec<&str> = sources.unresolved.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(missing, ["b", "c"]);
    }
}
