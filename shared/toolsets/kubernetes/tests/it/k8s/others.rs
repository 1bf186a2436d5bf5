//! `k8s_top`, `k8s_rollout_status`, `k8s_wait` and `k8s_diff`.

use crate::k8s::world::{World, items, texts};
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm, Seed};
use serde_json::json;

#[tokio::test]
async fn pods_and_nodes_are_measured() {
    let world = World::shop().await;

    let pods = world.call("k8s_top", json!({ "of": "pods", "selector": "app=frontend", "containers": true })).await;
    let pods = match pods {
        Err(failure) if failure.code == kubernetes::codes::METRICS_UNAVAILABLE => return, // a sandbox need not measure
        other => other.unwrap(),
    };
    assert_eq!(items(&pods).len(), 3);
    assert!(items(&pods).iter().all(|p| p["cpu_pct"].is_u64() && p["containers"].as_array().unwrap().len() == 1));
    let nodes = world.call("k8s_top", json!({ "of": "nodes", "sort": "memory" })).await.unwrap();
    let used: Vec<u64> = items(&nodes).iter().map(|n| n["memory_mi"].as_u64().unwrap()).collect();
    assert!(used.is_sorted_by(|a, b| a >= b) && used.len() == 3);
    let near = world.refused("k8s_top", json!({ "of": "nodes", "name": "sandbox-node-9" })).await;
    assert_eq!(near.code, Code::NotFound);
}

#[tokio::test]
async fn a_stuck_rollout_is_told_with_its_history() {
    let world = World::shop().await;

    let status = world.call("k8s_rollout_status", json!({ "kind": "deploy", "name": "checkout" })).await.unwrap();

    assert_eq!((status["done"].as_bool(), status["desired"].as_u64()), (Some(false), Some(4)), "{status}");
    let revisions: Vec<u64> =
        status["history"].as_array().unwrap().iter().map(|h| h["revision"].as_u64().unwrap()).collect();
    assert_eq!(revisions, [3, 2, 1]);
    assert_eq!((status["revision"].as_u64(), status["history"][0]["current"].as_bool()), (Some(3), Some(true)));
    assert_eq!(status["history"][2]["images"], json!(["registry.sandbox/shop/checkout:2.7.0"]));

    let old = world
        .call("k8s_rollout_status", json!({ "kind": "Deployment", "name": "checkout", "revision": 2 }))
        .await
        .unwrap();
    assert_eq!(old["template"]["spec"]["containers"][0]["image"], "registry.sandbox/shop/checkout:2.7.1");
    let missing =
        world.refused("k8s_rollout_status", json!({ "kind": "Deployment", "name": "checkout", "revision": 9 })).await;
    assert_eq!(
        (missing.code, missing.next.as_deref()),
        (kubernetes::codes::REVISION_NOT_FOUND, Some("choose from: 3, 2, 1"))
    );
    let rollout = world.refused("k8s_rollout_status", json!({ "kind": "Rollout", "name": "checkout" })).await;
    assert_eq!(rollout.code, kubernetes::codes::UNSUPPORTED_KIND);
}

#[tokio::test]
async fn a_stateful_set_has_a_history_too() {
    let world = World::shop().await;
    let status = world.call("k8s_rollout_status", json!({ "kind": "sts", "name": "redis" })).await.unwrap();
    assert_eq!(status["done"], true, "{status}");
    assert_eq!(status["history"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_so_already_is_not_waited_for() {
    let world = World::shop().await;
    let wait =
        |kind: &str, name: &str, until: &str| json!({ "kind": kind, "name": name, "until": until, "timeout_s": 5 });
    for (kind, name, until) in [
        ("Deployment", "frontend", "Available"),
        ("Deployment", "frontend", "rollout"),
        ("StatefulSet", "redis", "rollout"),
        ("Deployment", "frontend", "spec.replicas=3"),
        ("Deployment", "nobody", "deleted"),
        ("ns", "shop", "exists"),
    ] {
        let answer = world.call("k8s_wait", wait(kind, name, until)).await.unwrap();
        assert_eq!(answer["met"], true, "{kind} {name} {until}: {answer}");
    }
    let absent = world.refused("k8s_wait", wait("Deployment", "fronten", "Available")).await;
    assert_eq!((absent.code, absent.did_you_mean), (Code::NotFound, vec!["frontend".to_owned()]));
}

#[tokio::test]
async fn what_does_not_come_in_time_is_an_answer() {
    let world = World::shop().await;
    let args = json!({ "kind": "Deployment", "name": "frontend", "until": "spec.replicas=99", "timeout_s": 1 });
    let answer = world.call("k8s_wait", args).await.unwrap();
    assert_eq!((answer["met"].as_bool(), answer["state"].as_str()), (Some(false), Some("spec.replicas=3")));
    let slept = world.call("k8s_wait", json!({ "timeout_s": 1 })).await.unwrap();
    assert_eq!(slept, json!({ "waited_s": 1 }));
}

#[tokio::test]
async fn k5_a_wait_sees_what_happens_although_its_watches_break() {
    let world = World::shop().await;
    world.sandbox.plant(ClusterFault {
        method: Some("GET".into()),
        path: "watch=true".into(),
        times: 3,
        harm: ClusterHarm::Cut,
    });
    let args = json!({ "kind": "cm", "name": "flag", "until": "data.go=now", "timeout_s": 30 });
    world.make(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "flag", "namespace": "shop" }, "data": { "go": "wait" } })).await;

    let (answer, ()) = tokio::join!(world.call("k8s_wait", args), async {
        // The change comes once the wait has looked at the object.
        while !world.sandbox.requests().iter().any(|r| r.contains("watch=true")) {
            tokio::task::yield_now().await;
        }
        world.make(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "flag", "namespace": "shop" }, "data": { "go": "now" } })).await;
    });

    assert_eq!(answer.unwrap()["met"], true);
}

#[tokio::test]
async fn a_diff_says_what_would_be_made_changed_and_left() {
    let world = World::shop().await;
    let manifest = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: shop-config, namespace: shop}
data: {currency: USD}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: brand-new, namespace: shop}
data: {a: b}
---
apiVersion: v1
kind: Namespace
metadata: {name: later}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: inside, namespace: later}
";
    let answer = world.call("k8s_diff", json!({ "manifest": manifest })).await.unwrap();

    let told: Vec<(&str, &str)> = answer["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| (o["name"].as_str().unwrap(), o["action"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [("shop-config", "change"), ("brand-new", "create"), ("later", "create"), ("inside", "unverified")]
    );
    let change = answer["objects"][0]["diff"].as_str().unwrap();
    assert!(change.contains("-  currency: EUR") && change.contains("+  currency: USD"), "{change}");
    assert!(!change.contains("managedFields") && !change.contains("resourceVersion"), "{change}");
    assert_eq!(
        answer["objects"][0]["conflicts"],
        json!(["kubectl-client-side-apply"]),
        "somebody else owns that field"
    );
    assert!(world.sandbox.writes().is_empty(), "a diff changes nothing");
}

#[tokio::test]
async fn a_manifest_that_cannot_be_read_is_told_where() {
    let world = World::shop().await;
    let failure = world.refused("k8s_diff", json!({ "manifest": "apiVersion: v1\nkind: Pod\nkind: Pod\n" })).await;
    assert_eq!(failure.code, kubernetes::codes::INVALID_MANIFEST);
    assert!(failure.message.starts_with("3:1: "), "{}", failure.message);
    let two = world
        .refused("k8s_diff", json!({ "namespace": "other", "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}" }))
        .await;
    assert_eq!(two.code, kubernetes::codes::NAMESPACE_CONFLICT);
}

#[tokio::test]
async fn k1_a_busy_server_is_asked_again() {
    let world = World::new(Seed::empty().with_pods("shop", 3)).await;
    world.sandbox.plant(ClusterFault {
        method: None,
        path: "/pods".into(),
        times: 1,
        harm: ClusterHarm::Answer(429, Some(1)),
    });
    let answer = world.call("k8s_get", json!({ "kind": "Pod" })).await.unwrap();
    assert_eq!(texts(&answer, "name").len(), 3);
}
