//! The scale subresource: how many replicas are wanted, in one small object for every kind that has them.

use http::StatusCode;
use serde_json::{Value, json};

use crate::json;
use crate::kinds::ApiKind;
use crate::patch::{self, PatchBodyForm};
use crate::reply::{self, SandboxReply};
use crate::resources::ResourceRequest;
use crate::schema::{SchemaNode, Types};
use crate::status::{ApiStatus, FieldCause, KindNames};
use crate::world::ClusterWorld;

pub(super) fn answer(
    world: &mut ClusterWorld,
    kind: &ApiKind,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let (namespace, name) = (ask.target.namespace.as_str(), ask.target.name.as_str());
    let live = world.get(kind, namespace, name)?;
    let shown = scale_of(kind, &live);
    let wanted = match ask.method.as_str() {
        "GET" => return Ok(reply::object(StatusCode::OK, &shown)),
        "PUT" => serde_json::from_slice(&ask.body).map_err(|why| ApiStatus::bad_request(why.to_string()))?,
        "PATCH" => patched(ask, &shown)?,
        other => return Err(ApiStatus::method_not_supported(&kind.named(), &other.to_lowercase())),
    };
    let replicas = json::int(&wanted, "/spec/replicas", 0);
    if replicas < 0 {
        let of = KindNames { group: "autoscaling".into(), plural: "scale".into(), kind: "Scale".into() };
        let cause = FieldCause::invalid("spec.replicas", &json!(replicas), "must be greater than or equal to 0");
        return Err(ApiStatus::invalid(&of, name, &[cause]));
    }
    let version = json::text_or_empty(&wanted, "/metadata/resourceVersion");
    if !version.is_empty() && Some(version) != json::text(&live, "/metadata/resourceVersion") {
        return Err(ApiStatus::moved(&kind.named(), name));
    }
    let Some(scale) = &kind.scale else { return Err(ApiStatus::no_such_path()) };
    let mut change = json!({ "metadata": { "uid": wanted["metadata"]["uid"] } });
    json::set(&mut change, &scale.wanted, replicas);
    if change["metadata"]["uid"].is_null() {
        json::take(&mut change, "/metadata");
    }
    let options = ask.query.options("scale", "")?;
    let written = world.patch(kind, (namespace, name), (PatchBodyForm::Merge, &change), &options)?;
    Ok(reply::object(StatusCode::OK, &scale_of(kind, &written.object)))
}

fn patched(ask: &ResourceRequest, shown: &Value) -> Result<Value, ApiStatus> {
    let content_type = ask.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let form = PatchBodyForm::of_content_type(content_type.unwrap_or_default())?;
    let change: Value = serde_json::from_slice(&ask.body).map_err(|why| ApiStatus::bad_request(why.to_string()))?;
    // Nothing in a scale is a list, so apply and strategic merge are plain merges here.
    let form = if form == PatchBodyForm::Json { PatchBodyForm::Json } else { PatchBodyForm::Merge };
    patch::patched(form, shown, &change, &Types::default(), &SchemaNode::UNKNOWN)
}

/// An object seen as its scale.
fn scale_of(kind: &ApiKind, object: &Value) -> Value {
    let metadata = &object["metadata"];
    let number = |at: Option<&String>| at.map_or(0, |at| json::int(object, at, 0));
    let scale = kind.scale.as_ref();
    let mut status = json!({ "replicas": number(scale.map(|scale| &scale.current)) });
    let selector = match scale.and_then(|scale| scale.selector.as_deref()) {
        Some(at) => json::text_or_empty(object, at).to_owned(),
        None => selector_text(&object["spec"]["selector"]),
    };
    if !selector.is_empty() {
        status["selector"] = json!(selector);
    }
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": { "replicas": number(scale.map(|scale| &scale.wanted)) },
        "status": status,
    })
}

/// A selector object in its query form.
fn selector_text(selector: &Value) -> String {
    let labels = json::map(selector, "/matchLabels").into_iter().flatten();
    let mut parts: Vec<String> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    for one in json::list(selector, "/matchExpressions") {
        let key = json::text_or_empty(one, "/key");
        let values: Vec<&str> = json::list(one, "/values").iter().filter_map(Value::as_str).collect();
        parts.push(match json::text_or_empty(one, "/operator") {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "Exists" => key.to_owned(),
            _ => format!("!{key}"),
        });
    }
    parts.join(",")
}
