//! `metrics.k8s.io`: plausible use of processor and memory, steady per container and breathing a little.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use crate::json;
use crate::kinds::ApiKind;
use crate::list::{ListFilter, ListPage};
use crate::query::UrlQuery;
use crate::reply::{self, SandboxReply};
use crate::resources::{ObjectForm, ResourceRequest};
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

pub(crate) fn answer(world: &ClusterWorld, kind: &ApiKind, ask: &ResourceRequest) -> Result<SandboxReply, ApiStatus> {
    if ask.method != http::Method::GET {
        return Err(ApiStatus::method_not_supported(&kind.named(), &ask.method.as_str().to_lowercase()));
    }
    let measured = |object: &Arc<Value>| match kind.kind.as_str() {
        "PodMetrics" => pod(world, object),
        _ => Some(node(world, object)),
    };
    let source = world.kinds.of_resource(&kind.plural).ok_or_else(ApiStatus::no_such_path)?;
    if !ask.target.name.is_empty() {
        let object = world.get(&source, &ask.target.namespace, &ask.target.name);
        let found = object.ok().as_ref().and_then(measured);
        let found = found.ok_or_else(|| ApiStatus::not_found(&kind.named(), &ask.target.name))?;
        return Ok(reply::object(StatusCode::OK, &found));
    }
    let filter = ListFilter::of(&ask.query, &source, &ask.target.namespace)?;
    let page = world.list(&source, &filter, &UrlQuery::default())?;
    let items = page.items.iter().filter_map(measured).map(Arc::new).collect();
    let page = ListPage { items, metadata: json!({}) };
    Ok(reply::object(StatusCode::OK, &ObjectForm::of(&ask.headers, &ask.query)?.many(kind, &page)))
}

fn head(world: &ClusterWorld, kind: &str, object: &Value) -> Value {
    let mut metadata = json!({ "name": json::name(object), "creationTimestamp": world.stamp() });
    for field in ["namespace", "labels"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    json!({
        "kind": kind, "apiVersion": "metrics.k8s.io/v1beta1", "metadata": metadata,
        "timestamp": world.stamp(), "window": "15s",
    })
}

/// A pod's use, container by container; one that does not run is not measured.
fn pod(world: &ClusterWorld, pod: &Arc<Value>) -> Option<Value> {
    if json::text(pod, "/status/phase") != Some("Running") {
        return None;
    }
    let mut shown = head(world, "PodMetrics", pod);
    let containers = json::list(pod, "/spec/containers").iter().map(|container| {
        let (cpu, memory) = use_of(world, pod, json::text_or_empty(container, "/name"));
        json!({ "name": container["name"], "usage": { "cpu": format!("{cpu}n"), "memory": format!("{memory}Ki") } })
    });
    shown["containers"] = containers.collect();
    Some(shown)
}

fn node(world: &ClusterWorld, node: &Arc<Value>) -> Value {
    let (mut cpu, mut memory) = (180_000_000, 900_000);
    for pod in world.objects.all("pods").filter(|pod| json::text(pod, "/spec/nodeName") == Some(json::name(node))) {
        for container in json::list(pod, "/spec/containers") {
            let (more_cpu, more_memory) = use_of(world, pod, json::text_or_empty(container, "/name"));
            cpu += more_cpu;
            memory += more_memory;
        }
    }
    let mut shown = head(world, "NodeMetrics", node);
    shown["usage"] = json!({ "cpu": format!("{cpu}n"), "memory": format!("{memory}Ki") });
    shown
}

/// Nanocores and kibibytes.
fn use_of(world: &ClusterWorld, pod: &Value, container: &str) -> (u64, u64) {
    let text = format!("{}{container}", json::uid(pod));
    let seed = text.bytes().fold(11_u64, |sum, byte| sum.wrapping_mul(131).wrapping_add(u64::from(byte)));
    let quarter = u64::try_from(world.now().as_second() / 15).unwrap_or_default();
    let breath = (seed ^ quarter.wrapping_mul(40_503)) % 100;
    (4_000_000 + seed % 60_000_000 + breath * 60_000, 24_000 + seed % 180_000 + breath * 20)
}
