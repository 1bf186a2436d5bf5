//! What an approver is shown of a run: everything that would be made, and what is special about it.

use super::{Args, CreatedKind, PlannedRun, RunTool};
use crate::client::{BroughtTexts, Cluster, MaskDetail, ObjectPair};
use crate::k8s::diff_text::plain;
use crate::k8s::judged::{self, fingerprint, heading};
use crate::k8s::preview::tell_hidden;
use catalog::{PreviewBuilder, Tool as _, ToolPreview};
use serde_json::{Value, json};

/// The preview.
pub(super) fn drawn(cluster: &Cluster<'_>, planned: &PlannedRun, args: &Args) -> ToolPreview {
    let namespace = planned.place.namespace().unwrap_or_default();
    let (what, summary, shown) = match &planned.made {
        CreatedKind::Job(body) => {
            let mut shown = body.shown(cluster, MaskDetail::Full);
            let spec = shown["spec"].take();
            let images = images(&spec["template"]["spec"]["containers"]);
            let from = match args.from_cronjob {
                Some(_) => format!(" from {}", planned.of),
                None => String::new(),
            };
            let where_ = format!("cluster {}, namespace {namespace}", cluster.name());
            (format!("run a Job{from}: {where_}"), format!("run {images} as a Job in {namespace}{from}"), spec)
        }
        CreatedKind::Debugger(container) => {
            let images = images(&json!([container]));
            let mut shown = container.clone();
            if let Some(fields) = shown.as_object_mut() {
                fields.remove("name");
            }
            let what = format!("attach a debug container: {}", heading(cluster, &planned.of));
            (what, format!("attach {images} to {}", planned.of), shown)
        }
    };
    let mut preview = PreviewBuilder::new(what);
    preview.line(format!("time: {} s", args.timeout().as_secs()));
    if !args.words().is_empty() {
        preview.line("command, one word each:");
        args.words().iter().for_each(|word| preview.line(format!("  {word:?}")));
    }
    preview.line("\nspec:");
    // The words of the call are shown as they are; what a CronJob brings is live, and masked by its looks.
    let brought = BroughtTexts::of(cluster, &[json!(args.words())]);
    let (pair, hidden) = ObjectPair::for_deciders(cluster, None, Some(&shown), &brought);
    hidden.iter().for_each(|hidden| tell_hidden(&mut preview, "the spec", hidden));
    plain(&pair.then.unwrap_or_default()).lines().for_each(|line| preview.line(format!("  {line}")));
    let facts = json!({ "spec": shown, "about": RunTool::about(args) });
    let fingerprint = fingerprint(cluster, &planned.of, &planned.live, facts);
    warn(&mut preview, planned, args);
    judged::drawn(preview, summary, fingerprint)
}

fn images(containers: &Value) -> String {
    let all = containers.as_array().into_iter().flatten().filter_map(|container| container["image"].as_str());
    all.collect::<Vec<_>>().join(", ")
}

fn warn(preview: &mut PreviewBuilder, planned: &PlannedRun, args: &Args) {
    if args.image.as_ref().is_some_and(|image| !image.as_str().contains('@')) {
        preview.warn("the image is named without a digest: what runs is what its tag means at that time");
    }
    match planned.made {
        CreatedKind::Debugger(_) => {
            preview.warn("the debug container cannot be removed until the pod is deleted");
            let phase = planned.live["status"]["phase"].as_str().unwrap_or("Unknown");
            if phase != "Running" {
                preview.warn(format!("the pod is not running ({phase})"));
            }
        }
        CreatedKind::Job(_) if args.from_cronjob.is_some() => {
            preview.warn("it runs with the rights and the time limits of the CronJob's own template");
        }
        CreatedKind::Job(_) => {}
    }
}
