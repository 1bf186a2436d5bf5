//! What an approver is shown of an action: what comes to run, where the Rollout is, what happens next, and what is skipped
//! or lost by it. Warnings of what comes to run stand first.

use super::super::tree::{self, RolloutRevision};
use super::super::view::{RolloutView, Strategy, step_words};
use super::plan::ArgoRolloutPlan;
use super::{ArgoRolloutAction, Args, incoming};
use crate::client::{BroughtTexts, Cluster};
use crate::k8s::diff_text::whole;
use crate::k8s::get::visible;
use crate::k8s::images::Images;
use crate::k8s::judged::{self, fingerprint, heading};
use crate::k8s::one::LoadedObject;
use crate::k8s::preview::ObjectChange;
use catalog::{PreviewBuilder, ToolPreview};
use domain::Failure;
use serde_json::{Value, json};

pub(super) async fn drawn(
    cluster: &Cluster<'_>,
    seen: &LoadedObject,
    args: &Args,
    plan: &ArgoRolloutPlan,
) -> Result<ToolPreview, Failure> {
    let view = RolloutView::of(&seen.live);
    let action = args.action.as_str();
    let known = visible(tree::revisions(cluster, &seen.target, &seen.live).await)?.unwrap_or_default();
    let mut preview = PreviewBuilder::new(format!("{action}: {}", heading(cluster, &seen.target)));
    let incoming = incoming::tell(&mut preview, cluster, seen, (args, plan), &known).await?;
    now(&mut preview, view);
    match args.action {
        ArgoRolloutAction::Pause => preview.line("then: it stays where it is until it is resumed"),
        ArgoRolloutAction::Resume => resume(&mut preview, view),
        ArgoRolloutAction::Promote => promote(&mut preview, view, &known, plan),
        ArgoRolloutAction::PromoteFull => promote_full(&mut preview, view, &known),
        ArgoRolloutAction::Abort => abort(&mut preview, view, &known),
        ArgoRolloutAction::Retry => retry(&mut preview, view),
        ArgoRolloutAction::Restart => {
            let (pods, few) = (view.replicas(), view.max_unavailable());
            preview.line(format!("then: {pods} pods are replaced, at most {few} of them missing at a time"));
        }
        ArgoRolloutAction::Undo => undo(&mut preview, cluster, view, plan),
        ArgoRolloutAction::SetImage => set_image(&mut preview, view, plan),
    }
    let to = plan.revision.map(|to| format!(" to revision {to}")).unwrap_or_default();
    let noop = if plan.sends.is_empty() { " (nothing would change)" } else { "" };
    let summary = format!("{action} {}{to}{noop}", seen.target);
    let fingerprint = fingerprint(cluster, &seen.target, &seen.live, json!([facts(view, args.action, plan), incoming]));
    Ok(judged::drawn(preview, summary, fingerprint))
}

/// What must still be so. Where the Rollout is by itself counts only for what is about that.
fn facts(view: RolloutView<'_>, action: ArgoRolloutAction, plan: &ArgoRolloutPlan) -> Value {
    let about = match action {
        ArgoRolloutAction::Pause | ArgoRolloutAction::Resume => json!([view.is_paused()]),
        ArgoRolloutAction::Promote => {
            json!([view.step(), view.holds(), view.is_paused(), view.generation(), view.is_unpausing()])
        }
        ArgoRolloutAction::PromoteFull | ArgoRolloutAction::Abort | ArgoRolloutAction::Retry => {
            json!([view.is_aborted(), view.generation()])
        }
        ArgoRolloutAction::Restart => json!([view.replicas(), view.max_unavailable()]),
        ArgoRolloutAction::Undo => json!([plan.revision, plan.templates]),
        ArgoRolloutAction::SetImage => json!(plan.images),
    };
    json!({
        "action": action.as_str(), "strategy": view.strategy_text(), "current": view.current_hash(),
        "stable": view.stable_hash(), "about": about,
    })
}

fn now(preview: &mut PreviewBuilder, view: RolloutView<'_>) {
    let (phase, why) = view.phase();
    preview.line(format!("now: {phase}{}", why.map(|why| format!(", {why}")).unwrap_or_default()));
    preview.line(format!("strategy: {}", view.strategy().as_str()));
    if let Some(step) = view.step() {
        preview.line(at_step("step", view, step));
    }
    if let Some(weight) = view.weight() {
        preview.line(format!("traffic: {weight}% to the new version"));
    }
    if let Some((name, phase)) = view.analysis() {
        preview.line(format!("analysis: {name}, {phase}"));
    }
}

fn resume(preview: &mut PreviewBuilder, view: RolloutView<'_>) {
    match view.holds().is_empty() {
        true => preview.line("then: it goes on with its steps"),
        false => preview.line("then: it is still held by its own step; promote goes on from there"),
    }
}

fn promote(preview: &mut PreviewBuilder, view: RolloutView<'_>, known: &[RolloutRevision], plan: &ArgoRolloutPlan) {
    if plan.sends.is_empty() {
        preview.line("then: nothing; a promote is under way already");
        return;
    }
    if view.is_paused() {
        preview.line("then: the pause that a person set is lifted");
    }
    match (view.strategy(), plan.step_from, plan.step_to) {
        (Strategy::Canary, Some(from), Some(to)) => {
            preview.line(at_step("next", view, to));
            preview.line(format!("traffic: {}% -> {}%", view.weight_at(from), view.weight_at(to)));
        }
        (Strategy::BlueGreen, _, _) => switch(preview, view, known),
        (Strategy::Canary | Strategy::Other, _, _) => {}
    }
    if view.is_inconclusive() {
        preview.warn("The analysis of this step came to no conclusion, and is passed over.");
    } else if view.analysis().is_some_and(|(_, phase)| phase == "Running") {
        preview.warn("The analysis of this step is still running, and is not waited for.");
    }
}

fn promote_full(preview: &mut PreviewBuilder, view: RolloutView<'_>, known: &[RolloutRevision]) {
    let skipped = view.steps().get(view.step().unwrap_or_default()..).unwrap_or_default();
    for (n, step) in skipped.iter().enumerate() {
        preview.line(format!("skipped: step {}, {}", view.step().unwrap_or_default() + n + 1, step_words(step)));
    }
    let analyses = skipped.iter().filter(|step| step["analysis"].is_object()).count();
    match view.strategy() {
        Strategy::BlueGreen => {
            switch(preview, view, known);
            preview.warn("Pauses and analyses before the switch are skipped.");
        }
        Strategy::Canary | Strategy::Other => {
            preview.line("traffic: 100% to the new version");
            preview.warn(format!("{} steps are skipped, {analyses} of them analyses.", skipped.len()));
        }
    }
}

fn switch(preview: &mut PreviewBuilder, view: RolloutView<'_>, known: &[RolloutRevision]) {
    let service = view.strategy_text()["blueGreen"]["activeService"].as_str().unwrap_or_default();
    let (from, to) = (told(known, view.stable_hash()), told(known, view.current_hash()));
    preview.line(format!("then: service {} switches from {from} to {to}", redact::message(service)));
}

fn abort(preview: &mut PreviewBuilder, view: RolloutView<'_>, known: &[RolloutRevision]) {
    preview.line(format!("then: {} serves alone", told(known, view.stable_hash())));
    preview.line("note: spec.template still holds the new version; undo or set_image changes that");
}

fn retry(preview: &mut PreviewBuilder, view: RolloutView<'_>) {
    preview.line("then: the new version comes in again, from the first step");
    steps(preview, view);
}

fn undo(preview: &mut PreviewBuilder, cluster: &Cluster<'_>, view: RolloutView<'_>, plan: &ArgoRolloutPlan) {
    if let Some(workload) = view.workload_ref() {
        let text = |key: &str| redact::message(workload[key].as_str().unwrap_or_default());
        preview.line(format!("written to: {} {}", text("kind"), text("name")));
    }
    images(preview, plan.images.as_ref());
    match plan.is_stable {
        true => preview.line("then: that version is the stable one, so no steps are run"),
        false => {
            preview.line("then: it is kept as a new revision, and the steps run again");
            steps(preview, view);
        }
    }
    let framed = |template: &Value| json!({ "spec": { "template": template } });
    let brought = BroughtTexts::default();
    let shown = ObjectChange { cluster, brought: &brought };
    let diff = plan.templates.as_ref().and_then(|(now, then)| {
        let pair = shown.pair(preview, "the template", Some(&framed(now)), &framed(then));
        whole(pair.now.as_ref(), pair.then.as_ref())
    });
    preview.line(format!("\n{}", diff.unwrap_or_else(|| "nothing would change".to_owned())));
}

fn set_image(preview: &mut PreviewBuilder, view: RolloutView<'_>, plan: &ArgoRolloutPlan) {
    images(preview, plan.images.as_ref());
    if plan.sends.is_empty() {
        preview.line("then: nothing; it has these images already");
        return;
    }
    preview.line("then: a new revision comes in");
    steps(preview, view);
}

fn images(preview: &mut PreviewBuilder, images: Option<&Images>) {
    for (name, from, to) in images.into_iter().flat_map(Images::changed) {
        preview.line(format!("image of {}: {} -> {}", redact::message(name), redact::message(from), to));
    }
}

fn steps(preview: &mut PreviewBuilder, view: RolloutView<'_>) {
    let words: Vec<String> = view.steps().iter().map(step_words).collect();
    if !words.is_empty() {
        preview.line(format!("steps: {}", words.join("; ")));
    }
}

/// `step 2 of 5, pause until promoted`, counted as people count.
fn at_step(what: &str, view: RolloutView<'_>, step: usize) -> String {
    let steps = view.steps();
    match steps.get(step) {
        Some(words) => format!("{what}: step {} of {}, {}", step + 1, steps.len(), step_words(words)),
        None => format!("{what}: all {} steps are done", steps.len()),
    }
}

/// A revision by its hash, with its images.
fn told(known: &[RolloutRevision], hash: &str) -> String {
    match known.iter().find(|kept| kept.hash == hash) {
        Some(kept) => format!("revision {} ({})", kept.number, redact::message(&kept.images().join(", "))),
        None => "an unknown revision".to_owned(),
    }
}
