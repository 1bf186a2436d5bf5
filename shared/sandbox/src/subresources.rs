//! What stands below objects: status, scale, eviction, logs, exec, proxies; and objects that are only answered.

mod ephemeral;
mod eviction;
pub(crate) mod exec;
mod log;
pub(crate) mod metrics;
mod proxy;
pub(crate) mod reviews;
mod scale;

use std::sync::{Arc, Mutex};

use http::StatusCode;
use serde_json::Value;

use crate::json;
use crate::kinds::ApiKind;
use crate::reply::{self, SandboxReply};
use crate::resources::{self, ResourceRequest};
use crate::server::lock;
use crate::status::ApiStatus;
use crate::world::ClusterWorld;

/// Answers a request below an object.
pub(crate) async fn answer(
    world: &Arc<Mutex<ClusterWorld>>,
    kind: &Arc<ApiKind>,
    ask: ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let is_pod = kind.resource() == "pods";
    match ask.target.subresource.as_str() {
        "status" if kind.status => status(&mut lock(world), kind, &ask),
        "scale" if kind.scale.is_some() => scale::answer(&mut lock(world), kind, &ask),
        "log" if is_pod => log::answer(world, kind, &ask),
        "eviction" if is_pod => eviction::answer(&mut lock(world), kind, &ask),
        "ephemeralcontainers" if is_pod => ephemeral::answer(&mut lock(world), kind, &ask),
        "proxy" if is_pod || kind.resource() == "services" => proxy::answer(&lock(world), kind, &ask),
        "finalize" if kind.plural == "namespaces" => status(&mut lock(world), kind, &ask),
        _ => Err(ApiStatus::no_such_path()),
    }
}

fn status(world: &mut ClusterWorld, kind: &ApiKind, ask: &ResourceRequest) -> Result<SandboxReply, ApiStatus> {
    let (namespace, name) = (ask.target.namespace.as_str(), ask.target.name.as_str());
    match ask.method.as_str() {
        "GET" => Ok(reply::object(StatusCode::OK, &*world.get(kind, namespace, name)?)),
        "PUT" => {
            let object = resources::read(ask, kind)?;
            let options = ask.query.options("status", "")?;
            let written = world.replace(kind, (namespace, name), object, &options)?;
            Ok(reply::object(StatusCode::OK, &written.object))
        }
        "PATCH" => resources::patch_one(world, kind, ask, "status"),
        other => Err(ApiStatus::method_not_supported(&kind.named(), &other.to_lowercase())),
    }
}

/// The container a log or exec request is about; several and none named is refused with their names.
fn container_of<'a>(pod: &'a Value, wanted: Option<&str>) -> Result<&'a Value, ApiStatus> {
    let lists = ["/spec/containers", "/spec/initContainers", "/spec/ephemeralContainers"];
    let all = || lists.iter().flat_map(|at| json::list(pod, at));
    let name = json::name(pod);
    let wanted = wanted.filter(|wanted| !wanted.is_empty());
    if let Some(wanted) = wanted {
        let found = all().find(|one| one["name"] == wanted);
        return found.ok_or_else(|| ApiStatus::bad_request(format!("container {wanted} is not valid for pod {name}")));
    }
    let containers = json::list(pod, "/spec/containers");
    if let [only] = containers {
        return Ok(only);
    }
    let names = |list: &[Value]| list.iter().map(|one| json::text_or_empty(one, "/name")).collect::<Vec<_>>().join(" ");
    let mut message =
        format!("a container name must be specified for pod {name}, choose one of: [{}]", names(containers));
    let inits = json::list(pod, "/spec/initContainers");
    if !inits.is_empty() {
        message.push_str(&format!(" or one of the init containers: [{}]", names(inits)));
    }
    Err(ApiStatus::bad_request(message))
}

/// The status of a container by name.
fn status_of<'a>(pod: &'a Value, name: &str) -> Option<&'a Value> {
    let lists = ["/status/containerStatuses", "/status/initContainerStatuses", "/status/ephemeralContainerStatuses"];
    lists.iter().flat_map(|at| json::list(pod, at)).find(|one| one["name"] == name)
}
