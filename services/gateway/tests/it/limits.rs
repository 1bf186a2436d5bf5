//! How much a caller and a tenant may use, and what the one call too many is told.

use crate::here::{embedded, in_process};
use crate::runs_desk::{acme, ask, asker, asking};
use crate::stock;
use futures_util::future::join_all;
use serde_json::json;
use std::time::Duration;
use testkit::{Plan, Request, until};

#[tokio::test(flavor = "multi_thread")]
async fn calls_beyond_the_minutes_limit_are_told_when_to_come_back() {
    let plan = Plan::redis(2).tenant("acme", "limits: { calls_per_minute: 4 }");
    let world = plan.start(in_process()).await;
    let agent = world.tenant("acme").agent();
    let bo = agent.named("bo");
    let rest = bo.rest();
    let session = rest.open("read").await;
    for (agent, replica) in [(&agent, 0), (&agent, 1), (&agent, 0), (&bo, 1)] {
        let outcome = agent.on(replica).modern().call("memory_list", json!({})).await;
        assert_eq!(outcome.code(), "ok", "replicas count together");
    }

    let over_its_share = agent.on(1).modern().call("memory_list", json!({})).await;
    let refusal = over_its_share.refusal();
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("rate_limited"), &json!(true)));
    let modern = bo.on(1).modern().call("memory_list", json!({})).await;
    let refusal = modern.refusal();
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("rate_limited"), &json!(true)));
    assert!(refusal["retry_after_ms"].as_u64().unwrap() > 0);
    assert_eq!(refusal["message"], "the tenant's limit of 4 calls a minute is used up");
    let legacy = bo.plain("tools/call", json!({ "name": "load_toolset", "arguments": { "toolset": "memory" } })).await;
    assert_eq!(legacy.refusal()["code"], "rate_limited");
    let answer = rest.call(&session, "memory_list", json!({})).await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("10")));
    assert_eq!(answer.json()["error"]["code"], "rate_limited");

    let other = world.tenant("other").agent().modern().call("memory_list", json!({})).await;
    assert_eq!(other.code(), "ok", "one tenant's limit is not another's");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_caller_cannot_use_up_its_tenants_minute_while_others_call() {
    let world = Plan::embedded().tenant("acme", "limits: { calls_per_minute: 8 }").start(in_process()).await;
    let (ana, bo) = (world.tenant("acme").agent().named("ana"), world.tenant("acme").agent().named("bo"));
    assert_eq!(bo.modern().call("memory_list", json!({})).await.code(), "ok");
    let codes = join_all((0..20).map(|_| async { ana.modern().call("memory_list", json!({})).await })).await;
    assert_eq!(codes.iter().filter(|outcome| outcome.code() == "ok").count(), 6);
    let refused = codes.iter().find(|outcome| outcome.code() != "ok").unwrap();
    let message = "this caller's share of the tenant's calls, 6 a minute, is used up";
    assert_eq!(refused.refusal()["message"], message);
    assert_eq!(bo.modern().call("memory_list", json!({})).await.code(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_is_alone_uses_the_whole_minute() {
    let world = Plan::embedded().tenant("acme", "limits: { calls_per_minute: 8 }").start(in_process()).await;
    let ana = world.tenant("acme").agent();
    let ended = join_all((0..12).map(|_| async { ana.modern().call("memory_list", json!({})).await })).await;
    assert_eq!(ended.iter().filter(|outcome| outcome.code() == "ok").count(), 8);
    let refused = ended.iter().find(|outcome| outcome.code() != "ok").unwrap();
    assert_eq!(refused.refusal()["message"], "the tenant's limit of 8 calls a minute is used up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_call_writes_nothing_and_costs_a_quarter_of_a_served_one_at_most() {
    let plan = Plan::redis(1).tenant("acme", "limits: { calls_per_minute: 300, calls_in_flight: 64 }");
    let mut world = plan.setting("QM_APPROVALS__SWEEP_EVERY", "1h").start(in_process()).await;
    let client = world.tenant("acme").agent().modern();
    let audit = world.part(0).store.of(&acme()).audit();
    let entries = async || audit.page(None, 10_000).await.unwrap();
    let call = async |times: usize| {
        let mut refused = 0;
        for _ in 0..times {
            refused += usize::from(client.call("memory_list", json!({})).await.code() == "rate_limited");
        }
        refused
    };
    call(1).await;
    let before = world.redis().commands();
    assert_eq!(call(200).await, 0);
    until("every call to be closed", || async { (entries().await.len() >= 402).then_some(()) }).await;
    let served = world.redis().commands() - before;
    // The rest of the minute's calls.
    call(99).await;
    until("every call to be closed", || async { (entries().await.len() >= 600).then_some(()) }).await;
    // What was served is sealed a while later; that must not be taken for the cost of what is refused.
    while world.part(0).store.of(&acme()).seal(1_000).await.unwrap().behind {}
    let (count, before) = (entries().await.len(), world.redis().commands());

    assert_eq!(call(200).await, 200);

    let refused = world.redis().commands() - before;
    assert!(refused * 4 <= served, "{refused} commands for 200 refused calls, {served} for 200 served ones");
    let denied = until("the refusals to be noted", || async {
        let denied: Vec<_> = entries().await.into_iter().filter(|noted| noted.entry["phase"] == "denied").collect();
        (!denied.is_empty()).then_some(denied)
    })
    .await;
    assert_eq!((denied.len(), entries().await.len()), (1, count + 1), "a refused minute is one entry");
    let entry = &denied[0].entry;
    assert_eq!((&entry["outcome"]["code"], &entry["tool"]), (&json!("rate_limited"), &json!("memory_list")));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_fail_before_they_begin_have_a_rate_too() {
    let plan = Plan::embedded().tenant("acme", "limits: { calls_per_minute: 10 }");
    let world = plan.start(in_process()).await;
    let client = world.tenant("acme").agent().modern();
    let mut codes = Vec::new();
    for _ in 0..6 {
        codes.push(client.call("no_such_tool", json!({})).await.code().to_owned());
        codes.push(client.call("memory_list", json!({ "nonsense": 1 })).await.code().to_owned());
    }
    let over = codes.iter().filter(|code| *code == "rate_limited").count();
    assert!(over >= 2, "{codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_beyond_the_slots_is_refused_at_once_and_slots_come_back() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let tenant = world.tenant(stock::TENANT);
    let (ana, bo) = (tenant.agent().named("ana").modern(), tenant.agent().named("bo").modern());
    let (share, rest) = (24, 8);
    let calls = join_all((0..share).map(|_| ana.call("hold", json!({}))));
    let others = join_all((0..rest).map(|_| bo.call("hold", json!({}))));
    let (ended, others, (greedy, refused)) = tokio::join!(calls, others, async {
        hold.entered(32).await;
        let (greedy, refused) = (ana.call("quick", json!({})).await, bo.call("quick", json!({})).await);
        hold.release(32);
        (greedy, refused)
    });

    let refusal = refused.refusal();
    assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!("rate_limited"), &json!(true)));
    assert_eq!(refusal["message"], "all of the tenant's call slots are in use");
    assert!(refusal["retry_after_ms"].as_u64().unwrap() > 0);
    assert_eq!(greedy.code(), "rate_limited");
    assert!(ended.iter().chain(&others).all(|outcome| outcome.code() == "ok"));
    assert_eq!(ana.call("quick", json!({})).await.code(), "ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_holds_its_share_of_slots_leaves_the_rest_to_others() {
    let world = embedded().await;
    let hold = stock::install(&world, 1);
    let tenant = world.tenant(stock::TENANT);
    let (ana, bo) = (tenant.agent().named("ana").modern(), tenant.agent().named("bo").modern());
    let calls = join_all((0..40).map(|_| ana.call("hold", json!({}))));
    let (ended, served) = tokio::join!(calls, async {
        hold.entered(24).await;
        let served = bo.call("quick", json!({})).await;
        hold.release(24);
        served
    });
    assert_eq!(served.code(), "ok");
    let refused: Vec<_> = ended.iter().filter(|outcome| outcome.code() != "ok").collect();
    assert_eq!(refused.len(), 16);
    let message = "this caller's share of the tenant's call slots, 24, is in use";
    assert_eq!(refused[0].refusal()["message"], message);
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_calls_that_wait_for_a_run_hold_no_slot() {
    let plan = asking(Plan::embedded(), "deciders: 1").setting("QM_LIMITS__WAITING_PER_CALLER", "44");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let agent = tenant.agent();
    let client = asker(&agent).await;
    let run = ask(&client, "wait", "x").await;
    let waits = join_all((0..40).map(|_| client.call("await_run", json!({ "run_id": run, "wait_ms": 30_000 }))));
    let (ended, (own, other)) = tokio::join!(waits, async {
        // All forty are under way when as many entries are open.
        until("everybody to wait", || async { (world.part(0).store.open_receipts() >= 40).then_some(()) }).await;
        let own = agent.modern().call("memory_list", json!({})).await;
        let other = tenant.agent().named("bo").modern().call("memory_list", json!({})).await;
        crate::runs_desk::reject(&tenant.approver(), &run, "no").await;
        (own, other)
    });
    assert_eq!((own.code(), other.code()), ("ok", "ok"));
    assert!(ended.iter().all(|outcome| outcome.code() != "rate_limited"));
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_hold_no_slot_and_are_bounded_per_caller() {
    let world = Plan::embedded().setting("QM_LIMITS__WAITING_PER_CALLER", "3").start(in_process()).await;
    let hold = stock::install(&world, 1);
    let tenant = world.tenant(stock::TENANT);
    let (ana, bo) = (tenant.agent().named("ana").modern(), tenant.agent().named("bo").modern());
    let calls = join_all((0..5).map(|_| ana.call("linger", json!({}))));
    let (ended, others) = tokio::join!(calls, async {
        hold.entered(3).await;
        let waiting = bo.call("linger", json!({}));
        let (waiting, ()) = tokio::join!(waiting, async {
            hold.entered(1).await;
            assert_eq!(ana.call("quick", json!({})).await.code(), "ok", "waiting takes no slot");
            hold.release(4);
        });
        waiting
    });
    assert_eq!(others.code(), "ok");
    let refused: Vec<_> = ended.iter().filter(|outcome| outcome.code() != "ok").collect();
    assert_eq!(refused.len(), 2);
    assert_eq!(refused[0].refusal()["message"], "3 calls of this caller are waiting already");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_waits_holds_no_place_of_those_that_do_not() {
    let limits = "limits: { calls_in_flight: 1 }\npolicy: { approval: { deciders: 1 } }";
    let plan = Plan::embedded().tenant("acme", limits).setting("QM_LIMITS__WAITING_PER_CALLER", "1");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "wait", "x").await;
    let person = tenant.approver();
    let (long, short) = (format!("/v1/runs/{run}?wait_ms=30000"), format!("/v1/runs/{run}?wait_ms=1"));
    let rest = person.rest();
    // One of the short ones may have the place when the long one comes.
    let waited = async {
        loop {
            let ended = rest.get(&long).await;
            if ended.status != 429 {
                return ended;
            }
        }
    };
    let (ended, listed) = tokio::join!(waited, async {
        until("the first to wait", || async { (rest.get(&short).await.status == 429).then_some(()) }).await;
        let listed = person.rest().get("/v1/runs").await.status;
        crate::runs_desk::reject(&person, &run, "no").await;
        listed
    });
    assert_eq!((ended.status, listed), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_without_good_tokens_is_refused_before_a_token_is_verified() {
    let plan = Plan::embedded().setting("QM_LISTEN__REFUSED_PER_ADDRESS", "5");
    let plan = plan.setting("QM_LISTEN__TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#);
    let world = plan.start(in_process()).await;
    let agent = world.tenant("acme").agent();
    let from = |address: &str, token: &str| {
        let request = Request::new("GET", "/v1/catalog").header("X-Forwarded-For", address);
        let request = request.header("Authorization", format!("Bearer {token}"));
        let to = world.address(0);
        async move { request.send(to).await }
    };
    for _ in 0..50 {
        assert_eq!(from("203.0.113.1", agent.token()).await.status, 200, "who has a good token is not counted");
    }
    for _ in 0..5 {
        assert_eq!(from("203.0.113.9", "nonsense").await.status, 401);
    }
    let newcomer = agent.named("newcomer");
    let refused = from("203.0.113.9", newcomer.token()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("10")));
    assert_eq!(refused.json()["error"]["code"], "rate_limited");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let request = newcomer.post("/mcp", &body).header("X-Forwarded-For", "203.0.113.9");
    assert_eq!(newcomer.send(&request).await.status, 429);
    for _ in 0..20 {
        assert_eq!(from("203.0.113.9", agent.token()).await.status, 200, "who is known is not locked out by others");
    }
    assert_eq!(from("203.0.113.9", newcomer.token()).await.status, 429, "and wins nothing back for them");
    assert_eq!(from("203.0.113.1", newcomer.token()).await.status, 200, "another address is served");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_bounded_per_caller_and_per_tenant() {
    let plan = Plan::embedded().setting("QM_LIMITS__STREAMS_PER_CALLER", "2");
    let world = plan.setting("QM_LIMITS__STREAMS_PER_TENANT", "3").start(in_process()).await;
    let tenant = world.tenant("acme");
    let (ana, bo) = (tenant.agent().named("ana"), tenant.agent().named("bo"));
    let listen = json!({ "notifications": {} });
    let refused = async |who: &testkit::Actor| {
        let client = who.modern();
        client.send(&client.prepare("subscriptions/listen", listen.clone())).await
    };
    let (_first, _second) = (ana.modern().listen().await, ana.legacy().await.open_stream().await);
    let answer = refused(&ana).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.json()["error"]["message"], "2 event streams of this caller are open already");
    let legacy = ana.legacy().await;
    assert_eq!(ana.send(&legacy.stream_request()).await.status, 429);
    let third = bo.modern().listen().await;
    assert_eq!(refused(&bo).await.json()["error"]["message"], "3 event streams of the tenant are open already");
    let opens = async |who: &testkit::Actor| {
        let request = who.modern().prepare("subscriptions/listen", listen.clone());
        request.open(world.address(0)).await.0.status == 200
    };
    assert!(opens(&world.tenant("other").agent()).await, "another tenant has its own");
    drop(third);
    until("a stream that was left to be noticed", || async { opens(&bo).await.then_some(()) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_stream_of_a_session_is_the_only_one_whatever_its_trace_is_called() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    let request =
        client.stream_request().header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let first = agent.stream(&request).await;
    let _second = agent.stream(&request).await;
    let left = tokio::time::timeout(Duration::from_secs(10), first.rest()).await;
    assert!(left.is_ok(), "the first stream goes on beside the second");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_calls_have_a_rate_of_their_own() {
    let plan = Plan::embedded().setting("QM_LIMITS__REQUESTS_PER_CALLER", "6");
    let world = plan.setting("QM_LIMITS__REQUESTS_PER_TENANT", "8").start(in_process()).await;
    let tenant = world.tenant("acme");
    let (agent, person) = (tenant.agent(), tenant.approver());
    let codes: Vec<u16> = join_all((0..9).map(|_| async { agent.rest().get("/v1/runs").await.status })).await;
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 6);
    let refused = agent.rest().get("/v1/catalog").await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("10")));
    let message = "this caller's limit of 6 requests a minute is used up";
    assert_eq!(refused.json()["error"]["message"], message);
    assert_eq!(agent.send(&agent.modern().prepare("tools/list", json!({}))).await.status, 429, "MCP counts as well");
    let called = agent.modern().call("memory_list", json!({})).await;
    assert_eq!(called.code(), "ok", "calls are counted apart");

    let other = tenant.agent().named("bo");
    while other.rest().get("/v1/runs").await.status == 200 {}
    let decided = person.rest().post(&format!("/v1/runs/{UNKNOWN}/approve"), &json!({})).await;
    assert_eq!(decided.status, 404, "a person can decide although the tenant's requests are used up");
}

/// A run that never was.
const UNKNOWN: &str = "run_0000000000000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_with_too_many_sessions_is_told_so_and_others_are_not() {
    let plan = Plan::embedded().setting("QM_LIMITS__SESSIONS_PER_CALLER", "2");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let (ana, bo) = (tenant.agent().named("ana"), tenant.agent().named("bo"));
    let first = ana.rest().open("read").await;
    ana.rest().open("read").await;
    let refused = ana.rest().post("/v1/sessions", &json!({ "mode": "read" })).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (409, &json!("quota_exceeded")));
    assert_eq!(refused.json()["error"]["message"], "this caller has 2 sessions open already");
    assert!(refused.json()["error"]["hint"].as_str().unwrap().contains("close a session"));
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let legacy = ana.send(&ana.post("/mcp", &initialize)).await;
    assert_eq!(legacy.json()["error"]["data"]["code"], "quota_exceeded");
    bo.rest().open("read").await;
    assert_eq!(ana.rest().delete(&format!("/v1/sessions/{first}")).await.status, 204);
    ana.rest().open("read").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_tenant_reads_and_decides_and_others_work() {
    let plan = asking(Plan::embedded(), "deciders: 1").setting("QM_LIMITS__STORE_BYTES_PER_TENANT", "20000");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "full", "x").await;
    let refused = loop {
        let outcome = client.call("memory_list", json!({})).await;
        if outcome.code() != "ok" {
            break outcome;
        }
    };
    assert_eq!(refused.refusal()["code"], "quota_exceeded");
    let message = "what is stored for the tenant has reached 20000 bytes";
    assert_eq!(refused.refusal()["message"], message);
    let session = tenant.agent().rest().post("/v1/sessions", &json!({ "mode": "read" })).await;
    assert_eq!(session.json()["error"]["code"], "quota_exceeded");
    assert_eq!(client.call("memory_list", json!({})).await.code(), "quota_exceeded");
    let audit = world.part(0).store.of(&acme()).audit();
    let denied = until("the refusals to be noted", || async {
        let entries = audit.page(None, 10_000).await.unwrap().into_iter();
        let denied: Vec<_> = entries.filter(|noted| noted.entry["phase"] == "denied").collect();
        (!denied.is_empty()).then_some(denied)
    })
    .await;
    assert_eq!(denied.len(), 1, "a refused minute is one entry");
    assert_eq!(denied[0].entry["outcome"]["code"], "quota_exceeded");

    let person = tenant.approver();
    assert_eq!(person.rest().get("/v1/runs").await.json()["runs"][0]["id"], run.as_str());
    assert_eq!(person.rest().get(&format!("/v1/runs/{run}")).await.status, 200);
    crate::runs_desk::approve(&person, &run).await;
    let ended = client.call("await_run", json!({ "run_id": run, "wait_ms": 20_000 })).await;
    assert_eq!(ended.code(), "ok");
    let other = world.tenant("other").agent().modern().call("memory_list", json!({})).await;
    assert_eq!(other.code(), "ok");
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
