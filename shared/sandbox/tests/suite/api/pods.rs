//! Doors of pods: eviction, proxies, debug containers, measurements.

use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{EvictParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::support::{Cluster, PODS, pod};

async fn pod_names(cluster: &Cluster, app: &str) -> Vec<String> {
    let list = cluster.get(&format!("{PODS}?labelSelector=app%3D{app}")).await;
    let names = list["items"].as_array().unwrap().iter();
    names.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_eviction_is_refused_when_a_budget_forbids_it() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 2).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
    });
    let budgets = "/apis/policy/v1/namespaces/shop/poddisruptionbudgets";
    cluster.create(budgets, &budget).await;
    cluster.until_path(&format!("{budgets}/web"), |one| one["status"]["currentHealthy"] == 2).await;
    let api = cluster.api::<Pod>("shop");
    let names = pod_names(&cluster, "web").await;

    let refused = api.evict(&names[0], &EvictParams::default()).await.unwrap_err();
    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = &status.details.unwrap().causes[0];
    assert_eq!(cause.reason, "DisruptionBudget");
    assert_eq!(cause.message, "The disruption budget web needs 2 healthy pods and has 2 currently");

    cluster.patch(&format!("{budgets}/web"), "merge", &json!({ "spec": { "minAvailable": 1 } })).await;
    api.evict(&names[0], &EvictParams::default()).await.unwrap();
    cluster.until_path(&format!("{PODS}/{}", names[0]), |answer| answer["code"] == 404).await;
}

#[tokio::test]
async fn the_proxy_reaches_pods_and_services_that_listen() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 1).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] },
    });
    cluster.create("/api/v1/namespaces/shop/services", &service).await;
    let name = &pod_names(&cluster, "web").await[0];

    let (code, through_service) =
        cluster.ask(Method::GET, "/api/v1/namespaces/shop/services/web:80/proxy/api/x", None).await;
    let (_, health) = cluster.ask_text(Method::GET, &format!("{PODS}/{name}:8080/proxy/healthz"), None, &[]).await;
    let (closed, why) = cluster.ask(Method::GET, &format!("{PODS}/{name}:81/proxy/"), None).await;
    let (missing, _) = cluster.ask(Method::GET, "/api/v1/namespaces/shop/services/web:80/proxy/missing", None).await;
    let (no_port, told) = cluster.ask(Method::GET, "/api/v1/namespaces/shop/services/web:99/proxy/", None).await;

    assert_eq!((code, through_service["path"].as_str(), health.as_str()), (200, Some("/api/x"), "ok\n"));
    assert_eq!((closed, why["reason"].as_str(), missing, no_port), (503, Some("ServiceUnavailable"), 404, 503));
    assert!(why["message"].as_str().unwrap().contains("connection refused"));
    assert!(told["message"].as_str().unwrap().contains("no service port"));
}

#[tokio::test]
async fn a_debug_container_joins_a_running_pod_and_cannot_leave() {
    let cluster = Cluster::empty().await;
    cluster.create(PODS, &pod("web", "app:1")).await;
    cluster.until_path(&format!("{PODS}/web"), |pod| pod["status"]["phase"] == "Running").await;
    let api = cluster.api::<Pod>("shop");
    let debug = json!({ "name": "debug", "image": "tools:1", "command": ["echo", "looked"] });

    let added = json!({ "spec": { "ephemeralContainers": [debug] } });
    api.patch_ephemeral_containers("web", &PatchParams::default(), &Patch::Strategic(added)).await.unwrap();
    let done = |pod: &Value| pod["status"]["ephemeralContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0;
    cluster.until_path(&format!("{PODS}/web"), done).await;

    let (_, log) = cluster.ask_text(Method::GET, &format!("{PODS}/web/log?container=debug"), None, &[]).await;
    let gone = json!({ "spec": { "ephemeralContainers": null } });
    let (code, _) = cluster.patch(&format!("{PODS}/web/ephemeralcontainers"), "merge", &gone).await;
    let (direct, refused) =
        cluster.patch(&format!("{PODS}/web"), "merge", &json!({ "spec": { "hostname": "x" } })).await;
    assert_eq!((log.as_str(), code, direct), ("looked\n", 422, 422));
    assert!(refused["message"].as_str().unwrap().contains("pod updates may not change fields other than"));
}

#[tokio::test]
async fn running_pods_and_nodes_are_measured() {
    let cluster = Cluster::empty().await;
    cluster.deployed("web", 1).await;

    let pods = cluster.get("/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods?labelSelector=app%3Dweb").await;
    let node = cluster.get("/apis/metrics.k8s.io/v1beta1/nodes/sandbox-node-1").await;
    let (missing, _) = cluster.ask(Method::GET, "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods/nobody", None).await;

    assert_eq!((pods["kind"].as_str(), missing), (Some("PodMetricsList"), 404));
    assert!(pods["items"][0]["containers"][0]["usage"]["cpu"].as_str().unwrap().ends_with('n'));
    assert!(node["usage"]["memory"].as_str().unwrap().ends_with("Ki"));
}
