//! What people write: the custom resources, as Rust types.
//!
//! The definitions in `deploy/operator/crds` are printed from these types by `quartermaster-operator crds`; a test holds
//! them to it. What is a part of a pod is passed on as it was written (`pod_object`), and judged by the API server.

pub mod language_agent;
pub mod language_tool;
pub mod server_entry;
pub mod tenant;

pub use language_agent::{AgentToolStatus, LanguageAgent, LanguageAgentSpec, LanguageAgentStatus, ToolReference};
pub use language_tool::{
    DeploymentMode, LanguageTool, LanguageToolSpec, LanguageToolStatus, TokenReference, ToolSchema,
};

pub use server_entry::{
    ServerAuth, ServerEntry, ServerEntrySpec, ServerEntryStatus, ServerToolReference, ServerTransport,
};
pub use tenant::{
    AcceptedText, ConfigMistake, SecretReference, ServingReplicas, TenantResource, TenantResourceSpec,
    TenantResourceStatus,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use schemars::{Schema, SchemaGenerator, json_schema};

/// Every definition, by the name of its file.
pub fn definitions() -> [(&'static str, CustomResourceDefinition); 4] {
    [
        ("languageagents.langop.io.json", LanguageAgent::crd()),
        ("languagetools.langop.io.json", LanguageTool::crd()),
        ("serverentries.quartermaster.dev.json", ServerEntry::crd()),
        ("tenants.quartermaster.dev.json", TenantResource::crd()),
    ]
}

/// A definition as it is checked in.
pub fn text(definition: &CustomResourceDefinition) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(definition)? + "\n")
}

/// A part of a pod: whatever the API server of the cluster knows there.
///
/// Copying the schema of pods would tie the resources to one version of it and drop fields of newer ones. The API server
/// checks the Deployment that is made of it, strictly, and what it says becomes the condition `Accepted`.
fn pod_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// A list of such parts.
fn pod_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
    })
}

/// Conditions, merged by their type.
fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": generator.subschema_for::<crate::status::Condition>(),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_definitions_that_are_checked_in_are_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator/crds");
        for (file, definition) in definitions() {
            let kept = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
            assert!(kept == text(&definition).unwrap(), "{file} is out of date: quartermaster-operator crds --into");
        }
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), definitions().len());
    }
}
