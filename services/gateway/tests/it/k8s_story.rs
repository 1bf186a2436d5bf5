//! An evening on call: something is broken, an agent finds out what, a person agrees, and it is well again.

use crate::k8s_yard::{Draft, Yard};
use serde_json::{Value, json};

/// A row of a list by its name.
fn row<'a>(answer: &'a Value, name: &str) -> &'a Value {
    let rows = answer["items"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name} in {answer:#}"))
}

fn checkout() -> Value {
    json!({ "kind": "Deployment", "name": "checkout" })
}

/// What is wrong, by the ways an agent would look.
async fn found(yard: &Yard) {
    let deployments = yard.read("k8s_get", json!({ "kind": "deployments" })).await;
    let broken = row(&deployments, "checkout");
    assert!(broken.to_string().contains("3/4") || broken.to_string().contains("\"ready\":3"), "{broken}");
    let status = yard.read("k8s_rollout_status", checkout()).await;
    assert_eq!(
        (&status["done"], &status["failed"], &status["revision"]),
        (&json!(false), &json!(true), &json!(3)),
        "{status:#}"
    );
    let images: Vec<&Value> = status["history"].as_array().unwrap().iter().map(|line| &line["images"][0]).collect();
    assert!(images[0].as_str().unwrap().ends_with("checkout:2.8.0"), "{images:?}");
    let pods = yard.read("k8s_get", json!({ "kind": "pods", "selector": "app=checkout" })).await;
    assert!(pods.to_string().contains("ImagePullBackOff"), "{pods:#}");
    let events = yard.read("k8s_get", json!({ "kind": "Event", "field_selector": "type=Warning" })).await;
    assert!(events.to_string().contains("shop/checkout:2.8.0: not found"), "{events:#}");
    let hopeless = json!({ "kind": "Deployment", "name": "checkout", "until": "rollout", "timeout_s": 60 });
    let waited = yard.read("k8s_wait", hopeless).await;
    assert!(
        waited["met"] == false && waited["hint"].is_string(),
        "waiting does not mend it, and that is said: {waited:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_cannot_finish_is_found_and_undone() {
    let yard = Draft::built_in().await;
    let facts = yard.read("k8s_discover", json!({ "ask": "cluster" })).await;
    assert_eq!(facts["simulated"], true, "it says of itself that it is no real cluster");
    found(&yard).await;

    let run = yard.ask("k8s_rollout", json!({ "action": "undo", "kind": "Deployment", "name": "checkout" })).await;
    let shown = yard.shown(&run).await;
    assert_eq!(shown["effect"], "disrupt");
    let text = shown["preview"]["text"].as_str().unwrap();
    for part in ["(simulated)", "2.8.0", "2.7.1", "budgets: checkout"] {
        assert!(text.contains(part) || shown["warnings"].to_string().contains(part), "{part} in\n{shown:#}");
    }
    let told = yard.sign(&run).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
    assert_eq!(told["outcome"]["result"]["to_revision"], 2, "{told:#}");

    yard.rolled_out("checkout").await;
    let status = yard.read("k8s_rollout_status", checkout()).await;
    assert_eq!(
        (&status["done"], &status["ready"], &status["revision"]),
        (&json!(true), &json!(4), &json!(4)),
        "{status:#}"
    );
    let image = yard.field("Deployment", "checkout", "spec.template.spec.containers[0].image").await;
    assert!(image.as_str().unwrap().ends_with("checkout:2.7.1"), "{image}");
    let pods = yard.read("k8s_get", json!({ "kind": "pods", "selector": "app=checkout" })).await;
    assert!(!pods.to_string().contains("ImagePullBackOff"), "{pods:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_a_simulated_cluster_of_its_own() {
    let yard = Draft::built_in().await;
    let neighbour = crate::k8s_yard::loaded(&yard.world.tenant("neighbour").agent()).await;
    yard.act("k8s_scale", json!({ "kind": "deploy", "name": "catalog", "replicas": 5 })).await;
    assert_eq!(yard.field("Deployment", "catalog", "spec.replicas").await, 5);
    let theirs = json!({ "kind": "deploy", "name": "catalog", "path": "spec.replicas" });
    assert_eq!(neighbour.call("k8s_get", theirs).await.ok()["value"], 2);
}
