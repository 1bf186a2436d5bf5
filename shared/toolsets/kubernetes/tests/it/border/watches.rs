//! Waiting, when the watch does not last.

use crate::border::support::*;
use kubernetes::client::MaskDetail;
use serde_json::{Value, json};
use std::time::Duration;

fn ready(object: Option<&Value>) -> bool {
    object.is_some_and(|object| object["spec"]["replicas"] == 3)
}

/// The answer to a look: a list of one.
fn look(replicas: u32) -> Reply {
    Reply::Json(200, json!({ "metadata": { "resourceVersion": "70" }, "items": [deployment("web", replicas)] }))
}

fn event(kind: &str, object: Value) -> Value {
    json!({ "type": kind, "object": object })
}

#[tokio::test]
async fn a_watch_tells_when_the_wish_came_true() {
    let api = Api::start(|seen, _| match seen.is_watch() {
        false => look(1),
        true => Reply::Events(vec![
            event("BOOKMARK", json!({ "metadata": { "resourceVersion": "8" } })),
            event("MODIFIED", deployment("other", 3)),
            event("MODIFIED", deployment("web", 2)),
            event("MODIFIED", deployment("web", 3)),
        ]),
    })
    .await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;

    let waited = cluster.wait(&web, ready).await.unwrap();
    assert!(waited.met && waited.relists == 0);
    assert_eq!(waited.object.unwrap()["metadata"]["name"], "web");
    let query = api.seen()[1].query.clone();
    assert!(query.contains("fieldSelector=metadata.name%3Dweb") && query.contains("resourceVersion=70"), "{query}");
}

#[tokio::test]
async fn a_watch_that_is_gone_busy_or_broken_means_looking_again() {
    let gone = event("ERROR", json!({ "kind": "Status", "code": 410, "reason": "Expired" }));
    let endings = [
        Reply::Events(vec![gone]),
        status(410, "Expired", "too old", json!([])),
        Reply::Later(429, 1),
        Reply::Reset,
        Reply::Events(vec![]),
    ];
    for ending in endings {
        // The wish comes true while nobody watches: only looking again can find it.
        let api = Api::start(move |seen, before| match (seen.is_watch(), before) {
            (true, _) => ending.clone(),
            (false, 0) => look(1),
            (false, _) => look(3),
        })
        .await;
        let (permit, clusters) = (reading(), api.clusters());
        let cluster = clusters.of(&permit, None).unwrap();
        let web = target(&cluster, "Deployment", "web").await;
        let waited = cluster.wait(&web, ready).await.unwrap();
        assert!(waited.met);
        assert_eq!(waited.relists, 1);
    }
}

#[tokio::test]
async fn time_that_is_over_is_an_answer_with_the_last_state() {
    let api = Api::start(|seen, _| match seen.is_watch() {
        true => Reply::Silence,
        false => look(2),
    })
    .await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap().within(Duration::from_millis(700));
    let web = target(&cluster, "Deployment", "web").await;
    let waited = cluster.wait(&web, ready).await.unwrap();
    assert!(!waited.met);
    assert_eq!(waited.object.unwrap()["spec"]["replicas"], 2);
}

#[tokio::test]
async fn what_is_deleted_is_seen_to_go() {
    let api = Api::start(|seen, _| match seen.is_watch() {
        true => Reply::Events(vec![event("DELETED", deployment("web", 1))]),
        false => look(1),
    })
    .await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    let waited = cluster.wait(&web, |object| object.is_none()).await.unwrap();
    assert!(waited.met && !waited.exists());
}

#[tokio::test]
async fn who_may_not_list_still_waits() {
    let api = Api::start(|seen, before| match (seen.path.ends_with("/web"), before) {
        (false, _) => status(403, "Forbidden", "no", json!([])),
        (true, 0..=2) => Reply::Json(200, deployment("web", 1)),
        (true, _) => Reply::Json(200, deployment("web", 3)),
    })
    .await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    assert!(cluster.wait(&web, ready).await.unwrap().met);
}

#[tokio::test]
async fn what_may_not_be_looked_at_is_not_waited_for() {
    let api = Api::start(|_, _| status(403, "Forbidden", "no", json!([]))).await;
    let (permit, clusters) = (reading(), api.clusters());
    let cluster = clusters.of(&permit, None).unwrap();
    let web = target(&cluster, "Deployment", "web").await;
    assert_eq!(cluster.wait(&web, ready).await.unwrap_err().code, target::codes::FORBIDDEN);
    assert_eq!(cluster.find(&web, MaskDetail::Clean).await.unwrap_err().code, target::codes::FORBIDDEN);
}
