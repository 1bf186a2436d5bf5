//! Leaving in order: unready first, then streams, then requests, and nothing is lost.

use crate::here::{embedded, in_process, processes};
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

const LIVE: &[u8] = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// The head of the next answer on a connection, in lower case; what follows it stays in the connection's buffer.
async fn next_head(connection: &mut TcpStream) -> String {
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        let byte = connection.read_u8().await.expect("a request should be answered, not cut off");
        read.push(byte);
    }
    String::from_utf8(read).unwrap().to_ascii_lowercase()
}

/// Whether the answer with this head is the last one, and came to its end.
async fn is_the_last(connection: &mut TcpStream, head: &str) -> bool {
    let mut rest = Vec::new();
    connection.read_to_end(&mut rest).await.unwrap();
    head.starts_with("http/1.1 200")
        && head.contains("\r\nconnection: close\r\n")
        && head.contains(&format!("\r\ncontent-length: {}\r\n", rest.len()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_connection_ends_with_its_next_answer_when_the_replica_leaves() {
    let world = embedded().await;
    let mut kept = TcpStream::connect(world.address(0)).await.unwrap();
    kept.write_all(LIVE).await.unwrap();
    let head = next_head(&mut kept).await;
    assert!(head.starts_with("http/1.1 200") && !head.contains("\r\nconnection: close"), "{head}");
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
    kept.read_exact(&mut vec![0; length.parse().unwrap()]).await.unwrap();

    world.part(0).readiness.drain();
    kept.write_all(LIVE).await.unwrap();
    let head = next_head(&mut kept).await;
    assert!(is_the_last(&mut kept, &head).await, "{head}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_let_in_is_answered_after_others_are_refused() {
    // A client may take its time here, so that the test may.
    let plan = Plan::embedded().setting("QM_LISTEN__REQUEST_TIMEOUT", "10m").setting("QM_LISTEN__DRAIN", "10m");
    let mut world = plan.start(in_process()).await;
    let address = world.address(0);
    let mut early = TcpStream::connect(address).await.unwrap();
    let ((), head) = tokio::join!(world.stop(0), async {
        let refused = async || TcpStream::connect(address).await.err();
        until("the listener to close", async || {
            refused().await.filter(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
        })
        .await;
        early.write_all(LIVE).await.unwrap();
        next_head(&mut early).await
    });
    assert!(is_the_last(&mut early, &head).await, "{head}");
}
