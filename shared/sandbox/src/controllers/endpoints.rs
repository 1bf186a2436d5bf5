//! Endpoints and EndpointSlices: the addresses behind each service.

use std::sync::Arc;

use serde_json::{Value, json};

use super::conditions;
use crate::json;
use crate::selector::Labels;
use crate::world::{self, ClusterWorld};

pub(super) fn look(world: &mut ClusterWorld) {
    for service in world.all("services", "") {
        let selector = json::at(&service, "/spec/selector").cloned().unwrap_or_default();
        if selector.as_object().is_some_and(|map| !map.is_empty()) && !json::is_going(&service) {
            follow(world, &service, &Labels::of_map(&selector));
        }
    }
}

/// The pods behind a service, with their readiness.
pub(crate) fn pods_behind(world: &ClusterWorld, service: &Value) -> Vec<Arc<Value>> {
    let selector = json::at(service, "/spec/selector").cloned().unwrap_or_default();
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        return Vec::new();
    }
    let labels = Labels::of_map(&selector);
    let pods = world.objects.within("pods", json::namespace(service)).filter(|pod| labels.matches(pod));
    pods.cloned().collect()
}

fn follow(world: &mut ClusterWorld, service: &Value, labels: &Labels) {
    let (namespace, name) = (json::namespace(service), json::name(service));
    let pods = world
        .objects
        .within("pods", namespace)
        .filter(|pod| labels.matches(pod) && json::text(pod, "/status/podIP").is_some() && !json::is_going(pod));
    let pods: Vec<Arc<Value>> = pods.cloned().collect();
    let ready = |pod: &Value| conditions::holds(pod, "Ready");
    let address = |pod: &Arc<Value>| {
        json!({
            "ip": pod["status"]["podIP"], "nodeName": pod["spec"]["nodeName"],
            "targetRef": { "kind": "Pod", "name": json::name(pod), "namespace": namespace, "uid": json::uid(pod) },
        })
    };
    let ports: Vec<Value> = json::list(service, "/spec/ports").iter().map(|port| port_of(port, pods.first())).collect();
    let (up, down): (Vec<_>, Vec<_>) = pods.iter().partition(|pod| ready(pod));
    let mut subset = json!({ "ports": ports });
    for (field, pods) in [("addresses", &up), ("notReadyAddresses", &down)] {
        if !pods.is_empty() {
            subset[field] = pods.iter().map(|pod| address(pod)).collect();
        }
    }
    let subsets = if pods.is_empty() { json!([]) } else { json!([subset]) };
    write(world, "endpoints", service, name, |object| json::set(object, "/subsets", subsets));
    let slice = slice_name(world, service);
    let endpoints: Vec<Value> = pods
        .iter()
        .map(|pod| {
            json!({
                "addresses": [pod["status"]["podIP"]], "nodeName": pod["spec"]["nodeName"],
                "conditions": { "ready": ready(pod), "serving": ready(pod), "terminating": false },
                "targetRef": { "kind": "Pod", "name": json::name(pod), "namespace": namespace, "uid": json::uid(pod) },
            })
        })
        .collect();
    write(world, "endpointslices.discovery.k8s.io", service, &slice, |object| {
        json::set(object, "/addressType", "IPv4");
        json::set(object, "/endpoints", endpoints);
        json::set(object, "/ports", ports);
        json::set(object, "/metadata/labels/kubernetes.io~1service-name", name);
    });
}

/// A service's port as the pods have it: a named target is looked up in the first of them.
fn port_of(port: &Value, pod: Option<&Arc<Value>>) -> Value {
    let target = &port["targetPort"];
    let number = target.as_i64().or_else(|| {
        let containers = json::list(pod?, "/spec/containers").iter();
        let mut ports = containers.flat_map(|container| json::list(container, "/ports"));
        ports.find(|one| one.get("name") == Some(target)).map(|one| json::int(one, "/containerPort", 0))
    });
    let mut shown =
        json!({ "port": number.unwrap_or_else(|| json::int(port, "/port", 0)), "protocol": port["protocol"] });
    if let Some(name) = port.get("name") {
        shown["name"] = name.clone();
    }
    shown
}

fn slice_name(world: &ClusterWorld, service: &Value) -> String {
    let slices = world.owned("endpointslices.discovery.k8s.io", service);
    let known = slices.first().map(|slice| json::name(slice).to_owned());
    known.unwrap_or_else(|| format!("{}-{}", json::name(service), world::name_suffix()))
}

fn write(world: &mut ClusterWorld, resource: &str, service: &Value, name: &str, how: impl FnOnce(&mut Value)) {
    let namespace = json::namespace(service);
    if let Some(live) = world.find(resource, namespace, name) {
        world.change(resource, &live, how);
        return;
    }
    let mut object = json!({ "metadata": { "name": name, "namespace": namespace } });
    json::set(&mut object, "/metadata/ownerReferences", json!([world::owner_reference(service)]));
    how(&mut object);
    world.make(resource, object);
}
