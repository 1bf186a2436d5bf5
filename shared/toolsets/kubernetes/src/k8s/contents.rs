//! What goes with an object: what it owns, what is in it, and the volumes behind its claims.
//!
//! A kind that cannot be counted is named, so that nobody takes it for empty.

use super::pages;
use super::radius::place;
use crate::client::{Cluster, Kind, KindScope, ListQuery, MaskDetail, ResourceRef, Wildcard};
use crate::codes;
use domain::{Code, Failure};
use futures_util::StreamExt;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many kinds are counted at a time.
const AT_ONCE: usize = 4;

/// A volume behind a claim.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Volume {
    /// Its name.
    pub(crate) name: String,
    /// The claim it is bound to.
    pub(crate) claim: String,
    /// What becomes of the data once the claim is gone: `Delete` or `Retain`.
    pub(crate) reclaim: String,
}

/// How many objects of each kind; `counts` by the kind's unambiguous name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NamespaceContents {
    /// The counts, without zeros.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Kinds that could not be counted.
    pub(crate) uncounted: Vec<String>,
}

/// Kinds whose objects come and go by themselves: shown, and no reason to void a yes.
pub(crate) fn comes_and_goes(full_name: &str) -> bool {
    const FLEETING: [&str; 9] = [
        "pods",
        "events",
        "endpoints",
        "replicasets.apps",
        "controllerrevisions.apps",
        "jobs.batch",
        "endpointslices.discovery.k8s.io",
        "events.events.k8s.io",
        "leases.coordination.k8s.io",
    ];
    FLEETING.contains(&full_name)
}

/// What an object owns, and what that owns in turn, by kind.
pub(crate) async fn dependents(
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    uid: &str,
) -> Result<NamespaceContents, Failure> {
    let mut contents = NamespaceContents::default();
    let Some(namespace) = target.namespace() else { return Ok(contents) };
    let mut objects: Vec<(String, Value)> = Vec::new();
    for kind in may_own(target.kind()) {
        let looked = async {
            let place = place(cluster, kind, Some(namespace)).await?;
            pages::all(cluster, &place, ListQuery::default()).await
        };
        match Box::pin(looked).await {
            Ok(items) => objects.extend(items.into_iter().map(|item| ((*kind).to_owned(), item))),
            Err(failure) if failure.code == codes::UNKNOWN_KIND => {}
            // Told, so that nobody takes it for nothing.
            Err(failure) if matches!(failure.code, target::codes::FORBIDDEN | Code::ResultTooLarge) => {
                contents.uncounted.push((*kind).to_owned());
            }
            Err(failure) => return Err(failure),
        }
    }
    let mut owners = BTreeSet::from([uid.to_owned()]);
    loop {
        let (owned, rest): (Vec<_>, Vec<_>) = objects.into_iter().partition(|(_, object)| is_owned(object, &owners));
        if owned.is_empty() {
            return Ok(contents);
        }
        for (kind, object) in owned {
            owners.insert(text(&object["metadata"]["uid"]));
            *contents.counts.entry(kind).or_default() += 1;
        }
        objects = rest;
    }
}

/// Where the objects are that a kind may own. The cluster keeps no list of them by owner.
fn may_own(kind: &Kind) -> &'static [&'static str] {
    match (kind.group(), kind.kind()) {
        ("apps", "Deployment") | ("argoproj.io", "Rollout") => &["replicasets.apps", "pods"],
        ("apps", "StatefulSet") => &["pods", "controllerrevisions.apps", "persistentvolumeclaims"],
        ("apps", "DaemonSet") => &["pods", "controllerrevisions.apps"],
        ("apps", "ReplicaSet") | ("", "ReplicationController") | ("batch", "Job") => &["pods"],
        ("batch", "CronJob") => &["jobs.batch", "pods"],
        ("", "Service") => &["endpointslices.discovery.k8s.io"],
        ("", "Pod") => &["persistentvolumeclaims"],
        // Things nobody but a custom controller makes things for.
        ("", _) => &[],
        _ => &[
            "deployments.apps",
            "statefulsets.apps",
            "daemonsets.apps",
            "replicasets.apps",
            "jobs.batch",
            "cronjobs.batch",
            "pods",
            "services",
            "configmaps",
            "secrets",
            "persistentvolumeclaims",
        ],
    }
}

fn is_owned(object: &Value, owners: &BTreeSet<String>) -> bool {
    let references = object["metadata"]["ownerReferences"].as_array();
    references.into_iter().flatten().any(|of| of["uid"].as_str().is_some_and(|uid| owners.contains(uid)))
}

/// Everything in a namespace, counted by kind.
pub(crate) async fn contents(cluster: &Cluster<'_>, namespace: &str) -> Result<NamespaceContents, Failure> {
    let kinds = cluster.kinds().await?;
    // Measurements are no objects, and the newer name of an event shows the same events once more.
    let counts = |kind: &&Kind| {
        kind.namespaced()
            && kind.verbs().iter().any(|verb| verb == "list")
            && kind.group() != "metrics.k8s.io"
            && kind.group() != "events.k8s.io"
    };
    let counting: Vec<_> =
        kinds.iter().filter(counts).map(|kind| Box::pin(count(cluster, kind, Some(namespace)))).collect();
    let mut contents = NamespaceContents::default();
    let mut counted = futures_util::stream::iter(counting).buffer_unordered(AT_ONCE);
    while let Some((name, found)) = counted.next().await {
        match found {
            Ok(0) => {}
            Ok(n) => {
                contents.counts.insert(name, n);
            }
            // One kind that says no, or whose server is down, does not hide the others, but it is told.
            Err(failure)
                if matches!(failure.code, target::codes::FORBIDDEN | Code::NotFound | codes::UNSUPPORTED_KIND) =>
            {
                contents.uncounted.push(name);
            }
            Err(failure) => return Err(failure),
        }
    }
    contents.uncounted.sort_unstable();
    Ok(contents)
}

async fn count(cluster: &Cluster<'_>, kind: &Kind, namespace: Option<&str>) -> (String, Result<u64, Failure>) {
    let counted = async {
        let place = cluster.place(kind, namespace, Wildcard::Refused).await?;
        count_in(cluster, &place).await
    };
    (kind.full_name(), counted.await)
}

/// How many objects of a kind there are in the whole cluster, for a definition that would take them all along.
pub(crate) async fn count_everywhere(cluster: &Cluster<'_>, kind: &Kind) -> Result<u64, Failure> {
    let place = cluster.place(kind, kind.namespaced().then_some("*"), Wildcard::Allowed).await?;
    count_in(cluster, &place).await
}

/// The server counts: one object is fetched and the number of the others told.
async fn count_in(cluster: &Cluster<'_>, place: &KindScope) -> Result<u64, Failure> {
    let page = cluster.list(place, &ListQuery { limit: 1, ..ListQuery::default() }, MaskDetail::Clean).await?;
    match (page.cursor, page.remaining) {
        (None, _) => Ok(len(&page.items)),
        (Some(_), Some(remaining)) => Ok(len(&page.items) + remaining),
        (Some(_), None) => Ok(len(&pages::all(cluster, place, ListQuery::default()).await?)),
    }
}

/// The volumes bound to claims that fit.
pub(crate) async fn volumes(
    cluster: &Cluster<'_>,
    namespace: &str,
    claim: Option<&str>,
) -> Result<Vec<Volume>, Failure> {
    let place = place(cluster, "persistentvolumes", None).await?;
    let items = pages::all(cluster, &place, ListQuery::default()).await?;
    let mut volumes: Vec<Volume> = items
        .iter()
        .filter(|volume| {
            let of = &volume["spec"]["claimRef"];
            of["namespace"] == namespace && claim.is_none_or(|claim| of["name"] == claim)
        })
        .map(|volume| Volume {
            name: text(&volume["metadata"]["name"]),
            claim: text(&volume["spec"]["claimRef"]["name"]),
            reclaim: text(&volume["spec"]["persistentVolumeReclaimPolicy"]),
        })
        .collect();
    volumes.sort();
    Ok(volumes)
}

fn len(items: &[Value]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
