//! The proxy to pods and services: a small simulated answer from the application.

use http::StatusCode;
use serde_json::{Value, json};

use crate::controllers::endpoints;
use crate::json;
use crate::kinds::ApiKind;
use crate::reply::{self, SandboxReply};
use crate::resources::ResourceRequest;
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

pub(super) fn answer(world: &ClusterWorld, kind: &ApiKind, ask: &ResourceRequest) -> Result<SandboxReply, ApiStatus> {
    let (scheme, name, port) = address(&ask.target.name);
    let object = world.get(kind, &ask.target.namespace, name)?;
    let pod = if kind.plural == "pods" { object.clone() } else { pod_behind(world, &object, port)? };
    let wanted = if kind.plural == "pods" { port.to_owned() } else { target_port(&object, port) };
    let containers = json::list(&pod, "/spec/containers");
    let mut ports = containers.iter().flat_map(|container| json::list(container, "/ports"));
    let open = ports.find(|one| is_port(one, "containerPort", &wanted));
    let ready = json::text(&pod, "/status/phase") == Some("Running");
    // A pod that declares no ports is taken to listen on whatever is asked for.
    let declares = containers.iter().any(|container| !json::list(container, "/ports").is_empty());
    if !ready || (declares && open.is_none() && !wanted.is_empty()) {
        let ip = json::text(&pod, "/status/podIP").unwrap_or("0.0.0.0");
        let path = format!("{scheme}://{ip}:{wanted}{}", ask.target.rest);
        let why = format!("error trying to reach service: dial tcp {ip}:{wanted}: connect: connection refused");
        tracing::debug!(%path, "the proxy met a closed port");
        return Err(ApiStatus::unavailable(why));
    }
    let path = if ask.target.rest.is_empty() { "/" } else { &ask.target.rest };
    let code = match path {
        "/missing" | "/404" => StatusCode::NOT_FOUND,
        "/error" | "/500" => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::OK,
    };
    if path == "/healthz" || path == "/readyz" {
        return Ok(reply::with_type(code, "text/plain; charset=utf-8", "ok\n"));
    }
    let image = containers.first().map(|container| container["image"].clone()).unwrap_or(Value::Null);
    let body =
        json!({ "simulated": true, "pod": json::name(&pod), "path": path, "image": image, "status": code.as_u16() });
    Ok(reply::object(code, &body))
}

/// `[scheme:]name[:port]`.
fn address(text: &str) -> (&str, &str, &str) {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [scheme @ ("http" | "https"), name, port] => (scheme, name, port),
        [name, port] => ("http", name, port),
        _ => ("http", text, ""),
    }
}

fn pod_behind(world: &ClusterWorld, service: &Value, port: &str) -> Result<std::sync::Arc<Value>, ApiStatus> {
    let name = json::name(service);
    let known = |one: &Value| is_port(one, "port", port);
    if !port.is_empty() && !json::list(service, "/spec/ports").iter().any(known) {
        return Err(ApiStatus::unavailable(format!("no service port {port:?} found for service {name:?}")));
    }
    let ready = |pod: &Value| {
        json::list(pod, "/status/conditions").iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
    };
    let pods = endpoints::pods_behind(world, service);
    let found = pods.into_iter().find(|pod| ready(pod));
    found.ok_or_else(|| ApiStatus::unavailable(format!("no endpoints available for service {name:?}")))
}

fn target_port(service: &Value, port: &str) -> String {
    let ports = json::list(service, "/spec/ports");
    let found = ports.iter().find(|one| is_port(one, "port", port)).or(ports.first());
    match found.map(|one| &one["targetPort"]) {
        Some(Value::String(name)) => name.clone(),
        Some(Value::Null) | None => port.to_owned(),
        Some(number) => number.to_string(),
    }
}

/// Whether a port is the one meant, by number or by name.
fn is_port(port: &Value, field: &str, wanted: &str) -> bool {
    let number = wanted.parse::<i64>().ok();
    (number.is_some() && port[field].as_i64() == number) || port["name"].as_str() == Some(wanted)
}
