//! Summaries: of every object the few fields somebody looks at first.
//!
//! Pure: a masked object in, a row out. Kinds that are not here are shown in the columns the server itself has for them.

pub(crate) mod config;
mod network;
mod workload;

use super::measure::age;
use domain::Moment;
use serde_json::{Map, Value};

/// One row.
pub(crate) type ObjectRow = Map<String, Value>;

/// Fills in what a kind shows, from the whole object.
type RowFields = fn(&Value, Moment, &mut ObjectRow);

/// The projection of a kind. The group counts too: somebody's own `Service` is another thing.
fn fields_of(group: &str, kind: &str) -> Option<RowFields> {
    Some(match (group, kind) {
        ("", "Pod") => workload::pod,
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => workload::replicated,
        ("apps", "DaemonSet") => workload::daemon_set,
        ("batch", "Job") => workload::job,
        ("batch", "CronJob") => workload::cron_job,
        ("autoscaling", "HorizontalPodAutoscaler") => workload::autoscaler,
        ("policy", "PodDisruptionBudget") => workload::disruption_budget,
        ("", "Service") => network::service,
        ("networking.k8s.io", "Ingress") => network::ingress,
        ("", "Node") => network::node,
        ("" | "events.k8s.io", "Event") => config::event,
        ("", "ConfigMap") => config::config_map,
        ("", "Secret") => config::secret,
        ("", "PersistentVolumeClaim") => config::claim,
        ("", "PersistentVolume") => config::volume,
        ("", "Namespace") => config::namespace,
        ("", "ServiceAccount") => config::service_account,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => config::definition,
        _ => return None,
    })
}

/// Whether there is a projection.
pub(crate) fn knows(group: &str, kind: &str) -> bool {
    fields_of(group, kind).is_some()
}

/// The row of an object. Without a projection: its name and age alone.
pub(crate) fn row(group: &str, kind: &str, object: &Value, everywhere: bool, now: Moment) -> ObjectRow {
    let mut row = head(object, everywhere);
    if let Some(fields) = fields_of(group, kind) {
        fields(object, now, &mut row);
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
