//! Changing. A writer is had only by a permit to change, sends each request once, and under a rehearsal sends nothing
//! that is not a dry run.
//!
//! What comes of a request whose answer is lost is unknown, never failed: see `fault`.
//! Protected namespaces are left alone whoever signs. Eviction is the one exception, since draining a node is no use
//! without it: it respects budgets, and whatever is evicted is started again elsewhere.

use crate::client::cluster::{Cluster, MOST_BYTES};
use crate::client::connection::ClientLane;
use crate::client::fault;
use crate::client::kinds::Kind;
use crate::client::marker;
use crate::client::mask::MaskDetail;
use crate::client::place::{KindScope, NamespaceSpan, ResourceRef};
use crate::client::request::{ClusterRequest, JSON};
use crate::client::sealed::{self, SealedValue};
use crate::codes;
use domain::{Code, Effect, Failure};
use http::{Method, StatusCode};
use policy::PermitMode;
use serde_json::{Value, json};

/// Who we are among the managers of fields.
pub const FIELD_MANAGER: &str = "quartermaster";

/// What writes go through.
#[derive(Debug)]
pub struct ClusterWriter<'a> {
    pub(in crate::client) cluster: &'a Cluster<'a>,
    pub(in crate::client) sending: SendMode,
}

/// What a writer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::client) enum SendMode {
    /// What it says.
    Act,
    /// Dry runs of what would be done: for a preview.
    Rehearse,
    /// Dry runs that nobody means to carry out: for a diff.
    Look,
}

/// Whether fields of others are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// A conflict is a failure that names the owners.
    No,
    /// They become ours.
    Yes,
}

/// A change of a part of an object.
#[derive(Debug, Clone)]
pub enum ObjectPatch {
    /// RFC 7386.
    Merge(SealedValue),
    /// By the merge rules of the built-in kinds.
    Strategic(SealedValue),
    /// RFC 6902: an array of operations.
    Json(SealedValue),
}

/// How something is deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteOptions {
    /// The object that is meant; one made anew under the same name is left alone.
    pub uid: Option<String>,
    /// What becomes of what it owns.
    pub cascade: DeleteCascade,
    /// How long it may take to end itself.
    pub grace_s: Option<u32>,
}

/// What becomes of what a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteCascade {
    /// Deleted afterwards.
    Background,
    /// Deleted first.
    Foreground,
    /// Kept.
    Orphan,
}

/// What a write came to.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectWriteResult {
    /// The object afterwards, masked; for a deletion, what the cluster answered.
    pub object: Value,
    /// Whether it was made rather than changed.
    pub created: bool,
}

const SCALE: (&str, &str) = ("scale", "/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}/scale");
const STATUS: (&str, &str) = ("status", "/apis/{group}/{version}/namespaces/{namespace}/{resource}/{name}/status");
const EVICTION: (&str, &str) = ("eviction", "/api/{version}/namespaces/{namespace}/pods/{name}/eviction");
const EPHEMERAL: (&str, &str) =
    ("ephemeralcontainers", "/api/{version}/namespaces/{namespace}/pods/{name}/ephemeralcontainers");

impl Cluster<'_> {
    /// A writer, for a permit to change something. Under a rehearsal it can only dry-run.
    pub fn write(&self) -> Result<ClusterWriter<'_>, Failure> {
        let sending = match (self.permit.effect(), self.permit.extent()) {
            (Effect::Read, PermitMode::Rehearse | PermitMode::Act) => {
                return Err(Failure::new(Code::PolicyDenied, "a call that only reads changes nothing"));
            }
            (Effect::Change | Effect::Disrupt, PermitMode::Rehearse) => SendMode::Rehearse,
            (Effect::Change | Effect::Disrupt, PermitMode::Act) => SendMode::Act,
        };
        Ok(ClusterWriter { cluster: self, sending })
    }

    /// A writer whose every request is a dry run, whatever the permit allows.
    pub fn dry_run(&self) -> ClusterWriter<'_> {
        let sending = match self.permit.effect() {
            Effect::Read => SendMode::Look,
            Effect::Change | Effect::Disrupt => SendMode::Rehearse,
        };
        ClusterWriter { cluster: self, sending }
    }

    /// How many replicas an object has and should have.
    pub async fn scale_of(&self, target: &ResourceRef) -> Result<Value, Failure> {
        scalable(target.kind())?;
        self.read_masked(&ClusterRequest::beneath(Method::GET, "get", target, SCALE), MaskDetail::Clean).await
    }
}

impl ClusterWriter<'_> {
    /// Whether everything through this writer is a dry run.
    pub fn is_dry(&self) -> bool {
        self.sending != SendMode::Act
    }

    /// Server-side apply. The body's kind, name and namespace are the target's.
    pub async fn apply(
        &self,
        target: &ResourceRef,
        body: impl Into<SealedValue>,
        force: Force,
    ) -> Result<ObjectWriteResult, Failure> {
        self.guard(target.kind(), target.namespace(), Some(target.name()))?;
        let mut body = self.tried(body.into().value, target.kind());
        self.cluster.bounds().check(&body)?;
        self.name(&mut body, target);
        match self.send(target.kind(), applying(target, &body, force)).await {
            Err(refusal) if force == Force::No && marker::is_all_disputed(&refusal) => {
                self.apply_over_mark(target, body).await
            }
            ended => ended,
        }
    }

    /// Applies an object that carries the mark of a run that patched it. Who patches is another manager than who applies,
    /// so the mark is in dispute, and nobody but us. Everything else is tried without force, and the version it was
    /// tried on is the one that is written: nothing of others can be taken over.
    async fn apply_over_mark(&self, target: &ResourceRef, mut body: Value) -> Result<ObjectWriteResult, Failure> {
        let live = self.cluster.get(target, MaskDetail::Clean).await?;
        sealed::set(&mut body, "/metadata/resourceVersion", live["metadata"]["resourceVersion"].clone());
        let rehearsal = ClusterWriter { cluster: self.cluster, sending: SendMode::Rehearse };
        rehearsal.send(target.kind(), applying(target, &marker::take(body.clone()), Force::No)).await?;
        self.send(target.kind(), applying(target, &body, Force::Yes)).await
    }

    /// Changes a part of an object; only if it still has this version, where one is given.
    pub async fn patch(
        &self,
        target: &ResourceRef,
        patch: ObjectPatch,
        version: Option<&str>,
    ) -> Result<ObjectWriteResult, Failure> {
        let request = ClusterRequest::object(Method::PATCH, "patch", target);
        let result = self.patched(request, target, patch, version, true).await?;
        // A part does not tell what the whole will be, so the dry run before it is judged.
        if self.is_dry() {
            self.cluster.bounds().check(&result.object)?;
        }
        Ok(result)
    }

    /// Changes a part of an object's status, as its controller would.
    pub async fn patch_status(
        &self,
        target: &ResourceRef,
        patch: ObjectPatch,
        version: Option<&str>,
    ) -> Result<ObjectWriteResult, Failure> {
        self.patched(ClusterRequest::beneath(Method::PATCH, "patch", target, STATUS), target, patch, version, false)
            .await
    }

    /// Makes an object.
    pub async fn create(&self, place: &KindScope, body: impl Into<SealedValue>) -> Result<ObjectWriteResult, Failure> {
        let namespace = match &place.span {
            NamespaceSpan::One(namespace) => Some(namespace.as_str()),
            NamespaceSpan::Cluster => None,
            NamespaceSpan::Named(_) | NamespaceSpan::Each(_) | NamespaceSpan::All => {
                return Err(
                    Failure::new(Code::InvalidArgument, "an object is made in one place").next("name the namespace")
                );
            }
        };
        let mut body = self.tried(body.into().value, &place.kind);
        let name = body["metadata"]["name"].as_str().map(str::to_owned);
        if let Some(name) = &name {
            place.object(name)?;
        }
        self.guard(&place.kind, namespace, name.as_deref())?;
        if let Some(namespace) = namespace {
            sealed::set(&mut body, "/metadata/namespace", json!(namespace));
        }
        self.cluster.bounds().check(&body)?;
        self.mark(&mut body);
        let request = ClusterRequest::collection(Method::POST, "create", &place.kind, namespace)
            .query("fieldManager", FIELD_MANAGER)
            .query("fieldValidation", "Strict");
        self.send(&place.kind, request.body(JSON, body.to_string().into_bytes())).await
    }

    /// Deletes an object.
    pub async fn delete(&self, target: &ResourceRef, how: &DeleteOptions) -> Result<ObjectWriteResult, Failure> {
        self.guard(target.kind(), target.namespace(), Some(target.name()))?;
        let policy = match how.cascade {
            DeleteCascade::Background => "Background",
            DeleteCascade::Foreground => "Foreground",
            DeleteCascade::Orphan => "Orphan",
        };
        let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy });
        if let Some(uid) = &how.uid {
            options["preconditions"] = json!({ "uid": uid });
        }
        if let Some(grace) = how.grace_s {
            options["gracePeriodSeconds"] = json!(grace);
        }
        self.dry(&mut options);
        let request = ClusterRequest::object(Method::DELETE, "delete", target);
        self.send(target.kind(), request.body(JSON, options.to_string().into_bytes())).await
    }

    /// Sets how many replicas an object should have; only if it still has this version, where one is given.
    pub async fn set_scale(
        &self,
        target: &ResourceRef,
        replicas: u32,
        version: Option<&str>,
    ) -> Result<ObjectWriteResult, Failure> {
        scalable(target.kind())?;
        self.cluster.bounds().check_replicas(replicas.into())?;
        let patch = ObjectPatch::Merge(json!({ "spec": { "replicas": replicas } }).into());
        self.patched(ClusterRequest::beneath(Method::PATCH, "patch", target, SCALE), target, patch, version, false)
            .await
    }

    /// Asks a pod to go elsewhere, if its disruption budget allows: otherwise `pdb_blocked`.
    pub async fn evict(
        &self,
        pod: &ResourceRef,
        uid: Option<&str>,
        grace_s: Option<u32>,
    ) -> Result<ObjectWriteResult, Failure> {
        let mut options = json!({});
        if let Some(uid) = uid {
            options["preconditions"] = json!({ "uid": uid });
        }
        if let Some(grace) = grace_s {
            options["gracePeriodSeconds"] = json!(grace);
        }
        self.dry(&mut options);
        let body = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": options,
            "metadata": { "name": pod.name(), "namespace": pod.namespace() },
        });
        let request = ClusterRequest::beneath(Method::POST, "create", pod, EVICTION);
        self.send(pod.kind(), request.body(JSON, body.to_string().into_bytes())).await
    }

    /// Adds a debug container to a pod. It stays until the pod goes.
    pub async fn add_ephemeral(
        &self,
        pod: &ResourceRef,
        container: impl Into<SealedValue>,
        version: Option<&str>,
    ) -> Result<ObjectWriteResult, Failure> {
        let container = container.into().value;
        self.cluster.bounds().check_image(container["image"].as_str().unwrap_or_default())?;
        let patch = ObjectPatch::Strategic(json!({ "spec": { "ephemeralContainers": [container] } }).into());
        self.patched(ClusterRequest::beneath(Method::PATCH, "patch", pod, EPHEMERAL), pod, patch, version, false).await
    }

    async fn patched(
        &self,
        request: ClusterRequest,
        target: &ResourceRef,
        patch: ObjectPatch,
        version: Option<&str>,
        marked: bool,
    ) -> Result<ObjectWriteResult, Failure> {
        self.guard(target.kind(), target.namespace(), Some(target.name()))?;
        let (content_type, mut body) = match patch {
            ObjectPatch::Merge(patch) => ("application/merge-patch+json", self.tried(patch.value, target.kind())),
            ObjectPatch::Strategic(_) if !target.kind.strategic() => {
                let failure = Failure::new(codes::STRATEGIC_UNSUPPORTED, "a custom kind has no strategic merge rules");
                return Err(failure.next("use type merge or json"));
            }
            ObjectPatch::Strategic(patch) => {
                ("application/strategic-merge-patch+json", self.tried(patch.value, target.kind()))
            }
            // Its steps name places by number, so nobody can tell which of their values are secret.
            ObjectPatch::Json(_) if self.sending == SendMode::Look && !self.cluster.compares_secrets() => {
                let message = "a JSON Patch is tried only for those who may write, since it could test a secret";
                return Err(Failure::new(Code::InvalidArgument, message).next("send a merge patch, which is an object"));
            }
            ObjectPatch::Json(patch) => ("application/json-patch+json", patch.value),
        };
        match (&mut body, version) {
            (Value::Array(operations), Some(version)) => {
                operations.insert(0, json!({ "op": "test", "path": "/metadata/resourceVersion", "value": version }));
            }
            (Value::Array(_), None) => {}
            (Value::Object(_), version) => {
                if let Some(version) = version {
                    sealed::set(&mut body, "/metadata/resourceVersion", json!(version));
                }
                if marked {
                    self.mark(&mut body);
                }
            }
            (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_), _) => {
                return Err(Failure::new(Code::InvalidArgument, "a patch is an object, or an array of operations"));
            }
        }
        let request = request.query("fieldManager", FIELD_MANAGER).query("fieldValidation", "Strict");
        self.send(target.kind(), request.body(content_type, body.to_string().into_bytes())).await
    }

    /// Sends a write: once, and as a dry run unless this writer acts.
    async fn send(&self, kind: &Kind, request: ClusterRequest) -> Result<ObjectWriteResult, Failure> {
        if self.is_dry() {
            self.cluster.takes_dry_runs(kind).await?;
        }
        let request = if self.is_dry() { request.query("dryRun", "All") } else { request };
        let lost = |lost| if self.is_dry() { fault::of_read(&lost) } else { fault::of_write(&lost) };
        let deadline = self.cluster.deadline;
        let answer = self.cluster.connection.send(ClientLane::Write, &request, deadline).await.map_err(lost)?;
        let (status, retry_after) = (answer.status, answer.retry_after);
        if !status.is_success() {
            let body = answer.bytes(64 * 1024, deadline).await.unwrap_or_default();
            let failure = fault::of_status(self.cluster.masker(), &request.about, status, retry_after, &body);
            return Err(if !self.is_dry() && fault::is_ambiguous(status, &body) {
                let mut unknown = fault::unknown("the cluster failed while it was at it");
                unknown.details = failure.details;
                unknown
            } else {
                failure
            });
        }
        let bytes = answer.bytes(MOST_BYTES, deadline).await.map_err(lost)?;
        let mut object: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        // Whole: what is left out here could be changed without anybody seeing it.
        self.cluster.masker().object(&mut object, MaskDetail::Full);
        let object = marker::take(object);
        Ok(ObjectWriteResult { object, created: status == StatusCode::CREATED })
    }

    /// What may not be changed whoever signs. A look at what a change would give is no change.
    pub(in crate::client) fn guard(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<(), Failure> {
        if self.sending == SendMode::Look {
            return Ok(());
        }
        let config = self.cluster.config();
        let own_name = name.filter(|_| kind.is("", "Namespace"));
        if let Some(protected) = namespace.or(own_name).filter(|namespace| config.protects(namespace)) {
            let failure = Failure::new(codes::PROTECTED, format!("namespace {protected} is protected"));
            return Err(failure.next("do not retry; nothing is changed there through this service"));
        }
        if namespace.is_none() && config.namespaces.is_some() {
            let message = format!("a {} belongs to the whole cluster, and the tenant to some namespaces", kind.kind());
            return Err(
                Failure::new(codes::NAMESPACE_DENIED, message).next("do not retry; ask an admin of the cluster")
            );
        }
        Ok(())
    }

    /// The body as it is tried for this caller: one who may only look learns nothing about secret values from it.
    fn tried(&self, body: Value, kind: &Kind) -> Value {
        match self.sending {
            SendMode::Look => self.cluster.tried_body(body, kind.kind()),
            SendMode::Act | SendMode::Rehearse => body,
        }
    }

    /// Makes the body say what the target says, and carry the run's mark.
    fn name(&self, body: &mut Value, target: &ResourceRef) {
        sealed::set(body, "/apiVersion", json!(target.kind.api_version()));
        sealed::set(body, "/kind", json!(target.kind.kind()));
        sealed::set(body, "/metadata/name", json!(target.name()));
        if let Some(namespace) = target.namespace() {
            sealed::set(body, "/metadata/namespace", json!(namespace));
        }
        self.mark(body);
    }

    fn mark(&self, body: &mut Value) {
        if let Some(run) = self.cluster.permit.run().filter(|_| !self.is_dry()) {
            marker::put(body, run);
        }
    }

    fn dry(&self, options: &mut Value) {
        if self.is_dry() {
            options["dryRun"] = json!(["All"]);
        }
    }
}

fn applying(target: &ResourceRef, body: &Value, force: Force) -> ClusterRequest {
    let request = ClusterRequest::object(Method::PATCH, "patch", target)
        .query("fieldManager", FIELD_MANAGER)
        .query("fieldValidation", "Strict")
        .query("force", if force == Force::Yes { "true" } else { "false" });
    // JSON is YAML.
    request.body("application/apply-patch+yaml", body.to_string().into_bytes())
}

fn scalable(kind: &Kind) -> Result<(), Failure> {
    if kind.has("scale") {
        return Ok(());
    }
    Err(Failure::new(codes::NOT_SCALABLE, format!("a {} has no replicas to set", kind.kind())).next("name a workload"))
}
