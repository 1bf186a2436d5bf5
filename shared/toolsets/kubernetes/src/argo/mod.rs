//! The Argo Rollouts toolset: looking at progressive deliveries and steering them, through the Kubernetes API.
//!
//! Reading order: the kinds and where they are (`kinds`); what a Rollout says of itself (`view`) and what belongs to it
//! (`tree`); what an action makes run (`incoming`); then one file for each tool. What is written are the patches the official plugin makes, each with the
//! version it was made for.
//!
//! Not here: scaling (`k8s_scale`), waiting (`k8s_wait`), and the small values calls are made of (see `k8s`).

mod incoming;
mod kinds;
mod tree;
mod view;

mod get;
mod history;

mod analysis;
mod rollout;

use crate::k8s::{ClusterToolList, K8sDeps};
use catalog::validate::BadSchema;
use catalog::{CatalogEntry, CompiledTools};
use std::sync::Arc;
pub(crate) use view::RolloutView;

/// The name of the toolset.
pub const TOOLSET: &str = "argo";

/// Its tools, read list first. With one cluster the argument that names it is not listed; it is understood either way.
pub fn list(kit: &K8sDeps, shapes: &CompiledTools, many_clusters: bool) -> Result<Vec<Arc<CatalogEntry>>, BadSchema> {
    let listed = ClusterToolList { shapes, clusters: &kit.clusters, many_clusters };
    let kit = || kit.clone();
    Ok(vec![
        listed.entry(get::ArgoGet { kit: kit() })?,
        listed.entry(history::ArgoHistory { kit: kit() })?,
        listed.entry(rollout::ArgoRolloutTool { kit: kit() })?,
        listed.entry(analysis::Analysis { kit: kit() })?,
    ])
}

#[cfg(test)]
mod tests;
