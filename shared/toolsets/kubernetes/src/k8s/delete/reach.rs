//! What goes with a deleted object: what it owns, what it holds, and what may stand in the way.

use super::{CascadeArg, finalizers, is_terminating};
use crate::client::{Cluster, ResourceRef};
use crate::k8s::contents::{self, NamespaceContents, Volume, comes_and_goes};
use crate::k8s::one::LoadedObject;
use crate::k8s::preview::PreviewBuilder;
use crate::k8s::radius::controller;
use catalog::ToolPreview;
use domain::Failure;
use serde_json::Value;

/// How many kinds of a namespace are named.
const MOST_KINDS: usize = 60;

/// The preview of a deletion.
pub(super) async fn drawn(
    cluster: &Cluster<'_>,
    one: &LoadedObject,
    cascade: CascadeArg,
    grace_s: Option<u32>,
) -> Result<ToolPreview, Failure> {
    let (target, live) = (&one.target, &one.live);
    let mut sheet = PreviewBuilder::of(cluster);
    sheet.about("delete", target, live);
    sheet.line(format!("made {}", live["metadata"]["creationTimestamp"].as_str().unwrap_or("at an unknown time")));
    sheet.judge(match cascade {
        CascadeArg::Background => "what it owns is deleted after it",
        CascadeArg::Foreground => "what it owns is deleted before it",
        CascadeArg::Orphan => "what it owns stays, without an owner",
    });
    standing(&mut sheet, target, live, grace_s);
    let what = match (target.kind().group(), target.kind().kind()) {
        ("", "Namespace") => Box::pin(namespace(&mut sheet, cluster, target.name())).await?,
        ("", "PersistentVolumeClaim") => {
            let namespace = target.namespace().unwrap_or_default();
            let bound = contents::volumes(cluster, namespace, Some(target.name())).await;
            volumes(&mut sheet, bound)?;
            String::new()
        }
        ("", "PersistentVolume") => {
            volume(&mut sheet, live);
            String::new()
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Box::pin(definition(&mut sheet, cluster, live)).await?,
        _ => {
            let owned = Box::pin(contents::dependents(cluster, target, one.uid())).await?;
            let what = tell(&mut sheet, "it owns", &owned);
            if cascade != CascadeArg::Orphan && target.kind().is("apps", "StatefulSet") {
                Box::pin(claims(&mut sheet, cluster, target, live)).await?;
            }
            what
        }
    };
    Ok(sheet.drawn(format!("delete {target}{what}")))
}

/// What the object itself says about its end.
fn standing(sheet: &mut PreviewBuilder, target: &ResourceRef, live: &Value, grace_s: Option<u32>) {
    if is_terminating(live) {
        sheet.warn("It is being deleted already.");
    }
    let finalizers = finalizers(live);
    if !finalizers.is_empty() {
        sheet.judge(format!("finalizers: {}", finalizers.join(", ")));
        sheet.warn("It stays until whoever set its finalizers has cleaned up.");
    }
    if let Some(owner) = controller(live) {
        sheet.warn(format!("It belongs to {owner}, which may make it anew."));
    }
    if grace_s == Some(0) && target.kind().is("", "Pod") {
        sheet.warn("Without grace its processes may run on while the pod is taken for gone.");
    }
    if let Some(replicas) = live["spec"]["replicas"].as_u64().filter(|_| target.kind().has("scale")) {
        sheet.judge(format!("replicas: {replicas}"));
        sheet.warn("Deleting a workload stops its service.");
    }
}

/// Says what there is by kind. Kinds whose objects come and go by themselves are shown and not judged by number.
fn tell(sheet: &mut PreviewBuilder, what: &str, contents: &NamespaceContents) -> String {
    for (kind, n) in contents.counts.iter().take(MOST_KINDS) {
        let line = format!("{what}: {n} {kind}");
        if comes_and_goes(kind) { sheet.line(line) } else { sheet.judge(line) }
    }
    if contents.counts.len() > MOST_KINDS {
        sheet.line(format!("{what}: objects of {} more kinds", contents.counts.len() - MOST_KINDS));
    }
    if !contents.uncounted.is_empty() {
        sheet.warn(format!("Not counted, or not to the end: {}.", contents.uncounted.join(", ")));
    }
    match contents.counts.values().sum::<u64>() {
        0 => String::new(),
        n => format!(" and {n} objects with it"),
    }
}

async fn namespace(sheet: &mut PreviewBuilder, cluster: &Cluster<'_>, name: &str) -> Result<String, Failure> {
    sheet.warn("Deleting a Namespace deletes everything in it, and cannot be undone.");
    let inside = contents::contents(cluster, name).await?;
    let what = tell(sheet, "in it", &inside);
    let bound = contents::volumes(cluster, name, None).await;
    volumes(sheet, bound)?;
    Ok(what)
}

/// Says which data goes and which stays once the claims are gone.
fn volumes(sheet: &mut PreviewBuilder, bound: Result<Vec<Volume>, Failure>) -> Result<(), Failure> {
    for Volume { name, claim, reclaim } in sheet.seen(bound, "volumes")?.unwrap_or_default() {
        sheet.judge(format!("volume {name} of claim {claim}: reclaim policy {reclaim}"));
        if reclaim == "Delete" {
            sheet.warn(format!("The data of volume {name} is deleted with claim {claim}."));
        }
    }
    Ok(())
}

fn volume(sheet: &mut PreviewBuilder, live: &Value) {
    let (reclaim, claim) = (&live["spec"]["persistentVolumeReclaimPolicy"], &live["spec"]["claimRef"]);
    sheet.judge(format!("reclaim policy {}", reclaim.as_str().unwrap_or("unknown")));
    if let (Some(namespace), Some(name)) = (claim["namespace"].as_str(), claim["name"].as_str()) {
        sheet.judge(format!("bound to claim {namespace}/{name}"));
        sheet.warn("The volume is in use by a claim.");
    }
}

/// A definition takes every object of its kind along.
async fn definition(sheet: &mut PreviewBuilder, cluster: &Cluster<'_>, live: &Value) -> Result<String, Failure> {
    let text = |pointer: &str| live.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}.{}", text("/spec/names/plural"), text("/spec/group"));
    let counted = async { contents::count_everywhere(cluster, &cluster.kind(&name).await?).await };
    let counted = Box::pin(counted).await;
    sheet.warn("Deleting a definition deletes every object of its kind in every namespace.");
    match sheet.seen(counted, "objects of that kind")? {
        Some(n) => {
            sheet.judge(format!("there are {n} {name}"));
            Ok(format!(" and {n} objects with it"))
        }
        None => Ok(String::new()),
    }
}

/// The claims of a stateful workload outlive it, unless it says otherwise.
async fn claims(
    sheet: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    live: &Value,
) -> Result<(), Failure> {
    let templates = live["spec"]["volumeClaimTemplates"].as_array().map(Vec::as_slice).unwrap_or_default();
    if templates.is_empty() {
        return Ok(());
    }
    if live["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] != "Delete" {
        sheet.judge("its volume claims stay");
        return Ok(());
    }
    sheet.warn("Its volume claims are deleted with it.");
    let namespace = target.namespace().unwrap_or_default();
    let begins = |volume: &Volume| {
        templates.iter().filter_map(|template| template["metadata"]["name"].as_str()).any(|template| {
            let rest = volume.claim.strip_prefix(&format!("{template}-{}-", target.name()));
            rest.is_some_and(|ordinal| !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let bound = contents::volumes(cluster, namespace, None).await;
    volumes(sheet, bound.map(|all| all.into_iter().filter(begins).collect()))
}
