//! Replicas are equal and forgetful: a session lives in the store, and any replica serves it.

use crate::here::{DEFAULT, GROWN, in_process, processes, redis};
use serde_json::{Value, json};
use testkit::Plan;

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loaded_on_one_replica_is_listed_and_announced_on_another() {
    let world = redis(2).await;
    let on_a = world.tenant("acme").agent().on(0).legacy().await;
    let on_b = on_a.on(1);
    let mut stream = on_a.open_stream().await;
    assert_eq!(on_b.list().await, DEFAULT);

    on_b.load("memory:write").await;

    assert_eq!(stream.message().await, json!({ "jsonrpc": "2.0", "method": CHANGED }));
    assert_eq!(on_a.list().await, GROWN);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_new_is_not_announced() {
    let world = redis(2).await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory").await;
    let mut stream = client.open_stream().await;
    client.on(1).load("memory").await;
    client.on(1).load("memory:write").await;
    assert_eq!(stream.notice().await, CHANGED);
    client.delete().await;
    assert_eq!(stream.rest().await, Vec::<Value>::new(), "one change, one notice");
}

#[tokio::test(flavor = "multi_thread")]
async fn t3_the_newest_stream_of_a_session_is_the_only_one() {
    let world = redis(2).await;
    let client = world.tenant("acme").agent().legacy().await;
    let first = client.open_stream().await;
    let mut second = client.on(1).open_stream().await;
    assert_eq!(first.rest().await, Vec::<Value>::new(), "the first one ends");

    client.load("memory:write").await;
    assert_eq!(second.notice().await, CHANGED);

    let again = client.stream_request().header("Last-Event-ID", "17");
    let mut third = client.stream(&again).await;
    assert_eq!(second.next().await, None);
    client.on(1).call("unload_toolset", json!({ "toolset": "memory" })).await;
    assert_eq!(third.notice().await, CHANGED);
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_of_one_session_reach_no_other() {
    let world = redis(2).await;
    let agent = world.tenant("acme").agent();
    let (mine, theirs) = (agent.legacy().await, agent.legacy().await);
    let others = world.tenant("other").agent().legacy().await;
    let (mut heard, quiet, foreign) =
        (mine.open_stream().await, theirs.open_stream().await, others.open_stream().await);

    mine.on(1).load("memory:write").await;
    assert_eq!(heard.notice().await, CHANGED);
    theirs.delete().await;
    others.delete().await;
    assert_eq!(quiet.rest().await, Vec::<Value>::new());
    assert_eq!(foreign.rest().await, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_on_one_replica_ends_the_session_on_all() {
    let world = redis(2).await;
    let client = world.tenant("acme").agent().legacy().await;
    let mut stream = client.on(1).open_stream().await;
    assert_eq!(client.delete().await.status, 204);
    assert_eq!(stream.next().await, None);
    let gone = client.on(1).ask("tools/list", json!({})).await;
    assert_eq!((gone.answer.status, gone.code()), (404, "session_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_at_the_same_time_on_two_replicas_loses_nothing() {
    let world = redis(2).await;
    let agent = world.tenant("acme").agent();
    for _ in 0..10 {
        let client = agent.legacy().await;
        let (a, b) = (client.on(0), client.on(1));
        let (read, write) = tokio::join!(a.load("memory"), b.load("memory:write"));
        assert_eq!(read["session"], write["session"]);
        assert_eq!(client.list().await, GROWN);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replica_takes_nothing_along() {
    let mut world = Plan::redis(2).start(processes()).await;
    let client = world.tenant("acme").agent().legacy().await;
    let mut stream = client.open_stream().await;
    client.on(1).load("memory:write").await;
    assert_eq!(stream.notice().await, CHANGED);
    assert_eq!(client.list().await, GROWN);

    world.take(0).part.kill();

    assert_eq!(stream.next().await, None);
    let (client, mut stream) = (client.on(1), client.on(1).open_stream().await);
    assert_eq!(client.list().await, GROWN);
    let note = json!({ "path": "session/notes/a", "type": "note", "content": "x", "evidence": "y" });
    assert_eq!(client.call("memory_remember", note).await.ok()["created"], true);
    client.call("unload_toolset", json!({ "toolset": "memory" })).await;
    assert_eq!(stream.notice().await, CHANGED);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_survives_the_restart_of_every_replica() {
    for plan in [Plan::redis(1), Plan::file()] {
        let mut world = plan.start(in_process()).await;
        let client = world.tenant("acme").agent().legacy().await;
        client.load("memory:write").await;
        let note = json!({ "path": "session/notes/a", "type": "note", "content": "x", "evidence": "y" });
        client.call("memory_remember", note).await.ok();

        world.stop(0).await;
        world.begin(0).await;

        assert_eq!(client.list().await, GROWN);
        let read = client.call("memory_read", json!({ "path": "session/notes/a" })).await;
        assert_eq!(read.ok()["content"], "x");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_finds_its_file_again() {
    let mut world = Plan::file().start(processes()).await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;

    world.take(0).part.kill();
    world.begin(0).await;

    assert_eq!(client.list().await, GROWN);
}
