//! Which columns each kind has.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age;
use crate::json;
use crate::kinds::ApiKind;

type Cell = Box<dyn Fn(&Value, Timestamp) -> Value>;

/// One column and how its cell is read.
pub(super) struct TableColumn {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) priority: i64,
    pub(super) cell: Cell,
}

fn column(name: &str, kind: &str, cell: impl Fn(&Value, Timestamp) -> Value + 'static) -> TableColumn {
    TableColumn { name: name.to_owned(), kind: kind.to_owned(), priority: 0, cell: Box::new(cell) }
}

fn field(name: &str, at: &'static str) -> TableColumn {
    column(name, "string", move |object, _| object.pointer(at).cloned().unwrap_or(Value::Null))
}

fn number(name: &str, at: &'static str) -> TableColumn {
    column(name, "integer", move |object, _| json!(json::int(object, at, 0)))
}

fn count(name: &str, at: &'static str) -> TableColumn {
    column(name, "integer", move |object, _| {
        let value = object.pointer(at);
        json!(value.and_then(Value::as_object).map_or_else(|| json::list(object, at).len(), serde_json::Map::len))
    })
}

fn ready(name: &str, have: &'static str, want: &'static str) -> TableColumn {
    column(name, "string", move |object, _| {
        json!(format!("{}/{}", json::int(object, have, 0), json::int(object, want, 0)))
    })
}

/// The columns of a kind: its name, what matters about it, its age.
pub(super) fn of(kind: &ApiKind) -> Vec<TableColumn> {
    let mut columns = vec![field("Name", "/metadata/name")];
    if kind.custom {
        columns.extend(kind.columns.iter().map(custom));
    } else {
        columns.extend(middle(kind));
    }
    let has_age = columns.iter().any(|column| column.name == "Age");
    match (kind.kind.as_str(), has_age) {
        ("Event", _) => {
            columns.remove(0);
        }
        (_, false) => {
            columns.push(column("Age", "string", |object, now| age(object, "/metadata/creationTimestamp", now)))
        }
        (_, true) => {}
    }
    columns
}

fn middle(kind: &ApiKind) -> Vec<TableColumn> {
    match kind.kind.as_str() {
        "Pod" => vec![
            column("Ready", "string", |pod, _| {
                let states = json::list(pod, "/status/containerStatuses");
                let up = states.iter().filter(|state| json::is_true(state, "/ready")).count();
                json!(format!("{up}/{}", json::list(pod, "/spec/containers").len()))
            }),
            column("Status", "string", |pod, _| json!(pod_status(pod))),
            column("Restarts", "string", |pod, _| {
                let states = json::list(pod, "/status/containerStatuses").iter();
                json!(states.map(|state| json::int(state, "/restartCount", 0)).sum::<i64>().to_string())
            }),
        ],
        "Deployment" => vec![
            ready("Ready", "/status/readyReplicas", "/spec/replicas"),
            number("Up-to-date", "/status/updatedReplicas"),
            number("Available", "/status/availableReplicas"),
        ],
        "ReplicaSet" => vec![
            number("Desired", "/spec/replicas"),
            number("Current", "/status/replicas"),
            number("Ready", "/status/readyReplicas"),
        ],
        "StatefulSet" => vec![ready("Ready", "/status/readyReplicas", "/spec/replicas")],
        "DaemonSet" => vec![
            number("Desired", "/status/desiredNumberScheduled"),
            number("Current", "/status/currentNumberScheduled"),
            number("Ready", "/status/numberReady"),
            number("Up-to-date", "/status/updatedNumberScheduled"),
            number("Available", "/status/numberAvailable"),
        ],
        "Job" => vec![
            column("Status", "string", |job, _| json!(job_status(job))),
            ready("Completions", "/status/succeeded", "/spec/completions"),
        ],
        "CronJob" => vec![
            field("Schedule", "/spec/schedule"),
            column("Suspend", "boolean", |object, _| json!(json::is_true(object, "/spec/suspend"))),
            count("Active", "/status/active"),
            column("Last Schedule", "string", |object, now| age(object, "/status/lastScheduleTime", now)),
        ],
        _ => others(kind),
    }
}

fn others(kind: &ApiKind) -> Vec<TableColumn> {
    match kind.kind.as_str() {
        "Service" => vec![
            field("Type", "/spec/type"),
            field("Cluster-IP", "/spec/clusterIP"),
            column("External-IP", "string", |_, _| json!("<none>")),
            column("Port(s)", "string", |service, _| json!(ports(service))),
        ],
        "Node" => vec![
            column("Status", "string", |node, _| json!(node_status(node))),
            column("Roles", "string", |_, _| json!("<none>")),
            field("Version", "/status/nodeInfo/kubeletVersion"),
        ],
        "Namespace" => vec![field("Status", "/status/phase")],
        "ConfigMap" => vec![count("Data", "/data")],
        "Secret" => vec![field("Type", "/type"), count("Data", "/data")],
        "ServiceAccount" => vec![count("Secrets", "/secrets")],
        "PersistentVolumeClaim" => vec![
            field("Status", "/status/phase"),
            field("Volume", "/spec/volumeName"),
            field("Capacity", "/status/capacity/storage"),
            field("StorageClass", "/spec/storageClassName"),
        ],
        "PersistentVolume" => vec![
            field("Capacity", "/spec/capacity/storage"),
            field("Reclaim Policy", "/spec/persistentVolumeReclaimPolicy"),
            field("Status", "/status/phase"),
            field("Claim", "/spec/claimRef/name"),
        ],
        "Event" => vec![
            column("Last Seen", "string", |event, now| age(event, "/lastTimestamp", now)),
            field("Type", "/type"),
            field("Reason", "/reason"),
            column("Object", "string", |event, _| {
                let kind = json::text_or_empty(event, "/involvedObject/kind").to_lowercase();
                json!(format!("{kind}/{}", json::text_or_empty(event, "/involvedObject/name")))
            }),
            field("Message", "/message"),
        ],
        "HorizontalPodAutoscaler" => vec![
            column("Reference", "string", |object, _| {
                let target = &object["spec"]["scaleTargetRef"];
                json!(format!("{}/{}", json::text_or_empty(target, "/kind"), json::text_or_empty(target, "/name")))
            }),
            number("MinPods", "/spec/minReplicas"),
            number("MaxPods", "/spec/maxReplicas"),
            number("Replicas", "/status/currentReplicas"),
        ],
        "PodDisruptionBudget" => vec![
            field("Min Available", "/spec/minAvailable"),
            field("Max Unavailable", "/spec/maxUnavailable"),
            number("Allowed Disruptions", "/status/disruptionsAllowed"),
        ],
        "Ingress" => vec![
            field("Class", "/spec/ingressClassName"),
            column("Hosts", "string", |object, _| {
                let rules = json::list(object, "/spec/rules").iter();
                json!(rules.filter_map(|rule| json::text(rule, "/host")).collect::<Vec<_>>().join(","))
            }),
        ],
        "StorageClass" => vec![field("Provisioner", "/provisioner"), field("ReclaimPolicy", "/reclaimPolicy")],
        "RoleBinding" | "ClusterRoleBinding" => vec![column("Role", "string", |object, _| {
            let role = &object["roleRef"];
            json!(format!("{}/{}", json::text_or_empty(role, "/kind"), json::text_or_empty(role, "/name")))
        })],
        "CustomResourceDefinition" => {
            vec![column("Created At", "date", |object, _| object["metadata"]["creationTimestamp"].clone())]
        }
        "Lease" => vec![field("Holder", "/spec/holderIdentity")],
        "PriorityClass" => vec![number("Value", "/value")],
        "ControllerRevision" => vec![number("Revision", "/revision")],
        _ => Vec::new(),
    }
}

/// A printer column of a definition: the simple paths `.spec.field`, with indexes.
fn custom(given: &crate::kinds::PrinterColumn) -> TableColumn {
    let at = given.path.replace(['.', '['], "/").replace(']', "");
    let dated = given.kind == "date";
    let mut made = column(&given.name, &given.kind, move |object, now| {
        if dated { age(object, &at, now) } else { object.pointer(&at).cloned().unwrap_or(Value::Null) }
    });
    made.priority = given.priority;
    made
}

/// The word people look for: the reason a container waits, else the phase.
fn pod_status(pod: &Value) -> String {
    if json::is_going(pod) {
        return "Terminating".to_owned();
    }
    let inits = json::list(pod, "/status/initContainerStatuses");
    if let Some(state) = inits.iter().find(|state| json::int(state, "/state/terminated/exitCode", -1) != 0) {
        let reason = json::text(state, "/state/waiting/reason").filter(|reason| *reason != "PodInitializing");
        let done = inits.iter().filter(|state| json::int(state, "/state/terminated/exitCode", -1) == 0).count();
        return reason.map_or_else(|| format!("Init:{done}/{}", inits.len()), |reason| format!("Init:{reason}"));
    }
    let states = json::list(pod, "/status/containerStatuses");
    let reason = |at: &'static str| states.iter().find_map(move |state| json::text(state, at));
    let named = json::text(pod, "/status/reason");
    let found = named.or(reason("/state/waiting/reason")).or(reason("/state/terminated/reason"));
    found.or(json::text(pod, "/status/phase")).unwrap_or("Unknown").to_owned()
}

fn job_status(job: &Value) -> &'static str {
    let holds = |kind: &str| {
        json::list(job, "/status/conditions").iter().any(|one| one["type"] == kind && one["status"] == "True")
    };
    match (holds("Complete"), holds("Failed"), json::is_true(job, "/spec/suspend")) {
        (true, _, _) => "Complete",
        (_, true, _) => "Failed",
        (_, _, true) => "Suspended",
        _ => "Running",
    }
}

fn node_status(node: &Value) -> String {
    let ready =
        json::list(node, "/status/conditions").iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
    let word = if ready { "Ready" } else { "NotReady" };
    if json::is_true(node, "/spec/unschedulable") { format!("{word},SchedulingDisabled") } else { word.to_owned() }
}

fn ports(service: &Value) -> String {
    let one = |port: &Value| {
        let (number, protocol) = (json::int(port, "/port", 0), json::text(port, "/protocol").unwrap_or("TCP"));
        match port.get("nodePort") {
            Some(node) => format!("{number}:{node}/{protocol}"),
            None => format!("{number}/{protocol}"),
        }
    };
    json::list(service, "/spec/ports").iter().map(one).collect::<Vec<_>>().join(",")
}
