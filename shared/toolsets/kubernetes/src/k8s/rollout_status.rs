//! `k8s_rollout_status`: how far a rollout is, and what came before it. One look; waiting is `k8s_wait`.

use super::at;
use super::grammar::{KindText, Label, ObjectName};
use super::history::{Workload, WorkloadRevision, no_revision, revisions};
use super::reply::{ClusterNote, ClusterReplyFields, ROOM, thin};
use super::rollout_rules::standing;
use super::{K8sDeps, TOOLSET};
use crate::client::MaskDetail;
use crate::codes;
use catalog::{Progress, Tool, ToolSpec};
use domain::{Effect, Failure};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Revisions in one answer; a workload keeps ten unless told otherwise.
const SHOWN: usize = 10;

pub(super) struct RolloutStatus {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    kind: KindText,
    name: ObjectName,
    namespace: Option<Label>,
    #[schemars(range(min = 1))]
    revision: Option<u64>,
    cluster: Option<Label>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolloutStatusOutput {
    done: bool,
    failed: bool,
    message: String,
    desired: u64,
    updated: u64,
    ready: u64,
    available: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    history: Vec<WorkloadRevisionRow>,
    /// The pod template of the revision that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    template: Option<Value>,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WorkloadRevisionRow {
    revision: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    images: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_cause: Option<String>,
    current: bool,
}

impl WorkloadRevisionRow {
    fn of(revision: &WorkloadRevision) -> WorkloadRevisionRow {
        WorkloadRevisionRow {
            revision: revision.number,
            created: revision.created.clone(),
            images: revision.images(),
            change_cause: revision.change_cause.as_deref().map(redact::message),
            current: revision.current,
        }
    }
}

impl Tool for RolloutStatus {
    const SPEC: ToolSpec = ToolSpec::new("k8s_rollout_status", TOOLSET, Effect::Read)
        .says(
            "Rollout status and history",
            "Rollout progress and revision history of a workload; revision shows that pod template.",
        )
        .hint(
            "For agents that watch deployments or look for the change that broke one; it shows what an undo would go \
             back to, so it belongs beside `k8s_rollout`.",
        )
        .idempotent();
    type Args = Args;
    type Output = RolloutStatusOutput;

    fn effect(_: &Args) -> Effect {
        Effect::Read
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<RolloutStatusOutput, Failure> {
        let workload = Workload::of(&args.kind.about())?;
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let kind = cluster.kind(workload.kind_text()).await?;
        let place = at::place(&cluster, &kind, args.namespace.as_ref()).await?;
        let target = at::target(&place, &args.name)?;
        let object = at::get(&cluster, &place, &target, MaskDetail::Clean).await?;
        let Some(stands) = standing(workload.kind(), &object) else {
            return Err(Failure::new(codes::UNSUPPORTED_KIND, "this kind has no rollout"));
        };
        let revisions = revisions(&cluster, workload, &target, &object).await?;
        let mut common = ClusterNote::answer_at(&cluster, &place, (args.cluster.is_some(), args.namespace.is_some()));
        let template = match args.revision {
            Some(wanted) => {
                let mut template = find(&revisions, wanted)?.template.clone();
                let bytes = thin(&mut template, ROOM / 2);
                common.cut_bytes(bytes, "read one part with k8s_get kind=ReplicaSet or ControllerRevision and path");
                Some(template)
            }
            None => None,
        };
        let left = revisions.len().saturating_sub(SHOWN);
        common.cut_items(left, "older revisions are shown by their number");
        Ok(RolloutStatusOutput {
            done: stands.done,
            failed: stands.failed,
            message: stands.message,
            desired: stands.desired,
            updated: stands.updated,
            ready: stands.ready,
            available: stands.available,
            revision: revisions.iter().find(|r| r.current).map(|r| r.number),
            history: revisions.iter().take(SHOWN).map(WorkloadRevisionRow::of).collect(),
            template,
            common,
        })
    }
}

fn find(revisions: &[WorkloadRevision], wanted: u64) -> Result<&WorkloadRevision, Failure> {
    let numbers = || revisions.iter().map(|revision| revision.number);
    revisions.iter().find(|revision| revision.number == wanted).ok_or_else(|| no_revision(wanted, numbers()))
}
