//! A scripted API server, and permits as policy gives them.

use bytes::Bytes;
use domain::run::{Answer, Run, RunRequest, Verdict};
use domain::{
    Call, CallId, Caller, Effect, Level, Moment, Principal, RunId, Scopes, SessionMode, Tenant, ToolName, ToolUse,
    ToolsetName,
};
use futures_util::stream;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kubernetes::client::{Cluster, ClusterConfig, ClusterEndpoint, Clusters, KindScope, ResourceRef, Wildcard};
use policy::{CallEvidence, Decision, Permit, Policy, decide};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use testkit::bench::Opened;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// One request as the server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Seen {
    /// `PATCH /api/...`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a JSON body")
    }

    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true")
    }
}

/// What the server does about it.
#[derive(Clone)]
pub(crate) enum Reply {
    Json(u16, Value),
    Text(u16, String),
    /// Status, seconds of `Retry-After`.
    Later(u16, u64),
    /// These events, and then the stream ends.
    Events(Vec<Value>),
    /// Never answers.
    Silence,
    /// Breaks the connection.
    Reset,
}

pub(crate) type Script = dyn Fn(&Seen, usize) -> Reply + Send + Sync;

/// The server. What a script does not want to know about (discovery) is answered before it is asked.
pub(crate) struct Api {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: JoinSet<()>,
}

impl Api {
    /// The script gets each request and how many came before it, discovery left out.
    pub(crate) async fn start(script: impl Fn(&Seen, usize) -> Reply + Send + Sync + 'static) -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound port");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (script, noted): (Arc<Script>, _) = (Arc::new(script), Arc::clone(&seen));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, noted) = (Arc::clone(&script), Arc::clone(&noted));
                connections.spawn(async move {
                    let service = service_fn(move |request| answer(request, Arc::clone(&script), Arc::clone(&noted)));
                    // A broken connection is what some scripts are about.
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await
                        .ok();
                });
            }
        });
        Api { address, seen, _serving: serving }
    }

    /// Everything asked but discovery.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic elsewhere").iter().filter(|seen| !is_discovery(seen)).cloned().collect()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.seen().iter().map(Seen::line).collect()
    }

    /// How often discovery was asked for.
    pub(crate) fn discoveries(&self) -> usize {
        self.seen.lock().expect("no panic elsewhere").iter().filter(|seen| seen.path == "/apis").count()
    }

    /// A cluster of `acme` at this server.
    pub(crate) fn config(&self) -> ClusterConfig {
        ClusterConfig::new("main", ClusterEndpoint::Loopback(self.address))
    }

    pub(crate) fn clusters(&self) -> Clusters {
        clusters_of(vec![self.config()])
    }
}

async fn answer(
    request: Request<Incoming>,
    script: Arc<Script>,
    noted: Arc<Mutex<Vec<Seen>>>,
) -> Result<Response<http_body_util::combinators::BoxBody<Bytes, std::io::Error>>, std::io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(std::io::Error::other)?.to_bytes();
    let seen = Seen {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let before = {
        let mut noted = noted.lock().expect("no panic elsewhere");
        noted.push(seen.clone());
        noted.iter().filter(|seen| !is_discovery(seen)).count().saturating_sub(1)
    };
    let reply = if is_discovery(&seen) { Reply::Json(200, discovery(&seen.path)) } else { script(&seen, before) };
    let whole = |bytes: Vec<u8>| http_body_util::Full::new(Bytes::from(bytes)).map_err(|never| match never {}).boxed();
    let response = Response::builder();
    let response = match reply {
        Reply::Json(status, value) => response.status(status).body(whole(value.to_string().into_bytes())),
        Reply::Text(status, text) => response.status(status).body(whole(text.into_bytes())),
        Reply::Later(status, seconds) => response.status(status).header("retry-after", seconds).body(whole(Vec::new())),
        Reply::Events(events) => {
            let frames = events.into_iter().map(|event| Ok(Frame::data(Bytes::from(format!("{event}\n")))));
            response.body(BodyExt::boxed(StreamBody::new(stream::iter(frames.collect::<Vec<_>>()))))
        }
        Reply::Silence => std::future::pending().await,
        Reply::Reset => return Err(std::io::Error::other("as the script says")),
    };
    response.map_err(std::io::Error::other)
}

fn is_discovery(seen: &Seen) -> bool {
    seen.path == "/api" || seen.path == "/apis"
}

fn discovery(path: &str) -> Value {
    let resource = |kind: &str, plural: &str, scope: &str, short: &[&str], subs: &[&str]| {
        json!({
            "resource": plural, "responseKind": { "kind": kind }, "scope": scope, "shortNames": short,
            "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "patch"],
            "subresources": subs.iter().map(|sub| json!({ "subresource": sub })).collect::<Vec<_>>(),
        })
    };
    let group = |name: &str, version: &str, resources: Value| json!({ "metadata": { "name": name }, "versions": [{ "version": version, "resources": resources }] });
    let items = if path == "/api" {
        json!([group(
            "",
            "v1",
            json!([
                resource("Pod", "pods", "Namespaced", &["po"], &["log", "exec", "eviction", "ephemeralcontainers"]),
                resource("Secret", "secrets", "Namespaced", &[], &[]),
                resource("ConfigMap", "configmaps", "Namespaced", &["cm"], &[]),
                resource("Service", "services", "Namespaced", &["svc"], &["proxy"]),
                resource("Event", "events", "Namespaced", &["ev"], &[]),
                resource("Namespace", "namespaces", "Cluster", &["ns"], &[]),
                resource("Node", "nodes", "Cluster", &["no"], &[]),
            ])
        )])
    } else {
        json!([
            group(
                "apps",
                "v1",
                json!([
                    resource("Deployment", "deployments", "Namespaced", &["deploy"], &["scale", "status"]),
                    resource("ReplicaSet", "replicasets", "Namespaced", &["rs"], &["scale"]),
                    // Names that would bend an address if they were believed.
                    resource("Evil", "../../secrets", "Namespaced", &[], &[]),
                ])
            ),
            group(
                "argoproj.io",
                "v1alpha1",
                json!([resource("Rollout", "rollouts", "Namespaced", &["ro"], &["status"])])
            ),
            group("one.example", "v1", json!([resource("Widget", "widgets", "Namespaced", &["w"], &[])])),
            group("two.example", "v1", json!([resource("Widget", "widgets", "Namespaced", &["w"], &[])])),
            group(
                "rbac.authorization.k8s.io",
                "v1",
                json!([resource("ClusterRole", "clusterroles", "Cluster", &[], &[])])
            ),
        ])
    };
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items })
}

/// A failure as an API server tells it.
pub(crate) fn status(code: u16, reason: &str, message: &str, causes: Value) -> Reply {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "details": { "causes": causes } });
    Reply::Json(code, body)
}

pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "spec": { "replicas": replicas },
        "metadata": { "name": name, "namespace": "default", "uid": "u-1", "resourceVersion": "7" } })
}

pub(crate) fn clusters_of(configs: Vec<ClusterConfig>) -> Clusters {
    rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
    clusters_for("acme", configs)
}

pub(crate) fn clusters_for(name: &str, configs: Vec<ClusterConfig>) -> Clusters {
    Clusters::build(&tenant(name), &[7; 32], configs, None).expect("sound configuration")
}

pub(crate) fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).expect("a slug")
}

pub(crate) fn run() -> RunId {
    RunId::from_random([9; 16])
}

/// A permit as [`decide`] gives it: approved if there is a run.
pub(crate) fn permit(tenant_name: &str, effect: Effect, approved: Option<RunId>) -> Permit {
    let caller = Caller {
        tenant: tenant(tenant_name),
        principal: Principal::new("i", "s"),
        scopes: Scopes::parse("tools:write"),
        expires_at: Moment::from_secs(9),
        token: None,
        labels: Vec::new(),
    };
    let used = ToolUse {
        tool: ToolName::parse("k8s_any").expect("a name"),
        toolset: ToolsetName::parse("k8s").expect("a name"),
        needs: Level::Write,
        effect,
        about: None,
        schema: "",
        arguments: "{}",
    };
    let call = Call::new(CallId::from_random([1; 16]), Arc::new(caller), None, used);
    let policy = Policy { mode: SessionMode::Write, deny: vec![], require_approval: vec![], calls_per_minute: 10 };
    let evidence = match approved {
        Some(run) => evidence_of(&call, run),
        None => CallEvidence::of_address(&Opened, [(call.toolset.clone(), Level::Write)].into_iter().collect()),
    };
    match decide(&policy, call, &evidence) {
        Decision::Permit(permit) | Decision::Ask(_, permit) => permit,
        Decision::Deny(reason) => panic!("denied: {reason:?}"),
    }
}

pub(crate) fn reading() -> Permit {
    permit("acme", Effect::Read, None)
}

pub(crate) fn rehearsing() -> Permit {
    permit("acme", Effect::Change, None)
}

pub(crate) fn acting() -> Permit {
    permit("acme", Effect::Change, Some(run()))
}

/// One object in the default namespace, or without one.
pub(crate) async fn target(cluster: &Cluster<'_>, kind: &str, name: &str) -> ResourceRef {
    place(cluster, kind, None).await.object(name).expect("a sound name")
}

pub(crate) async fn place(cluster: &Cluster<'_>, kind: &str, namespace: Option<&str>) -> KindScope {
    let kind = cluster.kind(kind).await.expect("a known kind");
    cluster.place(&kind, namespace, Wildcard::Allowed).await.expect("an allowed place")
}

/// The evidence of a run of this call that somebody approved.
fn evidence_of(call: &Call, run: RunId) -> CallEvidence {
    let at = Moment::from_secs(1_763_280_000);
    let by = Principal::new("i", "ana");
    let answer = Answer { by, verdict: Verdict::Approve, reason: None, at, span: None };
    let run = Run { answers: vec![answer], ..Run::new(run, RunRequest::new(call, at)) };
    CallEvidence::of_approved_run(&run, &Opened).expect("an approved run")
}
