//! What an approver is shown of a rollout: the template now and then, how it is replaced, and what stands in the way.

use super::plan::{RolloutPlan, paused};
use super::{Args, ReadWorkload};
use crate::client::BroughtTexts;
use crate::k8s::diff_text::whole;
use crate::k8s::history::Workload;
use crate::k8s::images::Images;
use crate::k8s::judged::{self, fingerprint, heading};
use crate::k8s::preview::{ObjectChange, risky};
use crate::k8s::radius;
use crate::k8s::rollout_rules::standing;
use catalog::{PreviewBuilder, ToolPreview};
use domain::Failure;
use serde_json::{Value, json};

pub(super) async fn drawn(
    seen: &ReadWorkload<'_>,
    args: &Args,
    plan: &RolloutPlan,
    then: &Value,
) -> Result<ToolPreview, Failure> {
    let (action, live) = (args.action.as_str(), &seen.live);
    let mut preview = PreviewBuilder::new(format!("{action}: {}", heading(seen.cluster, &seen.target)));
    risky(&mut preview, &seen.target.to_string(), Some(live), then);
    if let Some(stands) = standing(seen.workload.kind(), live) {
        preview.line(format!("now: {} ({} of {} ready)", stands.message, stands.ready, stands.desired));
        match (stands.done, stands.failed) {
            (true, _) => {}
            (false, true) => preview.warn(format!("the last rollout is stuck: {}", stands.message)),
            (false, false) => preview.warn(format!("a rollout is under way already: {}", stands.message)),
        }
    }
    if paused(live) && paused(then) {
        preview.warn("the Deployment is paused: pods are replaced only once it is resumed");
    }
    let strategy = strategy(seen.workload, live);
    preview.line(format!("strategy: {strategy}"));
    preview.line(format!("budgets: {}", budgets(seen).await));
    if let (Some(from), Some(to)) = (plan.from_revision, plan.to_revision) {
        preview.line(format!("revision: {from} -> {to}, kept as a new one"));
    }
    for (name, from, to) in plan.images.iter().flat_map(Images::changed) {
        preview.line(format!("image of {name}: {from} -> {to}"));
    }
    let brought = BroughtTexts::default();
    let shown = ObjectChange { cluster: seen.cluster, brought: &brought };
    let pair = shown.pair(&mut preview, &seen.target.to_string(), Some(live), then);
    let difference = whole(pair.now.as_ref(), pair.then.as_ref());
    let difference = difference.unwrap_or_else(|| "nothing would change".to_owned());
    preview.line(format!("\n{difference}"));
    let facts = json!({
        "action": action, "to_revision": plan.to_revision, "strategy": strategy,
        "paused": [paused(live), paused(then)], "template": [seen.template(), then["spec"]["template"]],
    });
    let to = plan.to_revision.map(|to| format!(" to revision {to}")).unwrap_or_default();
    let noop = if plan.patch.is_none() { " (nothing would change)" } else { "" };
    let summary = format!("{action} {}{to}{noop}", seen.target);
    Ok(judged::drawn(preview, summary, fingerprint(seen.cluster, &seen.target, live, facts)))
}

fn strategy(workload: Workload, object: &Value) -> String {
    let field = match workload {
        Workload::Deployment => "strategy",
        Workload::StatefulSet | Workload::DaemonSet => "updateStrategy",
    };
    let strategy = &object["spec"][field];
    if strategy.is_null() { "the default".to_owned() } else { strategy.to_string() }
}

/// The budgets over its pods. A rollout does not ask them, but whoever decides may want to.
async fn budgets(seen: &ReadWorkload<'_>) -> String {
    let (namespace, labels) = (seen.target.namespace().unwrap_or_default(), &seen.template()["metadata"]["labels"]);
    match radius::budgets(seen.cluster, namespace, labels).await {
        Ok(all) if all.is_empty() => "none".to_owned(),
        Ok(all) => {
            let told = all.iter().map(|b| format!("{} ({}, {} may go now)", b.name, b.demands, b.allowed));
            told.collect::<Vec<_>>().join(", ")
        }
        Err(failure) => format!("not known ({})", failure.code.as_str()),
    }
}
