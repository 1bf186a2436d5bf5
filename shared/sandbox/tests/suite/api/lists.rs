//! Lists: selectors and pages.

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::ListParams;
use sandbox::Seed;
use serde_json::json;

use super::support::{CONFIG_MAPS, Cluster, PODS, config_map, pod};

fn names(items: Vec<ConfigMap>) -> Vec<String> {
    items.into_iter().filter_map(|item| item.metadata.name).filter(|name| name != "kube-root-ca.crt").collect()
}

#[tokio::test]
async fn labels_and_fields_select() {
    let cluster = Cluster::empty().await;
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front")] {
        let mut map = config_map(name, &json!({}));
        map["metadata"]["labels"] = json!({ "tier": tier, name: "yes" });
        cluster.create(CONFIG_MAPS, &map).await;
    }
    let api = cluster.api::<ConfigMap>("shop");
    let by = |labels: &str| ListParams::default().labels(labels);

    assert_eq!(names(api.list(&by("tier=front")).await.unwrap().items), ["a", "c"]);
    assert_eq!(names(api.list(&by("tier in (back,middle)")).await.unwrap().items), ["b"]);
    assert_eq!(names(api.list(&by("tier,!a,tier!=back")).await.unwrap().items), ["c"]);
    assert_eq!(names(api.list(&ListParams::default().fields("metadata.name=b")).await.unwrap().items), ["b"]);
    let (code, refused) = cluster.ask(Method::GET, &format!("{CONFIG_MAPS}?labelSelector=a%20in%20b"), None).await;
    assert_eq!((code, refused["reason"].as_str()), (400, Some("BadRequest")));
    let (code, refused) = cluster.ask(Method::GET, &format!("{CONFIG_MAPS}?fieldSelector=data%3Dx"), None).await;
    assert_eq!((code, refused["message"].as_str()), (400, Some("field label not supported: data")));
}

#[tokio::test]
async fn pods_are_found_by_phase_and_node() {
    let cluster = Cluster::empty().await;
    cluster.create(PODS, &pod("web", "app:1")).await;
    let api = cluster.api::<Pod>("shop");
    let running = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let web = cluster.until(&api, "web", running).await;

    let node = web.spec.unwrap().node_name.unwrap();
    let here =
        api.list(&ListParams::default().fields(&format!("status.phase=Running,spec.nodeName={node}"))).await.unwrap();
    let elsewhere = api.list(&ListParams::default().fields(&format!("spec.nodeName!={node}"))).await.unwrap();

    assert_eq!((here.items.len(), elsewhere.items.len()), (1, 0));
}

#[tokio::test]
async fn twenty_thousand_pods_come_in_pages_that_fit_together() {
    let cluster = Cluster::of(Seed::empty().with_pods("crowd", 20_000)).await;
    let api = cluster.api::<Pod>("crowd");

    let first = api.list(&ListParams::default().limit(500)).await.unwrap();
    let version = first.metadata.resource_version.clone();
    let (code, _) =
        cluster.ask(Method::DELETE, "/api/v1/namespaces/crowd/pods/bulk-00600?gracePeriodSeconds=0", None).await;
    let (mut seen, mut pages, mut token) = (first.items.len(), 1, first.metadata.continue_.clone());
    while let Some(next) = token.filter(|next| !next.is_empty()) {
        let page = api.list(&ListParams::default().limit(500).continue_token(&next)).await.unwrap();
        assert_eq!(page.metadata.resource_version, version, "every page shows the same version");
        seen += page.items.len();
        pages += 1;
        token = page.metadata.continue_;
    }

    assert_eq!(first.metadata.remaining_item_count, Some(19_500));
    assert_eq!((code, seen, pages), (200, 20_000, 40));
    assert_eq!(api.list(&ListParams::default().labels("shard=3")).await.unwrap().items.len(), 2_000);
}

#[tokio::test]
async fn a_page_of_a_forgotten_version_is_gone() {
    let cluster = Cluster::empty().await;
    for name in ["a", "b", "c"] {
        cluster.create(CONFIG_MAPS, &config_map(name, &json!({}))).await;
    }
    let first = cluster.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();

    cluster.sandbox.compact();
    let (code, gone) = cluster.ask(Method::GET, &format!("{CONFIG_MAPS}?limit=1&continue={token}"), None).await;

    assert_eq!((code, gone["reason"].as_str()), (410, Some("Expired")));
}
