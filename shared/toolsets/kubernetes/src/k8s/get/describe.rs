//! What is around one object: its conditions, what happened to it, who owns it, and the pods it selects.

use super::super::at::selector_text;
use super::super::project::{self, ObjectRow, config::last_seen};
use super::super::reply::{ROOM, rows_that_fit};
use crate::client::{Cluster, ListQuery, MaskDetail, ResourceRef, Wildcard};
use domain::{Code, Failure, Moment};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

const MOST_EVENTS: usize = 20;
const MOST_PODS: u32 = 50;
/// How far owners are followed: pod, replica set, deployment, and one more.
const MOST_OWNERS: usize = 4;

/// What `view=describe` adds.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct DescribeContext {
    #[serde(skip_serializing_if = "Option::is_none")]
    conditions: Option<Vec<ObjectRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Vec<ObjectRow>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<Vec<Owner>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<Vec<ObjectRow>>,
}

impl DescribeContext {
    /// Whether something told here what it had to say.
    pub(super) fn tells_events(&self) -> bool {
        self.events.as_ref().is_some_and(|events| !events.is_empty())
    }
}

/// One owner, the nearest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Owner {
    kind: String,
    name: String,
}

/// Looks around. What the caller may not see is left out; what fails otherwise fails the call.
pub(super) async fn around(
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    object: &Value,
    now: Moment,
) -> Result<DescribeContext, Failure> {
    let pods = visible(pods(cluster, target, object, now).await)?.flatten();
    let events = visible(events(cluster, target, object, now).await)?;
    // Each has its share of the answer, so that the object itself always has one.
    let fitting = |rows: Vec<ObjectRow>, share: usize| rows_that_fit(rows, ROOM * share / 10).0;
    Ok(DescribeContext {
        conditions: Some(fitting(conditions(object), 1)),
        events: events.map(|rows| fitting(rows, 3)),
        owners: visible(owners(cluster, target, object).await)?,
        pods: pods.map(|rows| fitting(rows, 2)),
    })
}

/// What may be seen; nothing where the caller may not look, or there is nothing of the kind.
pub(crate) fn visible<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(failure)
            if matches!(failure.code, target::codes::FORBIDDEN | Code::NotFound | crate::codes::UNKNOWN_KIND) =>
        {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// The conditions of an object, as they are shown.
pub(crate) fn conditions(object: &Value) -> Vec<ObjectRow> {
    let kept = |condition: &Value| {
        let mut row = ObjectRow::new();
        for key in ["type", "status", "reason", "lastTransitionTime"] {
            if condition[key].is_string() {
                row.insert(key.to_owned(), condition[key].clone());
            }
        }
        if let Some(message) = condition["message"].as_str().filter(|m| !m.is_empty()) {
            row.insert("message".to_owned(), json!(redact::message(message)));
        }
        row
    };
    object["status"]["conditions"].as_array().into_iter().flatten().take(30).map(kept).collect()
}

/// What happened to it, the newest first.
pub(in crate::k8s) async fn events(
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    object: &Value,
    now: Moment,
) -> Result<Vec<ObjectRow>, Failure> {
    let Some(uid) = object["metadata"]["uid"].as_str() else { return Ok(Vec::new()) };
    let mut events = cluster.events_of(target, uid).await?.items;
    events.sort_by(|a, b| last_seen(b).cmp(&last_seen(a)));
    Ok(events
        .iter()
        .take(MOST_EVENTS)
        .map(|event| {
            let mut row = project::row("", "Event", event, false, now);
            // It is this object's, and its first sight says little beside its last.
            row.remove("object");
            row.remove("age");
            row
        })
        .collect())
}

async fn owners(cluster: &Cluster<'_>, target: &ResourceRef, object: &Value) -> Result<Vec<Owner>, Failure> {
    let mut owners = Vec::new();
    let mut current = object.clone();
    while owners.len() < MOST_OWNERS {
        let references = current["metadata"]["ownerReferences"].as_array();
        let mut references = references.into_iter().flatten();
        let Some(owner) = references.clone().find(|r| r["controller"] == true).or_else(|| references.next()) else {
            break;
        };
        let text = |key: &str| owner[key].as_str().unwrap_or_default().to_owned();
        let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
        owners.push(Owner { kind: kind.clone(), name: name.clone() });
        let Ok(kind) = cluster.kind(&format!("{version}/{kind}")).await else { break };
        // An owner is in the namespace of what it owns, or in none.
        let namespace = target.namespace().filter(|_| kind.namespaced());
        let place = cluster.place(&kind, namespace, Wildcard::Refused).await?;
        match place.object(&name) {
            Ok(above) => match cluster.find(&above, MaskDetail::Clean).await? {
                Some(found) => current = found,
                None => break,
            },
            Err(_) => break,
        }
    }
    Ok(owners)
}

/// The pods a workload or a service selects; nothing for what selects none.
async fn pods(
    cluster: &Cluster<'_>,
    target: &ResourceRef,
    object: &Value,
    now: Moment,
) -> Result<Option<Vec<ObjectRow>>, Failure> {
    let selector = &object["spec"]["selector"];
    let text = match target.kind().kind() {
        "Service" => selector_text(&json!({ "matchLabels": selector })),
        _ => selector_text(selector),
    };
    let (Some(labels), Some(namespace)) = (text, target.namespace()) else { return Ok(None) };
    let pod = cluster.kind("v1/Pod").await?;
    let place = cluster.place(&pod, Some(namespace), Wildcard::Refused).await?;
    let query = ListQuery { labels: Some(labels), limit: MOST_PODS, ..ListQuery::default() };
    let page = cluster.list(&place, &query, MaskDetail::Clean).await?;
    Ok(Some(page.items.iter().map(|pod| project::row("", "Pod", pod, false, now)).collect()))
}
