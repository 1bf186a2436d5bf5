//! What goes with a deleted object: what it owns, what it holds, and what may stand in the way.

use super::{CascadeArg, finalizers, is_terminating};
use crate::client::{Cluster, ResourceRef};
use crate::k8s::contents::{self, NamespaceContents, Volume, comes_and_goes};
use crate::k8s::one::LoadedObject;
use crate::k8s::preview;
use crate::k8s::radius::controller;
use catalog::{PreviewBuilder, ToolPreview};
use domain::Failure;
use serde_json::Value;

/// The preview of a deletion.
pub(super) async fn drawn(
    cluster: &Cluster<'_>,
    one: &LoadedObject,
    cascade: CascadeArg,
    grace_s: Option<u32>,
) -> Result<ToolPreview, Failure> {
    let (target, live) = (&one.target, &one.live);
    let mut preview = preview::of(cluster);
    preview::about(&mut preview, "delete", target, live);
    preview.line(format!("made {}", live["metadata"]["creationTimestamp"].as_str().unwrap_or("at an unknown time")));
    preview.judge(match cascade {
        CascadeArg::Background => "what it owns is deleted after it",
        CascadeArg::Foreground => "what it owns is deleted before it",
        CascadeArg::Orphan => "what it owns stays, without an owner",
    });
    standing(&mut preview, target, live, grace_s);
    let what = match (target.kind().group(), target.kind().kind()) {
        ("", "Namespace") => Box::pin(namespace(&mut preview, cluster, target.name())).await?,
        ("", "PersistentVolumeClaim") => {
            let namespace = target.namespace().unwrap_or_default();
            let bound = contents::volumes(cluster, namespace, Some(target.name())).await;
            volumes(&mut preview, bound)?;
            String::new()
        }
        ("", "PersistentVolume") => {
            volume(&mut preview, live);
            String::new()
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            Box::pin(definition(&mut preview, cluster, live)).await?
        }
        _ => {
            let owned = Box::pin(contents::dependents(cluster, target, one.uid())).await?;
            let what = tell(&mut preview, "it owns", &owned);
            if cascade != CascadeArg::Orphan && target.kind().is("apps", "StatefulSet") {
                Box::pin(claims(&mut preview, cluster, target, live)).await?;
            }
            what
        }
    };
    Ok(preview::drawn(cluster, preview, format!("delete {target}{what}")))
}

/// What the object itself says about its end.
fn standing(preview: &mut PreviewBuilder, target: &ResourceRef, live: &Value, grace_s: Option<u32>) {
    if is_terminating(live) {
        preview.warn("It is being deleted already.");
    }
    let finalizers = finalizers(live);
    if !finalizers.is_empty() {
        preview.judge(format!("finalizers: {}", finalizers.join(", ")));
        preview.warn("It stays until whoever set its finalizers has cleaned up.");
    }
    if let Some(owner) = controller(live) {
        preview.warn(format!("It belongs to {owner}, which may make it anew."));
    }
    if grace_s == Some(0) && target.kind().is("", "Pod") {
        preview.warn("Without grace its processes may run on while the pod is taken for gone.");
    }
    if let Some(replicas) = live["spec"]["replicas"].as_u64().filter(|_| target.kind().has("scale")) {
        preview.judge(format!("replicas: {replicas}"));
        preview.warn("Deleting a workload stops its service.");
    }
}

/// Says what there is by kind. Kinds whose objects come and go by themselves are shown and not judged by number.
fn tell(preview: &mut PreviewBuilder, what: &str, contents: &NamespaceContents) -> String {
    for (kind, n) in &contents.counts {
        let line = format!("{what}: {n} {kind}");
        if comes_and_goes(kind) { preview.line(line) } else { preview.judge(line) }
    }
    if !contents.uncounted.is_empty() {
        preview.warn(format!("Not counted, or not to the end: {}.", contents.uncounted.join(", ")));
    }
    match contents.counts.values().sum::<u64>() {
        0 => String::new(),
        n => format!(" and {n} objects with it"),
    }
}

async fn namespace(preview: &mut PreviewBuilder, cluster: &Cluster<'_>, name: &str) -> Result<String, Failure> {
    preview.warn("Deleting a Namespace deletes everything in it, and cannot be undone.");
    let inside = contents::contents(cluster, name).await?;
    let what = tell(preview, "in it", &inside);
    let bound = contents::volumes(cluster, name, None).await;
    volumes(preview, bound)?;
    Ok(what)
}

/// Says which data goes and which stays once the claims are gone.
fn volumes(preview: &mut PreviewBuilder, bound: Result<Vec<Volume>, Failure>) -> Result<(), Failure> {
    for Volume { name, claim, reclaim } in preview::seen(preview, bound, "volumes")?.unwrap_or_default() {
        preview.judge(format!("volume {name} of claim {claim}: reclaim policy {reclaim}"));
        if reclaim == "Delete" {
            preview.warn(format!("The data of volume {name} is deleted with claim {claim}."));
        }
    }
    Ok(())
}

fn volume(preview: &mut PreviewBuilder, live: &Value) {
    let (reclaim, claim) = (&live["spec"]["persistentVolumeReclaimPolicy"], &live["spec"]["claimRef"]);
    preview.judge(format!("reclaim policy {}", reclaim.as_str().unwrap_or("unknown")));
    if let (Some(namespace), Some(name)) = (claim["namespace"].as_str(), claim["name"].as_str()) {
        preview.judge(format!("bound to claim {namespace}/{name}"));
        preview.warn("The volume is in use by a claim.");
    }
}

/// A definition takes every object of its kind along.
async fn definition(preview: &mut PreviewBuilder, cluster: &Cluster<'_>, live: &Value) -> Result<String, Failure> {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}.{}", text("/spec/names/plural"), text("/spec/group"));
    let counted = async { contents::count_everywhere(cluster, &cluster.kind(&name).await?).await };
    let counted = Box::pin(counted).await;
    preview.warn("Deleting a definition deletes every object of its kind in every namespace.");
    match preview::seen(preview, counted, "objects of that kind")? {
        Some(n) => {
            preview.judge(format!("there are {n} {name}"));
            Ok(format!(" and {n} objects with it"))
        }
        None => Ok(String::new()),
    }
}

/// The claims of a stateful workload outlive it, unless it says otherwise.
async fn claims(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    live: &Value,
) -> Result<(), Failure> {
    let templates = live["spec"]["volumeClaimTemplates"].as_array().map(Vec::as_slice).unwrap_or_default();
    if templates.is_empty() {
        return Ok(());
    }
    if live["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] != "Delete" {
        preview.judge("its volume claims stay");
        return Ok(());
    }
    preview.warn("Its volume claims are deleted with it.");
    let namespace = target.namespace().unwrap_or_default();
    let begins = |volume: &Volume| {
        templates.iter().filter_map(|template| template["metadata"]["name"].as_str()).any(|template| {
            let rest = volume.claim.strip_prefix(&format!("{template}-{}-", target.name()));
            rest.is_some_and(|ordinal| !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let bound = contents::volumes(cluster, namespace, None).await;
    volumes(preview, bound.map(|all| all.into_iter().filter(begins).collect()))
}
