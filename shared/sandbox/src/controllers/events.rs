//! Events: what happened to an object, counted when it repeats.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clock;
use crate::json;
use crate::world::ClusterWorld;

/// Something that happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Occurrence<'a> {
    pub(crate) warning: bool,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
    /// Who noticed: `kubelet`, `deployment-controller`, `default-scheduler`.
    pub(crate) source: &'a str,
}

impl ClusterWorld {
    /// Writes an event about an object, or counts the one that says the same.
    pub(crate) fn note(&mut self, about: &Value, what: Occurrence<'_>) {
        let namespace = match json::namespace(about) {
            "" => "default",
            namespace => namespace,
        };
        let uid = json::uid(about);
        let same = self.objects.within("events", namespace).find(|event| {
            json::text(event, "/involvedObject/uid") == Some(uid)
                && json::text(event, "/reason") == Some(what.reason)
                && json::text(event, "/message") == Some(what.message)
        });
        let now = self.stamp();
        if let Some(same) = same.cloned() {
            self.change("events", &same, |event| {
                let count = json::int(event, "/count", 1) + 1;
                json::set(event, "/count", count);
                json::set(event, "/lastTimestamp", now);
            });
            return;
        }
        let nanos = self.now().as_nanosecond().unsigned_abs();
        let salt = u32::from_be_bytes(crate::world::random::<4>());
        let name = format!("{}.{:x}", json::name(about), nanos ^ u128::from(salt));
        let node = json::text(about, "/spec/nodeName").filter(|_| what.source == "kubelet");
        let mut source = json!({ "component": what.source });
        if let Some(node) = node {
            source["host"] = json!(node);
        }
        let event = json!({
            "metadata": { "name": name, "namespace": namespace },
            "involvedObject": {
                "apiVersion": about["apiVersion"], "kind": about["kind"], "namespace": json::namespace(about),
                "name": json::name(about), "uid": uid, "resourceVersion": about["metadata"]["resourceVersion"],
            },
            "reason": what.reason, "message": what.message,
            "type": if what.warning { "Warning" } else { "Normal" },
            "source": source, "reportingComponent": what.source, "reportingInstance": node.unwrap_or_default(),
            "firstTimestamp": now, "lastTimestamp": now, "count": 1, "eventTime": null,
        });
        self.make("events", event);
    }
}

/// How long an event is kept after it last happened.
const KEPT: Duration = Duration::from_secs(3600);

/// Forgets events that are too old.
pub(super) fn look(world: &mut ClusterWorld) {
    let oldest = clock::stamp(clock::before(world.now(), KEPT));
    // Moments of this form sort as text.
    let is_old = |event: &&Arc<Value>| {
        let last = json::text(event, "/lastTimestamp").or_else(|| json::text(event, "/metadata/creationTimestamp"));
        last.is_some_and(|last| last < oldest.as_str())
    };
    let old: Vec<Arc<Value>> = world.objects.all("events").filter(is_old).cloned().collect();
    for event in old {
        world.objects.remove("events", json::namespace(&event), json::name(&event));
    }
}

/// The newer form of an event, as `events.k8s.io/v1` shows it.
pub(crate) fn newer_form(event: &Value) -> Value {
    let time = json::text(event, "/firstTimestamp").and_then(clock::read);
    let mut newer = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": event["metadata"],
        "eventTime": time.map(clock::fine_stamp),
        "reportingController": event["reportingComponent"], "reportingInstance": event["reportingInstance"],
        "reason": event["reason"], "regarding": event["involvedObject"], "note": event["message"], "type": event["type"],
        "deprecatedSource": event["source"], "deprecatedFirstTimestamp": event["firstTimestamp"],
        "deprecatedLastTimestamp": event["lastTimestamp"], "deprecatedCount": event["count"],
    });
    if time.is_none() {
        newer["eventTime"] = event["eventTime"].clone();
    }
    newer
}
