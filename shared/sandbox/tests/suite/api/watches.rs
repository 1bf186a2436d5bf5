//! Watches: what happens after a version.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use http::Method;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

use super::support::{CONFIG_MAPS, Cluster, config_map};

#[tokio::test]
async fn changes_after_a_version_arrive_in_order() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<ConfigMap>("shop");
    let version = cluster.get(CONFIG_MAPS).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let params = WatchParams::default().labels("app=web").timeout(20);
    let mut watch = api.watch(&params, &version).await.unwrap().boxed();

    let mut map = config_map("one", &json!({ "a": "1" }));
    map["metadata"]["labels"] = json!({ "app": "web" });
    cluster.create(CONFIG_MAPS, &map).await;
    let path = format!("{CONFIG_MAPS}/one");
    cluster.patch(&path, "merge", &json!({ "data": { "a": "2" } })).await;
    // Losing the label looks like a deletion to whoever selects by it.
    cluster.patch(&path, "merge", &json!({ "metadata": { "labels": null } })).await;
    cluster.patch(&path, "merge", &json!({ "metadata": { "labels": { "app": "web" } } })).await;
    cluster.ask(Method::DELETE, &path, None).await;

    let mut seen = Vec::new();
    while seen.len() < 5 {
        seen.push(match watch.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => "bookmark",
            WatchEvent::Error(_) => "error",
        });
    }
    assert_eq!(seen, ["added", "modified", "deleted", "added", "deleted"]);
}

#[tokio::test]
async fn a_forgotten_version_is_gone_and_a_watch_ends_in_time() {
    let cluster = Cluster::empty().await;
    let version = cluster.get(CONFIG_MAPS).await["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    cluster.sandbox.compact();

    let path = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion={version}");
    let (code, text) = cluster.ask_text(Method::GET, &path, None, &[]).await;
    let event: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let (_, silent) = cluster
        .ask_text(Method::GET, &format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1&resourceVersion=999999"), None, &[])
        .await;

    assert_eq!((code, event["type"].as_str(), event["object"]["code"].as_u64()), (200, Some("ERROR"), Some(410)));
    assert_eq!(event["object"]["reason"], "Expired");
    assert_eq!(silent, "");
}

#[tokio::test]
async fn the_watcher_of_the_client_recovers_from_a_compaction() {
    let cluster = Cluster::empty().await;
    let api = cluster.api::<ConfigMap>("shop");
    let mut objects = watcher(api, watcher::Config::default()).default_backoff().applied_objects().boxed();
    let name = |map: ConfigMap| map.metadata.name.unwrap();
    assert_eq!(name(objects.try_next().await.unwrap().unwrap()), "kube-root-ca.crt");

    cluster.sandbox.compact();
    cluster.create(CONFIG_MAPS, &config_map("after", &json!({}))).await;

    let found = tokio::time::timeout(Duration::from_secs(20), async {
        loop {
            if let Some(Ok(map)) = objects.next().await
                && name(map) == "after"
            {
                return;
            }
        }
    });
    found.await.expect("the object made after the compaction arrives");
}
