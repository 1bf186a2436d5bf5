//! `argo_rollout`: pause, resume, promote, abort, retry, restart, undo or re-image a Rollout.
//!
//! What is written are the patches of the official plugin ([`plan`]), each with the version it was made for. A refused
//! version means that nothing was changed: it is read and decided anew, while generation and step are the same.
//!
//! A promote moves one step on from wherever the Rollout is, so it is the one action that must not be repeated. Three
//! things keep it to the step that was approved: what was judged is compared once more before anything is sent; a pause
//! that began or ended after the decision is another place than the one that was decided on; and while the controller
//! has yet to act on a pause that was lifted, a second promote finds itself done.

pub(super) mod incoming;
mod plan;
mod probe;
mod promote;
mod shown;
mod template;

use super::TOOLSET;
use super::kinds::{self, ArgoKindArg};
use super::view::RolloutView;
use crate::client::{Cluster, ClusterWriter, MaskDetail, ObjectPatch};
use crate::k8s::K8sDeps;
use crate::k8s::at;
use crate::k8s::grammar::{Image, Label, ObjectName};
use crate::k8s::judged::unprotected;
use crate::k8s::one::LoadedObject;
use crate::k8s::reply::{ClusterNote, ClusterReplyFields};
use catalog::{ProbeResult, Progress, Tool, ToolPreview, ToolSpec};
use domain::{Code, Effect, Failure, Moment};
use plan::{ArgoRolloutPlan, PatchSubresource};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How often a patch is made anew because the object moved between reading and writing.
const TRIES: usize = 5;

pub(super) struct ArgoRolloutTool {
    pub(super) kit: K8sDeps,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    action: ArgoRolloutAction,
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
pub(super) enum ArgoRolloutAction {
    Pause,
    Resume,
    Promote,
    PromoteFull,
    Abort,
    Retry,
    Restart,
    Undo,
    SetImage,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ArgoRolloutOutput {
    action: ArgoRolloutAction,
    phase: String,
    /// The step it was at, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_from: Option<usize>,
    /// The step it goes on to.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_to: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    /// It was as wished already, and nothing was sent.
    noop: bool,
    /// A pause of its own steps still holds it; promote goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    held_by_step: bool,
    #[serde(flatten)]
    common: ClusterReplyFields,
}

impl ArgoRolloutAction {
    const fn as_str(self) -> &'static str {
        match self {
            ArgoRolloutAction::Pause => "pause",
            ArgoRolloutAction::Resume => "resume",
            ArgoRolloutAction::Promote => "promote",
            ArgoRolloutAction::PromoteFull => "promote_full",
            ArgoRolloutAction::Abort => "abort",
            ArgoRolloutAction::Retry => "retry",
            ArgoRolloutAction::Restart => "restart",
            ArgoRolloutAction::Undo => "undo",
            ArgoRolloutAction::SetImage => "set_image",
        }
    }
}

impl Args {
    /// Wants the arguments that belong to the action, and no others.
    fn check(&self) -> Result<(), Failure> {
        let bad = |what: &str, next: &str| Err(Failure::new(Code::InvalidArgument, what).next(next));
        match (self.action, self.images.as_ref().map(BTreeMap::len)) {
            (ArgoRolloutAction::SetImage, None | Some(0)) => {
                bad("set_image needs images", "map each container to its image")
            }
            (action, Some(_)) if action != ArgoRolloutAction::SetImage => {
                bad("images belongs to set_image", "leave images out, or use action=set_image")
            }
            (action, _) if action != ArgoRolloutAction::Undo && self.to_revision.is_some() => {
                bad("to_revision belongs to undo", "leave to_revision out, or use action=undo")
            }
            (_, _) => Ok(()),
        }
    }

    async fn look(&self, cluster: &Cluster<'_>) -> Result<LoadedObject, Failure> {
        self.check()?;
        let seen = kinds::find(cluster, ArgoKindArg::Rollout, &self.name, self.namespace.as_ref()).await?;
        unprotected(cluster, &seen.target)?;
        Ok(seen)
    }
}

impl Tool for ArgoRolloutTool {
    const SPEC: ToolSpec = ToolSpec::new("argo_rollout", TOOLSET, Effect::Disrupt)
        .says(
            "Steer a Rollout",
            "Act on a Rollout. resume lifts a pause; promote goes one step on; promote_full skips all steps and analysis; abort returns to stable; retry restarts an aborted one.",
        )
        .hint(
            "For agents that carry a release through its steps; full promotion skips every analysis, so a rule with \
             `on_reject: fail` is worth having.",
        );
    type Args = Args;
    type Output = ArgoRolloutOutput;

    /// What skips a check, or takes away what was rolled out, puts service at risk.
    fn effect(args: &Args) -> Effect {
        match args.action {
            ArgoRolloutAction::PromoteFull | ArgoRolloutAction::Abort | ArgoRolloutAction::Undo => Effect::Disrupt,
            ArgoRolloutAction::Pause
            | ArgoRolloutAction::Resume
            | ArgoRolloutAction::Promote
            | ArgoRolloutAction::Retry
            | ArgoRolloutAction::Restart
            | ArgoRolloutAction::SetImage => Effect::Change,
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(format!("{},{}", ArgoKindArg::Rollout.plural(), args.action.as_str()))
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<ToolPreview>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = args.look(&cluster).await?;
        let plan = ArgoRolloutPlan::of(&cluster, &seen, args, self.decided(permit)).await?;
        // Whatever would refuse it is heard now, and not after somebody signed.
        let rehearsal = cluster.write()?;
        for send in &plan.sends {
            match send.door {
                PatchSubresource::Status => rehearsal.patch_status(&send.target, send.patch.clone(), None).await?,
                PatchSubresource::Object => rehearsal.patch(&send.target, send.patch.clone(), None).await?,
            };
        }
        shown::drawn(&cluster, &seen, args, &plan).await.map(Some)
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> ProbeResult {
        let Ok(cluster) = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref()) else {
            return ProbeResult::Unknown;
        };
        let Ok(seen) = args.look(&cluster).await else { return ProbeResult::Unknown };
        match probe::settled(&cluster, &seen, args, permit.approval().map(|approval| approval.at)).await {
            Some(true) => {
                let told = steered(&cluster, &seen, args, &ArgoRolloutPlan::default(), &seen.live);
                ProbeResult::Done(serde_json::to_string(&told).ok())
            }
            Some(false) => ProbeResult::NotDone,
            None => ProbeResult::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<ArgoRolloutOutput, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let writer = cluster.write()?;
        let mut seen = args.look(&cluster).await?;
        if let (ArgoRolloutAction::Promote, Some(approval)) = (args.action, permit.approval()) {
            promote::is_where_it_was_decided(RolloutView::of(&seen.live), approval.at)?;
        }
        let mut refusal = None;
        for _ in 0..TRIES {
            let plan = ArgoRolloutPlan::of(&cluster, &seen, &args, self.decided(permit)).await?;
            if plan.sends.is_empty() {
                return Ok(ArgoRolloutOutput { noop: true, ..steered(&cluster, &seen, &args, &plan, &seen.live) });
            }
            match carry_out(&cluster, &writer, &plan).await {
                Ok((object, warnings)) => {
                    let mut told = steered(&cluster, &seen, &args, &plan, object.as_ref().unwrap_or(&seen.live));
                    told.common.warnings = warnings;
                    return Ok(told);
                }
                Err(failure) if failure.code == Code::Conflict => refusal = Some(failure),
                Err(failure) => return Err(failure),
            }
            let anew = args.look(&cluster).await?;
            if judged(&anew) != judged(&seen) {
                return Err(moved());
            }
            seen = anew;
        }
        Err(refusal.unwrap_or_else(moved))
    }
}

impl ArgoRolloutTool {
    /// When it was decided; before that, now. A time to the second, as the controller compares it.
    fn decided(&self, permit: &Permit) -> Moment {
        permit.approval().map_or_else(|| self.kit.cursors.now(), |approval| approval.at)
    }
}

/// What must be the same for a patch to be made anew: which object, what is wanted of it, and where it is.
fn judged(seen: &LoadedObject) -> Value {
    let view = RolloutView::of(&seen.live);
    json!([seen.live["metadata"]["uid"], view.generation(), view.step(), view.holds(), view.current_hash()])
}

fn moved() -> Failure {
    Failure::new(Code::Stale, "the Rollout moved on meanwhile, and nothing was changed")
        .next("look at it with argo_get, then call again")
}

/// Sends what was planned, in its order. What follows a first patch that went through is tried on its own: the first
/// one must not be sent again. Gives the Rollout as the last answer showed it.
async fn carry_out(
    cluster: &Cluster<'_>,
    writer: &ClusterWriter<'_>,
    plan: &ArgoRolloutPlan,
) -> Result<(Option<Value>, Vec<String>), Failure> {
    let (mut object, mut warnings) = (None, Vec::new());
    for (n, send) in plan.sends.iter().enumerate() {
        let sent = match (send.door, n) {
            (PatchSubresource::Status, _) => {
                writer.patch_status(&send.target, send.patch.clone(), send.version.as_deref()).await
            }
            (PatchSubresource::Object, 0) => {
                writer.patch(&send.target, send.patch.clone(), send.version.as_deref()).await
            }
            (PatchSubresource::Object, 1..) => afterwards(cluster, writer, send).await,
        };
        match sent {
            Ok(written) => object = Some(written.object),
            Err(failure) if n == 0 => return Err(failure),
            Err(failure) => warnings.push(format!("It went on, but is still paused: {failure}. Use action=resume.")),
        }
    }
    Ok((object.filter(|object| object["kind"] == "Rollout"), warnings))
}

/// A patch of the wish after one of the status, which has moved the version.
async fn afterwards(
    cluster: &Cluster<'_>,
    writer: &ClusterWriter<'_>,
    send: &plan::PlannedPatch,
) -> Result<crate::client::ObjectWriteResult, Failure> {
    let mut refusal = None;
    for _ in 0..TRIES {
        let live = cluster.get(&send.target, MaskDetail::Full).await?;
        let patch: ObjectPatch = send.patch.clone();
        match writer.patch(&send.target, patch, live["metadata"]["resourceVersion"].as_str()).await {
            Err(failure) if failure.code == Code::Conflict => refusal = Some(failure),
            other => return other,
        }
    }
    Err(refusal.unwrap_or_else(moved))
}

fn steered(
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    args: &Args,
    plan: &ArgoRolloutPlan,
    object: &Value,
) -> ArgoRolloutOutput {
    let view = RolloutView::of(object);
    let held = args.action == ArgoRolloutAction::Resume && !RolloutView::of(&seen.live).holds().is_empty();
    ArgoRolloutOutput {
        action: args.action,
        phase: view.phase().0,
        step_from: plan.step_from.or_else(|| RolloutView::of(&seen.live).step()),
        step_to: plan.step_to,
        revision: plan.revision.or_else(|| view.revision()),
        noop: false,
        held_by_step: held,
        common: ClusterNote::answer_at(cluster, &seen.place, (args.cluster.is_some(), args.namespace.is_some())),
    }
}
