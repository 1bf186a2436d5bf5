//! What callers use is added up, written down in batches, and shown to whoever reads the audit log.

use crate::here::{World, embedded, redis};
use crate::runs_desk::{acme, refusal};
use serde_json::{Value, json};
use store::UsageDate;
use testkit::{Actor, until};

fn auditor(world: &World, tenant: &str) -> Actor {
    world.tenant(tenant).approver().named("otto").scoped("audit:read")
}

async fn usage(who: &Actor, query: &str) -> Value {
    let answer = who.rest().get(&format!("/v1/usage{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["name"].as_str().unwrap().contains(name)).unwrap_or_else(|| panic!("{name}: {report}"))
}

async fn calls_and_lists_are_added_up(world: World) {
    let (agent, otto) = (world.tenant("acme").agent(), auditor(&world, "acme"));
    let client = agent.legacy().await;
    client.list().await;
    client.load("memory:write").await;
    for _ in 0..3 {
        client.call("memory_list", json!({})).await.ok();
    }
    let by_tool = usage(&otto, "").await;
    let list = row(&by_tool, "memory_list");
    assert_eq!((&list["calls"], &list["errors"]), (&json!(3), &json!(0)), "{by_tool}");
    assert!(list["result_tokens"].as_u64().unwrap() > 0, "{by_tool}");
    let load = row(&by_tool, "load_toolset");
    assert!(load["schema_tokens"].as_u64().unwrap() > 0 && load["result_tokens"] == 0, "{by_tool}");
    let total = &by_tool["total"];
    assert_eq!((&total["calls"], &total["lists"]), (&json!(4), &json!(1)), "{by_tool}");
    let whole: u32 = world.part(0).tenants.find(&acme()).unwrap().catalog.entries().iter().map(|e| e.tokens()).sum();
    let handed_out = total["schema_tokens"].as_i64().unwrap();
    assert_eq!(total["saved_tokens"].as_i64().unwrap(), i64::from(whole) - handed_out, "{by_tool}");
    assert_eq!(row(&usage(&otto, "?by=principal").await, "agent")["calls"], 4);
    assert_eq!(row(&usage(&otto, "?by=session").await, "ses_")["calls"], 4);
    assert_eq!(row(&usage(&otto, "?by=toolset").await, "memory")["calls"], 3);
    assert_eq!(usage(&auditor(&world, "bolt"), "").await["total"]["calls"], 0, "another tenant's are its own");
}

async fn with_two_tenants(plan: testkit::Plan) -> World {
    plan.tenant("acme", "").tenant("bolt", "").start(crate::here::in_process()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_lists_are_added_up_embedded() {
    calls_and_lists_are_added_up(with_two_tenants(testkit::Plan::embedded()).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_lists_are_added_up_on_redis() {
    calls_and_lists_are_added_up(with_two_tenants(testkit::Plan::redis(1)).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_add_to_one_day_and_a_drain_loses_nothing() {
    let mut world = redis(2).await;
    for replica in [0, 1] {
        let client = world.tenant("acme").agent().on(replica).legacy().await;
        client.call("memory_list", json!({})).await.ok();
        client.call("memory_list", json!({})).await.ok();
    }
    // It goes before it would have written by itself.
    world.stop(1).await;
    let report = usage(&auditor(&world, "acme"), "").await;
    assert_eq!(row(&report, "memory_list")["calls"], 4, "{report}");
    world.begin(1).await;
    let report = usage(&auditor(&world, "acme").on(1), "").await;
    assert_eq!(row(&report, "memory_list")["calls"], 4, "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_written_without_being_asked_for_and_nothing_for_idle_tenants() {
    let mut world = with_two_tenants(testkit::Plan::redis(1)).await;
    world.tenant("acme").agent().legacy().await.call("memory_list", json!({})).await.ok();
    let used = world.part(0).store.of(&acme()).used();
    let today = UsageDate::of(world.part(0).store.now().await.unwrap());
    // The day may end meanwhile.
    let days = [today.clone(), today.next()];
    until("usage to be written", async || {
        let written = used.days(&days).await.unwrap();
        written.iter().any(|day| day.total.calls == 1).then_some(())
    })
    .await;
    let keys = world.redis().keys();
    assert!(!keys.iter().any(|key| key.contains("{bolt}:usg:")), "{keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_for_people_who_read_the_audit_log() {
    let world = embedded().await;
    let people = world.tenant("acme").approver();
    for scope in ["tenant:admin", "runs:decide", "tools:read audit:read"] {
        let answer = people.scoped(scope).rest().get("/v1/usage").await;
        assert_eq!(refusal(&answer), (403, "insufficient_scope".into()), "{scope}");
    }
    let otto = auditor(&world, "acme");
    for bad in ["?from=yesterday", "?from=2026-11-18&to=2026-11-17", "?from=2026-01-01&to=2026-12-31", "?by=tenant"] {
        let answer = otto.rest().get(&format!("/v1/usage{bad}")).await;
        assert_eq!(refusal(&answer), (400, "invalid_request".into()), "{bad}");
    }
    let empty = usage(&otto, "?from=2026-01-01&to=2026-01-31&by=session").await;
    assert_eq!((&empty["rows"], &empty["total"]["saved_tokens"]), (&json!([]), &json!(0)));
}
