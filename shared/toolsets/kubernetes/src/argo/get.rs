//! `argo_get`: Rollouts, AnalysisRuns and Experiments, as a list or one of them with what belongs to it.

mod list;
mod one;

use super::TOOLSET;
use super::kinds::{self, ArgoKindArg};
use crate::k8s::K8sDeps;
use crate::k8s::at;
use crate::k8s::grammar::{Label, Namespaces, ObjectName};
use crate::k8s::project::ObjectRow;
use crate::k8s::reply::ClusterReplyFields;
use catalog::{Progress, Tool, ToolSpec};
use domain::{Code, Effect, Failure};
pub(super) use list::{owner, said};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use target::cursor::Cursor;

pub(super) struct ArgoGet {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: Option<ArgoKindArg>,
    name: Option<ObjectName>,
    namespace: Option<Namespaces>,
    rollout: Option<ObjectName>,
    full: Option<bool>,
    cursor: Option<Cursor>,
    cluster: Option<Label>,
}

/// A list, or one object. What a kind does not have is left out.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct ArgoGetOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<ObjectRow>>,
    /// How many are in this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
    /// How many more there are, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// How many steps are done, of how many; of an AnalysisRun, the step that asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// The share of the traffic meant for the new version, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pause_reasons: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aborted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<String>>,
    /// The step it is at, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    current_step: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replica_sets: Option<Vec<ObjectRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    analysis_runs: Option<Vec<ObjectRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    experiments: Option<Vec<ObjectRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<Vec<ObjectRow>>,
    /// What asked for an AnalysisRun.
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Vec<ObjectRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    templates: Option<Vec<ObjectRow>>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl Args {
    fn sort(&self) -> ArgoKindArg {
        self.kind.unwrap_or_default()
    }

    fn is_full(&self) -> bool {
        self.full == Some(true)
    }

    /// Which of cluster and namespace the call names itself.
    fn named(&self) -> (bool, bool) {
        (self.cluster.is_some(), self.namespace.is_some())
    }

    fn everywhere(&self) -> bool {
        self.namespace.as_ref().is_some_and(Namespaces::is_all)
    }

    /// Refuses what contradicts itself.
    fn check(&self) -> Result<(), Failure> {
        let told = |message: &str, next: &str| Err(Failure::new(Code::InvalidArgument, message).next(next));
        match (&self.name, &self.rollout, self.sort()) {
            (Some(_), _, _) if self.rollout.is_some() || self.cursor.is_some() => {
                told("name asks for one object; rollout and cursor ask for several", "leave one out")
            }
            (_, Some(_), ArgoKindArg::Rollout) => told(
                "rollout filters what belongs to one",
                "use kind=analysisrun or experiment, or name for the Rollout",
            ),
            (_, Some(_), _) if self.everywhere() => {
                told("the Rollout is in one namespace, not in '*'", "name the namespace")
            }
            (_, _, _) => Ok(()),
        }
    }
}

impl Tool for ArgoGet {
    const SPEC: ToolSpec = ToolSpec::new("argo_get", TOOLSET, Effect::Read)
        .says(
            "Get Rollouts and their analyses",
            "List Rollouts, AnalysisRuns or Experiments, or show one with its tree, step, weights and metrics. rollout filters by owner.",
        )
        .hint(
            "The way in for agents that watch canaries and blue-green switches; clusters without Argo Rollouts answer \
             that there is none, so give it only where the controller runs.",
        )
        .idempotent();
    type Args = Args;
    type Output = ArgoGetOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.sort().plural().to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ArgoGetOutput, Failure> {
        args.check()?;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let kind = kinds::kind(&cluster, args.sort()).await?;
        let place = at::places(&cluster, &kind, args.namespace.as_ref()).await?;
        match &args.name {
            Some(name) => {
                let target = at::target(&place, name)?;
                Box::pin(self.one(&cluster, &place, &target, &args)).await
            }
            None => Box::pin(self.several(permit, &cluster, &place, &args)).await,
        }
    }
}
