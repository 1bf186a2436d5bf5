//! What an approver is shown of a node: what leaves it, what is lost for good, what stands in the way, and where it goes.

use super::pods::{DrainGroups, Pod};
use super::{Args, NodeAction, ReadNode};
use crate::client::{Cluster, ListQuery};
use crate::k8s::budgets::{self, DisruptionBudget};
use crate::k8s::judged::{self, fingerprint, heading};
use crate::k8s::measure::{cpu_milli, memory_mi};
use crate::k8s::pages;
use crate::k8s::rollout_rules::condition;
use catalog::{PreviewBuilder, ToolPreview};
use domain::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A node that is only marked.
pub(super) fn marked(cluster: &Cluster<'_>, seen: &ReadNode, args: &Args) -> ToolPreview {
    let (verb, means) = match args.action {
        NodeAction::Cordon | NodeAction::Drain => ("cordon", "no new pods are placed on it; those that run stay"),
        NodeAction::Uncordon => ("uncordon", "new pods may be placed on it again"),
    };
    let same = seen.unschedulable() == args.action.unschedulable();
    let noop = if same { " (nothing would change)" } else { "" };
    let facts = json!({ "action": verb, "unschedulable": seen.unschedulable() });
    let (now, then) = (seen.unschedulable(), args.action.unschedulable());
    let mut preview = PreviewBuilder::new(format!("{verb}: {}", heading(cluster, &seen.target)));
    preview.line(means);
    preview.line(format!("unschedulable: {now} -> {then}"));
    let fingerprint = fingerprint(cluster, &seen.target, &seen.live, facts);
    judged::drawn(preview, format!("{verb} {}{noop}", seen.target), fingerprint)
}

/// A node that is drained.
pub(super) async fn drained(
    cluster: &Cluster<'_>,
    seen: &ReadNode,
    args: &Args,
    sorted: &DrainGroups,
) -> Result<ToolPreview, Failure> {
    let (allowed, losing) = (args.allowed(), sorted.losing());
    let budgets = budgets::everywhere(cluster).await?;
    let mut preview = PreviewBuilder::new(format!("drain: {}", heading(cluster, &seen.target)));
    preview.line(format!(
        "cordoned, then {} pods are evicted within {} s:",
        sorted.evict.len(),
        args.timeout().as_secs()
    ));
    listed(&mut preview, by_owner(&sorted.evict).into_iter().map(|(owner, n)| format!("{owner}: {n}")).collect());
    if !sorted.skipped.is_empty() {
        preview.line("left where they are:");
        listed(&mut preview, sorted.skipped.clone());
    }
    if !losing.is_empty() {
        preview.warn(format!("{} pods lose emptyDir data, or are not started again by anybody", losing.len()));
        preview.line("lose data, or do not come back:");
        listed(&mut preview, losing.clone());
    }
    let full = full(&budgets, &sorted.evict);
    if !full.is_empty() {
        preview.warn(format!("disruption budgets at their limit hold the drain up: {}", full.join(", ")));
    }
    preview.line(capacity(cluster, seen, &sorted.evict).await?);
    let facts = json!({
        "action": "drain", "losing": losing, "grace_s": args.grace_s,
        "delete_emptydir": allowed.emptydir, "force": allowed.unmanaged,
    });
    let summary = format!("drain {}: {} pods to evict", seen.target, sorted.evict.len());
    Ok(judged::drawn(preview, summary, fingerprint(cluster, &seen.target, &seen.live, facts)))
}

fn listed(preview: &mut PreviewBuilder, lines: Vec<String>) {
    for line in lines {
        preview.line(format!("  {line}"));
    }
}

fn by_owner(pods: &[Pod]) -> BTreeMap<String, usize> {
    let mut owners = BTreeMap::new();
    for pod in pods {
        let owner =
            pod.owner.as_ref().map_or_else(|| format!("Pod {pod}"), |owner| format!("{}/{owner}", pod.namespace));
        *owners.entry(owner).or_insert(0) += 1;
    }
    owners
}

/// The budgets over these pods that let none go now.
fn full(budgets: &[DisruptionBudget], pods: &[Pod]) -> Vec<String> {
    let guarding = |pod: &Pod| budgets::guarding(budgets, &pod.namespace, &pod.labels).filter(|b| b.allowed == 0);
    let mut names: Vec<String> =
        pods.iter().filter_map(guarding).map(|budget| format!("{}/{}", budget.namespace, budget.name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What the pods ask for, and what the other nodes have in all. Not what is free there: that would be a guess.
async fn capacity(cluster: &Cluster<'_>, seen: &ReadNode, pods: &[Pod]) -> Result<String, Failure> {
    let nodes = pages::all(cluster, &seen.place, ListQuery::default()).await?;
    let usable = |node: &&Value| {
        node["metadata"]["name"] != seen.target.name()
            && node["spec"]["unschedulable"] != true
            && condition(&node["status"], "Ready").is_some_and(|ready| ready["status"] == "True")
    };
    let others: Vec<&Value> = nodes.iter().filter(usable).collect();
    let sum = |resource: &str, read: fn(&str) -> Option<u64>| -> u64 {
        others.iter().filter_map(|node| read(node["status"]["allocatable"][resource].as_str()?)).sum()
    };
    let (cpu, memory) = (sum("cpu", cpu_milli), sum("memory", memory_mi));
    let (wanted_cpu, wanted_memory) =
        (pods.iter().map(|pod| pod.cpu_m).sum::<u64>(), pods.iter().map(|pod| pod.memory_mi).sum::<u64>());
    Ok(format!(
        "they request {wanted_cpu}m cpu and {wanted_memory}Mi; {} other nodes take pods, with {cpu}m cpu and {memory}Mi in all",
        others.len()
    ))
}
