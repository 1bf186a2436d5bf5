//! What an action writes: patches, in their order, and what they mean. Looks, and changes nothing.

use super::super::view::RolloutView;
use super::{ArgoRolloutAction, Args, promote, template};
use crate::client::{Cluster, ObjectPatch, ResourceRef};
use crate::codes;
use crate::k8s::images::Images;
use crate::k8s::one::LoadedObject;
use domain::{Failure, Moment};
use serde_json::{Value, json};

/// Which part of an object a patch goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatchSubresource {
    Status,
    Object,
}

/// One patch.
#[derive(Debug)]
pub(super) struct PlannedPatch {
    pub(super) door: PatchSubresource,
    pub(super) target: ResourceRef,
    /// The version it was made for.
    pub(super) version: Option<String>,
    pub(super) patch: ObjectPatch,
}

impl PlannedPatch {
    fn merge(seen: &LoadedObject, door: PatchSubresource, patch: Value) -> PlannedPatch {
        let version = seen.resource_version().map(str::to_owned);
        PlannedPatch { door, target: seen.target.clone(), version, patch: ObjectPatch::Merge(patch.into()) }
    }
}

/// What would be written.
#[derive(Debug, Default)]
pub(super) struct ArgoRolloutPlan {
    /// None: everything is as wished already.
    pub(super) sends: Vec<PlannedPatch>,
    pub(super) step_from: Option<usize>,
    pub(super) step_to: Option<usize>,
    /// The revision that is gone back to.
    pub(super) revision: Option<u64>,
    /// Whether that one serves already.
    pub(super) is_stable: bool,
    pub(super) images: Option<Images>,
    /// The template now and then.
    pub(super) templates: Option<(Value, Value)>,
}

impl ArgoRolloutPlan {
    /// The plan for an action. `decided` is when it was.
    pub(super) async fn of(
        cluster: &Cluster<'_>,
        seen: &LoadedObject,
        args: &Args,
        decided: Moment,
    ) -> Result<ArgoRolloutPlan, Failure> {
        let view = RolloutView::of(&seen.live);
        match args.action {
            ArgoRolloutAction::Pause => Ok(pause(seen, view, true)),
            ArgoRolloutAction::Resume => Ok(pause(seen, view, false)),
            ArgoRolloutAction::Promote => promote(seen, view),
            ArgoRolloutAction::PromoteFull => promote_full(seen, view),
            ArgoRolloutAction::Abort => abort(seen, view),
            ArgoRolloutAction::Retry => retry(seen, view),
            ArgoRolloutAction::Restart => Ok(restart(seen, view, decided)),
            ArgoRolloutAction::Undo => template::undo(cluster, seen, args.to_revision.map(u64::from)).await,
            ArgoRolloutAction::SetImage => template::set_images(cluster, seen, args).await,
        }
    }
}

fn pause(seen: &LoadedObject, view: RolloutView<'_>, wanted: bool) -> ArgoRolloutPlan {
    let send = PlannedPatch::merge(seen, PatchSubresource::Object, json!({ "spec": { "paused": wanted } }));
    ArgoRolloutPlan {
        sends: (view.is_paused() != wanted).then_some(send).into_iter().collect(),
        ..ArgoRolloutPlan::default()
    }
}

/// The patch that lifts a person's pause, if there is one.
fn unpause(seen: &LoadedObject, view: RolloutView<'_>) -> Option<PlannedPatch> {
    view.is_paused()
        .then(|| PlannedPatch::merge(seen, PatchSubresource::Object, json!({ "spec": { "paused": false } })))
}

fn promote(seen: &LoadedObject, view: RolloutView<'_>) -> Result<ArgoRolloutPlan, Failure> {
    let next = promote::next(view)?;
    let status =
        next.status.map(|status| PlannedPatch::merge(seen, PatchSubresource::Status, json!({ "status": status })));
    let unpause = unpause(seen, view).filter(|_| !next.under_way);
    let sends = status.into_iter().chain(unpause).collect();
    Ok(ArgoRolloutPlan { sends, step_from: view.step(), step_to: next.step_to, ..ArgoRolloutPlan::default() })
}

fn promote_full(seen: &LoadedObject, view: RolloutView<'_>) -> Result<ArgoRolloutPlan, Failure> {
    if view.is_promoted() {
        return Err(Failure::new(codes::ALREADY_STABLE, "the newest version serves already").next(unseen(view)));
    }
    let status = json!({ "status": { "promoteFull": true } });
    let status = (!view.is_promoting_fully()).then(|| PlannedPatch::merge(seen, PatchSubresource::Status, status));
    let step_to = view.step().map(|_| view.steps().len());
    let sends = status.into_iter().chain(unpause(seen, view)).collect();
    Ok(ArgoRolloutPlan { sends, step_from: view.step(), step_to, ..ArgoRolloutPlan::default() })
}

fn abort(seen: &LoadedObject, view: RolloutView<'_>) -> Result<ArgoRolloutPlan, Failure> {
    if view.is_promoted() {
        return Err(Failure::new(codes::NOT_IN_PROGRESS, "no new version is on its way").next(unseen(view)));
    }
    let send = PlannedPatch::merge(seen, PatchSubresource::Status, json!({ "status": { "abort": true } }));
    let sends = (!view.is_aborted()).then_some(send).into_iter().collect();
    Ok(ArgoRolloutPlan { sends, step_from: view.step(), step_to: view.step().map(|_| 0), ..ArgoRolloutPlan::default() })
}

fn retry(seen: &LoadedObject, view: RolloutView<'_>) -> Result<ArgoRolloutPlan, Failure> {
    if !view.is_aborted() {
        return Err(Failure::new(codes::NOT_ABORTED, "the Rollout was not aborted")
            .next("look at it with argo_get; a pause is lifted with action=promote or action=resume"));
    }
    let send = PlannedPatch::merge(seen, PatchSubresource::Status, json!({ "status": { "abort": false } }));
    Ok(ArgoRolloutPlan {
        sends: vec![send],
        step_from: view.step(),
        step_to: view.step().map(|_| 0),
        ..ArgoRolloutPlan::default()
    })
}

fn restart(seen: &LoadedObject, view: RolloutView<'_>, decided: Moment) -> ArgoRolloutPlan {
    // To the second: the controller compares it with what it noted, and keeps no fractions.
    let at = decided.to_string();
    let send = PlannedPatch::merge(seen, PatchSubresource::Object, json!({ "spec": { "restartAt": at } }));
    ArgoRolloutPlan {
        sends: (view.restart_at() != Some(at.as_str())).then_some(send).into_iter().collect(),
        ..ArgoRolloutPlan::default()
    }
}

/// The next step where there seems to be nothing to do.
fn unseen(view: RolloutView<'_>) -> &'static str {
    match view.is_observed() {
        true => "look at it with argo_get",
        false => "the controller has not seen the latest change yet; wait a moment, then look with argo_get",
    }
}
