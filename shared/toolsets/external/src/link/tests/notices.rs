//! Hearing that the tools of a server changed.

use super::super::ServerLinks;
use super::double::{Double, Reply, Speaks};
use super::world::*;
use domain::Effect;
use futures_util::stream;
use serde_json::json;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;

async fn heard(changes: &mut Receiver<super::super::LinkKey>) -> super::super::LinkKey {
    tokio::time::timeout(Duration::from_secs(20), changes.recv()).await.expect("a change").expect("an open channel")
}

fn changed() -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
}

#[tokio::test]
async fn a_change_is_heard_in_both_eras_and_the_stream_ends_with_the_link() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = Double::plain(speaks).await;
        let (links, target) = (links(), target(&double));
        let mut changes = links.changes();
        links.list(&key(), &target, &limits()).await.unwrap();
        until("somebody listens", || double.listeners() == 1).await;

        double.say(&changed());
        assert_eq!(heard(&mut changes).await, key(), "{speaks:?}");

        links.drop_links(&tenant(), Some("double"));
        until("nobody listens any more", || double.listeners() == 0).await;
    }
}

#[tokio::test]
async fn dropping_everything_ends_the_stream() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let double = Double::plain(speaks).await;
        let links: ServerLinks = links();
        links.list(&key(), &target(&double), &limits()).await.unwrap();
        until("somebody listens", || double.listeners() == 1).await;

        drop(links);

        until("nobody listens any more", || double.listeners() == 0).await;
    }
}

#[tokio::test]
async fn a_change_said_beside_an_answer_is_heard() {
    let double = Double::start(Speaks::Legacy, |asked| {
        let answer = json!({ "jsonrpc": "2.0", "id": asked.id(), "result": { "content": [] } });
        (asked.method() == "tools/call").then(|| Reply::events(&[changed(), answer]))
    })
    .await;
    let (links, target) = (links(), target(&double));
    let mut changes = links.changes();

    call(&links, &target, Effect::Read).await.unwrap();

    assert_eq!(heard(&mut changes).await, key());
}

#[tokio::test]
async fn a_flood_of_changes_becomes_few_and_calls_go_on() {
    let double = Double::start(Speaks::Legacy, |asked| {
        let flood = stream::repeat(format!("data: {}\n\n", changed()).into_bytes());
        (asked.method() == "GET").then(|| Reply::pieces("text/event-stream", flood))
    })
    .await;
    let (links, target) = (links(), target(&double));
    let mut changes = links.changes();

    for _ in 0..20 {
        call(&links, &target, Effect::Read).await.unwrap();
    }

    heard(&mut changes).await;
    assert!(changes.len() < 3, "{}", changes.len());
}

#[tokio::test]
async fn a_server_that_announces_no_changes_is_not_listened_to() {
    let double = Double::start(Speaks::Legacy, |asked| {
        let silent = json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "d", "version": "1" },
        });
        (asked.method() == "initialize").then(|| Reply::result(asked, &silent).with("mcp-session-id", "ses-1"))
    })
    .await;
    let (links, target) = (links(), target(&double));

    call(&links, &target, Effect::Read).await.unwrap();
    call(&links, &target, Effect::Read).await.unwrap();

    assert_eq!(double.count("GET"), 0);
}
