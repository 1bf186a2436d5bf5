//! `argo_rollout`: pause, resume, promote, abort, retry, restart, undo or re-image a Rollout.
//!
//! What is written are the patches of the official plugin ([`plan`]), each with the version it was made for. A refused
//! version means that nothing was changed: it is read and decided anew, while generation and step are the same.
//!
//! A promote moves one step on from wherever the Rollout is, so it is the one action that must not be repeated. Three
//! things keep it to the step that was approved: what was judged is compared once more before anything is sent; a pause
//! that began or ended after the decision is another place than the one that was decided on; and while the controller
//! has yet to act on a pause that was lifted, a second promote finds itself done.

mod plan;
mod probe;
mod promote;
mod shown;
mod template;

use super::TOOLSET;
use super::kinds::{self, Seen, Sort};
use super::view::View;
use crate::k8s::K8sKit;
use crate::k8s::at;
use crate::k8s::grammar::{Image, Label, ObjectName};
use crate::k8s::judged::unprotected;
use crate::k8s::reply::Common;
use catalog::{Drawn, Probe, Progress, Tool, ToolSpec};
use cluster::{Cluster, Detail, Patch, Writer};
use domain::{Code, Effect, Failure, Moment};
use plan::{Door, Plan};
use policy::Permit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How often a patch is made anew because the object moved between reading and writing.
const TRIES: usize = 5;

pub(super) struct Rollout {
    pub(super) kit: K8sKit,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    action: Action,
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
pub(super) enum Action {
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
pub(super) struct Steered {
    action: Action,
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
    common: Common,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Action::Pause => "pause",
            Action::Resume => "resume",
            Action::Promote => "promote",
            Action::PromoteFull => "promote_full",
            Action::Abort => "abort",
            Action::Retry => "retry",
            Action::Restart => "restart",
            Action::Undo => "undo",
            Action::SetImage => "set_image",
        }
    }
}

impl Args {
    /// Wants the arguments that belong to the action, and no others.
    fn check(&self) -> Result<(), Failure> {
        let bad = |what: &str, next: &str| Err(Failure::new(Code::InvalidArgument, what).next(next));
        match (self.action, self.images.as_ref().map(BTreeMap::len)) {
            (Action::SetImage, None | Some(0)) => bad("set_image needs images", "map each container to its image"),
            (action, Some(_)) if action != Action::SetImage => {
                bad("images belongs to set_image", "leave images out, or use action=set_image")
            }
            (action, _) if action != Action::Undo && self.to_revision.is_some() => {
                bad("to_revision belongs to undo", "leave to_revision out, or use action=undo")
            }
            (_, _) => Ok(()),
        }
    }

    async fn look(&self, cluster: &Cluster<'_>) -> Result<Seen, Failure> {
        self.check()?;
        let seen = kinds::find(cluster, Sort::Rollout, &self.name, self.namespace.as_ref()).await?;
        unprotected(cluster, &seen.target)?;
        Ok(seen)
    }
}

impl Tool for Rollout {
    const SPEC: ToolSpec = ToolSpec::new("argo_rollout", TOOLSET, Effect::Disrupt)
        .says(
            "Steer a Rollout",
            "Act on a Rollout. resume lifts a pause; promote goes one step on; promote_full skips all steps and analysis; abort returns to stable; retry restarts an aborted one.",
        )
        .hint(
            "For agents that carry a release through its steps; full promotion skips every analysis, so a rule that \
             lets a rejection end the step is worth having.",
        );
    type Args = Args;
    type Output = Steered;

    /// What skips a check, or takes away what was rolled out, puts service at risk.
    fn effect(args: &Args) -> Effect {
        match args.action {
            Action::PromoteFull | Action::Abort | Action::Undo => Effect::Disrupt,
            Action::Pause | Action::Resume | Action::Promote | Action::Retry | Action::Restart | Action::SetImage => {
                Effect::Change
            }
        }
    }

    fn about(args: &Args) -> Option<String> {
        Some(format!("{},{}", Sort::Rollout.plural(), args.action.as_str()))
    }

    async fn preview(&self, permit: &Permit, args: &Args) -> Result<Option<Drawn>, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let seen = args.look(&cluster).await?;
        let plan = Plan::of(&cluster, &seen, args, self.decided(permit)).await?;
        // Whatever would refuse it is heard now, and not after somebody signed.
        let rehearsal = cluster.write()?;
        for send in &plan.sends {
            match send.door {
                Door::Status => rehearsal.patch_status(&send.target, send.patch.clone(), None).await?,
                Door::Object => rehearsal.patch(&send.target, send.patch.clone(), None).await?,
            };
        }
        shown::drawn(&cluster, &seen, args, &plan).await.map(Some)
    }

    async fn probe(&self, permit: &Permit, args: &Args) -> Probe {
        let Ok(cluster) = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref()) else { return Probe::Unknown };
        let Ok(seen) = args.look(&cluster).await else { return Probe::Unknown };
        match probe::settled(&cluster, &seen, args, permit.approval().map(|approval| approval.at)).await {
            Some(true) => {
                let told = steered(&cluster, &seen, args, &Plan::default(), &seen.live);
                Probe::Done(serde_json::to_string(&told).ok())
            }
            Some(false) => Probe::NotDone,
            None => Probe::Unknown,
        }
    }

    async fn run(&self, permit: &Permit, args: Args, _: &Progress) -> Result<Steered, Failure> {
        let cluster = at::cluster(&self.kit.clusters, permit, args.cluster.as_ref())?;
        let writer = cluster.write()?;
        let mut seen = args.look(&cluster).await?;
        if let (Action::Promote, Some(approval)) = (args.action, permit.approval()) {
            promote::is_where_it_was_decided(View::of(&seen.live), approval.at)?;
        }
        let mut refusal = None;
        for _ in 0..TRIES {
            let plan = Plan::of(&cluster, &seen, &args, self.decided(permit)).await?;
            if plan.sends.is_empty() {
                return Ok(Steered { noop: true, ..steered(&cluster, &seen, &args, &plan, &seen.live) });
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

impl Rollout {
    /// When it was decided; before that, now. A time to the second, as the controller compares it.
    fn decided(&self, permit: &Permit) -> Moment {
        permit.approval().map_or_else(|| self.kit.cursors.now(), |approval| approval.at)
    }
}

/// What must be the same for a patch to be made anew: which object, what is wanted of it, and where it is.
fn judged(seen: &Seen) -> Value {
    let view = View::of(&seen.live);
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
    writer: &Writer<'_>,
    plan: &Plan,
) -> Result<(Option<Value>, Vec<String>), Failure> {
    let (mut object, mut warnings) = (None, Vec::new());
    for (n, send) in plan.sends.iter().enumerate() {
        let sent = match (send.door, n) {
            (Door::Status, _) => writer.patch_status(&send.target, send.patch.clone(), send.version.as_deref()).await,
            (Door::Object, 0) => writer.patch(&send.target, send.patch.clone(), send.version.as_deref()).await,
            (Door::Object, 1..) => afterwards(cluster, writer, send).await,
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
    writer: &Writer<'_>,
    send: &plan::Send,
) -> Result<cluster::Written, Failure> {
    let mut refusal = None;
    for _ in 0..TRIES {
        let live = cluster.get(&send.target, Detail::Clean).await?;
        let patch: Patch = send.patch.clone();
        match writer.patch(&send.target, patch, live["metadata"]["resourceVersion"].as_str()).await {
            Err(failure) if failure.code == Code::Conflict => refusal = Some(failure),
            other => return other,
        }
    }
    Err(refusal.unwrap_or_else(moved))
}

fn steered(cluster: &Cluster<'_>, seen: &Seen, args: &Args, plan: &Plan, object: &Value) -> Steered {
    let view = View::of(object);
    let held = args.action == Action::Resume && !View::of(&seen.live).holds().is_empty();
    Steered {
        action: args.action,
        phase: view.phase().0,
        step_from: plan.step_from.or_else(|| View::of(&seen.live).step()),
        step_to: plan.step_to,
        revision: plan.revision.or_else(|| view.revision()),
        noop: false,
        held_by_step: held,
        common: Common::at(cluster, &seen.place, (args.cluster.is_some(), args.namespace.is_some())),
    }
}
