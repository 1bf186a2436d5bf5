//! Custom kinds.

use http::Method;
use serde_json::{Value, json};

use super::support::Cluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/shop/widgets";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "required": ["size"], "properties": {
                        "size": { "type": "integer", "description": "How big it is." },
                        "parts": { "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                            "items": { "type": "object", "properties": { "id": { "type": "string" }, "note": { "type": "string" } } } },
                    } },
                    "status": { "type": "object", "properties": { "size": { "type": "integer" } } },
                } } },
                "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" } },
                "additionalPrinterColumns": [{ "name": "Size", "type": "integer", "jsonPath": ".spec.size" }],
            }],
        },
    })
}

fn widget(size: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "one", "namespace": "shop" }, "spec": { "size": size } })
}

#[tokio::test]
async fn a_definition_makes_its_kind_served_until_it_is_deleted() {
    let cluster = Cluster::empty().await;
    let (before, _) = cluster.ask(Method::GET, WIDGETS, None).await;
    cluster.create(DEFINITIONS, &definition()).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    cluster
        .until_path(&path, |one| {
            one["status"]["conditions"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["type"] == "Established" && one["status"] == "True"))
        })
        .await;

    cluster.create(WIDGETS, &widget(json!(3))).await;
    let listed = cluster.get("/apis/example.com/v1").await;
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let (_, text) = cluster.ask_text(Method::GET, WIDGETS, None, &table).await;
    let rows: Value = serde_json::from_str(&text).unwrap();
    let (_, scaled) =
        cluster.patch(&format!("{WIDGETS}/one/scale"), "merge", &json!({ "spec": { "replicas": 5 } })).await;
    let document = cluster.get("/openapi/v3/apis/example.com/v1").await;
    cluster.ask(Method::DELETE, &path, None).await;
    let (after, _) = cluster.ask(Method::GET, WIDGETS, None).await;

    assert_eq!((before, after), (404, 404));
    assert_eq!(listed["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!((rows["rows"][0]["cells"][1].as_i64(), scaled["spec"]["replicas"].as_i64()), (Some(3), Some(5)));
    assert!(document.to_string().contains("How big it is."));
}

#[tokio::test]
async fn the_schema_of_a_definition_is_kept() {
    let cluster = Cluster::empty().await;
    cluster.create(DEFINITIONS, &definition()).await;

    let (shape, _) = cluster.ask(Method::POST, WIDGETS, Some(("application/json", &widget(json!("big"))))).await;
    let mut empty = widget(json!(1));
    empty["spec"] = json!({});
    let (missing, why) = cluster.ask(Method::POST, WIDGETS, Some(("application/json", &empty))).await;
    let mut applied = widget(json!(2));
    applied["spec"]["parts"] = json!([{ "id": "a", "note": "first" }]);
    let (made, _) = cluster.patch(&format!("{WIDGETS}/one?fieldManager=one"), "apply", &applied).await;
    applied["spec"] = json!({ "size": 2, "parts": [{ "id": "b", "note": "second" }] });
    let (_, both) = cluster.patch(&format!("{WIDGETS}/one?fieldManager=two"), "apply", &applied).await;
    let (strategic, _) = cluster.patch(&format!("{WIDGETS}/one"), "strategic-merge", &json!({ "spec": {} })).await;

    assert_eq!((shape, missing, made, strategic), (400, 422, 201, 415));
    assert_eq!(why["details"]["causes"][0]["field"], "spec.size");
    assert_eq!(both["spec"]["parts"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn rollouts_of_argo_are_served_with_scale_and_status() {
    let cluster = Cluster::empty().await;
    let rollouts = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts";
    let rollout = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "replicas": 2, "strategy": { "canary": { "steps": [{ "setWeight": 20 }, { "pause": {} }] } } },
    });
    cluster.create(rollouts, &rollout).await;

    let (_, scaled) =
        cluster.patch(&format!("{rollouts}/web/scale"), "merge", &json!({ "spec": { "replicas": 4 } })).await;
    let (_, status) =
        cluster.patch(&format!("{rollouts}/web/status"), "merge", &json!({ "status": { "phase": "Paused" } })).await;

    assert_eq!(scaled["spec"]["replicas"], 4);
    assert_eq!((status["status"]["phase"].as_str(), status["spec"]["replicas"].as_i64()), (Some("Paused"), Some(4)));
}
