//! What a writer sends, and what it refuses to.

use crate::border::support::*;
use domain::Code;
use kubernetes::client::{
    Cluster, ClusterWriter, DeleteCascade, DeleteOptions, Force, MaskDetail, ObjectPatch, PodCommand, ProbeRequest,
    marker,
};
use serde_json::{Value, json};
use std::time::Duration;

const DELETION: DeleteOptions = DeleteOptions { uid: None, cascade: DeleteCascade::Background, grace_s: None };

/// Every write there is that can be rehearsed.
async fn everything(cluster: &Cluster<'_>, writer: &ClusterWriter<'_>) -> Vec<Result<(), Code>> {
    let web = target(cluster, "Deployment", "web").await;
    let pod = target(cluster, "Pod", "web-1").await;
    let pods = place(cluster, "Pod", None).await;
    let merge = || ObjectPatch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }).into());
    let json = || ObjectPatch::Json(json!([{ "op": "replace", "path": "/spec/paused", "value": true }]).into());
    vec![
        writer.apply(&web, json!({ "spec": {} }), Force::No).await,
        writer.patch(&web, merge(), Some("7")).await,
        writer.patch(&web, json(), Some("7")).await,
        writer.patch_status(&web, ObjectPatch::Merge(json!({ "status": {} }).into()), None).await,
        writer.create(&pods, json!({ "metadata": { "name": "one" } })).await,
        writer.delete(&web, &DeleteOptions { uid: Some("u-1".into()), grace_s: Some(0), ..DELETION }).await,
        writer.set_scale(&web, 3, Some("7")).await,
        writer.evict(&pod, Some("u-2"), Some(30)).await,
        writer.add_ephemeral(&pod, json!({ "name": "debug" }), None).await,
    ]
    .into_iter()
    .map(|result| result.map(drop).map_err(|failure| failure.code))
    .collect()
}

async fn api() -> Api {
    Api::start(|_, _| Reply::Json(200, deployment("web", 1))).await
}

#[tokio::test]
async fn under_a_rehearsal_everything_is_a_dry_run() {
    for permit in [rehearsing(), reading()] {
        let api = api().await;
        let clusters = api.clusters();
        let cluster = clusters.of(&permit, None).unwrap();
        let writer = cluster.write().unwrap_or_else(|_| cluster.dry_run());
        assert!(everything(&cluster, &writer).await.iter().all(Result::is_ok));

        let seen = api.seen();
        assert_eq!(seen.len(), 9);
        for request in seen {
            assert!(request.query.contains("dryRun=All"), "{}", request.line());
            if matches!(request.method.as_str(), "DELETE") {
                assert_eq!(request.json()["dryRun"], json!(["All"]), "the options of a deletion are in its body");
            }
            assert!(!request.body.contains("run_"), "a rehearsal leaves no mark");
        }
    }
}

/// A document of `one.example/v1` in which the writes to widgets take these parameters.
fn openapi(parameters: &Value) -> Value {
    let operation = json!({ "parameters": parameters,
        "x-kubernetes-group-version-kind": { "group": "one.example", "version": "v1", "kind": "Widget" } });
    // As API servers describe it for custom kinds.
    let mut collection = operation.clone();
    collection["parameters"] = json!([]);
    collection["x-kubernetes-action"] = json!("deletecollection");
    json!({
        "paths": {
            "/apis/one.example/v1/namespaces/{namespace}/widgets": { "delete": collection },
            "/apis/one.example/v1/namespaces/{namespace}/widgets/{name}": { "get": operation, "patch": operation },
        },
        "components": { "parameters": { "dry": { "name": "dryRun", "in": "query" } } },
    })
}

#[tokio::test]
async fn a_dry_run_is_sent_only_where_the_server_says_that_it_takes_them() {
    let declared = json!([{ "name": "force", "in": "query" }, { "name": "dryRun", "in": "query" }]);
    for (parameters, takes) in [
        (declared, true),
        (json!([{ "$ref": "#/components/parameters/dry" }]), true),
        (json!([{ "name": "force", "in": "query" }]), false),
        (json!([{ "name": "dryRun", "in": "path" }]), false),
        (json!(null), false),
    ] {
        let document = openapi(&parameters);
        let api = Api::start(move |seen, _| {
            let is_document = seen.path.starts_with("/openapi");
            Reply::Json(200, if is_document { document.clone() } else { json!({ "kind": "Widget" }) })
        })
        .await;
        let clusters = api.clusters();
        for permit in [rehearsing(), reading()] {
            let cluster = clusters.of(&permit, None).unwrap();
            let widget = target(&cluster, "widgets.one.example", "one").await;
            for _ in 0..2 {
                let tried = cluster.dry_run().apply(&widget, json!({ "spec": {} }), Force::No).await;
                assert_eq!(
                    tried.map(drop).map_err(|failure| failure.code),
                    match takes {
                        true => Ok(()),
                        false => Err(kubernetes::codes::DRY_RUN_UNSUPPORTED),
                    }
                );
            }
        }
        let (documents, writes): (Vec<_>, Vec<_>) = api.seen().into_iter().partition(|seen| seen.method == "GET");
        assert_eq!(writes.len(), if takes { 4 } else { 0 }, "{parameters}");
        assert_eq!(documents.len(), if takes { 1 } else { 4 }, "what was said is believed for as long as discovery is");
    }
}

#[tokio::test]
async fn what_cannot_be_rehearsed_is_refused_under_a_rehearsal() {
    let api = api().await;
    let (permit, clusters) = (rehearsing(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let pod = target(&cluster, "Pod", "web-1").await;
    let exec = PodCommand { container: None, command: vec!["id".into()], stdin: None, timeout: Duration::from_secs(1) };
    let probe = ProbeRequest { port: 80, path: "/".into(), https: false };
    let writer = cluster.write().unwrap();
    assert_eq!(writer.exec(&pod, &exec).await.unwrap_err().code, Code::NotPossible);
    assert_eq!(writer.probe(&pod, &probe).await.unwrap_err().code, Code::NotPossible);
    assert!(api.seen().is_empty());
}

#[tokio::test]
async fn a_permit_to_read_gets_no_writer() {
    let api = api().await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    assert_eq!(cluster.write().unwrap_err().code, Code::PolicyDenied);
    assert!(cluster.dry_run().is_dry());
}

#[tokio::test]
async fn an_approved_write_says_exactly_what_it_does() {
    let api = api().await;
    let (permit, clusters) = (acting(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    assert!(everything(&cluster, &cluster.write().unwrap()).await.iter().all(Result::is_ok));

    let seen = api.seen();
    assert!(seen.iter().all(|request| !request.query.contains("dryRun") && !request.body.contains("dryRun")));
    let base = "/apis/apps/v1/namespaces/default/deployments/web";
    assert_eq!(
        api.lines(),
        [
            format!("PATCH {base}"),
            format!("PATCH {base}"),
            format!("PATCH {base}"),
            format!("PATCH {base}/status"),
            "POST /api/v1/namespaces/default/pods".into(),
            format!("DELETE {base}"),
            format!("PATCH {base}/scale"),
            "POST /api/v1/namespaces/default/pods/web-1/eviction".into(),
            "PATCH /api/v1/namespaces/default/pods/web-1/ephemeralcontainers".into(),
        ]
    );
    let apply = &seen[0];
    assert_eq!(apply.headers["content-type"], "application/apply-patch+yaml");
    let agent = apply.headers["user-agent"].to_str().unwrap();
    assert!(agent.starts_with("quartermaster/0."), "the owner of a cluster finds us in its audit log by {agent}");
    assert_eq!(apply.query, "fieldManager=quartermaster&fieldValidation=Strict&force=false");
    assert_eq!((&apply.json()["kind"], &apply.json()["metadata"]["name"]), (&json!("Deployment"), &json!("web")));
    for marked in [0, 1, 4] {
        assert!(marker::carries(&seen[marked].json(), run()), "{}", seen[marked].line());
    }
    assert_eq!(seen[1].json()["metadata"]["resourceVersion"], "7");
    assert_eq!(seen[2].json()[0], json!({ "op": "test", "path": "/metadata/resourceVersion", "value": "7" }));
    assert_eq!(seen[5].json()["preconditions"], json!({ "uid": "u-1" }));
    assert_eq!(seen[5].json()["gracePeriodSeconds"], 0);
    assert_eq!(seen[6].json(), json!({ "spec": { "replicas": 3 }, "metadata": { "resourceVersion": "7" } }));
    assert_eq!(seen[7].json()["deleteOptions"]["preconditions"], json!({ "uid": "u-2" }));
}

#[tokio::test]
async fn protected_namespaces_are_left_alone_whoever_signs() {
    let api = api().await;
    let mut config = api.config();
    config.protected = vec![kubernetes::client::NamespacePattern::parse("vault-*").unwrap()];
    let (permit, clusters) = (acting(), clusters_of(vec![config]));
    let cluster = clusters.of(&permit, None).unwrap();
    let writer = cluster.write().unwrap();
    for namespace in ["kube-system", "vault-a"] {
        let place = place(&cluster, "Deployment", Some(namespace)).await;
        let failure = writer.delete(&place.object("web").unwrap(), &DELETION).await.unwrap_err();
        assert_eq!(failure.code, kubernetes::codes::PROTECTED);
        assert_eq!(writer.create(&place, json!({})).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    }
    let itself = target(&cluster, "Namespace", "kube-system").await;
    assert_eq!(writer.delete(&itself, &DELETION).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert!(api.seen().is_empty());
}

#[tokio::test]
async fn a_patch_or_body_of_a_strange_shape_breaks_nothing() {
    let api = api().await;
    let (permit, clusters) = (acting(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let writer = cluster.write().unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    let pods = place(&cluster, "Pod", None).await;
    for strange in [
        json!("text"),
        json!(7),
        json!(null),
        json!([1]),
        json!({ "metadata": "no" }),
        json!({ "metadata": { "annotations": [] } }),
    ] {
        writer.apply(&web, strange.clone(), Force::Yes).await.unwrap();
        writer.create(&pods, strange.clone()).await.unwrap();
        writer.patch(&web, ObjectPatch::Merge(strange.into()), Some("7")).await.ok();
    }
    let rollout = target(&cluster, "Rollout", "web").await;
    let strategic = writer.patch(&rollout, ObjectPatch::Strategic(json!({}).into()), None).await.unwrap_err();
    assert_eq!(strategic.code, kubernetes::codes::STRATEGIC_UNSUPPORTED);
    let node = target(&cluster, "Node", "n1").await;
    assert_eq!(writer.set_scale(&node, 1, None).await.unwrap_err().code, kubernetes::codes::NOT_SCALABLE);
}

#[tokio::test]
async fn a_probe_reaches_the_port_and_nothing_beside_it() {
    let api = Api::start(|seen, _| match seen.query.as_str() {
        "none" => status(503, "ServiceUnavailable", "no endpoints available for service \"web\"", json!([])),
        "shut" => status(503, "ServiceUnavailable", "dial tcp 10.0.0.1:80: connect: connection refused", json!([])),
        _ => Reply::Text(418, format!("token=abcdefghijkl {}", "x".repeat(20_000))),
    })
    .await;
    let (permit, clusters) = (acting(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let writer = cluster.write().unwrap();
    let web = target(&cluster, "Service", "web").await;
    let at = |path: &str| ProbeRequest { port: 8443, path: path.into(), https: true };

    let probed = writer.probe(&web, &at("/healthz?full")).await.unwrap();
    assert_eq!((probed.status, probed.truncated), (418, true));
    assert!(!probed.body.contains("abcdefghijkl") && probed.body.len() < 17_000);
    assert_eq!(api.lines(), ["GET /api/v1/namespaces/default/services/https:web:8443/proxy/healthz"]);
    assert_eq!(writer.probe(&web, &at("/?none")).await.unwrap_err().code, kubernetes::codes::NO_ENDPOINTS);
    assert_eq!(writer.probe(&web, &at("/?shut")).await.unwrap_err().code, kubernetes::codes::CONNECTION_REFUSED);
    let before = api.seen().len();
    for path in ["", "x", "/../../nodes", "/%2e%2e/x", "/a b", "/a#b", "/a\\b", "/%2F", "/\n"] {
        assert_eq!(writer.probe(&web, &at(path)).await.unwrap_err().code, Code::InvalidArgument, "{path:?}");
    }
    assert_eq!(api.seen().len(), before);
}

#[tokio::test]
async fn an_execution_that_is_refused_says_why_and_one_that_breaks_is_unknown() {
    let table: [(Reply, Code); 4] = [
        (status(403, "Forbidden", "no", json!([])), target::codes::FORBIDDEN),
        (
            status(400, "BadRequest", "a container name must be specified for pod web-1", json!([])),
            kubernetes::codes::CONTAINER_REQUIRED,
        ),
        (
            status(500, "InternalError", "exec failed: \"x\": executable file not found in $PATH", json!([])),
            kubernetes::codes::COMMAND_NOT_FOUND,
        ),
        (Reply::Reset, Code::OutcomeUnknown),
    ];
    for (reply, code) in table {
        let api = Api::start(move |_, _| reply.clone()).await;
        let (permit, clusters) = (acting(), api.clusters());
        let cluster = clusters.of(&permit, None).unwrap();
        let pod = target(&cluster, "Pod", "web-1").await;
        let command = vec!["sh".into(), "-c".into(), "id; x=$(y) &".into()];
        let exec = PodCommand { container: Some("app".into()), command, stdin: None, timeout: Duration::from_secs(5) };
        let failure = cluster.write().unwrap().exec(&pod, &exec).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure:?}");
        let seen = api.seen();
        assert_eq!(seen.len(), 1);
        let words: Vec<&str> = seen[0].query.split('&').filter(|part| part.starts_with("command=")).collect();
        assert_eq!(words, ["command=sh", "command=-c", "command=id%3B+x%3D%24%28y%29+%26"]);
        assert!(!seen[0].query.contains("tty=true"));
    }
}

#[tokio::test]
async fn what_a_write_gives_back_is_masked_and_without_the_mark() {
    let api = Api::start(|seen, _| {
        let mut object: Value = seen.json();
        object["data"] = json!({ "password": "aHVudGVyMg==" });
        Reply::Json(201, object)
    })
    .await;
    let (permit, clusters) = (acting(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let secret = target(&cluster, "Secret", "db").await;
    let body = json!({ "stringData": { "password": "hunter2" } });
    let written = cluster.write().unwrap().apply(&secret, body, Force::No).await.unwrap();
    assert!(written.created);
    let text = written.object.to_string();
    assert!(!text.contains("hunter2") && !text.contains("aHVudGVyMg") && !text.contains("quartermaster/run"), "{text}");
    assert_eq!(
        written.object["data"]["password"], written.object["stringData"]["password"],
        "equal values, equal marks"
    );
    assert!(api.seen()[0].body.contains("hunter2"), "what is written is what was meant");
    assert_eq!(
        cluster.get(&secret, MaskDetail::Clean).await.map(drop).unwrap_err().code,
        target::codes::TARGET_UNREACHABLE
    );
}
