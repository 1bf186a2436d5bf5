//! Asking the pods of a node to go elsewhere, again and again, until they are gone or the time is over.
//!
//! Each round looks at the node anew, so a pod that went, came or was replaced meanwhile is seen as it is. An eviction
//! names the pod by its uid and can be repeated: one that was lost on its way is simply asked for once more.

use super::pods::{self, DrainGroups, Pod, some};
use super::{Args, BlockedPod, NodeOutput};
use crate::client::{Cluster, ClusterWriter, Wildcard};
use crate::codes;
use crate::k8s::budgets::{self, DisruptionBudget};
use catalog::Progress;
use domain::{Code, Failure};
use futures_util::{StreamExt, stream};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// How many pods are asked at once.
const AT_ONCE: usize = 10;
/// How long until a budget that said no is asked again, and until pods on their way out are looked at again.
const ASK_AGAIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How many names an answer lists of each sort.
const LISTED: usize = 150;

/// What came of asking one pod.
enum EvictionResult {
    Going,
    /// It went by itself, or another has taken its name.
    Gone,
    /// Not now, and why.
    No(String),
}

/// How far a drain is.
#[derive(Default)]
struct DrainProgress {
    evicted: Vec<String>,
    blocked: BTreeMap<String, BlockedPod>,
}

/// Who asks, and for what.
struct DrainContext<'a> {
    cluster: &'a Cluster<'a>,
    writer: ClusterWriter<'a>,
    /// Only to name them; the server asks them itself.
    budgets: Vec<DisruptionBudget>,
    grace_s: Option<u32>,
}

/// Drains a node that is cordoned.
pub(super) async fn drain(
    cluster: &Cluster<'_>,
    args: &Args,
    tended: NodeOutput,
    progress: &Progress,
) -> Result<NodeOutput, Failure> {
    let (ends, node) = (Instant::now() + args.timeout(), args.name.as_str());
    let budgets = budgets::everywhere(cluster).await.unwrap_or_default();
    let asking = DrainContext { cluster, writer: cluster.write()?, budgets, grace_s: args.grace_s };
    let (mut round, mut total) = (DrainProgress::default(), None);
    loop {
        let sorted = pods::on(cluster, node, args.allowed()).await.map_err(|failure| stopped(failure, &round, node))?;
        let total = *total.get_or_insert(sorted.remaining());
        progress.report(total.saturating_sub(sorted.remaining()), Some(total), Some("pods have left the node"));
        round.blocked.clear();
        if sorted.remaining() == 0 {
            return Ok(told(tended, sorted, round));
        }
        // A pod that was bound to the node after the first look, and must not be taken away.
        sorted.none_refused(node).map_err(|failure| stopped(failure, &round, node))?;
        asking.all(&sorted.evict, &mut round).await.map_err(|failure| stopped(failure, &round, node))?;
        let left = ends.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return out_of_time(tended, sorted, round, args);
        }
        // The last round comes at the very end, however long the pause before it would be.
        sleep(left.min(if round.blocked.is_empty() { LOOK_AGAIN } else { ASK_AGAIN })).await;
    }
}

impl DrainContext<'_> {
    /// Asks all of them, some at a time. One that cannot be asked does not keep the others from being told.
    async fn all(&self, pods: &[Pod], round: &mut DrainProgress) -> Result<(), Failure> {
        let asking: Vec<_> = pods.iter().map(|pod| async move { (pod, self.one(pod).await) }).collect();
        let answers: Vec<(&Pod, Result<EvictionResult, Failure>)> =
            stream::iter(asking).buffer_unordered(AT_ONCE).collect().await;
        let mut failed = None;
        for (pod, answer) in answers {
            match answer {
                Ok(EvictionResult::Going) => round.evicted.push(pod.to_string()),
                Ok(EvictionResult::Gone) => {}
                Ok(EvictionResult::No(reason)) => {
                    let budget = budgets::guarding(&self.budgets, &pod.namespace, &pod.labels);
                    let pdb = budget.map(|budget| budget.name.clone());
                    round.blocked.insert(pod.to_string(), BlockedPod { pod: pod.to_string(), pdb, reason });
                }
                Err(failure) => failed = Some(failure),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    async fn one(&self, pod: &Pod) -> Result<EvictionResult, Failure> {
        let kind = self.cluster.kind("v1/Pod").await?;
        let place = self.cluster.place(&kind, Some(&pod.namespace), Wildcard::Refused).await?;
        let target = place.object(&pod.name)?;
        let Err(failure) = self.writer.evict(&target, Some(&pod.uid), self.grace_s).await else {
            return Ok(EvictionResult::Going);
        };
        if matches!(failure.code, Code::NotFound | codes::UID_CHANGED) {
            return Ok(EvictionResult::Gone);
        }
        if failure.code == codes::PDB_BLOCKED {
            return Ok(EvictionResult::No(why(&failure)));
        }
        // Nothing was done, or it can be done again: the next round sees which.
        let passing =
            [target::codes::TARGET_BUSY, target::codes::TARGET_UNREACHABLE, Code::Conflict, Code::OutcomeUnknown];
        if passing.contains(&failure.code) { Ok(EvictionResult::No(failure.message)) } else { Err(failure) }
    }
}

/// What the budget said, in the server's words.
fn why(failure: &Failure) -> String {
    let details = failure.details.as_ref();
    let cause = details.and_then(|details| details["causes"][0].as_str());
    let said = cause.or_else(|| details.and_then(|details| details["message"].as_str()));
    redact::message(said.unwrap_or(&failure.message))
}

/// A failure on the way: what was done stays done, and is told.
fn stopped(mut failure: Failure, round: &DrainProgress, node: &str) -> Failure {
    let evicted = round.evicted.len();
    failure.message =
        format!("{}; {evicted} pods of node {node} were evicted before, and it stays cordoned", failure.message);
    failure
}

fn told(mut tended: NodeOutput, sorted: DrainGroups, round: DrainProgress) -> NodeOutput {
    tended.remaining = sorted.remaining();
    tended.evicted = round.evicted;
    tended.evicted.sort_unstable();
    tended.evicted.dedup();
    tended.skipped = sorted.skipped;
    tended.blocked = round.blocked.into_values().collect();
    let listed = [tended.evicted.len(), tended.skipped.len(), tended.blocked.len()];
    let items = listed.iter().map(|n| n.saturating_sub(LISTED)).sum::<usize>();
    if items > 0 {
        tended.evicted.truncate(LISTED);
        tended.skipped.truncate(LISTED);
        tended.blocked.truncate(LISTED);
        tended.common.cut_items(items, "list the node's pods with k8s_get kind=Pod");
    }
    tended
}

/// The time is over. The node stays cordoned, so that what left does not come back; that is said.
fn out_of_time(
    tended: NodeOutput,
    sorted: DrainGroups,
    round: DrainProgress,
    args: &Args,
) -> Result<NodeOutput, Failure> {
    let (node, seconds) = (args.name.as_str(), args.timeout().as_secs());
    let way_out = "call k8s_node again to go on, or action=uncordon to give it up";
    let mut tended = told(tended, sorted, round);
    if tended.blocked.is_empty() {
        let left = tended.remaining;
        tended
            .common
            .warnings
            .push(format!("{left} pods have not ended within {seconds} s; node {node} stays cordoned"));
        tended.common.hint = Some(way_out.to_owned());
        return Ok(tended);
    }
    let names: Vec<String> = tended
        .blocked
        .iter()
        .map(|blocked| match &blocked.pdb {
            Some(pdb) => format!("{} (budget {pdb})", blocked.pod),
            None => format!("{} ({})", blocked.pod, blocked.reason),
        })
        .collect();
    let message = format!(
        "node {node} is not drained after {seconds} s and stays cordoned: {} pods were evicted, {} remain, and these may not go: {}",
        tended.evicted.len(),
        tended.remaining,
        some(&names),
    );
    let details = json!({ "evicted": tended.evicted, "remaining": tended.remaining, "blocked": tended.blocked });
    Err(Failure::new(codes::PDB_BLOCKED, message).next(way_out).details(details))
}

/// What a drain would do, without touching anything.
pub(super) async fn rehearsed(cluster: &Cluster<'_>, args: &Args, tended: NodeOutput) -> Result<NodeOutput, Failure> {
    let sorted = pods::on(cluster, args.name.as_str(), args.allowed()).await?;
    let budgets = budgets::everywhere(cluster).await?;
    let mut round =
        DrainProgress { evicted: sorted.evict.iter().map(ToString::to_string).collect(), ..DrainProgress::default() };
    let refused = sorted.with_data.iter().map(|pod| (pod, None, "emptyDir data would be lost".to_owned()));
    let refused = refused.chain(sorted.unmanaged.iter().map(|pod| (pod, None, "no controller".to_owned())));
    let full = sorted.evict.iter().filter_map(|pod| {
        let budget = budgets::guarding(&budgets, &pod.namespace, &pod.labels).filter(|budget| budget.allowed == 0)?;
        Some((pod, Some(budget.name.clone()), budget.to_string()))
    });
    for (pod, pdb, reason) in refused.chain(full) {
        round.blocked.insert(pod.to_string(), BlockedPod { pod: pod.to_string(), pdb, reason });
    }
    let mut tended = told(tended, sorted, round);
    tended.common.warnings.push("a dry run: nothing was done; evicted lists what would be asked to go".to_owned());
    Ok(tended)
}
