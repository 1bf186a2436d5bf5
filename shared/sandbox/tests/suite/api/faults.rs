//! Planted trouble.

use std::time::Duration;

use http::Method;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::json;

use super::support::{CONFIG_MAPS, Cluster, client, config_map};

fn fault(method: &str, path: &str, harm: ClusterHarm) -> ClusterFault {
    ClusterFault { method: Some(method.to_owned()), path: path.to_owned(), times: 1, harm }
}

#[tokio::test]
async fn a_planted_refusal_hits_once_and_does_nothing() {
    let cluster = Cluster::empty().await;
    cluster.sandbox.plant(fault("GET", "configmaps", ClusterHarm::Answer(429, Some(3))));

    let (code, headers, _) = cluster.ask_whole(Method::GET, CONFIG_MAPS, None, &[]).await;
    let (again, _) = cluster.ask(Method::GET, CONFIG_MAPS, None).await;

    assert_eq!((code, headers["retry-after"].to_str().unwrap(), again), (429, "3", 200));
}

#[tokio::test]
async fn a_cut_line_after_the_write_leaves_the_write_done() {
    let cluster = Cluster::empty().await;
    cluster.sandbox.plant(fault("POST", "configmaps", ClusterHarm::CutAfter));
    let request =
        http::Request::builder().method(Method::POST).uri(CONFIG_MAPS).header("content-type", "application/json");
    let body = config_map("one", &json!({})).to_string().into_bytes();

    let lost = cluster.client.send(request.body(body.into()).unwrap()).await;

    assert!(lost.is_err());
    assert_eq!(cluster.get(&format!("{CONFIG_MAPS}/one")).await["metadata"]["name"], "one");
    assert!(cluster.sandbox.writes().contains(&"POST shop/configmaps".to_owned()));
    cluster.sandbox.plant(fault("POST", "configmaps", ClusterHarm::LateAnswer(504)));
    let (code, _) =
        cluster.ask(Method::POST, CONFIG_MAPS, Some(("application/json", &config_map("two", &json!({}))))).await;
    let (there, _) = cluster.ask(Method::GET, &format!("{CONFIG_MAPS}/two"), None).await;
    assert_eq!((code, there), (504, 200));
}

#[tokio::test]
async fn silence_lasts_until_the_client_gives_up() {
    let cluster = Cluster::empty().await;
    cluster.sandbox.plant(fault("GET", "configmaps", ClusterHarm::Silence));

    let answer = tokio::time::timeout(Duration::from_millis(300), cluster.ask(Method::GET, CONFIG_MAPS, None)).await;

    assert!(answer.is_err(), "nothing may come back");
}

#[tokio::test]
async fn a_rotated_token_shuts_the_old_one_out() {
    let cluster = Cluster::empty().await;

    let fresh = cluster.sandbox.rotate_token();
    let (old, _) = cluster.ask(Method::GET, CONFIG_MAPS, None).await;

    let version = client(&cluster.sandbox, &fresh).apiserver_version().await;
    assert!(old == 401 && version.is_ok());
}
