//! Who may do what.

use http::Method;
use serde_json::{Value, json};

use super::support::{CONFIG_MAPS, Cluster, config_map};

const VIEWER: [(&str, &str); 1] = [("impersonate-user", "sandbox-viewer")];
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn may(cluster: &Cluster, verb: &str, resource: &str, headers: &[(&str, &str)]) -> bool {
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": { "resourceAttributes": { "verb": verb, "resource": resource, "namespace": "shop" } },
    });
    let (code, text) = cluster.ask_text(Method::POST, REVIEWS, Some(("application/json", &review)), headers).await;
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 201, "{answer}");
    answer["status"]["allowed"].as_bool().unwrap()
}

#[tokio::test]
async fn the_bearer_may_everything_and_the_viewer_only_look() {
    let cluster = Cluster::empty().await;

    assert!(may(&cluster, "delete", "pods", &[]).await);
    assert!(may(&cluster, "list", "pods", &VIEWER).await);
    assert!(!may(&cluster, "delete", "pods", &VIEWER).await);
    assert!(!may(&cluster, "get", "secrets", &VIEWER).await);
    let (code, text) = cluster
        .ask_text(Method::POST, CONFIG_MAPS, Some(("application/json", &config_map("one", &json!({})))), &VIEWER)
        .await;
    let refused: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, refused["reason"].as_str()), (403, Some("Forbidden")));
    assert_eq!(
        refused["message"],
        "configmaps is forbidden: User \"sandbox-viewer\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"shop\""
    );
    let (code, _) = cluster.ask_text(Method::GET, CONFIG_MAPS, None, &VIEWER).await;
    assert_eq!(code, 200);
    let (code, _) = cluster.ask_text(Method::GET, CONFIG_MAPS, None, &[("impersonate-user", "nobody")]).await;
    assert_eq!(code, 403);
}

#[tokio::test]
async fn the_rules_of_a_user_can_be_listed() {
    let cluster = Cluster::empty().await;
    let review = json!({ "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": { "namespace": "shop" } });

    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let (_, text) = cluster.ask_text(Method::POST, path, Some(("application/json", &review)), &VIEWER).await;

    let answer: Value = serde_json::from_str(&text).unwrap();
    let rules = answer["status"]["resourceRules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["verbs"] == json!(["get", "list", "watch"])));
    assert_eq!(answer["status"]["incomplete"], false);
    assert!(cluster.sandbox.writes().iter().all(|write| !write.contains("review")), "a question is no write");
}
