//! How far a change reaches: what the live cluster adds to what the arguments say. All of it is for the preview; none of
//! it lowers an effect.
//!
//! Not here: what an object owns and holds (see [`contents`](super::contents)).

use super::budgets::selects;
use super::pages;
use super::preview;
use crate::client::{Cluster, KindScope, ListQuery, ResourceRef, Wildcard};
use catalog::PreviewBuilder;
use domain::Failure;
use serde_json::Value;

/// An autoscaler that sets the replicas of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Autoscaler {
    /// Its name.
    pub(crate) name: String,
    /// The fewest and the most replicas it sets.
    pub(crate) between: (u64, u64),
}

/// A disruption budget over the pods of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AffectedBudget {
    /// Its name.
    pub(crate) name: String,
    /// What it demands, such as `minAvailable 2`.
    pub(crate) demands: String,
    /// How many pods must stay, where it says so in pods.
    pub(crate) floor: Option<u64>,
    /// How many pods may go at this moment.
    pub(crate) allowed: u64,
}

/// The autoscaler of a workload, if it has one.
pub(crate) async fn autoscaler(cluster: &Cluster<'_>, target: &ResourceRef) -> Result<Option<Autoscaler>, Failure> {
    let place = place(cluster, "horizontalpodautoscalers.autoscaling", target.namespace()).await?;
    let (kind, name) = (target.kind(), target.name());
    let scales = |hpa: &&Value| {
        let of = &hpa["spec"]["scaleTargetRef"];
        let group =
            of["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group);
        of["name"] == name && of["kind"] == kind.kind() && group == kind.group()
    };
    let items = pages::all(cluster, &place, ListQuery::default()).await?;
    Ok(items.iter().find(scales).map(|hpa| Autoscaler {
        name: text(&hpa["metadata"]["name"]),
        between: (hpa["spec"]["minReplicas"].as_u64().unwrap_or(1), hpa["spec"]["maxReplicas"].as_u64().unwrap_or(0)),
    }))
}

/// The budgets over pods with these labels.
pub(crate) async fn budgets(
    cluster: &Cluster<'_>,
    namespace: &str,
    labels: &Value,
) -> Result<Vec<AffectedBudget>, Failure> {
    let place = place(cluster, "poddisruptionbudgets.policy", Some(namespace)).await?;
    let items = pages::all(cluster, &place, ListQuery::default()).await?;
    let mut budgets: Vec<AffectedBudget> =
        items.iter().filter(|pdb| selects(&pdb["spec"]["selector"], labels)).map(budget).collect();
    budgets.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(budgets)
}

fn budget(pdb: &Value) -> AffectedBudget {
    let spec = &pdb["spec"];
    let demand = ["minAvailable", "maxUnavailable"].into_iter().find(|key| !spec[*key].is_null()).unwrap_or("nothing");
    let amount = spec[demand].as_str().map_or_else(|| spec[demand].to_string(), str::to_owned);
    AffectedBudget {
        name: text(&pdb["metadata"]["name"]),
        demands: format!("{demand} {amount}"),
        floor: spec["minAvailable"].as_u64(),
        allowed: pdb["status"]["disruptionsAllowed"].as_u64().unwrap_or(0),
    }
}

/// The labels of the pods that a workload makes, or a pod has.
pub(crate) fn pod_labels(target: &ResourceRef, live: &Value) -> Option<Value> {
    let labels = match target.kind().is("", "Pod") {
        true => &live["metadata"]["labels"],
        false => &live["spec"]["template"]["metadata"]["labels"],
    };
    labels.is_object().then(|| labels.clone())
}

/// Tells what a change of one object means beyond its own fields: replicas that somebody else sets, budgets, pods that are
/// replaced, a controller that would undo it. `then` is the object as it would be.
pub(crate) async fn tell(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    live: &Value,
    then: &Value,
) -> Result<(), Failure> {
    if let Some(owner) = controller(live) {
        preview.warn(format!("It belongs to {owner}, which may set it back."));
    }
    let (before, after) = (&live["spec"]["template"], &then["spec"]["template"]);
    if before.is_object() && after.is_object() && before != after {
        preview.line("its pods are replaced by new ones");
    }
    match (live["spec"]["replicas"].as_u64(), then["spec"]["replicas"].as_u64()) {
        (Some(from), Some(to)) if from != to && target.kind().has("scale") => {
            Box::pin(tell_replicas(preview, cluster, target, live, to)).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// Tells what another number of replicas means, and which autoscaler sets it besides.
pub(crate) async fn tell_replicas(
    preview: &mut PreviewBuilder,
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    live: &Value,
    to: u64,
) -> Result<Option<Autoscaler>, Failure> {
    if to == 0 {
        preview.warn("0 replicas stops the service.");
    }
    let found = preview::seen(preview, autoscaler(cluster, target).await, "autoscalers")?.flatten();
    if let Some(Autoscaler { name, between: (fewest, most) }) = &found {
        preview.warn(match to {
            0 => format!("Autoscaler {name} ({fewest} to {most} replicas) does nothing while there are 0."),
            _ => format!("Autoscaler {name} ({fewest} to {most} replicas) sets the replicas too and would undo it."),
        });
    }
    if let (Some(namespace), Some(labels)) = (target.namespace(), pod_labels(target, live)) {
        for budget in preview::seen(preview, budgets(cluster, namespace, &labels).await, "disruption budgets")?
            .unwrap_or_default()
        {
            preview.line(format!("budget {}: {}, {} may go now", budget.name, budget.demands, budget.allowed));
            if budget.floor.is_some_and(|floor| to < floor) {
                preview.warn(format!("It goes below what budget {} demands ({}).", budget.name, budget.demands));
            }
        }
    }
    Ok(found)
}

/// The controller that made an object and keeps it as it wants it.
pub(crate) fn controller(live: &Value) -> Option<String> {
    let mut owners = live["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = owners.find(|owner| owner["controller"] == true)?;
    Some(format!("{} {}", owner["kind"].as_str()?, owner["name"].as_str()?))
}

pub(super) async fn place(cluster: &Cluster<'_>, kind: &str, namespace: Option<&str>) -> Result<KindScope, Failure> {
    let kind = cluster.kind(kind).await?;
    cluster.place(&kind, namespace, Wildcard::Refused).await
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_budget_says_what_it_demands() {
        let of = |spec: Value| {
            budget(&json!({ "metadata": { "name": "b" }, "spec": spec, "status": { "disruptionsAllowed": 1 } }))
        };
        assert_eq!(
            (of(json!({ "minAvailable": 2 })).demands, of(json!({ "minAvailable": 2 })).floor),
            ("minAvailable 2".into(), Some(2))
        );
        assert_eq!(of(json!({ "maxUnavailable": "25%" })).demands, "maxUnavailable 25%");
        assert_eq!(of(json!({ "minAvailable": "50%" })).floor, None);
    }
}
