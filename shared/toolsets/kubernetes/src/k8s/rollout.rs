//! `k8s_rollout`: restart, undo, pause, resume or re-image a workload.
//!
//! Every action is one patch ([`plan`]) that names the version it was made for, so two attempts of one run cannot both
//! take effect: the second one finds the run's mark, or is refused as a conflict.
//!
//! A restart is a changed annotation of the template. Other tools write the time there; this one writes the name of the
//! run. It is the same in every attempt, so sending it twice restarts once, and it still proves the deed when a later
//! change has overwritten the mark on the object. A permit carries no time of decision that could serve instead.

mod plan;
mod shown;

use super::at;
use super::grammar::{Image, KindText, Label, ObjectName};
use super::history::Workload;
use super::images::Images;
use super::judged::unprotected;
use super::reply::{ClusterNote, ClusterReplyFields};
use super::{K8sDeps, TOOLSET};
use crate::client::{Cluster, KindScope, MaskDetail, ResourceRef, SealedValue, marker};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure};
use plan::{RolloutPlan, images_are, paused, restarted_by};
use policy::{Permit, PermitApproval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How often a patch is made anew because the status moved between reading and writing.
const TRIES: usize = 4;

pub(super) struct RolloutTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    action: RolloutAction,
    kind: KindText,
    name: ObjectName,
    namespace: Option<Label>,
    #[schemars(range(min = 1))]
    to_revision: Option<u32>,
    /// Container, or `*` for all of them, to image.
    #[schemars(extend("maxProperties" = 32))]
    images: Option<BTreeMap<String, Image>>,
    cluster: Option<Label>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RolloutAction {
    Restart,
    Undo,
    Pause,
    Resume,
    SetImage,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RolloutOutput {
    action: RolloutAction,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_revision: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<Images>,
    noop: bool,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

/// A workload as it was read, once.
struct ReadWorkload<'a> {
    cluster: &'a Cluster<'a>,
    workload: Workload,
    place: KindScope,
    target: ResourceRef,
    /// As the cluster holds it, to copy from.
    sealed: SealedValue,
    /// As it may be shown.
    live: Value,
}

impl ReadWorkload<'_> {
    fn version(&self) -> Option<&str> {
        self.live["metadata"]["resourceVersion"].as_str()
    }

    fn template(&self) -> &Value {
        &self.live["spec"]["template"]
    }

    /// Whether this run has been here. Only a restart leaves its moment behind, which stays when others leave their mark.
    fn is_done(&self, permit: &Permit, action: RolloutAction) -> bool {
        let whole = self.sealed.shown(self.cluster, MaskDetail::Full);
        let restarted =
            |yes: &PermitApproval| action == RolloutAction::Restart && restarted_by(&whole, &yes.at.exact());
        let by_it = |yes: &PermitApproval| marker::carries(&whole, yes.run) || restarted(yes);
        permit.approval().is_some_and(by_it)
    }
}

async fn look<'a>(cluster: &'a Cluster<'a>, permit: &Permit, args: &Args) -> Result<ReadWorkload<'a>, Failure> {
    args.check()?;
    // Before discovery, so that a Rollout is told its toolset even where Argo is not installed.
    let workload = Workload::of(&args.kind.about())?;
    let kind = at::kind(cluster, permit, &args.kind).await?;
    if !kind.is("apps", workload.kind()) {
        return Err(Failure::new(crate::codes::UNSUPPORTED_KIND, format!("{} do not roll out", kind.full_name()))
            .next("use a Deployment, StatefulSet or DaemonSet of the group apps"));
    }
    let place = at::place(cluster, &kind, args.namespace.as_ref()).await?;
    let target = at::target(&place, &args.name)?;
    unprotected(cluster, &target)?;
    let sealed = match cluster.sealed(&target).await {
        Err(failure) if failure.code == Code::NotFound => return Err(at::not_found(cluster, &place, &target).await),
        read => read?,
    };
    let live = sealed.shown(cluster, MaskDetail::Full);
    Ok(ReadWorkload { cluster, workload, place, target, sealed, live })
}

impl Args {
    /// Wants the arguments that belong to the action, and no others.
    fn check(&self) -> Result<(), Failure> {
        let bad = |what: &str, next: &str| Err(Failure::new(Code::InvalidArgument, what).next(next));
        let images = self.images.as_ref().map(BTreeMap::len);
        match (self.action, images) {
            (RolloutAction::SetImage, None | Some(0)) => {
                bad("set_image needs images", "map each container to its image")
            }
            (RolloutAction::Restart | RolloutAction::Undo | RolloutAction::Pause | RolloutAction::Resume, Some(_)) => {
                bad("images belongs to set_image", "leave images out, or use action=set_image")
            }
            (RolloutAction::Restart | RolloutAction::Pause | RolloutAction::Resume | RolloutAction::SetImage, _)
                if self.to_revision.is_some() =>
            {
                bad("to_revision belongs to undo", "leave to_revision out, or use action=undo")
            }
            (_, _) => Ok(()),
        }
    }
}

impl RolloutAction {
    const fn as_str(self) -> &'static str {
        match self {
            RolloutAction::Restart => "restart",
            RolloutAction::Undo => "undo",
            RolloutAction::Pause => "pause",
            RolloutAction::Resume => "resume",
            RolloutAction::SetImage => "set_image",
        }
    }
}

impl Tool for RolloutTool {
    const SPEC: ToolSpec = ToolSpec::new("k8s_rollout", TOOLSET, Effect::Disrupt)
        .says("Steer a rollout", "Restart, undo, pause, resume or re-image a workload. images maps container to image.")
        .hint(
            "For agents on call that restart or roll back deployments; approvers see which revision comes back, and \
             Argo Rollouts are steered by `argo_rollout` instead.",
        )
        .idempotent();
    type Args = Args;
    type Output = RolloutOutput;

    /// Going back takes away what was rolled out since.
    fn effect(args: &Args) -> Effect {
        match args.action {
            RolloutAction::Undo => Effect::Disrupt,
            RolloutAction::Restart | RolloutAction::Pause | RolloutAction::Resume | RolloutAction::SetImage => {
                Effect::Change
            }
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(args.kind.about())
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = look(&cluster, permit, args).await?;
        let plan = RolloutPlan::of(&seen, args, None).await?;
        let then = match &plan.patch {
            Some(patch) => cluster.write()?.patch(&seen.target, patch.clone(), None).await?.object,
            None => seen.live.clone(),
        };
        shown::drawn(&seen, args, &plan, &then).await.map(Some)
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let Ok(cluster) = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref()) else {
            return ProbeResult::Unknown;
        };
        let Ok(seen) = look(&cluster, permit, args).await else { return ProbeResult::Unknown };
        let as_wished = seen.is_done(permit, args.action)
            || match args.action {
                RolloutAction::Restart | RolloutAction::Undo => false,
                RolloutAction::Pause => paused(&seen.live),
                RolloutAction::Resume => !paused(&seen.live),
                RolloutAction::SetImage => args.images.as_ref().is_some_and(|wanted| images_are(&seen.live, wanted)),
            };
        if as_wished {
            return ProbeResult::Done(
                serde_json::to_string(&steered(args, &seen, &RolloutPlan::default(), false)).ok(),
            );
        }
        let marked = seen.sealed.part("/metadata/annotations/quartermaster~1run").is_some();
        match args.action {
            // A later run may have written its mark over this one's.
            RolloutAction::Undo if marked => ProbeResult::Unknown,
            RolloutAction::Restart
            | RolloutAction::Undo
            | RolloutAction::Pause
            | RolloutAction::Resume
            | RolloutAction::SetImage => ProbeResult::NotDone,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<RolloutOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let writer = cluster.write()?;
        let mut refused: Option<(Value, Failure)> = None;
        for _ in 0..TRIES {
            let seen = look(&cluster, permit, &args).await?;
            if seen.is_done(permit, args.action) {
                return Ok(steered(&args, &seen, &RolloutPlan::default(), false));
            }
            // A refused version means that nothing was changed. Status moves all the time; what was judged must not.
            let generation = seen.live["metadata"]["generation"].clone();
            if let Some((_, failure)) = refused.take_if(|(before, _)| *before != generation) {
                return Err(failure);
            }
            let plan = RolloutPlan::of(&seen, &args, Some(permit)).await?;
            let Some(patch) = plan.patch.clone() else { return Ok(steered(&args, &seen, &plan, true)) };
            match writer.patch(&seen.target, patch, seen.version()).await {
                Ok(_) => return Ok(steered(&args, &seen, &plan, false)),
                Err(failure) if failure.code == Code::Conflict => refused = Some((generation, failure)),
                Err(failure) => return Err(failure),
            }
        }
        Err(refused.map_or_else(|| Failure::new(Code::Conflict, "it never stood still"), |(_, failure)| failure))
    }
}

fn steered(args: &Args, seen: &ReadWorkload<'_>, plan: &RolloutPlan, noop: bool) -> RolloutOutput {
    let named = (args.cluster.is_some(), args.namespace.is_some());
    RolloutOutput {
        action: args.action,
        from_revision: plan.from_revision,
        to_revision: plan.to_revision.or(args.to_revision.map(u64::from)),
        images: plan.images.clone(),
        noop,
        common: ClusterNote::answer_at(seen.cluster, &seen.place, named),
    }
}
