//! The seed of `dev`: what is wrong can be found and mended.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{ListParams, LogParams, Patch, PatchParams};
use sandbox::Seed;
use serde_json::{Value, json};

use super::support::Cluster;

fn waiting_reason(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?.state.as_ref()?.waiting.as_ref()?;
    status.reason.clone()
}

async fn pods(cluster: &Cluster, app: &str) -> Vec<Pod> {
    let params = ListParams::default().labels(&format!("app={app}"));
    cluster.api::<Pod>("shop").list(&params).await.unwrap().items
}

fn is_available(deployment: &Deployment, replicas: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && status.updated_replicas == Some(replicas)
        && status.available_replicas == Some(replicas)
        && status.replicas == Some(replicas)
}

#[tokio::test]
async fn the_checkout_rollout_is_stuck_on_a_missing_image_and_the_old_pods_still_serve() {
    let cluster = Cluster::of(Seed::shop()).await;

    let checkout = cluster.api::<Deployment>("shop").get("checkout").await.unwrap();
    let reasons: Vec<String> = pods(&cluster, "checkout").await.iter().filter_map(waiting_reason).collect();
    let events =
        cluster.api::<Event>("shop").list(&ListParams::default().fields("type=Warning,reason=Failed")).await.unwrap();
    let endpoints = cluster.get("/api/v1/namespaces/shop/endpoints/checkout").await;

    let status = checkout.status.unwrap();
    assert_eq!(status.available_replicas, Some(3));
    assert!(!reasons.is_empty() && reasons.iter().all(|reason| reason == "ImagePullBackOff"), "{reasons:?}");
    let told =
        |event: &Event| event.message.as_deref().is_some_and(|text| text.contains("shop/checkout:2.8.0: not found"));
    assert!(events.items.iter().any(told));
    assert_eq!(endpoints["subsets"][0]["addresses"].as_array().unwrap().len(), 3);
    let progressing = status.conditions.unwrap().into_iter().find(|one| one.type_ == "Progressing").unwrap();
    assert_eq!(progressing.reason.as_deref(), Some("ProgressDeadlineExceeded"));
}

#[tokio::test]
async fn going_back_to_the_previous_template_heals_checkout() {
    let cluster = Cluster::of(Seed::shop()).await;
    let sets = cluster.get("/apis/apps/v1/namespaces/shop/replicasets?labelSelector=app%3Dcheckout").await;
    let revision = |set: &Value| set["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone();
    let previous = sets["items"].as_array().unwrap().iter().find(|set| revision(set) == "2").unwrap();
    let mut template = previous["spec"]["template"].clone();
    template["metadata"]["labels"].as_object_mut().unwrap().remove("pod-template-hash");

    let undo = json!([{ "op": "replace", "path": "/spec/template", "value": template }]);
    let path = "/apis/apps/v1/namespaces/shop/deployments/checkout";
    let (code, answer) = cluster.patch(path, "json", &undo).await;
    assert_eq!(code, 200, "{answer}");

    let api = cluster.api::<Deployment>("shop");
    let healed = cluster.until(&api, "checkout", |one| is_available(one, 4)).await;
    assert_eq!(healed.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "4");
}

#[tokio::test]
async fn the_crashing_worker_names_the_variable_it_misses_and_runs_once_it_has_it() {
    let cluster = Cluster::of(Seed::shop()).await;
    let crashing = pods(&cluster, "cart-worker").await;
    let broken = crashing.iter().find(|pod| waiting_reason(pod).as_deref() == Some("CrashLoopBackOff")).unwrap();
    let name = broken.metadata.name.clone().unwrap();
    let restarts = broken.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].restart_count;
    let log =
        cluster.api::<Pod>("shop").logs(&name, &LogParams { previous: true, ..Default::default() }).await.unwrap();

    assert!(restarts > 3, "{restarts} restarts in two hours");
    assert!(log.contains("required environment variable REDIS_URL is not set"), "{log}");

    let env = json!({ "name": "REDIS_URL", "valueFrom": { "configMapKeyRef": { "name": "shop-config", "key": "redis-url" } } });
    let mend =
        json!({ "spec": { "template": { "spec": { "containers": [{ "name": "cart-worker", "env": [env] }] } } } });
    let api = cluster.api::<Deployment>("shop");
    api.patch("cart-worker", &PatchParams::default(), &Patch::Strategic(mend)).await.unwrap();
    cluster.until(&api, "cart-worker", |one| is_available(one, 2)).await;
}

#[tokio::test]
async fn everything_else_is_well_and_says_that_it_is_simulated() {
    let cluster = Cluster::of(Seed::shop()).await;

    for (namespace, name, replicas) in [("shop", "frontend", 3), ("shop", "catalog", 2), ("platform", "metrics", 2)] {
        let one = cluster.api::<Deployment>(namespace).get(name).await.unwrap();
        assert!(is_available(&one, replicas), "{name}: {:?}", one.status);
    }
    let set = cluster.get("/apis/apps/v1/namespaces/shop/statefulsets/redis").await;
    let daemons = cluster.get("/apis/apps/v1/namespaces/platform/daemonsets/log-agent").await;
    let claim = cluster.get("/api/v1/namespaces/shop/persistentvolumeclaims/data-redis-0").await;
    let node = cluster.get("/api/v1/nodes/sandbox-node-1").await;
    assert_eq!(set["status"]["readyReplicas"], 1);
    assert_eq!(daemons["status"]["numberReady"], 3);
    assert_eq!(claim["status"]["phase"], "Bound");
    assert_eq!(node["metadata"]["annotations"]["sandbox/simulated"], "true");
    let version = cluster.client.apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.33.0+sandbox");
}
