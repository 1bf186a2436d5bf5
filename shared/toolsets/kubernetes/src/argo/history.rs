//! `argo_history`: the revisions of a Rollout, and what each of them was.

use super::TOOLSET;
use super::kinds::{self, ArgoKindArg};
use super::tree::{self, RolloutRevision, TEMPLATE_HASH};
use super::view::RolloutView;
use crate::k8s::K8sDeps;
use crate::k8s::at;
use crate::k8s::get::visible;
use crate::k8s::grammar::{Label, ObjectName};
use crate::k8s::history::no_revision;
use crate::k8s::reply::{ClusterNote, ClusterReplyFields, ROOM, thin};
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Revisions in one answer; a Rollout keeps ten unless told otherwise.
const SHOWN: usize = 20;
/// Analyses of one revision.
const MOST_ANALYSES: usize = 10;

pub(super) struct ArgoHistory {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    name: ObjectName,
    namespace: Option<Label>,
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ArgoHistoryOutput {
    revisions: Vec<RolloutRevisionRow>,
    /// The pod template of the revision that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<Value>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolloutRevisionRow {
    revision: u64,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    images: Vec<String>,
    /// `stable`, `canary` or `preview`.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    /// Its analyses and how each ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    analysis: Vec<String>,
}

impl Tool for ArgoHistory {
    const SPEC: ToolSpec = ToolSpec::new("argo_history", TOOLSET, Effect::Read)
        .says("History of a Rollout", "Revisions of a Rollout; revision shows that pod template.")
        .hint(
            "For agents that ask which version was good; a Rollout keeps only as many revisions as its history limit \
             says.",
        )
        .idempotent();
    type Args = Args;
    type Output = ArgoHistoryOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(_: &Args) -> Option<String> {
        Some(ArgoKindArg::Rollout.plural().to_owned())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ArgoHistoryOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = kinds::find(&cluster, ArgoKindArg::Rollout, &args.name, args.namespace.as_ref()).await?;
        let known = tree::revisions(&cluster, &seen.target, &seen.live).await?;
        let uid = &seen.live["metadata"]["uid"];
        let runs = tree::belonging(&cluster, ArgoKindArg::AnalysisRun, seen.target.namespace(), uid).await;
        let runs = visible(runs)?.unwrap_or_default();
        let mut common =
            ClusterNote::answer_at(&cluster, &seen.place, (args.cluster.is_some(), args.namespace.is_some()));
        let template = match args.revision {
            Some(wanted) => {
                let mut template = find(&known, wanted)?.template.clone();
                let bytes = thin(&mut template, ROOM / 2);
                common.cut_bytes(bytes, "read one part with k8s_get kind=ReplicaSet and path");
                Some(template)
            }
            None => None,
        };
        let left = known.len().saturating_sub(SHOWN);
        common.cut_items(left, "older revisions are shown by their number");
        let view = RolloutView::of(&seen.live);
        let line = |kept: &RolloutRevision| RolloutRevisionRow {
            revision: kept.number,
            hash: kept.hash.clone(),
            created: kept.created.clone(),
            images: kept.images(),
            role: kept.role(view),
            analysis: analyses(kept, &runs),
        };
        Ok(ArgoHistoryOutput { revisions: known.iter().take(SHOWN).map(line).collect(), template, common })
    }
}

/// The analyses of one revision: by the hash of the template they were about.
fn analyses(kept: &RolloutRevision, runs: &[Value]) -> Vec<String> {
    let of_it = |run: &&Value| !kept.hash.is_empty() && run["metadata"]["labels"][TEMPLATE_HASH] == kept.hash.as_str();
    let told = |run: &Value| {
        let text = |pointer: &str| run.pointer(pointer).and_then(Value::as_str).map(redact::message);
        Some(format!("{}: {}", text("/metadata/name")?, text("/status/phase").unwrap_or_else(|| "Pending".to_owned())))
    };
    runs.iter().filter(of_it).take(MOST_ANALYSES).filter_map(told).collect()
}

pub(super) fn find(known: &[RolloutRevision], wanted: u64) -> Result<&RolloutRevision, Failure> {
    let numbers = || known.iter().map(|kept| kept.number);
    known.iter().find(|kept| kept.number == wanted).ok_or_else(|| no_revision(wanted, numbers()))
}
