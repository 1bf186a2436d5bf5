//! Another pod template: back to a revision, or with other images.
//!
//! A Rollout may take its template from a workload; then that is what is changed.

use super::super::history::find as find_revision;
use super::super::tree::{self, TEMPLATE_HASH};
use super::super::view::RolloutView;
use super::Args;
use super::plan::{ArgoRolloutPlan, PatchSubresource, PlannedPatch};
use crate::client::{Cluster, MaskDetail, ObjectPatch, ResourceRef, SealedValue, Wildcard};
use crate::codes;
use crate::k8s::images::{self, Images};
use crate::k8s::one::LoadedObject;
use domain::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What holds the template, as it may be shown.
pub(super) struct TemplateHolder {
    target: ResourceRef,
    version: Option<String>,
    /// Where the template is in it.
    pointer: &'static str,
    pub(super) template: Value,
}

impl TemplateHolder {
    /// The Rollout itself, or the workload it refers to.
    pub(super) async fn of(cluster: &Cluster<'_>, seen: &LoadedObject) -> Result<TemplateHolder, Failure> {
        let view = RolloutView::of(&seen.live);
        let Some(reference) = view.workload_ref() else {
            let (target, version) = (seen.target.clone(), seen.resource_version().map(str::to_owned));
            return Ok(TemplateHolder {
                target,
                version,
                pointer: "/spec/template",
                template: view.template().clone(),
            });
        };
        let text = |key: &str| reference[key].as_str().unwrap_or_default();
        let pointer = match (text("apiVersion"), text("kind")) {
            ("apps/v1", "Deployment" | "ReplicaSet") => "/spec/template",
            ("v1", "PodTemplate") => "/template",
            _ => return Err(unsupported(reference)),
        };
        let kind = cluster.kind(&format!("{}/{}", text("apiVersion"), text("kind"))).await?;
        let place = cluster.place(&kind, seen.target.namespace(), Wildcard::Refused).await?;
        let target = place.object(text("name"))?;
        let live = cluster.get(&target, MaskDetail::Full).await?;
        let version = live["metadata"]["resourceVersion"].as_str().map(str::to_owned);
        let template = live.pointer(pointer).cloned().unwrap_or_default();
        Ok(TemplateHolder { target, version, pointer, template })
    }

    fn send(self, patch: impl Into<SealedValue>) -> PlannedPatch {
        PlannedPatch {
            door: PatchSubresource::Object,
            target: self.target,
            version: self.version,
            patch: ObjectPatch::Json(patch.into()),
        }
    }
}

fn unsupported(reference: &Value) -> Failure {
    let kind = redact::message(reference["kind"].as_str().unwrap_or("nothing known"));
    Failure::new(codes::UNSUPPORTED_WORKLOAD, format!("the Rollout takes its template from a {kind}"))
        .next("change that workload itself, with k8s_patch")
}

/// Back to a revision; without one, to the one before the current.
pub(super) async fn undo(
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    wanted: Option<u64>,
) -> Result<ArgoRolloutPlan, Failure> {
    let view = RolloutView::of(&seen.live);
    let holder = TemplateHolder::of(cluster, seen).await?;
    let known = tree::revisions(cluster, &seen.target, &seen.live).await?;
    let kept = match wanted {
        Some(number) => find_revision(&known, number)?,
        None => known.iter().find(|kept| Some(kept.number) != view.revision()).ok_or_else(|| {
            Failure::new(codes::REVISION_NOT_FOUND, "there is no earlier revision to go back to")
                .next("look at the history with argo_history")
        })?,
    };
    let plan = ArgoRolloutPlan {
        revision: Some(kept.number),
        is_stable: kept.hash == view.stable_hash(),
        images: Some(Images { from: images::named(&holder.template), to: images::named(&kept.template) }),
        templates: Some((holder.template.clone(), kept.template.clone())),
        ..ArgoRolloutPlan::default()
    };
    if kept.template == holder.template {
        return Ok(plan);
    }
    // From the very object that keeps it: what was read masked must not be written back.
    let kind = cluster.kind("apps/v1/ReplicaSet").await?;
    let place = cluster.place(&kind, seen.target.namespace(), Wildcard::Refused).await?;
    let whole = cluster.sealed(&place.object(&kept.name)?).await?;
    let mut template = whole.part("/spec/template").ok_or_else(|| {
        Failure::new(codes::REVISION_NOT_FOUND, format!("revision {} is gone", kept.number))
            .next("look at the history with argo_history")
    })?;
    template.remove(&format!("/metadata/labels/{TEMPLATE_HASH}"));
    let mut patch: SealedValue = json!([{ "op": "replace", "path": holder.pointer }]).into();
    patch.set("/0/value", template);
    Ok(ArgoRolloutPlan { sends: vec![holder.send(patch)], ..plan })
}

/// Other images. Each is put where a container of that name stands, and nowhere if another one stands there by then.
pub(super) async fn set_images(
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    args: &Args,
) -> Result<ArgoRolloutPlan, Failure> {
    if let Some(reference) = RolloutView::of(&seen.live).workload_ref().filter(|one| one["kind"] != "Deployment") {
        return Err(unsupported(reference));
    }
    let holder = TemplateHolder::of(cluster, seen).await?;
    let none = BTreeMap::new();
    let template = holder.template.clone();
    let chosen = images::chosen(&template, args.images.as_ref().unwrap_or(&none))?;
    let mut operations = Vec::new();
    for change in &chosen.changes {
        let at = format!("{}/spec/{}/{}", holder.pointer, change.list, change.index);
        operations.push(json!({ "op": "test", "path": format!("{at}/name"), "value": change.name }));
        operations.push(json!({ "op": "add", "path": format!("{at}/image"), "value": change.to }));
    }
    let mut then = template.clone();
    for change in &chosen.changes {
        then["spec"][change.list][change.index]["image"] = json!(change.to);
    }
    let (images, templates) = (Some(chosen.images), Some((template.clone(), then)));
    let sends = if operations.is_empty() { Vec::new() } else { vec![holder.send(Value::Array(operations))] };
    Ok(ArgoRolloutPlan { sends, images, templates, ..ArgoRolloutPlan::default() })
}
