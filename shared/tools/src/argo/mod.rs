//! The Argo Rollouts toolset: looking at progressive deliveries and steering them, through the Kubernetes API.
//!
//! Reading order: the kinds and where they are (`kinds`); what a Rollout says of itself (`view`) and what belongs to it
//! (`tree`); then one file for each tool. What is written are the patches the official plugin makes, each with the
//! version it was made for.
//!
//! Not here: scaling (`k8s_scale`), waiting (`k8s_wait`), and the small values calls are made of (see `k8s`).

mod kinds;
mod tree;
mod view;

mod get;
mod history;

mod analysis;
mod rollout;

use crate::k8s::{K8sKit, entry};
use catalog::Entry;
use catalog::validate::BadSchema;
use std::sync::Arc;
pub(crate) use view::View;

/// The name of the toolset.
pub const TOOLSET: &str = "argo";

/// Its tools, read list first. With one cluster the argument that names it is not listed; it is understood either way.
pub fn list(kit: &K8sKit, many_clusters: bool) -> Result<Vec<Arc<Entry>>, BadSchema> {
    let kit = || kit.clone();
    Ok(vec![
        entry(get::Get { kit: kit() }, many_clusters)?,
        entry(history::History { kit: kit() }, many_clusters)?,
        entry(rollout::Rollout { kit: kit() }, many_clusters)?,
        entry(analysis::Analysis { kit: kit() }, many_clusters)?,
    ])
}

#[cfg(test)]
mod tests;
