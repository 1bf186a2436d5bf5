//! Debug containers added to a pod that runs; they can be added and never taken away.

use http::StatusCode;

use crate::json;
use crate::kinds::ApiKind;
use crate::reply::{self, SandboxReply};
use crate::resources::{self, ResourceRequest};
use crate::status::{ApiStatus, FieldCause};
use crate::world::ClusterWorld;

pub(super) fn answer(
    world: &mut ClusterWorld,
    kind: &ApiKind,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let (namespace, name) = (ask.target.namespace.as_str(), ask.target.name.as_str());
    let before = world.get(kind, namespace, name)?;
    let reply = match ask.method.as_str() {
        "GET" => return Ok(reply::object(StatusCode::OK, &before)),
        "PATCH" => resources::patch_one(world, kind, ask, "ephemeralcontainers")?,
        "PUT" => {
            let object = resources::read(ask, kind)?;
            let options = ask.query.options("ephemeralcontainers", "")?;
            let written = world.replace(kind, (namespace, name), object, &options)?;
            reply::object(StatusCode::OK, &written.object)
        }
        other => return Err(ApiStatus::method_not_supported(&kind.named(), &other.to_lowercase())),
    };
    let after = world.get(kind, namespace, name)?;
    let had = json::list(&before, "/spec/ephemeralContainers");
    let has = json::list(&after, "/spec/ephemeralContainers");
    if had.iter().any(|one| !has.contains(one)) {
        world.save("pods", (*before).clone());
        let why = "existing ephemeral containers may not be changed or removed";
        return Err(ApiStatus::invalid(&kind.named(), name, &[FieldCause::forbidden("spec.ephemeralContainers", why)]));
    }
    Ok(reply)
}
