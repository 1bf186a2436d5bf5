//! T12: a server that hangs or breaks costs its own calls, and those not for long.

use crate::double::Reply;
use crate::world::{Replica, Server, call, tool, until};
use domain::Code;
use futures_util::stream;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Answers calls only when a test lets it, and counts how many it holds at once.
struct Gate {
    open: Semaphore,
    held: AtomicUsize,
    most: AtomicUsize,
}

fn gated(server: &Server) -> Arc<Gate> {
    let gate = Arc::new(Gate { open: Semaphore::new(0), held: AtomicUsize::new(0), most: AtomicUsize::new(0) });
    let seen = Arc::clone(&gate);
    server.answer(move |asked| {
        if asked.method() != "tools/call" {
            return None;
        }
        let gate = Arc::clone(&seen);
        let answer =
            json!({ "jsonrpc": "2.0", "id": asked.id(), "result": { "resultType": "complete", "content": [] } });
        let now = gate.held.fetch_add(1, Ordering::SeqCst) + 1;
        gate.most.fetch_max(now, Ordering::SeqCst);
        let body = stream::once(async move {
            gate.open.acquire().await.unwrap().forget();
            gate.held.fetch_sub(1, Ordering::SeqCst);
            answer.to_string().into_bytes()
        });
        Some(Reply::pieces("application/json", body))
    });
    gate
}

#[tokio::test]
async fn so_many_calls_go_so_many_wait_and_the_next_is_refused_at_once() {
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let gate = gated(&server);
    let mut config = server.config();
    (config.limits.in_flight, config.limits.waiting) = (2, 1);
    let replica = Replica::alone().await.using(config).await;
    let entry = replica.entry("mcp_wiki__search");

    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let entry = Arc::clone(&entry);
        calls.spawn(async move { call(&entry, json!({})).await.map(drop).map_err(|failure| failure.code) });
    }
    let refused = calls.join_next().await.unwrap().unwrap();
    assert_eq!(refused, Err(external::codes::UPSTREAM_UNAVAILABLE));
    until("two calls to be there", async || gate.held.load(Ordering::SeqCst) == 2).await;
    gate.open.add_permits(3);
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap(), Ok(()));
    }
    assert_eq!((gate.most.load(Ordering::SeqCst), server.calls().len()), (2, 3));
}

#[tokio::test]
async fn t12_a_broken_server_is_left_alone_and_one_try_brings_it_back() {
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let other = Server::offering(vec![tool("search", "Searches.")]).await;
    let replica = Replica::alone().await.using(server.config()).await;
    let neighbour = Replica::alone().await.using(other.config()).await;
    let entry = replica.entry("mcp_wiki__search");
    call(&entry, json!({})).await.unwrap();

    server.answer(|asked| (asked.method() == "tools/call").then(Reply::broken));
    let mut failures = 0;
    let refused = loop {
        let before = server.calls().len();
        let failure = call(&entry, json!({})).await.unwrap_err();
        if server.calls().len() == before {
            break failure;
        }
        failures += 1;
        assert!(failures < 20, "it should be left alone by now: {failure}");
    };
    assert_eq!(refused.code, external::codes::UPSTREAM_UNAVAILABLE);
    assert!(refused.retry_after_ms.is_some());
    call(&neighbour.entry("mcp_wiki__search"), json!({})).await.expect("another server is unmoved");

    server.answer(|_| None);
    until("a try to be let through", async || call(&entry, json!({})).await.is_ok()).await;
    call(&entry, json!({})).await.unwrap();
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_at_its_own_deadline_and_then_left_alone() {
    let server = Server::offering(vec![tool("search", "Searches.")]).await;
    let _gate = gated(&server);
    let mut config = server.config();
    config.limits.deadline = Duration::from_millis(300);
    let replica = Replica::alone().await.using(config).await;
    let entry = replica.entry("mcp_wiki__search");
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let entry = Arc::clone(&entry);
        calls.spawn(async move { call(&entry, json!({})).await.map(drop).map_err(|failure| failure.code) });
    }
    while let Some(ended) = calls.join_next().await {
        assert_eq!(ended.unwrap(), Err(Code::Deadline));
    }
    let before = server.calls().len();
    assert_eq!(call(&entry, json!({})).await.unwrap_err().code, external::codes::UPSTREAM_UNAVAILABLE);
    assert_eq!(server.calls().len(), before, "nothing was sent");
}
