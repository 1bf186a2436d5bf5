//! The kinds of Argo Rollouts, and where their objects are.

use crate::client::{Cluster, Kind, MaskDetail};
use crate::codes;
use crate::k8s::at;
use crate::k8s::grammar::{Label, ObjectName};
use crate::k8s::one::LoadedObject;
use domain::Failure;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a call may be about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum ArgoKindArg {
    #[default]
    Rollout,
    AnalysisRun,
    Experiment,
}

impl ArgoKindArg {
    /// The kind without doubt.
    const fn kind_text(self) -> &'static str {
        match self {
            ArgoKindArg::Rollout => "argoproj.io/v1alpha1/Rollout",
            ArgoKindArg::AnalysisRun => "argoproj.io/v1alpha1/AnalysisRun",
            ArgoKindArg::Experiment => "argoproj.io/v1alpha1/Experiment",
        }
    }

    /// What a tenant's rule calls it.
    pub(super) const fn plural(self) -> &'static str {
        match self {
            ArgoKindArg::Rollout => "rollouts",
            ArgoKindArg::AnalysisRun => "analysisruns",
            ArgoKindArg::Experiment => "experiments",
        }
    }
}

/// The kind, if the cluster has it.
pub(super) async fn kind(cluster: &Cluster<'_>, sort: ArgoKindArg) -> Result<Kind, Failure> {
    match cluster.kind(sort.kind_text()).await {
        Err(failure) if failure.code == codes::UNKNOWN_KIND => {
            Err(Failure::new(codes::ARGO_NOT_INSTALLED, format!("cluster {} has no Argo Rollouts", cluster.name()))
                .next("use k8s_rollout_status and k8s_rollout for plain workloads, or ask an admin to install it"))
        }
        found => found,
    }
}

/// Finds one object.
pub(super) async fn find(
    cluster: &Cluster<'_>,
    sort: ArgoKindArg,
    name: &ObjectName,
    namespace: Option<&Label>,
) -> Result<LoadedObject, Failure> {
    let place = at::place(cluster, &kind(cluster, sort).await?, namespace).await?;
    let target = at::target(&place, name)?;
    // Whole, because the mark of a run is no part of a short view.
    let live = at::get(cluster, &place, &target, MaskDetail::Full).await?;
    Ok(LoadedObject { place, target, live })
}
