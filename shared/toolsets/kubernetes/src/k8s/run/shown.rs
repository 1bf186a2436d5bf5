//! What an approver is shown of a run: everything that would be made, and what is special about it.

use super::{Args, CreatedKind, PlannedRun, RunTool};
use crate::client::{Cluster, MaskDetail};
use crate::k8s::diff_text::plain;
use crate::k8s::judged::{self, fingerprint, heading};
use crate::k8s::reply::printable;
use catalog::{Tool as _, ToolPreview};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How much of a specification is shown.
const MOST_LINES: usize = 140;

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
    let mut text = format!("{what}\ntime: {} s\n", args.timeout().as_secs());
    if !args.words().is_empty() {
        writeln!(text, "command, one word each:").ok();
        args.words().iter().for_each(|word| writeln!(text, "  {word:?}").unwrap_or_default());
    }
    writeln!(text, "\nspec:").ok();
    let lines = plain(&shown);
    for line in lines.lines().take(MOST_LINES) {
        writeln!(text, "  {}", printable(line)).ok();
    }
    if let more @ 1.. = lines.lines().count().saturating_sub(MOST_LINES) {
        writeln!(text, "  … and {more} more lines").ok();
    }
    let facts = json!({ "spec": shown, "about": RunTool::about(args) });
    let fingerprint = fingerprint(cluster, &planned.of, &planned.live, facts);
    judged::drawn(summary, &text, warnings(planned, args), fingerprint)
}

fn images(containers: &Value) -> String {
    let all = containers.as_array().into_iter().flatten().filter_map(|container| container["image"].as_str());
    all.collect::<Vec<_>>().join(", ")
}

fn warnings(planned: &PlannedRun, args: &Args) -> Vec<String> {
    let mut warnings = Vec::new();
    if args.image.as_ref().is_some_and(|image| !image.as_str().contains('@')) {
        warnings.push("the image is named without a digest: what runs is what its tag means at that time".to_owned());
    }
    match planned.made {
        CreatedKind::Debugger(_) => {
            warnings.push("the debug container cannot be removed until the pod is deleted".to_owned());
            let phase = planned.live["status"]["phase"].as_str().unwrap_or("Unknown");
            if phase != "Running" {
                warnings.push(format!("the pod is not running ({phase})"));
            }
        }
        CreatedKind::Job(_) if args.from_cronjob.is_some() => {
            warnings.push("it runs with the rights and the time limits of the CronJob's own template".to_owned());
        }
        CreatedKind::Job(_) => {}
    }
    warnings
}
