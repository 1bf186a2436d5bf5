//! Rows of what is reached, and of the nodes everything runs on.

use super::{ObjectRow, Projection, items, joined, put, text};
use domain::Moment;
use serde_json::Value;

pub(super) const SERVICE: Projection = Projection {
    reads: &[
        "spec.type",
        "spec.clusterIP",
        "spec.externalName",
        "spec.externalIPs",
        "spec.ports.port",
        "spec.ports.nodePort",
        "spec.ports.protocol",
        "status.loadBalancer.ingress.ip",
        "status.loadBalancer.ingress.hostname",
    ],
    fill: service,
};

fn service(object: &Value, _: Moment, row: &mut ObjectRow) {
    let spec = &object["spec"];
    put(row, "type", text(&spec["type"]));
    put(row, "cluster_ip", text(&spec["clusterIP"]));
    let external =
        addresses(object).or_else(|| text(&spec["externalName"])).or_else(|| joined(&spec["externalIPs"], text));
    put(row, "external", external);
    put(row, "ports", joined(&spec["ports"], port));
}

/// `80:30080/TCP`.
fn port(port: &Value) -> Option<String> {
    let number = port["port"].as_u64()?;
    let node = port["nodePort"].as_u64().map(|n| format!(":{n}")).unwrap_or_default();
    Some(format!("{number}{node}/{}", port["protocol"].as_str().unwrap_or("TCP")))
}

/// Where a load balancer answers.
fn addresses(object: &Value) -> Option<String> {
    joined(&object["status"]["loadBalancer"]["ingress"], |at| text(&at["ip"]).or_else(|| text(&at["hostname"])))
}

pub(super) const INGRESS: Projection = Projection {
    reads: &[
        "spec.ingressClassName",
        "spec.rules.host",
        "spec.tls.secretName",
        "status.loadBalancer.ingress.ip",
        "status.loadBalancer.ingress.hostname",
    ],
    fill: ingress,
};

fn ingress(object: &Value, _: Moment, row: &mut ObjectRow) {
    let spec = &object["spec"];
    put(row, "class", text(&spec["ingressClassName"]));
    put(row, "hosts", joined(&spec["rules"], |rule| Some(text(&rule["host"]).unwrap_or_else(|| "*".to_owned()))));
    put(row, "address", addresses(object));
    put(row, "tls", !items(&spec["tls"]).is_empty());
}

pub(super) const NODE: Projection = Projection {
    reads: &[
        "metadata.labels",
        "spec.unschedulable",
        "status.conditions.type",
        "status.conditions.status",
        "status.nodeInfo.kubeletVersion",
        "status.allocatable.cpu",
        "status.allocatable.memory",
    ],
    fill: node,
};

fn node(object: &Value, _: Moment, row: &mut ObjectRow) {
    const ROLE: &str = "node-role.kubernetes.io/";
    let status = &object["status"];
    let holds = |name: &str| items(&status["conditions"]).iter().any(|c| c["type"] == name && c["status"] == "True");
    put(row, "ready", holds("Ready"));
    put(row, "schedulable", object["spec"]["unschedulable"] != true);
    let labels = object["metadata"]["labels"].as_object();
    let roles: Vec<&str> = labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix(ROLE)).collect();
    put(row, "roles", roles.join(","));
    put(row, "version", text(&status["nodeInfo"]["kubeletVersion"]));
    let pressed = ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];
    let pressure: Vec<&str> = pressed.into_iter().filter(|name| holds(name)).collect();
    if !pressure.is_empty() {
        put(row, "pressure", pressure);
    }
    put(row, "cpu", text(&status["allocatable"]["cpu"]));
    put(row, "memory", text(&status["allocatable"]["memory"]));
}
