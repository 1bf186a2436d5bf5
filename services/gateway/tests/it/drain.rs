//! Leaving in order: unready first, then streams, then requests, and nothing is lost.

use crate::here::{embedded, processes};
use crate::stock;
use serde_json::{Value, json};
use testkit::{Plan, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn t4_a_terminated_process_ends_its_streams_in_words_and_itself_well() {
    let mut world = Plan::redis(1).start(processes()).await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    let (listening, legacy) = (agent.modern().listen().await, client.open_stream().await);

    let leaving = world.take(0);
    leaving.part.signal("-TERM");

    let last = listening.rest().await;
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!((&last[0]["id"], &last[0]["result"]["resultType"]), (&json!("m1"), &json!("complete")));
    assert_eq!(legacy.rest().await, Vec::<Value>::new());
    let status = leaving.part.end().await;
    assert_eq!(status.code(), Some(0), "{}", leaving.part.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn t4_an_idle_connection_does_not_hold_a_process_back() {
    let mut world = Plan::embedded().start(processes()).await;
    let mut idle = TcpStream::connect(world.address(0)).await.unwrap();
    idle.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");

    let leaving = world.take(0);
    leaving.part.signal("-TERM");
    assert_eq!(leaving.part.end().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_leaves_says_so_before_anything_else_and_stays_unready() {
    let world = embedded().await;
    let gateway = world.part(0);
    gateway.readiness.drain();
    let ready = world.get(0, "/readyz").await;
    assert_eq!((ready.status, &ready.json()["reasons"]), (503, &json!(["draining"])));
    assert_eq!(world.get(0, "/health").await.status, 503);
    assert_eq!(world.get(0, "/livez").await.status, 200);
    gateway.readiness.look(gateway).await;
    assert_eq!(world.get(0, "/readyz").await.status, 503);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_answered_before_the_replica_leaves() {
    let mut world = embedded().await;
    let hold = stock::install(&world, 1);
    let gateway = std::sync::Arc::clone(world.part(0));
    let agent = world.tenant(stock::TENANT).agent();
    let (modern, legacy) = (agent.modern(), agent.legacy().await);
    let (first, second, ()) = tokio::join!(modern.call("hold", json!({})), legacy.call("hold", json!({})), async {
        hold.entered(2).await;
        tokio::join!(world.stop(0), async {
            until("the replica to be leaving", async || (!gateway.readiness.now().ready()).then_some(())).await;
            hold.release(2);
        });
    });
    assert_eq!((first.ok()["done"].clone(), second.ok()["done"].clone()), (json!(true), json!(true)));
}
