//! `k8s_probe`.

use crate::k8s_write_objects::world::{World, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

const TOOL: &str = "k8s_probe";

fn ask(name: &str, port: u16, path: &str) -> Value {
    json!({ "kind": "service", "name": name, "port": port, "path": path })
}

#[tokio::test]
async fn a_service_is_asked_through_the_api_server() {
    let world = World::shop().await;
    let args = ask("frontend", 8080, "/healthz");
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    assert_eq!(shown.summary, "GET http port 8080 of Service shop/frontend: /healthz");
    for part in ["endpoints: 3 ready pods of app=frontend", "port: 8080 (http)", "path: /healthz"] {
        assert!(shown.text.contains(part), "{part} in\n{}", shown.text);
    }
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap().fingerprint, shown.fingerprint);
    assert!(world.sandbox.requests().iter().all(|request| !request.contains("/proxy")), "a preview asks nobody");

    let told = world.run(TOOL, args.clone()).await.unwrap();
    assert_eq!((&told["status"], &told["body"], &told["untrusted"]), (&json!(200), &json!("ok\n"), &json!(true)));
    let asked: Vec<String> =
        world.sandbox.requests().into_iter().filter(|request| request.contains("/proxy")).collect();
    assert_eq!(asked, ["GET /api/v1/namespaces/shop/services/frontend:8080/proxy/healthz"]);
    assert_eq!(world.probe(TOOL, args, run()).await, ProbeResult::Unknown);
}

#[tokio::test]
async fn whatever_the_application_answers_is_a_result() {
    let world = World::shop().await;
    let told = world.run(TOOL, ask("catalog", 8080, "/missing")).await.unwrap();
    assert_eq!(told["status"], 404);
    let told = world.run(TOOL, json!({ "kind": "pod", "name": "redis-0", "port": 6379 })).await.unwrap();
    assert_eq!(told["status"], 200);
    assert!(told["body"].as_str().unwrap().contains("redis-0"));
    let secret = ask("catalog", 8080, "/x?token=abcdefgh12345678");
    let told = world.run(TOOL, secret).await.unwrap();
    assert!(!told["body"].as_str().unwrap().contains("abcdefgh12345678"), "{told}");
}

#[tokio::test]
async fn a_closed_port_and_an_empty_service_are_told_apart() {
    let world = World::shop().await;
    let closed = json!({ "kind": "pod", "name": "redis-0", "port": 1 });
    assert_eq!(world.run(TOOL, closed).await.unwrap_err().code, kubernetes::codes::CONNECTION_REFUSED);
    world
        .make(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "empty", "namespace": "shop" },
            "spec": { "selector": { "app": "nobody" }, "ports": [{ "port": 80 }] } }))
        .await;
    assert_eq!(world.run(TOOL, ask("empty", 80, "/")).await.unwrap_err().code, kubernetes::codes::NO_ENDPOINTS);
    let shown = world.preview(TOOL, ask("frontend", 81, "/")).await.unwrap();
    assert_eq!(shown.warnings, ["the service has no port 81"]);
    let refused = world.preview(TOOL, ask("frontned", 80, "/")).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["frontend".to_owned()]));
    let fault =
        ClusterFault { method: Some("GET".into()), path: "/proxy".into(), times: 1, harm: ClusterHarm::CutAfter };
    world.sandbox.plant(fault);
    assert_eq!(world.run(TOOL, ask("frontend", 8080, "/")).await.unwrap_err().code, Code::OutcomeUnknown);
}

#[tokio::test]
async fn a_service_that_selects_others_voids_the_yes() {
    let world = World::shop().await;
    let args = ask("catalog", 8080, "/");
    let shown = world.preview(TOOL, args.clone()).await.unwrap();
    world.change("Service", "catalog", json!({ "metadata": { "labels": { "a": "b" } } })).await;
    assert_eq!(world.last_look(TOOL, args.clone()).await.unwrap().fingerprint, shown.fingerprint);
    world.change("Service", "catalog", json!({ "spec": { "selector": { "app": "frontend" } } })).await;
    let moved = world.last_look(TOOL, args).await.unwrap();
    assert!(moved.fingerprint != shown.fingerprint && moved.text != shown.text);
}

#[tokio::test]
async fn protected_and_foreign_namespaces_are_left_alone() {
    let protected = World::protected().await;
    assert_eq!(
        protected.preview(TOOL, ask("frontend", 8080, "/")).await.unwrap_err().code,
        kubernetes::codes::PROTECTED
    );
    assert_eq!(protected.run(TOOL, ask("frontend", 8080, "/")).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    let limited = World::limited(&["shop"]).await;
    let mut args = ask("metrics", 9100, "/");
    args["namespace"] = json!("platform");
    assert_eq!(limited.preview(TOOL, args.clone()).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    assert_eq!(limited.run(TOOL, args).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
}
