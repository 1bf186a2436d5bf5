//! The kinds of Argo Rollouts, and where their objects are.

use crate::k8s::at;
use crate::k8s::grammar::{Label, ObjectName};
use cluster::{Cluster, Detail, Kind, Place, Target};
use domain::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a call may be about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sort {
    #[default]
    Rollout,
    AnalysisRun,
    Experiment,
}

impl Sort {
    /// The kind without doubt.
    const fn kind_text(self) -> &'static str {
        match self {
            Sort::Rollout => "argoproj.io/v1alpha1/Rollout",
            Sort::AnalysisRun => "argoproj.io/v1alpha1/AnalysisRun",
            Sort::Experiment => "argoproj.io/v1alpha1/Experiment",
        }
    }

    /// What a tenant's rule calls it.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            Sort::Rollout => "rollouts",
            Sort::AnalysisRun => "analysisruns",
            Sort::Experiment => "experiments",
        }
    }
}

/// The kind, if the cluster has it.
pub(super) async fn kind(cluster: &Cluster<'_>, sort: Sort) -> Result<Kind, Failure> {
    match cluster.kind(sort.kind_text()).await {
        Err(failure) if failure.code == Code::UnknownKind => {
            Err(Failure::new(Code::ArgoNotInstalled, format!("cluster {} has no Argo Rollouts", cluster.name()))
                .next("use k8s_rollout_status and k8s_rollout for plain workloads, or ask an admin to install it"))
        }
        found => found,
    }
}

/// One object, as it was read.
pub(super) struct Seen {
    pub(super) place: Place,
    pub(super) target: Target,
    /// As it may be shown.
    pub(super) live: Value,
}

impl Seen {
    /// Its version, as a precondition.
    pub(super) fn version(&self) -> Option<&str> {
        self.live["metadata"]["resourceVersion"].as_str()
    }
}

/// Finds one object.
pub(super) async fn find(
    cluster: &Cluster<'_>,
    sort: Sort,
    name: &ObjectName,
    namespace: Option<&Label>,
) -> Result<Seen, Failure> {
    let place = at::place(cluster, &kind(cluster, sort).await?, namespace).await?;
    let target = at::target(&place, name)?;
    // Whole, because the mark of a run is no part of a short view.
    let live = at::get(cluster, &place, &target, Detail::Full).await?;
    Ok(Seen { place, target, live })
}
