//! The helm toolset: releases looked at and changed by the real helm binary, with the identity of the k8s tools.
//!
//! Reading order: the small values a call is made of (`grammar`, `chart`); one release and what helm knows of it (`release`);
//! what a chart renders (`objects`) and which of it is risky (`risks`); what helm says when it refuses (`fault`); how a
//! release is kept to one run (`hold`) and a chart to the bytes that were shown (`pins`); what an approver is shown
//! (`sheet`, `lines`); what install and upgrade have in common (`change`), and what is left of a run (`settled`).
//! Then one file for each tool.
//!
//! Not here: how helm is started and where charts come from (see `helm`), requests and masking (see `cluster`).

mod change;
mod chart;
mod fault;
mod grammar;
mod hold;
mod lines;
mod objects;
mod pins;
mod release;
mod risks;
mod settled;
mod sheet;

mod get;
mod list;
mod search;
mod show;
mod template;

mod install;
mod recover;
mod repo;
mod rollback;
mod test;
mod uninstall;
mod upgrade;

use crate::cursor::Cursors;
use crate::k8s::entry;
use catalog::Entry;
use catalog::validate::BadSchema;
use cluster::Clusters;
use helm::Helm;
use helm::charts::Charts;
use pins::Pins;
use std::sync::Arc;
use store::Store;

/// The name of the toolset.
pub const TOOLSET: &str = "helm";

/// What its tools reach.
#[derive(Debug, Clone)]
pub struct HelmKit {
    helm: Helm,
    charts: Charts,
    clusters: Clusters,
    store: Store,
    cursors: Cursors,
    pins: Pins,
}

impl HelmKit {
    /// The binary, where charts come from, all clusters, the store that keeps runs apart, and where long results go on.
    pub fn new(helm: Helm, charts: Charts, clusters: Clusters, store: Store, cursors: Cursors) -> HelmKit {
        HelmKit { helm, charts, clusters, store, cursors, pins: Pins::default() }
    }
}

/// Its tools, read list first. With one cluster the argument that names it is not listed; it is understood either way.
pub fn list(kit: &HelmKit, many_clusters: bool) -> Result<Vec<Arc<Entry>>, BadSchema> {
    let kit = || kit.clone();
    Ok(vec![
        entry(list::List { kit: kit() }, many_clusters)?,
        entry(get::Get { kit: kit() }, many_clusters)?,
        Arc::new(Entry::of(search::Search { kit: kit() })?),
        Arc::new(Entry::of(show::Show { kit: kit() })?),
        entry(template::Template { kit: kit() }, many_clusters)?,
        entry(install::Install { kit: kit() }, many_clusters)?,
        entry(upgrade::Upgrade { kit: kit() }, many_clusters)?,
        entry(rollback::Rollback { kit: kit() }, many_clusters)?,
        entry(uninstall::Uninstall { kit: kit() }, many_clusters)?,
        entry(recover::Recover { kit: kit() }, many_clusters)?,
        entry(test::Test { kit: kit() }, many_clusters)?,
        Arc::new(Entry::of(repo::Repo { kit: kit() })?),
    ])
}
