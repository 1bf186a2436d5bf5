//! The Kubernetes toolset: looking at clusters and changing them, through the API and never through a command line.
//!
//! Reading order: the small values a call is made of (`grammar`, `selector`, `pick`, `grep`, `argv`,
//! `manifest`, `until`); how a call is judged by what it is about (`kind_name`); from words to things (`at`);
//! what is shown of an object (`project`, `clean`, `diff_text`, `measure`), how far a rollout is
//! (`rollout_rules`, `history`, `images`); what every answer has in common (`reply`, `written`); what an approver is shown of
//! a change (`one`, `preview`, `judged`) and what stands around it (`radius`, `contents`, `budgets`,
//! `pages`). Then one file for each tool.
//!
//! Not here: requests, credentials and masking (see `cluster`), and who may call what (see `policy`).

mod argv;
pub mod at;
mod budgets;
mod clean;
mod contents;
pub mod diff_text;
pub mod grammar;
pub(crate) mod history;
pub(crate) mod images;
pub(crate) mod judged;
mod kind_name;
mod manifest;
pub(crate) mod measure;
pub(crate) mod one;
pub(crate) mod pages;
mod pick;
pub(crate) mod preview;
pub(crate) mod project;
pub(crate) mod radius;
pub mod reply;
mod rollout_rules;
mod selector;
mod shown_arguments;
mod until;

mod diff;
mod discover;
pub(crate) mod get;
mod logs;
mod rollout_status;
mod top;
mod wait;

mod apply;
mod delete;
mod exec;
mod node;
mod patch;
mod probe;
mod rollout;
mod run;
mod scale;

#[cfg(feature = "fuzz")]
pub use manifest::fuzz::manifest as fuzz_manifest;
#[cfg(feature = "fuzz")]
pub use patch::fuzz::patch as fuzz_patch;

use crate::client::Clusters;
use catalog::validate::BadSchema;
use catalog::{CatalogEntry, CompiledTools, TargetNames, Tool};
use std::sync::Arc;
use target::cursor::Cursors;
use target::{grep, written};

/// The name of the toolset.
pub const TOOLSET: &str = "k8s";
/// The argument that is listed only where there is a choice.
const CLUSTER: &str = "cluster";

/// What its tools reach.
#[derive(Debug, Clone)]
pub struct K8sDeps {
    /// All clusters; a tool gets those of its permit's tenant.
    pub clusters: Clusters,
    /// Where long results go on, and the clock.
    pub cursors: Cursors,
}

/// Its tools, read list first. With one cluster the argument that names it is not listed; it is understood either way.
pub fn list(kit: &K8sDeps, shapes: &CompiledTools, many_clusters: bool) -> Result<Vec<Arc<CatalogEntry>>, BadSchema> {
    let listed = ClusterToolList { shapes, clusters: &kit.clusters, many_clusters };
    let kit = || kit.clone();
    Ok(vec![
        listed.entry(get::K8sGet { kit: kit() })?,
        listed.entry(logs::PodLogsTool { kit: kit() })?,
        listed.entry(top::Top { kit: kit() })?,
        listed.entry(rollout_status::RolloutStatus { kit: kit() })?,
        listed.entry(wait::Wait { kit: kit() })?,
        listed.entry(discover::Discover { kit: kit() })?,
        listed.entry(diff::Diff { kit: kit() })?,
        listed.entry(apply::Apply { kit: kit() })?,
        listed.entry(patch::K8sPatch { kit: kit() })?,
        listed.entry(rollout::RolloutTool { kit: kit() })?,
        listed.entry(scale::ScaleTool { kit: kit() })?,
        listed.entry(delete::Delete { kit: kit() })?,
        listed.entry(node::NodeTool { kit: kit() })?,
        listed.entry(exec::ExecTool { kit: kit() })?,
        listed.entry(run::RunTool { kit: kit() })?,
        listed.entry(probe::HttpProbe { kit: kit() })?,
    ])
}

/// How tools on clusters are listed for one tenant.
pub struct ClusterToolList<'a> {
    /// Where their shapes are kept.
    pub shapes: &'a CompiledTools,
    /// The clusters they hold.
    pub clusters: &'a Clusters,
    /// Whether the argument that names a cluster is listed.
    pub many_clusters: bool,
}

impl ClusterToolList<'_> {
    /// One tool.
    pub fn entry<T: Tool>(&self, tool: T) -> Result<Arc<CatalogEntry>, BadSchema> {
        let entry =
            if self.many_clusters { self.shapes.entry(tool)? } else { self.shapes.entry_without(tool, CLUSTER)? };
        let clusters = self.clusters.clone();
        let name = move |named: Option<&str>| clusters.meant(named).map(|name| format!("cluster/{name}"));
        Ok(Arc::new(entry.aimed_at(TargetNames { argument: CLUSTER, name: Arc::new(name) })))
    }
}

#[cfg(test)]
mod tests;
