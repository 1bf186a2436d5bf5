use crate::k8s::world::{World, items, texts};
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm, Seed};
use serde_json::{Value, json};
use std::time::Duration;

#[tokio::test]
async fn a_kind_is_listed_in_short_rows() {
    let world = World::shop().await;

    let answer = world.call("k8s_get", json!({ "kind": "deploy" })).await.unwrap();

    assert_eq!((answer["kind"].as_str(), answer["api_version"].as_str()), (Some("Deployment"), Some("apps/v1")));
    assert_eq!(texts(&answer, "name"), ["cart-worker", "catalog", "checkout", "frontend"]);
    assert_eq!(answer["count"], 4);
    assert_eq!(answer["target"], json!({ "cluster": "main", "namespace": "shop", "simulated": true }));
    let frontend = &items(&answer)[3];
    assert_eq!((frontend["ready"].as_str(), frontend["age"].as_str()), (Some("3/3"), Some("12d")));
}

#[tokio::test]
async fn one_object_has_three_views_and_a_path() {
    let world = World::shop().await;
    let get = |more: Value| {
        let mut args = json!({ "kind": "Deployment", "name": "checkout", "namespace": "shop" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };

    let summary = world.call("k8s_get", get(json!({}))).await.unwrap();
    assert_eq!(summary["object"]["name"], "checkout");
    assert_eq!(summary["object"]["images"], "registry.sandbox/shop/checkout:2.8.0");
    assert!(summary.get("target").is_none() || summary["target"]["namespace"] == "shop");

    let full = world.call("k8s_get", get(json!({ "view": "full" }))).await.unwrap();
    assert!(full["object"]["spec"]["template"]["spec"]["containers"].is_array(), "a full view is whole");
    assert!(full["object"]["metadata"].get("managedFields").is_none());

    let path = world.call("k8s_get", get(json!({ "path": "spec.template.spec.containers[0].image" }))).await.unwrap();
    assert_eq!(path["value"], "registry.sandbox/shop/checkout:2.8.0");
    let wrong = world.refused("k8s_get", get(json!({ "path": "spec.replica" }))).await;
    assert_eq!((wrong.code, wrong.did_you_mean), (kubernetes::codes::UNKNOWN_FIELD, vec!["replicas".to_owned()]));

    let described = world.call("k8s_get", get(json!({ "view": "describe" }))).await.unwrap();
    assert!(described["object"]["metadata"].get("managedFields").is_none());
    assert!(described["conditions"].as_array().unwrap().iter().any(|c| c["type"] == "Progressing"));
    assert!(!described["pods"].as_array().unwrap().is_empty());
    assert!(described["events"].is_array());
}

#[tokio::test]
async fn describe_follows_a_pod_up_to_its_deployment() {
    let world = World::shop().await;
    let pods = world.call("k8s_get", json!({ "kind": "Pod", "selector": "app=frontend" })).await.unwrap();
    let pod = texts(&pods, "name")[0].to_owned();

    let answer = world.call("k8s_get", json!({ "kind": "Pod", "name": pod, "view": "describe" })).await.unwrap();

    let owners: Vec<&str> = answer["owners"].as_array().unwrap().iter().filter_map(|o| o["kind"].as_str()).collect();
    assert_eq!(owners, ["ReplicaSet", "Deployment"]);
    assert_eq!(answer["owners"][1]["name"], "frontend");
}

#[tokio::test]
async fn what_is_not_there_is_told_with_near_names() {
    let world = World::shop().await;

    let failure = world.refused("k8s_get", json!({ "kind": "Deployment", "name": "fronten" })).await;
    assert_eq!(failure.message, "Deployment fronten not found in shop");
    assert_eq!((failure.code, failure.did_you_mean), (Code::NotFound, vec!["frontend".to_owned()]));

    let failure = world.refused("k8s_get", json!({ "kind": "Deploymnt" })).await;
    assert_eq!(failure.code, kubernetes::codes::UNKNOWN_KIND);
    assert!(failure.did_you_mean.contains(&"Deployment".to_owned()), "{:?}", failure.did_you_mean);
}

#[tokio::test]
async fn managed_fields_are_shown_only_to_who_names_them() {
    let world = World::shop().await;
    let get = async |more: Value| {
        let mut args = json!({ "kind": "Deployment", "view": "full" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.call("k8s_get", args).await.unwrap()
    };

    for more in [
        json!({ "name": "checkout" }),
        json!({ "name": "checkout", "path": "metadata" }),
        json!({}),
        json!({ "path": "metadata" }),
    ] {
        let answer = get(more.clone()).await;
        assert!(answer.to_string().contains("creationTimestamp"), "{more}: {answer}");
        assert!(!answer.to_string().contains("managedFields"), "{more}: {answer}");
    }
    let named = get(json!({ "name": "checkout", "path": "metadata.managedFields[0].manager" })).await;
    assert!(named["value"].is_string(), "{named}");
}

#[tokio::test]
async fn a_list_in_a_namespace_that_does_not_exist_says_so() {
    let world = World::shop().await;

    for kind in ["Pod", "Event", "Lease"] {
        let failure = world.refused("k8s_get", json!({ "kind": kind, "namespace": "shopp" })).await;
        assert_eq!(failure.message, "there is no namespace shopp", "{kind}");
        assert_eq!((failure.code, failure.did_you_mean), (Code::NotFound, vec!["shop".to_owned()]), "{kind}");
    }
    let far = world.refused("k8s_get", json!({ "kind": "Pod", "namespace": "zzzzzzzz" })).await;
    assert_eq!((far.code, far.did_you_mean), (Code::NotFound, vec![]));

    let none = world.call("k8s_get", json!({ "kind": "Pod", "selector": "app=nothing" })).await.unwrap();
    assert_eq!(none["count"], 0, "a namespace that is there may be empty");
}

#[tokio::test]
async fn the_namespace_is_looked_up_only_for_an_empty_list_and_only_by_who_may() {
    let world = World::shop().await;
    let looked = |world: &World| world.sandbox.requests().iter().filter(|r| r.ends_with("/v1/namespaces/shop")).count();

    world.call("k8s_get", json!({ "kind": "Pod" })).await.unwrap();
    assert_eq!(looked(&world), 0, "{:?}", world.sandbox.requests());
    world.call("k8s_get", json!({ "kind": "Pod", "selector": "app=nothing" })).await.unwrap();
    assert_eq!(looked(&world), 1, "{:?}", world.sandbox.requests());

    // The list is let through, and the question for the namespace is refused.
    let fault = |path: &str, harm| ClusterFault { method: None, path: path.to_owned(), times: 1, harm };
    world.sandbox.plant(fault("/namespaces/shopp/pods", ClusterHarm::Delay(Duration::ZERO)));
    world.sandbox.plant(fault("/namespaces/shopp", ClusterHarm::Answer(403, None)));
    let unknown = world.call("k8s_get", json!({ "kind": "Pod", "namespace": "shopp" })).await.unwrap();
    assert_eq!(unknown["count"], 0, "who may not look does not know");
}

#[tokio::test]
async fn near_namespaces_are_those_the_tenant_may_use() {
    let world = World::limited(Seed::shop(), Some(&["shop", "plat*"])).await;
    let failure = world.refused("k8s_get", json!({ "kind": "Pod", "namespace": "platfrm" })).await;
    assert_eq!((failure.code, failure.did_you_mean), (Code::NotFound, vec!["platform".to_owned()]));
    let failure = world.refused("k8s_get", json!({ "kind": "Pod", "namespace": "plat-kube-system" })).await;
    assert_eq!((failure.code, failure.did_you_mean), (Code::NotFound, vec![]), "kube-system is not the tenant's");
}

#[tokio::test]
async fn contradictions_and_hostile_words_reach_no_cluster() {
    let world = World::shop().await;
    world.call("k8s_get", json!({ "kind": "Pod" })).await.unwrap();
    let before = world.sandbox.requests().len();

    for args in [
        json!({ "kind": "Pod", "name": "a", "selector": "app=web" }),
        json!({ "kind": "Pod", "view": "describe" }),
        json!({ "kind": "pods/exec" }),
        json!({ "kind": "secret/my-secret" }),
        json!({ "kind": "Pod", "name": "../../secrets/x" }),
        json!({ "kind": "Pod", "name": "a%2f..%2fsecrets" }),
        json!({ "kind": "Pod", "name": "-a" }),
        json!({ "kind": "Pod", "namespace": "shop/../kube-system" }),
        json!({ "kind": "Pod", "selector": "app=web&limit=1" }),
        json!({ "kind": "Pod", "field_selector": "a=b\nx" }),
        json!({ "kind": "Pod", "cursor": "not a cursor" }),
    ] {
        let failure = world.refused("k8s_get", args.clone()).await;
        assert_eq!(failure.code, Code::InvalidArgument, "{args}");
    }
    assert_eq!(world.sandbox.requests().len(), before, "nothing was asked of the cluster");
    let none = world.refused("k8s_get", json!({ "kind": "Pod", "output": "yaml" })).await;
    assert_eq!(none.code, Code::UnknownArgument);
}

#[tokio::test]
async fn a_selector_that_is_taken_is_sent() {
    let world = World::shop().await;
    for (selector, count) in [("cores>4", 0), ("app in(frontend)", 3), ("app in ( frontend ) , !cores", 3)] {
        let answer = world.call("k8s_get", json!({ "kind": "Pod", "selector": selector })).await.unwrap();
        assert_eq!(answer["count"], count, "{selector}");
    }
}

#[tokio::test]
async fn a_cluster_wide_kind_takes_no_namespace() {
    let world = World::shop().await;
    assert_eq!(
        world.refused("k8s_get", json!({ "kind": "Node", "namespace": "shop" })).await.code,
        Code::InvalidArgument
    );
    let nodes = world.call("k8s_get", json!({ "kind": "no" })).await.unwrap();
    assert_eq!(nodes["count"], 3);
    assert!(items(&nodes).iter().all(|node| node["ready"] == true && node.get("namespace").is_none()));
}

#[tokio::test]
async fn every_namespace_means_those_the_tenant_may_see() {
    let free = World::shop().await;
    let all = free.call("k8s_get", json!({ "kind": "Pod", "namespace": "*" })).await.unwrap();
    let mut seen = texts(&all, "namespace");
    seen.dedup();
    assert!(seen.len() > 1, "{seen:?}");

    let limited = World::limited(Seed::shop(), Some(&["shop"])).await;
    let some = limited.call("k8s_get", json!({ "kind": "Pod", "namespace": "*" })).await.unwrap();
    assert!(texts(&some, "namespace").iter().all(|ns| *ns == "shop"));
    assert!(
        !limited.sandbox.requests().iter().any(|r| r.contains("/api/v1/pods")),
        "the whole cluster was never asked"
    );
    let denied = limited.refused("k8s_get", json!({ "kind": "Pod", "namespace": "kube-system" })).await;
    assert_eq!(denied.code, kubernetes::codes::NAMESPACE_DENIED);
}

#[tokio::test]
async fn events_come_newest_first() {
    let world = World::shop().await;

    let events = world.call("k8s_get", json!({ "kind": "Event", "namespace": "shop" })).await.unwrap();

    assert!(!items(&events).is_empty());
    let age = |text: &str| -> u64 {
        let (mut total, mut digits) = (0, String::new());
        for c in text.chars() {
            match c {
                '0'..='9' => digits.push(c),
                unit => {
                    let n: u64 = digits.parse().unwrap();
                    total += n * match unit {
                        's' => 1,
                        'm' => 60,
                        'h' => 3_600,
                        'd' => 86_400,
                        _ => 31_536_000,
                    };
                    digits.clear();
                }
            }
        }
        total
    };
    let ages: Vec<u64> = texts(&events, "last_seen").into_iter().map(age).collect();
    assert!(ages.is_sorted(), "{ages:?}");
    assert!(items(&events)[0].get("name").is_none() && items(&events)[0]["message"].is_string());
}

#[tokio::test]
async fn kinds_without_a_row_of_ours_come_in_the_servers_columns() {
    let world = World::shop().await;

    let listed = world.call("k8s_get", json!({ "kind": "StorageClass" })).await.unwrap();
    assert_eq!(texts(&listed, "name"), ["standard"]);
    let one = world.call("k8s_get", json!({ "kind": "sc", "name": "standard" })).await.unwrap();
    assert_eq!(one["object"]["name"], "standard");
    assert!(one["object"].as_object().unwrap().len() > 1, "{}", one["object"]);
}

#[tokio::test]
async fn a_field_of_every_object_is_picked_by_path() {
    let world = World::shop().await;
    let answer = world.call("k8s_get", json!({ "kind": "Deployment", "path": "spec.replicas" })).await.unwrap();
    let values: Vec<(&str, i64)> =
        items(&answer).iter().map(|row| (row["name"].as_str().unwrap(), row["value"].as_i64().unwrap())).collect();
    assert_eq!(values, [("cart-worker", 2), ("catalog", 2), ("checkout", 4), ("frontend", 3)]);
}

#[tokio::test]
async fn another_name_for_the_cluster_is_refused_with_the_right_one() {
    let world = World::shop().await;
    let failure = world.refused("k8s_get", json!({ "kind": "Pod", "cluster": "mainn" })).await;
    assert_eq!((failure.code, failure.did_you_mean), (kubernetes::codes::CLUSTER_UNKNOWN, vec!["main".to_owned()]));
    assert!(
        world.call("k8s_get", json!({ "kind": "Pod", "cluster": "main" })).await.is_ok(),
        "understood though not listed"
    );
}
