//! How an agent lives with approvals: what it is told, how it waits, what it gets when it asks again.

use crate::here::{World, in_process, told as line};
use crate::runs_desk::{
    PENDING, approve, ask, asker, asking, audit_log, await_run, ended, moves, note, path, pending, refusal, reject,
    rules, say, show, versions,
};
use serde_json::{Value, json};
use testkit::{Actor, Answer, Outcome, Plan, until};

async fn world(approval: &str) -> World {
    asking(Plan::redis(2), approval).start(in_process()).await
}

/// `on_reject: fail` for everything that reaches the whole tenant.
fn failing() -> String {
    let gate = "policy:\n  require_approval:\n  - { name: 'memory_remember:tenant', on_reject: fail }";
    format!("{gate}\nlimits: {{ calls_per_minute: 1000000 }}")
}

async fn rest_call(agent: &Actor, session: &str, body: &Value) -> Answer {
    agent.rest().post(&format!("/v1/sessions/{session}/calls"), body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gated_call_answers_at_once_with_the_run() {
    let world = world("expires: 30m").await;
    let agent = world.tenant("acme").agent();
    let outcome = asker(&agent).await.call("memory_remember", note("shape", "x")).await;
    let told = outcome.ok();
    let run = &told["run"];
    let keys: Vec<&str> = run.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["digest", "effect", "expires_at", "id", "next", "poll_after_ms", "state"]);
    assert!(run["id"].as_str().unwrap().starts_with("run_"));
    assert_eq!(
        (&run["state"], &run["effect"], &run["poll_after_ms"]),
        (&json!(PENDING), &json!("change"), &json!(2000))
    );
    assert!(run["next"].as_str().unwrap().contains("await_run"));
    let summary = "memory_remember: content=x, evidence=seen in the logs, path=tenant/runbooks/shape, type=note";
    assert_eq!(told["preview"], json!({ "summary": summary }), "from the call alone");
    let text = outcome.result()["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), *told, "text and structure say the same");
    assert_eq!(outcome.result()["isError"], Value::Null);
    let seen = show(&world.tenant("acme").approver(), run["id"].as_str().unwrap()).await;
    assert_eq!(seen["expires_at"], run["expires_at"]);
    assert_eq!(seen["arguments"], note("shape", "x"), "people see the real arguments");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_a_run_belongs_to_the_trace_of_its_call() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let call = json!({ "name": "memory_remember", "arguments": note("traced", "x") });
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let call = client.prepare("tools/call", call).with("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    client.send(&call).await;
    let listed = tenant.approver().rest().get("/v1/runs?state=pending_approval").await.json();
    let run = listed["runs"][0]["id"].as_str().unwrap().to_owned();
    approve(&tenant.approver(), &run).await;
    ended(&tenant.approver(), &run).await;
    let moves = audit_log(&world, &run).await;
    let moves: Vec<&Value> = moves.iter().filter(|entry| entry["phase"] == "transition").collect();
    assert!(moves.len() > 2 && moves.iter().all(|entry| entry["trace"] == trace), "{moves:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn await_run_brings_the_outcome_to_any_replica_in_both_eras() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let legacy = asker(&tenant.agent()).await;
    let modern = tenant.agent().modern().loaded("memory:write").await;
    let runs = [
        ask(&legacy, "await-legacy", "x").await,
        pending(&modern.call("memory_remember", note("await-modern", "x")).await),
    ];
    let waiting = json!({ "run_id": runs[1], "wait_ms": 20_000 });
    let (elsewhere, later) = (legacy.on(1), modern.on(1));
    let ana = tenant.approver();
    let (a, b, ()) = tokio::join!(await_run(&elsewhere, &runs[0]), later.call("await_run", waiting), async {
        for run in &runs {
            approve(&ana, run).await;
        }
    });
    for (outcome, name) in [(a, "await-legacy"), (b, "await-modern")] {
        let told = outcome.ok();
        assert_eq!((&told["run"]["state"], &told["run"]["decided_by"]), (&json!("succeeded"), &json!("ana")));
        assert_eq!((&told["result"]["path"], &told["result"]["trust"]), (&json!(path(name)), &json!("approved")));
        assert_eq!(versions(&world, name).await, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_that_runs_out_is_no_error() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "patience", "x").await;
    for wait in [0, 50] {
        let told = client.call("await_run", json!({ "run_id": run, "wait_ms": wait })).await;
        assert_eq!(told.ok()["run"]["state"], PENDING);
    }
    let shown = tenant.agent().rest().get(&format!("/v1/runs/{run}?wait_ms=50")).await;
    assert_eq!((shown.status, &shown.json()["state"]), (200, &json!(PENDING)));
    for odd in [json!({ "run_id": run, "wait_ms": 55_001 }), json!({ "run_id": run, "wait_ms": -1 }), json!({})] {
        assert_eq!(client.call("await_run", odd).await.refusal()["code"], "invalid_argument");
    }
    assert_eq!(tenant.agent().rest().get(&format!("/v1/runs/{run}?wait_ms=soon")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_tells_how_far_it_is_and_then_how_it_ended() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let meta = json!({ "progressToken": "p1", "quartermaster/hold_ms": 20_000 });
    let params = json!({ "name": "memory_remember", "arguments": note("held", "x"), "_meta": meta });
    let mut stream = client.stream(&client.prepare("tools/call", params)).await;
    let first = stream.message().await;
    assert_eq!((&first["method"], &first["params"]["message"]), (&json!("notifications/progress"), &json!(PENDING)));
    assert_eq!((&first["params"]["progressToken"], &first["params"]["progress"]), (&json!("p1"), &json!(1)));
    let listed = tenant.approver().rest().get("/v1/runs?state=pending_approval").await.json();
    let run = listed["runs"][0]["id"].as_str().unwrap().to_owned();

    approve(&tenant.approver().on(1), &run).await;

    let mut rest = stream.rest().await;
    let last = rest.pop().unwrap();
    assert_eq!(last["result"]["structuredContent"]["run"]["state"], "succeeded", "{last}");
    let steps: Vec<u64> = rest.iter().map(|message| message["params"]["progress"].as_u64().unwrap()).collect();
    assert!(steps.is_sorted() && steps.first().is_none_or(|step| *step > 1), "{rest:?}");
    assert_eq!(versions(&world, "held").await, 1);

    for odd in [json!(-1), json!(55_001), json!("long")] {
        let meta = json!({ "quartermaster/hold_ms": odd });
        let params = json!({ "name": "memory_remember", "arguments": note("held-2", "x"), "_meta": meta });
        assert_eq!(client.ask("tools/call", params).await.error()["code"], -32602);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_that_is_cancelled_leaves_its_run() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let meta = json!({ "progressToken": 1, "quartermaster/hold_ms": 20_000 });
    let params = json!({ "name": "memory_remember", "arguments": note("left", "x"), "_meta": meta });
    let mut stream = client.stream(&client.prepare_as(json!("c1"), "tools/call", params)).await;
    stream.message().await;
    client.notify("notifications/cancelled", json!({ "requestId": "c1" })).await;
    let rest = stream.rest().await;
    assert!(rest.iter().all(|message| message["result"].is_null()), "a cancelled request gets no answer: {rest:?}");
    let run = ask(&client, "left", "x").await;
    approve(&tenant.approver(), &run).await;
    assert_eq!(await_run(&client, &run).await.ok()["run"]["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn rest_answers_202_with_the_run_or_waits_for_the_result() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let agent = tenant.agent();
    let body = |wait: u64| json!({ "tool": "memory_remember", "arguments": note("rest", "x"), "wait_ms": wait });
    let first = rest_call(&agent, client.session(), &body(0)).await;
    assert_eq!((first.status, &first.json()["result"]["run"]["state"]), (202, &json!(PENDING)));
    let short = rest_call(&agent, client.session(), &body(30)).await;
    assert_eq!((short.status, &short.json()["result"]["run"]["replayed"]), (202, &json!(true)));
    let run = first.json()["result"]["run"]["id"].as_str().unwrap().to_owned();

    let (long, twenty) = (agent.on(1), body(20_000));
    let ana = tenant.approver();
    let (answer, _) = tokio::join!(rest_call(&long, client.session(), &twenty), approve(&ana, &run));
    assert_eq!((answer.status, &answer.json()["result"]["run"]["state"]), (200, &json!("succeeded")));
    assert_eq!(answer.json()["result"]["result"]["version"], 1);
    assert_eq!(versions(&world, "rest").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn asking_the_same_again_finds_the_run_until_its_end_was_handed_over() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let call = async |replica: usize| client.on(replica).call("memory_remember", note("again", "x")).await;
    let run = pending(&call(0).await);
    let again = call(1).await;
    assert_eq!((pending(&again), &again.ok()["run"]["replayed"]), (run.clone(), &json!(true)));
    let at_once = futures_util::future::join_all((0..6).map(|n| call(n % 2))).await;
    assert!(at_once.iter().all(|outcome| pending(outcome) == run));

    approve(&tenant.approver(), &run).await;
    ended(&tenant.approver(), &run).await;
    // A person has seen the end; the agent has not, so the same call is handed it.
    let handed = call(1).await;
    assert_eq!((&handed.ok()["run"]["state"], &handed.ok()["run"]["replayed"]), (&json!("succeeded"), &json!(true)));
    assert_eq!(handed.ok()["result"]["version"], 1);

    let new = pending(&call(0).await);
    assert_ne!(new, run, "what was handed over is history");
    assert_eq!(versions(&world, "again").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_ending_is_not_replayed_when_the_way_to_it_was_forgotten() {
    let mut world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "old", "x").await;
    approve(&tenant.approver(), &run).await;
    await_run(&client, &run).await.ok();
    // A day later the digest leads nowhere any more, and the run itself is still kept.
    for key in world.redis().keys().into_iter().filter(|key| key.contains(":dig:")) {
        world.redis().command(&["DEL", &key]);
    }
    let again = pending(&client.call("memory_remember", note("old", "x")).await);
    assert_ne!(again, run, "a person is asked anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_replicas_asked_the_same_at_once_open_one_run() {
    let world = world("most_waiting: 100").await;
    let client = asker(&world.tenant("acme").agent()).await;
    for round in 0..10 {
        let name = format!("once-{round}");
        let calls = (0..8).map(|n| {
            let (client, name) = (client.on(n % 2), name.clone());
            async move { pending(&client.call("memory_remember", note(&name, "x")).await) }
        });
        let mut runs = futures_util::future::join_all(calls).await;
        runs.dedup();
        assert_eq!(runs.len(), 1, "{runs:?}");
    }
    let listed = world.tenant("acme").approver().rest().get("/v1/runs").await.json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_leads_to_its_run_for_good_and_to_no_other_call() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let agent = tenant.agent();
    let call = async |name: &str, key: &str| {
        let body = json!({ "tool": "memory_remember", "arguments": note(name, "x"), "idempotency_key": key });
        rest_call(&agent, client.session(), &body).await
    };
    let run = |answer: &Answer| answer.json()["result"]["run"]["id"].as_str().unwrap_or_default().to_owned();
    let first = call("key", "k1").await;
    assert_eq!(first.status, 202);
    let other = call("other", "k1").await;
    assert_eq!(refusal(&other), (409, "key_reused".into()));
    assert_eq!(other.json()["error"]["details"]["run"], run(&first), "it names the run of the first call");
    let again = call("key", "k1").await;
    assert_eq!((again.status, run(&again)), (202, run(&first)), "still going");

    approve(&tenant.approver(), &run(&first)).await;
    assert_eq!(ended(&agent, &run(&first)).await["state"], "succeeded");
    for _ in 0..2 {
        let replayed = call("key", "k1").await;
        let told = &replayed.json()["result"];
        assert_eq!((replayed.status, run(&replayed), &told["run"]["replayed"]), (200, run(&first), &json!(true)));
        assert_eq!(told["result"]["version"], 1, "however often, and although it was delivered");
    }
    assert_eq!(refusal(&call("other", "k1").await), (409, "key_reused".into()));
    assert_eq!((versions(&world, "key").await, versions(&world, "other").await), (1, 0));
    // Somebody else's key of the same letters is another key.
    let bob = agent.named("bob");
    let theirs = asker(&bob).await;
    let body = json!({ "tool": "memory_remember", "arguments": note("other", "x"), "idempotency_key": "k1" });
    assert_eq!(rest_call(&bob, theirs.session(), &body).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_keeps_failures_too() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let call = async || {
        let meta = json!({ "quartermaster/idempotency_key": "k" });
        let params = json!({ "name": "memory_remember", "arguments": note("no", "x"), "_meta": meta });
        client.ask("tools/call", params).await
    };
    let run = pending(&call().await);
    reject(&tenant.approver(), &run, "no").await;
    for _ in 0..3 {
        let told = call().await;
        let run_now = &told.ok()["run"];
        assert_eq!(
            (&run_now["id"], &run_now["state"], &run_now["replayed"]),
            (&json!(run), &json!("rejected"), &json!(true))
        );
    }
    assert_eq!(versions(&world, "no").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_finds_the_run_it_was_answered_with() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let call = async |key: Option<&str>| {
        let mut params = json!({ "name": "memory_remember", "arguments": note("late-key", "x") });
        if let Some(key) = key {
            params["_meta"] = json!({ "quartermaster/idempotency_key": key });
        }
        client.ask("tools/call", params).await
    };
    // The first call had no key. The second has one and is answered with the same run.
    pending(&call(None).await);
    let answered = pending(&call(Some("k2")).await);
    approve(&tenant.approver(), &answered).await;
    assert_eq!(await_run(&client, &answered).await.ok()["run"]["state"], "succeeded");

    let again = call(Some("k2")).await;
    assert_eq!(again.ok()["run"]["id"], answered, "the answer was lost on the way, and the caller asks with its key");
    let other = json!({ "name": "memory_remember", "arguments": note("late-key-2", "x"), "_meta": { "quartermaster/idempotency_key": "k2" } });
    assert_eq!(client.ask("tools/call", other).await.code(), "key_reused");
    assert_eq!(versions(&world, "late-key").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_cannot_be_one_is_refused_and_a_refused_call_leaves_its_key_free() {
    let world = world("most_waiting: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let agent = tenant.agent();
    for key in [String::new(), "x".repeat(256)] {
        let body = json!({ "tool": "memory_remember", "arguments": note("odd", "x"), "idempotency_key": key });
        assert_eq!(rest_call(&agent, client.session(), &body).await.status, 400, "{} letters", key.len());
        let meta = json!({ "quartermaster/idempotency_key": key });
        let params = json!({ "name": "memory_remember", "arguments": note("odd", "x"), "_meta": meta });
        assert_eq!(client.ask("tools/call", params).await.error()["code"], -32602);
    }
    let body = json!({ "tool": "memory_remember", "arguments": note("long", "x"), "idempotency_key": "x".repeat(255) });
    let first = rest_call(&agent, client.session(), &body).await;
    assert_eq!(first.status, 202, "{}", line(&first));
    // Refused because too much waits: the key was not used up.
    let body = json!({ "tool": "memory_remember", "arguments": note("second", "x"), "idempotency_key": "k" });
    assert_eq!(refusal(&rest_call(&agent, client.session(), &body).await), (429, "too_many_pending".into()));
    let run = first.json()["result"]["run"]["id"].as_str().unwrap().to_owned();
    reject(&tenant.approver(), &run, "no").await;
    let body = json!({ "tool": "memory_remember", "arguments": note("third", "x"), "idempotency_key": "k" });
    assert_eq!(rest_call(&agent, client.session(), &body).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_counted_in_letters_at_every_door() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let key = "ä".repeat(255);
    let meta = json!({ "quartermaster/idempotency_key": key });
    let params = json!({ "name": "memory_remember", "arguments": note("letters", "x"), "_meta": meta });
    let run = pending(&client.ask("tools/call", params).await);
    let body = json!({ "tool": "memory_remember", "arguments": note("letters", "x"), "idempotency_key": key });
    let rest = rest_call(&tenant.agent(), client.session(), &body).await;
    assert_eq!((rest.status, &rest.json()["result"]["run"]["id"]), (202, &json!(run)), "{}", line(&rest));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_who_waits_is_answered_when_the_run_moves_and_not_only_when_it_ends() {
    let world = asking(Plan::redis(2), "deciders: 1").start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "moves", "x").await;
    let (ana, reader) = (tenant.approver(), tenant.agent().on(1));
    let waiting = async { reader.rest().get(&format!("/v1/runs/{run}?wait_ms=20000")).await.json() };
    let (told, _) = tokio::join!(waiting, approve(&ana, &run));
    assert_ne!(told["state"], PENDING);
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    // What is settled does not move any more: nobody waits for it.
    assert_eq!(reader.rest().get(&format!("/v1/runs/{run}?wait_ms=55000")).await.json()["state"], "succeeded");
    let stranger = reader.named("bob");
    assert_eq!(stranger.rest().get(&format!("/v1/runs/{run}?wait_ms=55000")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_that_lets_the_agent_go_on_is_a_signal_and_no_error() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "go-on", "x").await;
    reject(&tenant.approver(), &run, "try another way").await;
    let outcome = await_run(&client, &run).await;
    let told = &outcome.ok()["run"];
    assert_eq!((&told["state"], &told["decided_by"]), (&json!("rejected"), &json!("ana")));
    assert_eq!(told["reason"], "try another way");
    ask(&client, "go-on-2", "x").await;
    assert_eq!(versions(&world, "go-on").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_that_ends_the_step_stops_the_sessions_changes_until_a_person_clears_it() {
    let plan = Plan::redis(2).tenant("acme", &failing()).setting("QM_APPROVALS__SWEEP_EVERY", "50ms");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let other = asker(&tenant.agent()).await;
    let run = ask(&client, "stop", "x").await;
    reject(&tenant.approver(), &run, "stop that").await;

    let told = await_run(&client, &run).await;
    let refused = told.refusal();
    assert_eq!(refused["code"], "rejected");
    assert!(refused["message"].as_str().unwrap().contains("stop that"), "{refused}");
    for replica in [0, 1] {
        let next = client.on(replica).call("memory_remember", note("stop-2", "x")).await;
        assert_eq!(next.refusal()["code"], "policy_denied", "no further change");
        let same = client.on(replica).call("memory_remember", note("stop", "x")).await;
        assert_eq!(same.refusal()["code"], "policy_denied");
    }
    assert_eq!(client.call("memory_list", json!({ "path": "tenant" })).await.code(), "ok", "reading goes on");
    let session = tenant.agent().rest().get(&format!("/v1/sessions/{}", client.session())).await.json();
    assert_eq!(session["stopped_by"], run);
    ask(&other, "stop-3", "x").await;

    for (who, status) in [(tenant.agent(), 403), (world.tenant("other").approver(), 404), (tenant.approver(), 200)] {
        assert_eq!(say(&who, &run, "clear", json!({})).await.status, status);
    }
    ask(&client.on(1), "stop-2", "x").await;
    assert_eq!(versions(&world, "stop").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_unblocks_their_own_session() {
    let plan = Plan::embedded().tenant("acme", &failing()).setting("QM_APPROVALS__SWEEP_EVERY", "50ms");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "own-clear", "x").await;
    reject(&tenant.approver(), &run, "no").await;
    // One human with two tokens: one that asks, one that decides, both of one subject.
    let same = tenant.approver().named("agent");
    assert_eq!(refusal(&say(&same, &run, "clear", json!({})).await), (403, "own_request".into()));
    let next = client.call("memory_remember", note("own-clear-2", "x")).await;
    assert_eq!(next.refusal()["code"], "policy_denied", "the session stays blocked");
    assert_eq!(say(&tenant.approver(), &run, "clear", json!({})).await.status, 200);
    ask(&client, "own-clear-2", "x").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_requester_takes_a_run_back_and_only_while_it_waits() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let (agent, ana) = (tenant.agent(), tenant.approver());
    let run = ask(&client, "cancel", "x").await;
    for stranger in [agent.named("bob"), ana.clone(), world.tenant("other").agent()] {
        assert_eq!(refusal(&say(&stranger, &run, "cancel", json!({})).await), (404, "not_found".into()));
    }
    let cancelled = say(&agent.on(1), &run, "cancel", json!({})).await;
    assert_eq!((cancelled.status, &cancelled.json()["state"]), (200, &json!("cancelled")));
    assert_eq!(refusal(&say(&ana, &run, "approve", json!({})).await), (409, "not_possible".into()));
    assert_eq!(refusal(&say(&agent, &run, "cancel", json!({})).await), (409, "not_possible".into()));
    assert_eq!(await_run(&client, &run).await.refusal()["code"], "run_cancelled");

    let run = ask(&client, "cancel", "x").await;
    approve(&ana, &run).await;
    ended(&ana, &run).await;
    assert_eq!(refusal(&say(&agent, &run, "cancel", json!({})).await), (409, "not_possible".into()));
    assert_eq!(versions(&world, "cancel").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_took_a_run_back_has_been_told_and_may_ask_anew() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "anew", "x").await;
    assert_eq!(say(&tenant.agent(), &run, "cancel", json!({})).await.status, 200);
    let again = client.call("memory_remember", note("anew", "x")).await;
    assert_ne!(pending(&again), run);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_session_leaves_the_run() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "closed", "x").await;
    client.delete().await;
    approve(&tenant.approver(), &run).await;
    assert_eq!(ended(&tenant.approver(), &run).await["state"], "succeeded");
    let next = tenant.agent().legacy().await;
    assert_eq!(await_run(&next, &run).await.ok()["run"]["state"], "succeeded", "the run is the principal's own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_nobody_answers_expires_and_may_be_asked_anew() {
    let world = world("expires: 1s").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "expire", "x").await;
    let told = await_run(&client.on(1), &run).await;
    let refused = told.refusal();
    assert_eq!((&refused["code"], refused["details"]["run"]["state"].as_str()), (&json!("expired"), Some("expired")));
    assert_eq!(refusal(&say(&tenant.approver(), &run, "approve", json!({})).await), (410, "expired".into()));
    assert_ne!(ask(&client, "expire", "x").await, run);
    assert_eq!(versions(&world, "expire").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn id10_somebody_elses_run_reads_like_one_that_never_was() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let run = ask(&asker(&tenant.agent()).await, "foreign", "x").await;
    let never = "run_0000000000000000000000";
    for stranger in [tenant.agent().named("bob"), world.tenant("other").agent(), world.tenant("other").approver()] {
        let look = async |id: &str, what: &str| {
            let answer = stranger.rest().get(&format!("{what}/{id}")).await;
            line(&answer).replace(id, "ID")
        };
        for family in ["/v1/runs", "/runs"] {
            let told = look(&run, family).await;
            assert!(told.starts_with("404 "), "{told}");
            assert_eq!(told, look(never, family).await);
        }
        let cancel = async |id: &str| line(&say(&stranger, id, "cancel", json!({})).await);
        assert_eq!(cancel(&run).await, cancel(never).await);
    }
    for stranger in [tenant.agent().named("bob"), world.tenant("other").agent()] {
        let client = stranger.modern();
        let wait = async |id: &str| {
            let outcome = client.call("await_run", json!({ "run_id": id, "wait_ms": 0 })).await;
            assert_eq!(outcome.refusal()["code"], "not_found");
            line(&outcome.answer)
        };
        assert_eq!(wait(&run).await, wait(never).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_short_addresses_do_the_same_as_the_long_ones() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let ana = tenant.approver();
    let (yes, no) = (ask(&client, "alias-yes", "x").await, ask(&client, "alias-no", "x").await);
    for run in [&yes, &no] {
        let short = ana.rest().get(&format!("/runs/{run}")).await;
        assert_eq!((short.status, short.json()), (200, show(&ana, run).await));
    }
    let post =
        async |run: &str, what: &str| ana.rest().post(&format!("/runs/{run}/{what}"), &json!({ "reason": "r" })).await;
    assert_eq!((post(&yes, "approve").await.status, post(&no, "reject").await.status), (200, 200));
    assert_eq!(
        (ended(&ana, &yes).await["state"].clone(), show(&ana, &no).await["state"].clone()),
        (json!("succeeded"), json!("rejected"))
    );
    assert_eq!(refusal(&post(&no, "approve").await), (409, "already_decided".into()));
    let agent = tenant.agent().rest().post(&format!("/runs/{no}/approve"), &json!({})).await;
    assert_eq!(refusal(&agent), (403, "insufficient_scope".into()));
    let waited = ana.rest().get(&format!("/runs/{yes}?wait_ms=1000")).await;
    assert_eq!(waited.json()["state"], "succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_a_rule_gates_waits_like_a_change() {
    let gate = "policy:\n  require_approval: [memory_list]\nlimits: { calls_per_minute: 1000000 }";
    let plan = Plan::embedded().tenant("acme", gate).setting("QM_APPROVALS__SWEEP_EVERY", "50ms");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = tenant.agent().legacy().await;
    let run = pending(&client.call("memory_list", json!({ "path": "tenant" })).await);
    assert_eq!(show(&tenant.approver(), &run).await["effect"], "read");
    approve(&tenant.approver(), &run).await;
    let told = await_run(&client, &run).await;
    assert_eq!((&told.ok()["run"]["state"], &told.ok()["result"]["items"]), (&json!("succeeded"), &json!([])));
    assert_eq!(client.call("memory_search", json!({ "query": "x" })).await.code(), "ok", "others are not held up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_comes_later_gates_the_next_call() {
    let world = asking(Plan::embedded(), "deciders: 1").start(in_process()).await;
    let client = world.tenant("acme").agent().legacy().await;
    let look = json!({ "path": "tenant" });
    assert_eq!(client.call("memory_list", look.clone()).await.ok()["items"], json!([]));
    world.configure(
        "acme",
        &format!("{}\n", rules("deciders: 1").replace("policy:", "policy:\n  require_approval: [memory_list]")),
    );
    let asked: Outcome = until("the rule", async || {
        let outcome = client.call("memory_list", look.clone()).await;
        outcome.ok()["run"].is_object().then_some(outcome)
    })
    .await;
    pending(&asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_a_run_changes_neither_the_session_nor_what_the_next_call_means() {
    let world = world("deciders: 1").await;
    let tenant = world.tenant("acme");
    let (agent, ana) = (tenant.agent(), tenant.approver());
    let client = asker(&agent).await;
    let run = ask(&client, "polled", "x").await;
    approve(&ana, &run).await;
    for _ in 0..3 {
        assert_eq!(ended(&agent, &run).await["state"], "succeeded", "the agent polls as often as it likes");
    }
    let steps = async || moves(&world, &run).await;
    assert_eq!(steps().await.last().unwrap(), "executing>succeeded", "nothing was noted");

    let received = client.call("memory_remember", note("polled", "x")).await;
    assert_eq!((&received.ok()["run"]["id"], &received.ok()["run"]["replayed"]), (&json!(run), &json!(true)));
    assert_eq!(received.ok()["result"]["version"], 1, "the same call is handed the result");
    assert_eq!(steps().await.last().unwrap(), "succeeded>succeeded", "and now it is noted");

    assert_ne!(ask(&client, "polled", "x").await, run, "only then is the same call a new one");
}
