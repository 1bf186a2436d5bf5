//! Summaries: of every object the few fields somebody looks at first.
//!
//! Pure: a masked object in, a row out. Of a list only the fields that a projection names are read. Kinds that are not here are shown in the columns the server itself has for them.

pub(crate) mod config;
mod network;
mod workload;

use super::measure::age;
use crate::client::FieldTree;
use domain::Moment;
use serde_json::{Map, Value};

/// One row.
pub(crate) type ObjectRow = Map<String, Value>;

/// How a kind is shown in a row.
struct Projection {
    /// The fields that are looked at, besides those of every row. What is not named here is not there in a list.
    reads: &'static [&'static str],
    /// Fills in what the kind shows.
    fill: fn(&Value, Moment, &mut ObjectRow),
}

/// What every row looks at.
const HEAD: [&str; 4] =
    ["metadata.name", "metadata.namespace", "metadata.creationTimestamp", "metadata.deletionTimestamp"];

/// Every kind with a projection.
#[cfg(test)]
pub(crate) const KINDS: [(&str, &str); 21] = [
    ("", "Pod"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "ReplicaSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("policy", "PodDisruptionBudget"),
    ("", "Service"),
    ("networking.k8s.io", "Ingress"),
    ("", "Node"),
    ("", "Event"),
    ("events.k8s.io", "Event"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("", "Namespace"),
    ("", "ServiceAccount"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// The projection of a kind. The group counts too: somebody's own `Service` is another thing.
fn projection(group: &str, kind: &str) -> Option<&'static Projection> {
    Some(match (group, kind) {
        ("", "Pod") => &workload::POD,
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => &workload::REPLICATED,
        ("apps", "DaemonSet") => &workload::DAEMON_SET,
        ("batch", "Job") => &workload::JOB,
        ("batch", "CronJob") => &workload::CRON_JOB,
        ("autoscaling", "HorizontalPodAutoscaler") => &workload::AUTOSCALER,
        ("policy", "PodDisruptionBudget") => &workload::DISRUPTION_BUDGET,
        ("", "Service") => &network::SERVICE,
        ("networking.k8s.io", "Ingress") => &network::INGRESS,
        ("", "Node") => &network::NODE,
        ("" | "events.k8s.io", "Event") => &config::EVENT,
        ("", "ConfigMap") => &config::CONFIG_MAP,
        ("", "Secret") => &config::SECRET,
        ("", "PersistentVolumeClaim") => &config::CLAIM,
        ("", "PersistentVolume") => &config::VOLUME,
        ("", "Namespace") => &config::NAMESPACE,
        ("", "ServiceAccount") => &config::SERVICE_ACCOUNT,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &config::DEFINITION,
        _ => return None,
    })
}

/// Whether there is a projection.
pub(crate) fn knows(group: &str, kind: &str) -> bool {
    projection(group, kind).is_some()
}

/// What of a list its rows are made of, if there is a projection.
pub(crate) fn fields(group: &str, kind: &str) -> Option<FieldTree> {
    let own = projection(group, kind)?.reads;
    Some(FieldTree::of_list(HEAD.into_iter().chain(own.iter().copied())))
}

/// The row of an object. Without a projection: its name and age alone.
pub(crate) fn row(group: &str, kind: &str, object: &Value, everywhere: bool, now: Moment) -> ObjectRow {
    let mut row = head(object, everywhere);
    if let Some(projection) = projection(group, kind) {
        (projection.fill)(object, now, &mut row);
    }
    put(&mut row, "age", age(&object["metadata"]["creationTimestamp"], now));
    if object["metadata"]["deletionTimestamp"].is_string() {
        put(&mut row, "terminating", true);
    }
    row
}

/// The name, and the namespace where several are shown.
pub(crate) fn head(object: &Value, everywhere: bool) -> ObjectRow {
    let mut row = ObjectRow::new();
    put(&mut row, "name", text(&object["metadata"]["name"]));
    if everywhere {
        put(&mut row, "namespace", text(&object["metadata"]["namespace"]));
    }
    row
}

/// Enters a value that is there.
fn put(row: &mut ObjectRow, key: &str, value: impl Into<Value>) {
    let value = value.into();
    if !value.is_null() {
        row.insert(key.to_owned(), value);
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// The items of a list; none if it is no list.
fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// One text of each item, joined.
fn joined(list: &Value, one: impl Fn(&Value) -> Option<String>) -> Option<String> {
    let texts: Vec<String> = items(list).iter().filter_map(one).collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

#[cfg(test)]
mod tests;
