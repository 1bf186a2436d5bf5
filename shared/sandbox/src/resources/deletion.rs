//! DELETE: how it is meant and how it is answered.

use http::StatusCode;
use serde_json::{Value, json};

use super::{ObjectForm, ResourceRequest};
use crate::json;
use crate::kinds::ApiKind;
use crate::list::ListFilter;
use crate::query::UrlQuery;
use crate::reply::{self, SandboxReply};
use crate::status::{ApiStatus, FieldCause, KindNames};
use crate::world::ClusterWorld;
use crate::write::{DeletionOptions, DeletionResult, Propagation};

/// How a deletion is meant: from the body, else from the query.
pub(super) fn read_deletion(ask: &ResourceRequest) -> Result<DeletionOptions, ApiStatus> {
    let body: Value = if ask.body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&ask.body)
            .map_err(|why| ApiStatus::bad_request(format!("couldn't get version/kind; json parse error: {why}")))?
    };
    deletion(&body, &ask.query)
}

/// Reads delete options.
pub(crate) fn deletion(body: &Value, query: &UrlQuery) -> Result<DeletionOptions, ApiStatus> {
    let policy = json::text(body, "/propagationPolicy").or(query.get("propagationPolicy"));
    let orphan = body.get("orphanDependents").and_then(Value::as_bool).unwrap_or(false);
    let propagation = match policy {
        Some("Foreground") => Propagation::Foreground,
        Some("Orphan") => Propagation::Orphan,
        Some("Background") | None if !orphan => Propagation::Background,
        None => Propagation::Orphan,
        Some(other) => {
            let of = KindNames { group: "meta.k8s.io".into(), plural: String::new(), kind: "DeleteOptions".into() };
            let cause = FieldCause::not_supported("propagationPolicy", other, &["Background", "Foreground", "Orphan"]);
            return Err(ApiStatus::invalid(&of, "", &[cause]));
        }
    };
    let text = |at: &str| json::text(body, at).map(str::to_owned);
    let dry = json::list(body, "/dryRun").iter().any(|one| one == "All") || query.get("dryRun") == Some("All");
    Ok(DeletionOptions {
        dry_run: dry,
        propagation,
        grace: body.get("gracePeriodSeconds").and_then(Value::as_u64).or_else(|| query.number("gracePeriodSeconds")),
        uid: text("/preconditions/uid"),
        version: text("/preconditions/resourceVersion"),
    })
}

pub(super) fn deleted_reply(kind: &ApiKind, deleted: &DeletionResult) -> SandboxReply {
    let returns_object = matches!(
        kind.resource().as_str(),
        "pods" | "services" | "persistentvolumeclaims" | "persistentvolumes" | "serviceaccounts" | "resourcequotas"
    );
    if returns_object || !deleted.gone {
        return reply::object(StatusCode::OK, &deleted.object);
    }
    let mut details =
        json!({ "name": json::name(&deleted.object), "kind": kind.plural, "uid": json::uid(&deleted.object) });
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
    reply::object(StatusCode::OK, &status)
}

pub(super) fn delete_collection(
    world: &mut ClusterWorld,
    kind: &ApiKind,
    filter: &ListFilter,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let how = read_deletion(ask)?;
    let page = world.list(kind, filter, &ask.query)?;
    for object in &page.items {
        world.delete(kind, (json::namespace(object), json::name(object)), &how)?;
    }
    Ok(reply::object(StatusCode::OK, &ObjectForm::Whole.many(kind, &page)))
}
