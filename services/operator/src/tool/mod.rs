//! The controller of `LanguageTool`.
//!
//! Reading order: [`objects`] (what a tool becomes), [`sync`] (what it offers), [`reconcile`](mod@reconcile) (from what is
//! wanted to what is there).

pub mod objects;
pub mod reconcile;
pub mod sync;

use crate::resources::{DeploymentMode, LanguageToolSpec};

/// Where an agent reaches a tool.
pub fn endpoint(name: &str, namespace: &str, spec: &LanguageToolSpec, cluster_domain: &str) -> String {
    match spec.deployment_mode {
        DeploymentMode::Service => {
            format!("http://{name}.{namespace}.svc.{cluster_domain}:{}", spec.port)
        }
        DeploymentMode::Sidecar => format!("http://localhost:{}", spec.port),
    }
}
