//! What the server says about itself.

use http::Method;
use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};

use super::support::{CONFIG_MAPS, Cluster, config_map};

#[tokio::test]
async fn the_client_discovers_every_group_with_its_scopes() {
    let cluster = Cluster::empty().await;

    let found = Discovery::new(cluster.client.clone()).run().await.unwrap();

    let (pod, of_pod) = found.get("").unwrap().recommended_kind("Pod").unwrap();
    assert_eq!((pod.plural.as_str(), of_pod.scope), ("pods", Scope::Namespaced));
    let (node, of_node) = found.get("").unwrap().recommended_kind("Node").unwrap();
    assert_eq!((node.plural.as_str(), of_node.scope), ("nodes", Scope::Cluster));
    for (group, kind) in [
        ("apps", "Deployment"),
        ("batch", "CronJob"),
        ("autoscaling", "HorizontalPodAutoscaler"),
        ("policy", "PodDisruptionBudget"),
        ("networking.k8s.io", "Ingress"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("storage.k8s.io", "StorageClass"),
        ("discovery.k8s.io", "EndpointSlice"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("argoproj.io", "Rollout"),
        ("metrics.k8s.io", "PodMetrics"),
    ] {
        assert!(found.get(group).unwrap().recommended_kind(kind).is_some(), "{group}/{kind}");
    }
}

#[tokio::test]
async fn aggregated_discovery_tells_the_same_in_one_answer() {
    let cluster = Cluster::empty().await;
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

    let (code, headers, text) = cluster.ask_whole(Method::GET, "/apis", None, &[("accept", accept)]).await;

    let list: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, list["kind"].as_str()), (200, Some("APIGroupDiscoveryList")));
    assert!(headers["content-type"].to_str().unwrap().contains("as=APIGroupDiscoveryList"));
    let items = list["items"].as_array().unwrap();
    let apps = items.iter().find(|item| item["metadata"]["name"] == "apps").unwrap();
    let resources = apps["versions"][0]["resources"].as_array().unwrap();
    let deployments = resources.iter().find(|one| one["resource"] == "deployments").unwrap();
    assert_eq!(deployments["scope"], "Namespaced");
    assert!(deployments["subresources"].as_array().unwrap().iter().any(|sub| sub["subresource"] == "scale"));
    let found = Discovery::new(cluster.client.clone()).run_aggregated().await.unwrap();
    assert!(found.get("apps").unwrap().recommended_kind("Deployment").is_some());
}

#[tokio::test]
async fn health_and_unknown_paths_answer_like_the_real_server() {
    let cluster = Cluster::empty().await;

    let (_, ready) = cluster.ask_text(Method::GET, "/readyz?verbose", None, &[]).await;
    let (code, unknown) = cluster.ask(Method::GET, "/apis/nobody.example/v1/things", None).await;

    assert!(ready.contains("[+]etcd ok\n") && ready.ends_with("readyz check passed\n"), "{ready}");
    assert_eq!((code, unknown["reason"].as_str()), (404, Some("NotFound")));
    assert_eq!(unknown["message"], "the server could not find the requested resource");
}

#[tokio::test]
async fn without_the_token_nothing_is_answered() {
    let cluster = Cluster::empty().await;
    let stranger = super::support::client(&cluster.sandbox, "wrong");

    let refused = stranger.apiserver_version().await.unwrap_err();

    let kube::Error::Api(status) = refused else { panic!("{refused}") };
    assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
}

#[tokio::test]
async fn the_kubeconfigs_open_the_cluster_by_header_and_by_address() {
    let cluster = Cluster::empty().await;

    for text in [cluster.sandbox.kubeconfig(), cluster.sandbox.kubeconfig_for_go()] {
        let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let mut config = kube::Config::from_custom_kubeconfig(read, &Default::default()).await.unwrap();
        if config.cluster_url.path() != "/" {
            config.auth_info.token = None;
        }
        let client = kube::Client::try_from(config).unwrap();
        assert_eq!(client.apiserver_version().await.unwrap().minor, "33");
    }
}

#[tokio::test]
async fn the_third_openapi_can_be_walked_from_a_kind_to_a_field() {
    let cluster = Cluster::empty().await;
    let index = cluster.get("/openapi/v3").await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();

    let document = cluster.get(url).await;

    let schemas = document["components"]["schemas"].as_object().unwrap();
    let follow = |schema: &Value| {
        let name = schema["allOf"][0]["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        schemas[name].clone()
    };
    let root = &schemas["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(root["x-kubernetes-group-version-kind"][0]["kind"], "Deployment");
    let spec = follow(&root["properties"]["spec"]);
    let template = follow(&spec["properties"]["template"]);
    let pod = follow(&template["properties"]["spec"]);
    assert_eq!(spec["required"], json!(["selector", "template"]));
    assert_eq!(pod["properties"]["containers"]["x-kubernetes-list-map-keys"], json!(["name"]));
    assert!(!spec["properties"]["strategy"]["description"].as_str().unwrap().is_empty());
    let second = cluster.get("/openapi/v2").await;
    assert_eq!(second["swagger"], "2.0");
    assert!(second["definitions"]["io.k8s.api.core.v1.Pod"].is_object());
}

#[tokio::test]
async fn protobuf_first_is_answered_with_json_and_protobuf_only_is_refused() {
    let cluster = Cluster::empty().await;
    cluster.create(CONFIG_MAPS, &config_map("one", &json!({}))).await;
    let both = "application/vnd.kubernetes.protobuf, application/json";

    let (code, headers, _) = cluster.ask_whole(Method::GET, CONFIG_MAPS, None, &[("accept", both)]).await;
    let (refused, _) =
        cluster.ask_text(Method::GET, CONFIG_MAPS, None, &[("accept", "application/vnd.kubernetes.protobuf")]).await;

    assert_eq!((code, headers["content-type"].to_str().unwrap(), refused), (200, "application/json", 406));
}

#[tokio::test]
async fn lists_come_as_tables_or_as_metadata_alone_when_asked() {
    let cluster = Cluster::empty().await;
    cluster.create(CONFIG_MAPS, &config_map("one", &json!({ "a": "1", "b": "2" }))).await;
    let path = format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Done");

    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let (_, text) = cluster.ask_text(Method::GET, &path, None, &[("accept", table)]).await;
    let shown: Value = serde_json::from_str(&text).unwrap();
    let bare = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let (_, text) = cluster.ask_text(Method::GET, &path, None, &[("accept", bare)]).await;
    let metadata: Value = serde_json::from_str(&text).unwrap();

    let names: Vec<&str> =
        shown["columnDefinitions"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!((shown["kind"].as_str(), names), (Some("Table"), vec!["Name", "Data", "Age"]));
    assert_eq!(shown["rows"][0]["cells"][0], "one");
    assert_eq!(shown["rows"][0]["cells"][1], 2);
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert_eq!(metadata["items"][0].get("data"), None);
}
