//! What callers see when the store is away, frozen or restarted, and how often anybody waits for it.

use crate::here::{FIXED, GROWN, World, in_process, processes, redis, told};
use crate::stock;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Plan, until};

/// Far above the deadline of a second, far below the patience of a client.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), work).await.expect("a store that is away should cost about a second")
}

/// Production's own deadline: these tests are about it.
async fn strict(plan: Plan) -> World {
    plan.setting("QM_STORE__DEADLINE", "1s").start(in_process()).await
}

fn assert_unavailable(outcome: &testkit::Outcome) {
    assert_eq!(outcome.answer.status, 200, "never a 5xx: {outcome:?}");
    let error = outcome.error();
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32603), &json!("store_unavailable")));
    assert_eq!(error["data"]["retryable"], true);
    assert!(error["data"]["reason"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn s8_a_store_that_is_away_at_the_start_is_said_and_waited_for() {
    let mut world = strict(Plan::redis_away(1)).await;
    let agent = world.tenant("acme").agent();
    assert_eq!(world.get(0, "/livez").await.status, 200);
    assert_eq!(told(&world.get(0, "/health").await), r#"503 {"status":"unready"}"#);
    let ready = world.get(0, "/readyz").await;
    assert_eq!(ready.status, 503);
    assert_eq!(
        ready.json(),
        json!({ "status": "unready", "ready": false, "reasons": ["store_unreachable"], "warnings": [] })
    );

    assert_unavailable(&soon(agent.plain("tools/call", json!({ "name": "memory_list" }))).await);
    assert_unavailable(&agent.modern().call("load_toolset", json!({ "toolset": "memory" })).await);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    let opened = agent.plain("initialize", params).await;
    assert_unavailable(&opened);
    assert_eq!(opened.answer.header("mcp-session-id"), None, "no half session");
    let rest = agent.rest().post("/v1/sessions", &json!({})).await;
    assert_eq!((rest.status, rest.header("retry-after")), (503, Some("1")));
    assert_eq!(rest.json()["error"]["code"], "store_unavailable");
    assert_unavailable(&agent.plain("tools/list", json!({})).await);

    world.redis().restart();
    until("the world to be well", async || (world.get(0, "/health").await.status == 200).then_some(())).await;
    assert_eq!(agent.modern().call("memory_list", json!({})).await.code(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_frozen_store_costs_a_call_its_deadline_and_no_more() {
    let mut world = strict(Plan::redis(1)).await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    world.redis().pause();
    let calls = (0..8).map(|_| client.call("memory_list", json!({})));
    let modern = agent.modern();
    let (ended, listed) = soon(async { tokio::join!(futures_util::future::join_all(calls), modern.list()) }).await;
    ended.iter().for_each(assert_unavailable);
    assert_eq!(listed, FIXED);
    assert_eq!(world.get(0, "/livez").await.status, 200);

    world.redis().resume();
    until("calls to work again", async || (client.call("memory_list", json!({})).await.code() == "ok").then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_sessions_outlive_a_restart_of_the_store() {
    let mut world = strict(Plan::redis(1)).await;
    world.redis().sync_every_write();
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;
    let mut stream = client.open_stream().await;
    world.redis().stop();
    assert_unavailable(&soon(client.call("memory_list", json!({}))).await);
    assert_unavailable(&soon(client.ask("tools/list", json!({}))).await);

    world.redis().restart();
    until("calls to work again", async || (client.call("memory_list", json!({})).await.code() == "ok").then_some(()))
        .await;
    assert_eq!(client.list().await, GROWN);
    assert_eq!(stream.notice().await, "notifications/tools/list_changed", "something may have been missed");
    client.call("unload_toolset", json!({ "toolset": "memory" })).await.ok();
    assert_eq!(stream.notice().await, "notifications/tools/list_changed", "and wake-ups arrive again");
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_full_store_refuses_calls_in_words_and_executes_nothing() {
    let mut world = strict(Plan::redis(1)).await;
    let client = world.tenant("acme").agent().legacy().await;
    assert_eq!(world.redis().command(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    let refused = client.call("memory_list", json!({})).await;
    assert_eq!((refused.answer.status, refused.code()), (200, "store_full"));
    assert_eq!(world.redis().command(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    assert_eq!(client.call("memory_list", json!({})).await.code(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn s8_a_file_that_another_process_holds_is_an_error_with_that_sentence() {
    let world = Plan::file().start(processes()).await;
    let error = world.begin_another().await.err().expect("the file is locked");
    assert!(error.contains("the store's file is locked by another process"), "{error}");
}

/// How many round trips somebody waited for while this was done.
async fn trips<T>(world: &World, work: impl Future<Output = T>) -> (u64, T) {
    let store = &world.part(0).store;
    let before = store.round_trips();
    let done = work.await;
    (store.round_trips() - before, done)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_path_waits_for_the_store_as_often_as_it_was_planned() {
    let world = redis(1).await;
    stock::install(&world, 1);
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    let modern = agent.modern();

    assert_eq!(trips(&world, modern.list()).await.0, 0, "tools/list, modern");
    assert_eq!(trips(&world, modern.ask("server/discover", json!({}))).await.0, 0, "server/discover");
    assert_eq!(trips(&world, client.list()).await.0, 1, "tools/list, legacy");
    assert_eq!(trips(&world, client.load("memory:write")).await.0, 2, "load_toolset");
    assert_eq!(trips(&world, client.load("memory:write")).await.0, 1, "load_toolset with nothing to change");
    let quick = world.tenant(stock::TENANT).agent().modern();
    assert_eq!(trips(&world, quick.call("quick", json!({}))).await.0, 1, "a read call");
    let held = world.tenant(stock::TENANT).agent().legacy().await;
    assert_eq!(trips(&world, held.call("quick", json!({}))).await.0, 1, "a read call in a session");
    let read = client.call("memory_read", json!({ "path": "session/notes/none" }));
    let (count, outcome) = trips(&world, read).await;
    assert_eq!(outcome.refusal()["code"], "doc_not_found");
    assert_eq!(count, 3, "a read call, the document, and what is near it");
    let bad = modern.call("memory_read", json!({ "path": Value::Null }));
    assert_eq!(trips(&world, bad).await.0, 0, "bad arguments end before the store");
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_store_that_is_nearly_full_takes_no_new_run_and_still_settles_the_old_ones() {
    let plan = Plan::redis(1).tenant("acme", "policy:\n  approval: { most_waiting: 1000 }");
    let mut world = plan.start(in_process()).await;
    let acme = world.tenant("acme");
    let agent = acme.agent().legacy().await;
    agent.load("memory:write").await;
    let note =
        |n: u32| json!({ "path": format!("tenant/runbooks/n{n}"), "type": "note", "content": "a", "evidence": "b" });
    let pending = agent.call("memory_remember", note(1)).await;
    let id = pending.ok()["run"]["id"].as_str().unwrap().to_owned();

    // Ballast, so that the tenth held in reserve is worth something: little is left, but enough for what was asked before.
    world.redis().command(&["SETRANGE", "world:ballast", "20000000", "x"]);
    const USED: &str = "return tonumber(redis.call('INFO','memory'):match('used_memory:(%d+)'))";
    let told = world.redis().command(&["EVAL", USED, "0"]);
    let used: u64 = told.trim_start_matches(':').parse().unwrap();
    world.redis().command(&["CONFIG", "SET", "maxmemory", &(used / 100 * 107).to_string()]);
    let tries = std::sync::atomic::AtomicU32::new(1);
    // A new wish each time: one that was recorded already would be answered with its run.
    let fresh = || note(tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
    let refused = until("the gate to close", async || {
        let outcome = agent.call("memory_remember", fresh()).await;
        (outcome.code() == "store_full").then_some(outcome)
    })
    .await;
    assert_eq!(refused.refusal()["retryable"], json!(true));
    agent.call("memory_list", json!({})).await.ok();
    let decided = acme.approver().rest().post(&format!("/v1/runs/{id}/approve"), &json!({})).await;
    assert_eq!(decided.status, 200, "{}", decided.text());
    let ended = agent.call("await_run", json!({ "run_id": id })).await;
    assert_eq!(ended.ok()["run"]["state"], json!("succeeded"));

    world.redis().command(&["CONFIG", "SET", "maxmemory", "0"]);
    world.redis().command(&["DEL", "world:ballast"]);
    until("the gate to open", async || {
        let outcome = agent.call("memory_remember", fresh()).await;
        (outcome.code() == "ok").then_some(())
    })
    .await;
}
