//! The helm toolset: releases looked at and changed by the real helm binary, with the identity of the k8s tools.
//!
//! Reading order: the small values a call is made of (`grammar`, `chart`); one release and what helm knows of it (`release`);
//! what a chart renders (`objects`), which of it is risky (`risks`) and there already (`taken`); what helm says when it refuses (`fault`); how a
//! release is kept to one run (`hold`) and a chart to the bytes that were shown (`pins`); what an approver is shown
//! (`preview`, `lines`); what install and upgrade have in common (`change`), and what is left of a run (`settled`).
//! Then one file for each tool.
//!
//! Not here: how helm is started and where charts come from (see `helm`), requests and masking (see `cluster`).

mod change;
mod chart;
mod definitions;
mod fault;
mod grammar;
mod hold;
mod lines;
mod objects;
mod pins;
mod preview;
mod release;
mod risks;
mod settled;
mod taken;

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

use crate::client::Helm;
use crate::client::charts::{Charts, TenantCharts};
use catalog::validate::BadSchema;
use catalog::{CatalogEntry, CompiledTools};
use domain::{Code, Failure, Tenant};
use grammar::{ChartValues, template_in};
use kubernetes::client::Clusters;
use kubernetes::k8s::ClusterToolList;
use pins::ChartPins;
use std::sync::Arc;
use store::Store;
use target::cursor::Cursors;

/// The name of the toolset.
pub const TOOLSET: &str = "helm";

/// What its tools reach.
#[derive(Debug, Clone)]
pub struct HelmDeps {
    helm: Helm,
    charts: Charts,
    clusters: Clusters,
    store: Store,
    cursors: Cursors,
    pins: ChartPins,
    /// Whether values may hold templates.
    templates_in_values: bool,
}

impl HelmDeps {
    /// The binary, where charts come from, the store that keeps runs apart, and where long results go on. It reaches no
    /// cluster and no repository yet.
    pub fn new(helm: Helm, charts: Charts, store: Store, cursors: Cursors) -> HelmDeps {
        let (clusters, pins) = (Clusters::none(), ChartPins::default());
        HelmDeps { helm, charts, clusters, store, cursors, pins, templates_in_values: false }
    }

    /// The same for one tenant.
    #[must_use]
    pub fn for_tenant(&self, tenant: &Tenant, clusters: Clusters, charts: TenantCharts) -> HelmDeps {
        let (helm, charts) = (self.helm.for_tenant(tenant), self.charts.for_tenant(charts));
        HelmDeps { helm, clusters, charts, ..self.clone() }
    }

    /// Refuses values that a chart could evaluate, unless the tenant's file allows them. Evaluated in a change, a template
    /// reads the cluster with the tenant's credential.
    fn plain_values(&self, values: Option<&ChartValues>) -> Result<(), Failure> {
        let found = values.filter(|_| !self.templates_in_values).and_then(|values| template_in(values.fields()));
        let Some(path) = found else { return Ok(()) };
        let path: String = path.chars().filter(|c| !c.is_control()).take(200).collect();
        let message = format!(
            "the value {path} may be taken for a template (`{{{{`), which a chart could evaluate in the cluster"
        );
        Err(Failure::new(Code::PolicyDenied, message)
            .next("give the value without braces; only the tenant's file can allow templates (toolsets.helm.templates_in_values)"))
    }

    /// The same for a tenant whose values may hold templates.
    #[must_use]
    pub fn with_templates_in_values(self, templates_in_values: bool) -> HelmDeps {
        HelmDeps { templates_in_values, ..self }
    }
}

/// Its tools, read list first. With one cluster the argument that names it is not listed; it is understood either way.
pub fn list(kit: &HelmDeps, shapes: &CompiledTools, many_clusters: bool) -> Result<Vec<Arc<CatalogEntry>>, BadSchema> {
    let listed = ClusterToolList { shapes, clusters: &kit.clusters, many_clusters };
    let kit = || kit.clone();
    Ok(vec![
        listed.entry(list::ReleaseListTool { kit: kit() })?,
        listed.entry(get::ReleaseGet { kit: kit() })?,
        Arc::new(shapes.entry(search::ChartSearch { kit: kit() })?),
        Arc::new(shapes.entry(show::ChartShow { kit: kit() })?),
        listed.entry(template::TemplateTool { kit: kit() })?,
        listed.entry(install::Install { kit: kit() })?,
        listed.entry(upgrade::Upgrade { kit: kit() })?,
        listed.entry(rollback::RollbackTool { kit: kit() })?,
        listed.entry(uninstall::Uninstall { kit: kit() })?,
        listed.entry(recover::Recover { kit: kit() })?,
        listed.entry(test::Test { kit: kit() })?,
        Arc::new(shapes.entry(repo::Repo { kit: kit() })?),
    ])
}
