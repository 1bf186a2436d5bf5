//! Logs of containers.

use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use serde_json::json;

use super::support::{Cluster, PODS, pod};

#[tokio::test]
async fn lines_are_cut_and_stamped_as_asked() {
    let cluster = Cluster::empty().await;
    let mut talker = pod("talker", "tools:1");
    talker["spec"]["restartPolicy"] = json!("Never");
    talker["spec"]["containers"][0]["command"] = json!(["sh", "-c", "echo one; echo two; echo three"]);
    cluster.create(PODS, &talker).await;
    let path = format!("{PODS}/talker");
    cluster.until_path(&path, |pod| pod["status"]["phase"] == "Succeeded").await;
    let api = cluster.api::<Pod>("shop");

    let tail = api.logs("talker", &LogParams { tail_lines: Some(2), ..Default::default() }).await.unwrap();
    let few = api.logs("talker", &LogParams { limit_bytes: Some(5), ..Default::default() }).await.unwrap();
    let stamped = api.logs("talker", &LogParams { timestamps: true, ..Default::default() }).await.unwrap();
    let recent = api.logs("talker", &LogParams { since_seconds: Some(3600), ..Default::default() }).await.unwrap();
    let (_, future) =
        cluster.ask_text(Method::GET, &format!("{path}/log?sinceTime=2999-01-01T00:00:00Z"), None, &[]).await;

    assert_eq!(
        (tail.as_str(), few.as_str(), recent.as_str(), future.as_str()),
        ("two\nthree\n", "one\nt", "one\ntwo\nthree\n", "")
    );
    let first = stamped.lines().next().unwrap();
    let (time, text) = first.split_once(' ').unwrap();
    assert!(time.ends_with('Z') && time.len() == 30 && text == "one", "{first}");
}

#[tokio::test]
async fn a_log_that_cannot_be_read_says_why() {
    let cluster = Cluster::empty().await;
    let mut two = pod("two", "app:1");
    two["spec"]["containers"] = json!([{ "name": "a", "image": "a:1" }, { "name": "b", "image": "b:1" }]);
    cluster.create(PODS, &two).await;
    cluster.create(PODS, &pod("stuck", "app:missing")).await;
    cluster.until_path(&format!("{PODS}/two"), |pod| pod["status"]["phase"] == "Running").await;
    let waiting = |pod: &serde_json::Value| {
        pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ImagePullBackOff"
    };
    cluster.until_path(&format!("{PODS}/stuck"), waiting).await;

    let (code, unnamed) = cluster.ask(Method::GET, &format!("{PODS}/two/log"), None).await;
    assert_eq!(
        (code, unnamed["message"].as_str()),
        (400, Some("a container name must be specified for pod two, choose one of: [a b]"))
    );
    let (code, wrong) = cluster.ask(Method::GET, &format!("{PODS}/two/log?container=c"), None).await;
    assert_eq!((code, wrong["message"].as_str()), (400, Some("container c is not valid for pod two")));
    let (code, previous) = cluster.ask(Method::GET, &format!("{PODS}/two/log?container=a&previous=true"), None).await;
    assert_eq!(
        (code, previous["message"].as_str()),
        (400, Some("previous terminated container \"a\" in pod \"two\" not found"))
    );
    let (code, stuck) = cluster.ask(Method::GET, &format!("{PODS}/stuck/log"), None).await;
    assert_eq!(
        (code, stuck["message"].as_str()),
        (400, Some("container \"app\" in pod \"stuck\" is waiting to start: trying and failing to pull image"))
    );
}
