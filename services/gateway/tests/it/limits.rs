//! How much a tenant may use, and what the one call too many is told.

use crate::here::{embedded, in_process};
use crate::stock;
use futures_util::future::join_all;
use serde_json::json;
use testkit::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_minutes_limit_are_told_when_to_come_back() {
    let plan = Plan::redis(2).tenant("acme", "limits: { calls_per_minute: 4 }");
    let world = plan.start(in_process()).await;
    let agent = world.tenant("acme").agent();
    let rest = agent.rest();
    let session = rest.open("read").await;
    for replica in [0, 1, 0, 1] {
        let outcome = agent.on(replica).modern().call("memory_list", json!({})).await;
        assert_eq!(outcome.code(), "ok", "replicas count together");
    }

    let modern = agent.on(1).modern().call("memory_list", json!({})).await;
    let refusal = modern.refusal();
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("rate_limited"), &json!(true)));
    assert!(refusal["retry_after_ms"].as_u64().unwrap() > 0);
    assert_eq!(refusal["message"], "the tenant's limit of 4 calls a minute is used up");
    let legacy =
        agent.plain("tools/call", json!({ "name": "load_toolset", "arguments": { "toolset": "memory" } })).await;
    assert_eq!(legacy.refusal()["code"], "rate_limited");
    let answer = rest.call(&session, "memory_list", json!({})).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("10")));
    assert_eq!(answer.json()["error"]["code"], "rate_limited");

    let other = world.tenant("other").agent().modern().call("memory_list", json!({})).await;
    assert_eq!(other.code(), "ok", "one tenant's limit is not another's");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_beyond_the_slots_is_refused_at_once_and_slots_come_back() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let client = world.tenant(stock::TENANT).agent().modern();
    let slots: usize = 32;
    let calls = join_all((0..slots).map(|_| client.call("hold", json!({}))));
    let (ended, refused) = tokio::join!(calls, async {
        hold.entered(32).await;
        let refused = client.call("quick", json!({})).await;
        hold.release(slots);
        refused
    });

    let refusal = refused.refusal();
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("rate_limited"), &json!(true)));
    assert_eq!(refusal["message"], "all of the tenant's call slots are in use");
    assert!(refusal["retry_after_ms"].as_u64().unwrap() > 0);
    assert!(ended.iter().all(|outcome| outcome.code() == "ok"));
    assert_eq!(client.call("quick", json!({})).await.code(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_cap_is_refused_whole_with_the_way_out() {
    let world = Plan::embedded().tenant("acme", "limits: { result_bytes: 4096 }").start(in_process()).await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    client.load("memory:write").await;
    let keep = |name: &str, bytes: usize| {
        let path = format!("session/notes/{name}");
        let note = json!({ "path": path, "type": "note", "content": "x".repeat(bytes), "evidence": "y" });
        let client = client.clone();
        async move {
            client.call("memory_remember", note).await.ok();
            client.call("memory_read", json!({ "path": path })).await
        }
    };
    assert_eq!(keep("small", 3_000).await.code(), "ok");
    let large = keep("large", 5_000).await;
    let refusal = large.refusal();
    assert_eq!(refusal["code"], "result_too_large");
    assert_eq!(refusal["next"], "narrow the call so that it returns less");
    let rest = agent.rest().call(client.session(), "memory_read", json!({ "path": "session/notes/large" })).await;
    assert_eq!((rest.status, &rest.json()["error"]["code"]), (422, &json!("result_too_large")));
}
