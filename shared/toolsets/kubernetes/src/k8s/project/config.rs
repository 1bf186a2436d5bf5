//! Rows of what is kept: configuration, secrets by their keys, volumes, events, and the small rest.

use super::super::measure::age;
use super::{ObjectRow, Projection, items, put, text};
use domain::Moment;
use serde_json::{Value, json};

/// When an event was last seen, whichever of its five fields says so.
pub(crate) fn last_seen(event: &Value) -> Option<&str> {
    let series = &event["series"]["lastObservedTime"];
    let times = [
        series,
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["firstTimestamp"],
        &event["metadata"]["creationTimestamp"],
    ];
    times.into_iter().find_map(Value::as_str)
}

pub(super) const EVENT: Projection = Projection {
    reads: &[
        "type",
        "reason",
        "involvedObject.kind",
        "involvedObject.name",
        "regarding.kind",
        "regarding.name",
        "series.count",
        "series.lastObservedTime",
        "count",
        "deprecatedCount",
        "message",
        "note",
        "lastTimestamp",
        "eventTime",
        "firstTimestamp",
    ],
    fill: event,
};

fn event(object: &Value, now: Moment, row: &mut ObjectRow) {
    // The name of an event says nothing.
    row.remove("name");
    put(row, "last_seen", last_seen(object).and_then(|at| age(&json!(at), now)));
    put(row, "type", text(&object["type"]));
    put(row, "reason", text(&object["reason"]));
    let about = if object["involvedObject"].is_object() { &object["involvedObject"] } else { &object["regarding"] };
    if let (Some(kind), Some(name)) = (about["kind"].as_str(), about["name"].as_str()) {
        put(row, "object", format!("{kind}/{name}"));
    }
    let times = [&object["series"]["count"], &object["count"], &object["deprecatedCount"]];
    put(row, "count", times.into_iter().find_map(Value::as_u64).unwrap_or(1));
    let message = object["message"].as_str().or_else(|| object["note"].as_str());
    put(row, "message", message.map(redact::message));
}

/// How values are masked depends on the label of helm, and on what makes the object look like a Secret.
pub(super) const CONFIG_MAP: Projection =
    Projection { reads: &["data", "binaryData", "stringData", "type", "metadata.labels.owner"], fill: config_map };

fn config_map(object: &Value, _: Moment, row: &mut ObjectRow) {
    let size = |value: &Value| value.as_str().map_or(0, str::len);
    let entries = || ["data", "binaryData"].into_iter().filter_map(|part| object[part].as_object()).flatten();
    put(row, "keys", entries().map(|(key, _)| key.clone()).collect::<Vec<_>>());
    put(row, "bytes", entries().map(|(_, value)| size(value)).sum::<usize>());
}

pub(super) const SECRET: Projection = Projection { reads: &["type", "data", "stringData"], fill: secret };

fn secret(object: &Value, _: Moment, row: &mut ObjectRow) {
    put(row, "type", text(&object["type"]));
    let keys: Vec<String> = object["data"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    put(row, "keys", keys);
}

pub(super) const CLAIM: Projection = Projection {
    reads: &[
        "spec.resources.requests.storage",
        "spec.storageClassName",
        "spec.volumeName",
        "status.phase",
        "status.capacity.storage",
    ],
    fill: claim,
};

fn claim(object: &Value, _: Moment, row: &mut ObjectRow) {
    let (spec, status) = (&object["spec"], &object["status"]);
    put(row, "phase", text(&status["phase"]));
    let size = text(&status["capacity"]["storage"]).or_else(|| text(&spec["resources"]["requests"]["storage"]));
    put(row, "size", size);
    put(row, "class", text(&spec["storageClassName"]));
    put(row, "volume", text(&spec["volumeName"]));
}

pub(super) const VOLUME: Projection = Projection {
    reads: &[
        "spec.capacity.storage",
        "spec.persistentVolumeReclaimPolicy",
        "spec.claimRef.namespace",
        "spec.claimRef.name",
        "status.phase",
    ],
    fill: volume,
};

fn volume(object: &Value, _: Moment, row: &mut ObjectRow) {
    let spec = &object["spec"];
    put(row, "phase", text(&object["status"]["phase"]));
    put(row, "size", text(&spec["capacity"]["storage"]));
    put(row, "reclaim", text(&spec["persistentVolumeReclaimPolicy"]));
    let claim = &spec["claimRef"];
    if let (Some(namespace), Some(name)) = (claim["namespace"].as_str(), claim["name"].as_str()) {
        put(row, "claim", format!("{namespace}/{name}"));
    }
}

pub(super) const NAMESPACE: Projection = Projection { reads: &["status.phase"], fill: namespace };

fn namespace(object: &Value, _: Moment, row: &mut ObjectRow) {
    put(row, "phase", text(&object["status"]["phase"]));
}

pub(super) const SERVICE_ACCOUNT: Projection = Projection { reads: &["secrets.name"], fill: service_account };

fn service_account(object: &Value, _: Moment, row: &mut ObjectRow) {
    put(row, "secrets", items(&object["secrets"]).len());
}

pub(super) const DEFINITION: Projection =
    Projection { reads: &["spec.group", "spec.scope", "spec.versions.name", "spec.versions.served"], fill: definition };

fn definition(object: &Value, _: Moment, row: &mut ObjectRow) {
    let spec = &object["spec"];
    put(row, "group", text(&spec["group"]));
    let served = |v: &&Value| v["served"] == true;
    let versions: Vec<String> =
        items(&spec["versions"]).iter().filter(served).filter_map(|v| text(&v["name"])).collect();
    put(row, "versions", versions);
    put(row, "scope", text(&spec["scope"]));
}
