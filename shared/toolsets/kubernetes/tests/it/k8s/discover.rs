use crate::k8s::world::{World, items, texts};
use domain::Code;
use serde_json::json;

#[tokio::test]
async fn the_cluster_says_what_it_is() {
    let world = World::shop().await;

    let answer = world.call("k8s_discover", json!({ "ask": "cluster" })).await.unwrap();

    assert!(answer["version"].as_str().unwrap().starts_with("v1."), "{answer}");
    assert_eq!((answer["healthy"].as_bool(), answer["simulated"].as_bool()), (Some(true), Some(true)));
    assert_eq!(answer["nodes"], json!({ "total": 3, "ready": 3, "unschedulable": 0 }));
    assert_eq!((&answer["clusters"], &answer["default_namespace"]), (&json!(["main"]), &json!("shop")));
    assert!(answer["namespaces"].as_array().unwrap().contains(&json!("shop")));
}

#[tokio::test]
async fn kinds_are_listed_and_filtered() {
    let world = World::shop().await;
    let apps = world.call("k8s_discover", json!({ "ask": "resources", "target": "apps/" })).await.unwrap();
    let names = texts(&apps, "name");
    assert!(names.contains(&"deployments") && !names.contains(&"pods"), "{names:?}");
    let deployment = items(&apps).iter().find(|row| row["name"] == "deployments").unwrap();
    assert_eq!((deployment["short"].as_str(), deployment["namespaced"].as_bool()), (Some("deploy"), Some(true)));
    let all = world.call("k8s_discover", json!({ "ask": "resources" })).await.unwrap();
    assert!(items(&all).len() > 20);
}

#[tokio::test]
async fn fields_are_explained() {
    let world = World::shop().await;
    let answer = world.call("k8s_discover", json!({ "ask": "explain", "target": "Deployment.spec" })).await.unwrap();
    let fields = answer["fields"].as_array().unwrap();
    assert!(fields.iter().any(|f| f.as_str().unwrap().starts_with("replicas <integer>")), "{answer}");
    let wrong = world.refused("k8s_discover", json!({ "ask": "explain", "target": "Deployment.spec.replica" })).await;
    assert_eq!((wrong.code, wrong.did_you_mean), (kubernetes::codes::UNKNOWN_FIELD, vec!["replicas".to_owned()]));
    let kind = world.refused("k8s_discover", json!({ "ask": "explain", "target": "Deploymnt.spec" })).await;
    assert_eq!(kind.code, kubernetes::codes::UNKNOWN_KIND);
    assert_eq!(world.refused("k8s_discover", json!({ "ask": "explain" })).await.code, Code::InvalidArgument);
}

#[tokio::test]
async fn what_we_may_do_is_told() {
    let world = World::shop().await;
    for target in ["pods", "Deployment", "deployments/frontend", "apps/v1/Deployment"] {
        let args = json!({ "ask": "can_i", "verb": "get", "target": target });
        let answer = world.call("k8s_discover", args).await.unwrap();
        assert_eq!(answer["allowed"], true, "{target}: {answer}");
    }
    let rules = world.call("k8s_discover", json!({ "ask": "can_i" })).await.unwrap();
    assert!(!rules["rules"].as_array().unwrap().is_empty(), "{rules}");
    for bad in ["pods/x/exec", "../x", "pods/../secrets"] {
        let failure = world.refused("k8s_discover", json!({ "ask": "can_i", "verb": "get", "target": bad })).await;
        assert!(matches!(failure.code, Code::InvalidArgument | kubernetes::codes::UNKNOWN_KIND), "{bad}: {failure}");
    }
}
