//! Rows of what runs: pods, the controllers over them, and what scales and protects them.

use super::super::measure::{age, span};
use super::{ObjectRow, Projection, count, items, joined, put, text};
use domain::Moment;
use serde_json::Value;

pub(super) const POD: Projection = Projection {
    reads: &[
        "spec.containers.name",
        "spec.nodeName",
        "status.podIP",
        "status.phase",
        "status.reason",
        "status.containerStatuses.ready",
        "status.containerStatuses.restartCount",
        "status.containerStatuses.state.waiting.reason",
        "status.containerStatuses.state.terminated.reason",
        "status.initContainerStatuses.state.waiting.reason",
        "status.initContainerStatuses.state.terminated.reason",
    ],
    fill: pod,
};

fn pod(object: &Value, _: Moment, row: &mut ObjectRow) {
    let status = &object["status"];
    let containers = items(&object["spec"]["containers"]).len();
    let statuses = items(&status["containerStatuses"]);
    let ready = statuses.iter().filter(|s| s["ready"] == true).count();
    let restarts: u64 = statuses.iter().map(|s| count(&s["restartCount"])).sum();
    put(row, "phase", phase(object));
    put(row, "ready", format!("{ready}/{containers}"));
    put(row, "restarts", restarts);
    put(row, "node", text(&object["spec"]["nodeName"]));
    put(row, "ip", text(&status["podIP"]));
}

/// The phase, or the reason a container gives for not running, which says more.
fn phase(object: &Value) -> String {
    let status = &object["status"];
    if object["metadata"]["deletionTimestamp"].is_string() {
        return "Terminating".to_owned();
    }
    let reason = |s: &Value| {
        let state = &s["state"];
        let waiting = text(&state["waiting"]["reason"]).filter(|r| r != "PodInitializing" && r != "ContainerCreating");
        let ended = text(&state["terminated"]["reason"]).filter(|r| r != "Completed");
        waiting.or(ended)
    };
    let first = |list: &str| items(&status[list]).iter().find_map(reason);
    if let Some(reason) = first("initContainerStatuses") {
        return format!("Init:{reason}");
    }
    first("containerStatuses")
        .or_else(|| text(&status["reason"]))
        .or_else(|| text(&status["phase"]))
        .unwrap_or_else(|| "Unknown".to_owned())
}

pub(super) const REPLICATED: Projection = Projection {
    reads: &[
        "spec.replicas",
        "spec.paused",
        "spec.template.spec.containers.image",
        "status.readyReplicas",
        "status.updatedReplicas",
        "status.availableReplicas",
    ],
    fill: replicated,
};

fn replicated(object: &Value, _: Moment, row: &mut ObjectRow) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let wanted = spec["replicas"].as_u64().unwrap_or(1);
    put(row, "ready", format!("{}/{wanted}", count(&status["readyReplicas"])));
    // A ReplicaSet has one template and nothing to update.
    if object["kind"] != "ReplicaSet" {
        put(row, "updated", count(&status["updatedReplicas"]));
    }
    put(row, "available", count(&status["availableReplicas"]));
    put(row, "images", images(spec));
    if spec["paused"] == true {
        put(row, "paused", true);
    }
}

pub(super) const DAEMON_SET: Projection = Projection {
    reads: &[
        "spec.template.spec.containers.image",
        "status.desiredNumberScheduled",
        "status.numberReady",
        "status.updatedNumberScheduled",
    ],
    fill: daemon_set,
};

fn daemon_set(object: &Value, _: Moment, row: &mut ObjectRow) {
    let status = &object["status"];
    put(row, "desired", count(&status["desiredNumberScheduled"]));
    put(row, "ready", count(&status["numberReady"]));
    put(row, "updated", count(&status["updatedNumberScheduled"]));
    put(row, "images", images(&object["spec"]));
}

/// The images of a pod template.
fn images(spec: &Value) -> Option<String> {
    joined(&spec["template"]["spec"]["containers"], |c| text(&c["image"]))
}

pub(super) const JOB: Projection = Projection {
    reads: &[
        "spec.completions",
        "status.succeeded",
        "status.failed",
        "status.active",
        "status.startTime",
        "status.completionTime",
    ],
    fill: job,
};

fn job(object: &Value, now: Moment, row: &mut ObjectRow) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let wanted = spec["completions"].as_u64().unwrap_or(1);
    put(row, "succeeded", format!("{}/{wanted}", count(&status["succeeded"])));
    put(row, "failed", count(&status["failed"]));
    put(row, "active", count(&status["active"]));
    let began = text(&status["startTime"]).and_then(|t| Moment::parse(&t));
    let ended = text(&status["completionTime"]).and_then(|t| Moment::parse(&t));
    put(row, "duration", began.map(|began| span(ended.unwrap_or(now).since(began).as_secs())));
}

pub(super) const CRON_JOB: Projection = Projection {
    reads: &["spec.schedule", "spec.suspend", "status.lastScheduleTime", "status.active.name"],
    fill: cron_job,
};

fn cron_job(object: &Value, now: Moment, row: &mut ObjectRow) {
    let (spec, status) = (&object["spec"], &object["status"]);
    put(row, "schedule", text(&spec["schedule"]));
    put(row, "suspended", spec["suspend"] == true);
    put(row, "last_run", age(&status["lastScheduleTime"], now));
    put(row, "active", items(&status["active"]).len());
}

pub(super) const AUTOSCALER: Projection = Projection {
    reads: &[
        "spec.scaleTargetRef.kind",
        "spec.scaleTargetRef.name",
        "spec.minReplicas",
        "spec.maxReplicas",
        "spec.metrics.type",
        "spec.metrics.resource",
        "status.currentReplicas",
        "status.currentMetrics.resource",
    ],
    fill: autoscaler,
};

fn autoscaler(object: &Value, _: Moment, row: &mut ObjectRow) {
    let (spec, status) = (&object["spec"], &object["status"]);
    let target = &spec["scaleTargetRef"];
    let name = |key: &str| target[key].as_str().unwrap_or_default();
    put(row, "target", format!("{}/{}", name("kind"), name("name")));
    put(row, "min", spec["minReplicas"].as_u64().unwrap_or(1));
    put(row, "max", count(&spec["maxReplicas"]));
    put(row, "current", count(&status["currentReplicas"]));
    put(row, "metrics", metrics(spec, status));
}

/// `cpu 63%/80%` for each resource metric; other metrics by their name alone.
fn metrics(spec: &Value, status: &Value) -> Option<String> {
    let current = |name: &str| {
        items(&status["currentMetrics"])
            .iter()
            .find(|m| m["resource"]["name"] == name)
            .and_then(|m| m["resource"]["current"]["averageUtilization"].as_u64())
    };
    joined(&spec["metrics"], |metric| {
        if metric["type"] != "Resource" {
            return text(&metric["type"]);
        }
        let name = metric["resource"]["name"].as_str()?;
        let now = current(name).map_or_else(|| "?".to_owned(), |percent| format!("{percent}%"));
        match metric["resource"]["target"]["averageUtilization"].as_u64() {
            Some(wanted) => Some(format!("{name} {now}/{wanted}%")),
            None => Some(name.to_owned()),
        }
    })
}

pub(super) const DISRUPTION_BUDGET: Projection = Projection {
    reads: &[
        "spec.minAvailable",
        "spec.maxUnavailable",
        "status.disruptionsAllowed",
        "status.currentHealthy",
        "status.desiredHealthy",
    ],
    fill: disruption_budget,
};

fn disruption_budget(object: &Value, _: Moment, row: &mut ObjectRow) {
    let (spec, status) = (&object["spec"], &object["status"]);
    put(row, "min_available", spec["minAvailable"].clone());
    put(row, "max_unavailable", spec["maxUnavailable"].clone());
    put(row, "allowed", count(&status["disruptionsAllowed"]));
    put(row, "current", format!("{}/{}", count(&status["currentHealthy"]), count(&status["desiredHealthy"])));
}
