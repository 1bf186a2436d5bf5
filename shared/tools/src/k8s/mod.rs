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
pub(crate) mod at;
mod budgets;
mod clean;
mod contents;
pub(crate) mod diff_text;
pub(crate) mod grammar;
mod history;
pub(crate) mod images;
pub(crate) mod judged;
mod kind_name;
mod manifest;
pub(crate) mod measure;
mod one;
pub(crate) mod pages;
mod pick;
mod preview;
pub(crate) mod project;
pub(crate) mod radius;
pub(crate) mod reply;
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

use crate::cursor::Cursors;
use crate::{grep, written};
use catalog::validate::BadSchema;
use catalog::{Entry, Tool};
use cluster::Clusters;
use std::sync::Arc;

/// The name of the toolset.
pub const TOOLSET: &str = "k8s";
/// The argument that is listed only where there is a choice.
const CLUSTER: &str = "cluster";

/// What its tools reach.
#[derive(Debug, Clone)]
pub struct K8sKit {
    /// All clusters; a tool gets those of its permit's tenant.
    pub clusters: Clusters,
    /// Where long results go on, and the clock.
    pub cursors: Cursors,
}

/// Its tools, read list first. With one cluster the argument that names it is not listed; it is understood either way.
pub fn list(kit: &K8sKit, many_clusters: bool) -> Result<Vec<Arc<Entry>>, BadSchema> {
    let kit = || kit.clone();
    Ok(vec![
        entry(get::Get { kit: kit() }, many_clusters)?,
        entry(logs::Logs { kit: kit() }, many_clusters)?,
        entry(top::Top { kit: kit() }, many_clusters)?,
        entry(rollout_status::RolloutStatus { kit: kit() }, many_clusters)?,
        entry(wait::Wait { kit: kit() }, many_clusters)?,
        entry(discover::Discover { kit: kit() }, many_clusters)?,
        entry(diff::Diff { kit: kit() }, many_clusters)?,
        entry(apply::Apply { kit: kit() }, many_clusters)?,
        entry(patch::Patch { kit: kit() }, many_clusters)?,
        entry(rollout::Rollout { kit: kit() }, many_clusters)?,
        entry(scale::Scale { kit: kit() }, many_clusters)?,
        entry(delete::Delete { kit: kit() }, many_clusters)?,
        entry(node::Node { kit: kit() }, many_clusters)?,
        entry(exec::Exec { kit: kit() }, many_clusters)?,
        entry(run::Run { kit: kit() }, many_clusters)?,
        entry(probe::HttpProbe { kit: kit() }, many_clusters)?,
    ])
}

pub(crate) fn entry<T: Tool>(tool: T, many_clusters: bool) -> Result<Arc<Entry>, BadSchema> {
    let whole = Entry::of(tool)?;
    Ok(Arc::new(if many_clusters { whole } else { whole.without_argument(CLUSTER) }))
}

#[cfg(test)]
mod tests;
