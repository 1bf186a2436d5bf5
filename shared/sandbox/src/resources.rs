//! The verbs on resources: method and path in, answer out.

mod deletion;

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::{Value, json};

pub(crate) use self::deletion::deletion;
use crate::access::{AccessRequest, User};
use crate::json;
use crate::kinds::ApiKind;
use crate::list::{ListFilter, ListPage};
use crate::patch;
use crate::query::UrlQuery;
use crate::reply::{self, SandboxReply};
use crate::route::RouteTarget;
use crate::server::lock;
use crate::status::ApiStatus;
use crate::subresources;
use crate::table;
use crate::watch;
use crate::world::ClusterWorld;
use crate::write::ApiWriteResult;

/// One request for a resource, everything about it read.
#[derive(Debug)]
pub(crate) struct ResourceRequest {
    pub(crate) method: Method,
    pub(crate) target: RouteTarget,
    pub(crate) query: UrlQuery,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) user: User,
}

/// What a table carries of each object besides its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableInclusion {
    Nothing,
    Metadata,
    Object,
}

/// In which form objects are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectForm {
    Whole,
    Table(TableInclusion),
    Metadata,
}

impl ObjectForm {
    /// The first form in the Accept header that can be given.
    pub(crate) fn of(headers: &HeaderMap, query: &UrlQuery) -> Result<ObjectForm, ApiStatus> {
        let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
        for one in accept.split(',').map(|one| one.replace(' ', "")) {
            let json =
                one.starts_with("application/json") || one.starts_with("*/*") || one.starts_with("application/*");
            if !json {
                continue;
            }
            if one.contains("as=Table") {
                let included = match query.get("includeObject") {
                    Some("None") => TableInclusion::Nothing,
                    Some("Object") => TableInclusion::Object,
                    _ => TableInclusion::Metadata,
                };
                return Ok(ObjectForm::Table(included));
            }
            if one.contains("as=PartialObjectMetadata") {
                return Ok(ObjectForm::Metadata);
            }
            return Ok(ObjectForm::Whole);
        }
        Err(ApiStatus::not_acceptable())
    }

    /// One object in this form.
    pub(crate) fn one(self, kind: &ApiKind, object: &Value) -> Value {
        match self {
            ObjectForm::Whole => shown(kind, object),
            ObjectForm::Table(included) => table::table(kind, &[object], &json!({}), included),
            ObjectForm::Metadata => metadata_of(object),
        }
    }

    /// A list in this form.
    pub(crate) fn many(self, kind: &ApiKind, page: &ListPage) -> Value {
        let items = page.items.iter();
        match self {
            ObjectForm::Whole => json!({
                "kind": format!("{}List", kind.kind), "apiVersion": kind.api_version(), "metadata": page.metadata,
                "items": items.map(|object| shown(kind, object)).collect::<Vec<_>>(),
            }),
            ObjectForm::Table(included) => {
                table::table(kind, &items.map(|object| &**object).collect::<Vec<_>>(), &page.metadata, included)
            }
            ObjectForm::Metadata => json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": page.metadata,
                "items": items.map(|object| metadata_of(object)).collect::<Vec<_>>(),
            }),
        }
    }
}

fn metadata_of(object: &Value) -> Value {
    json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"] })
}

/// An object in the version it was asked for.
fn shown(kind: &ApiKind, object: &Value) -> Value {
    if kind.group == "events.k8s.io" {
        return crate::controllers::events::newer_form(object);
    }
    let mut object = object.clone();
    if kind.custom {
        json::set(&mut object, "/apiVersion", kind.api_version());
    }
    object
}

/// Answers a request that has no stream of its own.
pub(crate) async fn answer(world: &Arc<Mutex<ClusterWorld>>, ask: ResourceRequest) -> Result<SandboxReply, ApiStatus> {
    let mut ask = ask;
    let content_type = ask.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|content_type| content_type.contains("protobuf")) {
        ask.body = crate::protobuf::as_json(&ask.body)?.into();
    }
    if let Some(reply) = subresources::reviews::answer(&ask)? {
        return Ok(reply);
    }
    let target = &ask.target;
    let kind =
        lock(world).kinds.find(&target.group, &target.version, &target.plural).ok_or_else(ApiStatus::no_such_path)?;
    if kind.namespaced && target.namespace.is_empty() && !target.name.is_empty() {
        return Err(ApiStatus::no_such_path());
    }
    if !kind.namespaced && !target.namespace.is_empty() {
        return Err(ApiStatus::no_such_path());
    }
    authorize(&ask, &kind)?;
    if kind.read_only {
        return subresources::metrics::answer(&lock(world), &kind, &ask);
    }
    if !target.subresource.is_empty() {
        return subresources::answer(world, &kind, ask).await;
    }
    if target.name.is_empty() { collection(world, kind, &ask) } else { single(world, &kind, &ask) }
}

fn authorize(ask: &ResourceRequest, kind: &ApiKind) -> Result<(), ApiStatus> {
    let target = &ask.target;
    let wish = AccessRequest {
        verb: verb(ask),
        group: &target.group,
        resource: &target.plural,
        subresource: &target.subresource,
    };
    if ask.user.may(&wish) {
        return Ok(());
    }
    let namespace = if target.plural == "namespaces" { &target.name } else { &target.namespace };
    Err(ApiStatus::forbidden(&kind.named(), &target.name, &ask.user.refusal(&wish, namespace)))
}

/// The verb that authorization knows a request by.
fn verb(ask: &ResourceRequest) -> &'static str {
    let single = !ask.target.name.is_empty();
    match ask.method.as_str() {
        "GET" | "HEAD" if ask.query.is_true("watch") => "watch",
        "GET" | "HEAD" if single => "get",
        "GET" | "HEAD" => "list",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if single => "delete",
        _ => "deletecollection",
    }
}

fn collection(
    world: &Arc<Mutex<ClusterWorld>>,
    kind: Arc<ApiKind>,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let filter = ListFilter::of(&ask.query, &kind, &ask.target.namespace)?;
    match ask.method.as_str() {
        "GET" | "HEAD" => {
            let form = ObjectForm::of(&ask.headers, &ask.query)?;
            if ask.query.is_true("watch") {
                return watch::start(world, kind, filter, &ask.query, form);
            }
            let page = lock(world).list(&kind, &filter, &ask.query)?;
            Ok(reply::object(StatusCode::OK, &form.many(&kind, &page)))
        }
        "POST" => {
            if kind.namespaced && ask.target.namespace.is_empty() {
                return Err(ApiStatus::method_not_supported(&kind.named(), "create"));
            }
            let object = read(ask, &kind)?;
            let options = ask.query.options("", agent(ask))?;
            let written = lock(world).create(&kind, &ask.target.namespace, object, &options)?;
            Ok(written_reply(&kind, ask, &written))
        }
        "DELETE" => deletion::delete_collection(&mut lock(world), &kind, &filter, ask),
        other => Err(ApiStatus::method_not_supported(&kind.named(), &other.to_lowercase())),
    }
}

fn single(
    world: &Arc<Mutex<ClusterWorld>>,
    kind: &Arc<ApiKind>,
    ask: &ResourceRequest,
) -> Result<SandboxReply, ApiStatus> {
    let (namespace, name) = (ask.target.namespace.as_str(), ask.target.name.as_str());
    match ask.method.as_str() {
        "GET" | "HEAD" => {
            let form = ObjectForm::of(&ask.headers, &ask.query)?;
            if ask.query.is_true("watch") {
                let query = UrlQuery::parse(&format!("fieldSelector=metadata.name%3D{name}"));
                let filter = ListFilter::of(&query, kind, namespace)?;
                return watch::start(world, kind.clone(), filter, &ask.query, form);
            }
            let object = lock(world).get(kind, namespace, name)?;
            Ok(reply::object(StatusCode::OK, &form.one(kind, &object)))
        }
        "PUT" => {
            let object = read(ask, kind)?;
            let options = ask.query.options("", agent(ask))?;
            let written = lock(world).replace(kind, (namespace, name), object, &options)?;
            Ok(written_reply(kind, ask, &written))
        }
        "PATCH" => patch_one(&mut lock(world), kind, ask, ""),
        "DELETE" => {
            let deleted = lock(world).delete(kind, (namespace, name), &deletion::read_deletion(ask)?)?;
            Ok(deletion::deleted_reply(kind, &deleted))
        }
        other => Err(ApiStatus::method_not_supported(&kind.named(), &other.to_lowercase())),
    }
}

/// PATCH of an object or of one of its subresources that is part of it.
pub(crate) fn patch_one(
    world: &mut ClusterWorld,
    kind: &ApiKind,
    ask: &ResourceRequest,
    subresource: &'static str,
) -> Result<SandboxReply, ApiStatus> {
    let content_type = ask.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let form = patch::PatchBodyForm::of_content_type(content_type)?;
    let change: Value = serde_json::from_slice(&ask.body).map_err(|why| match form {
        patch::PatchBodyForm::Apply => {
            ApiStatus::bad_request(format!("error decoding YAML: the sandbox reads JSON only: {why}"))
        }
        patch::PatchBodyForm::Merge | patch::PatchBodyForm::Strategic | patch::PatchBodyForm::Json => {
            ApiStatus::bad_request(format!("error decoding patch: {why}"))
        }
    })?;
    let mut options = ask.query.options(subresource, agent(ask))?;
    if form == patch::PatchBodyForm::Apply && ask.query.get("fieldManager").unwrap_or_default().is_empty() {
        options.manager.clear();
    }
    if options.force && form != patch::PatchBodyForm::Apply {
        let of = crate::status::KindNames {
            group: "meta.k8s.io".into(),
            plural: String::new(),
            kind: "PatchOptions".into(),
        };
        let why = "may not be specified for non-apply patch";
        return Err(ApiStatus::invalid(&of, "", &[crate::status::FieldCause::forbidden("force", why)]));
    }
    let written = world.patch(kind, (&ask.target.namespace, &ask.target.name), (form, &change), &options)?;
    Ok(written_reply(kind, ask, &written))
}

fn agent(ask: &ResourceRequest) -> &str {
    ask.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The object in a request's body.
pub(crate) fn read(ask: &ResourceRequest, kind: &ApiKind) -> Result<Value, ApiStatus> {
    let mut object: Value = serde_json::from_slice(&ask.body).map_err(|why| {
        let (version, kind) = (&kind.version, &kind.kind);
        ApiStatus::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: couldn't get version/kind; json parse error: {why}"
        ))
    })?;
    if object.is_object() {
        // The path says what is meant; typed clients may leave the type out.
        json::set_default(&mut object, "/apiVersion", kind.api_version());
        json::set_default(&mut object, "/kind", kind.kind.clone());
    }
    Ok(object)
}

fn written_reply(kind: &ApiKind, ask: &ResourceRequest, written: &ApiWriteResult) -> SandboxReply {
    let form = ObjectForm::of(&ask.headers, &ask.query).unwrap_or(ObjectForm::Whole);
    let code = if written.created { StatusCode::CREATED } else { StatusCode::OK };
    reply::warn(reply::object(code, &form.one(kind, &written.object)), &written.warnings)
}
