//! A session that was handed text from outside: who knows, since when, and what happens if nobody can be told.

use crate::here::{World, embedded, in_process, redis};
use crate::runs_desk::{approve, ended, show};
use crate::runs_yard::{HEAR, RAZE, SET, Yard, run_id, told};
use domain::{Code, RunId, Session, SessionMode};
use executor::{CallRequest, Executor, Handle};
use serde_json::{Value, json};
use testkit::{Actor, Plan};

fn executor(world: &World) -> &Executor {
    &world.part(0).executor
}

async fn opened(world: &World, yard: &Yard) -> Session {
    let agent = yard.caller("agent", "tools:read tools:write");
    let loaded = yard.loaded();
    executor(world)
        .open_session(&yard.snapshot, &agent, SessionMode::Write, Some(loaded), domain::Assignment::default())
        .await
        .unwrap()
        .session
}

fn within(session: &Session) -> impl FnOnce(&mut CallRequest) + use<> {
    let handle = Handle::Transport(session.id.to_string());
    move |request| request.handle = handle
}

async fn is_tainted(world: &World, yard: &Yard, session: &Session) -> bool {
    let gateway = world.part(0);
    let found = gateway.store.of(&yard.tenant).sessions().find(session.id, &session.owner, gateway.lives).await;
    found.unwrap().expect("the session should live").session.tainted
}

/// How often the audit log says that a session was tainted.
async fn entries(world: &World, yard: &Yard) -> usize {
    let all = world.part(0).store.of(&yard.tenant).audit().page(None, 10_000).await.unwrap();
    all.iter().filter(|noted| noted.entry["target"] == "session/taint").count()
}

async fn hears(world: &World, yard: &Yard, session: &Session) -> Value {
    told(&yard.call_with(executor(world), HEAR, json!({ "n": -1 }), within(session)).await)
}

async fn asks(world: &World, yard: &Yard, session: &Session, tool: &str, n: i64) -> RunId {
    run_id(&told(&yard.call_with(executor(world), tool, json!({ "n": n }), within(session)).await))
}

async fn the_first_text_from_outside_taints_a_session_for_good(world: World) {
    let yard = Yard::new();
    let (session, other) = (opened(&world, &yard).await, opened(&world, &yard).await);
    told(&yard.call_with(executor(&world), RAZE, json!({ "n": -1 }), within(&session)).await);
    assert!(!is_tainted(&world, &yard, &session).await, "what is no text from outside taints nothing");
    let before = asks(&world, &yard, &session, SET, 1).await;

    assert_eq!(hears(&world, &yard, &session).await["tainted"], false, "it was clean when it asked");
    assert!(is_tainted(&world, &yard, &session).await);
    assert_eq!(hears(&world, &yard, &session).await["tainted"], true, "tools are told");
    assert_eq!(entries(&world, &yard).await, 1, "it is written once");

    let store = &world.part(0).store;
    let after = asks(&world, &yard, &session, SET, 2).await;
    let tainted = [yard.run(store, before).await, yard.run(store, after).await].map(|run| run.asked.tainted);
    assert_eq!(tainted, [false, true], "whoever decides is shown it");
    assert!(!is_tainted(&world, &yard, &other).await, "each session reads for itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn tp4_text_from_outside_taints_on_redis() {
    the_first_text_from_outside_taints_a_session_for_good(redis(1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tp4_text_from_outside_taints_embedded() {
    the_first_text_from_outside_taints_a_session_for_good(embedded().await).await;
}

async fn a_new_session_of_the_same_principal_begins_tainted_until_a_person_clears_it(world: World) {
    let yard = Yard::new();
    let first = opened(&world, &yard).await;
    hears(&world, &yard, &first).await;

    let second = opened(&world, &yard).await;
    assert!(second.tainted && is_tainted(&world, &yard, &second).await, "a new session does not shake it off");
    let stranger = yard.caller("somebody-else", "tools:read tools:write");
    let theirs = executor(&world)
        .open_session(&yard.snapshot, &stranger, SessionMode::Write, None, domain::Assignment::default())
        .await
        .unwrap();
    assert!(!theirs.session.tainted, "nobody else is bound");
    let run = asks(&world, &yard, &second, SET, 1).await;
    assert!(yard.run(&world.part(0).store, run).await.asked.tainted, "whoever decides is shown it");

    let own = yard.caller("agent", "runs:decide");
    assert_eq!(executor(&world).clear(&own, run).await.unwrap_err().code, Code::OwnRequest);
    assert!(opened(&world, &yard).await.tainted);
    executor(&world).clear(&yard.caller("ana", "runs:decide"), run).await.unwrap();
    assert!(!opened(&world, &yard).await.tainted, "a person has cleared it");
    assert!(is_tainted(&world, &yard, &second).await, "a session itself stays what it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taint_is_carried_over_on_redis() {
    a_new_session_of_the_same_principal_begins_tainted_until_a_person_clears_it(redis(1).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taint_is_carried_over_embedded() {
    a_new_session_of_the_same_principal_begins_tainted_until_a_person_clears_it(embedded().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_began_tainted_and_goes_on_reading_binds_the_next() {
    let plan = Plan::embedded().setting("QM_SESSIONS__CARRY_OVER", "2s");
    let world = plan.start(in_process()).await;
    let yard = Yard::new();
    let first = opened(&world, &yard).await;
    hears(&world, &yard, &first).await;
    let second = opened(&world, &yard).await;
    assert!(second.tainted);
    testkit::until("the first taint to be over", async || (!opened(&world, &yard).await.tainted).then_some(())).await;
    // The session is tainted already; that it reads again is written behind the call.
    hears(&world, &yard, &second).await;
    testkit::until("the next session to begin tainted", async || opened(&world, &yard).await.tainted.then_some(()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runs_result_taints_whoever_is_handed_it_and_nobody_before() {
    let world = redis(1).await;
    let yard = Yard::new();
    let (asker, waiter) = (opened(&world, &yard).await, opened(&world, &yard).await);
    let run = asks(&world, &yard, &asker, HEAR, 1).await;
    yard.approve(executor(&world), run).await;
    assert!(yard.settled(executor(&world), run).await.ending.unwrap().tainting);
    assert!(!is_tainted(&world, &yard, &asker).await, "nobody has read it yet");

    let awaited = json!({ "run_id": run.to_string() });
    let heard = told(&yard.call_with(executor(&world), "await_run", awaited, within(&waiter)).await);
    assert_eq!(heard["result"]["set"], 1);
    assert!(is_tainted(&world, &yard, &waiter).await);
    assert!(!is_tainted(&world, &yard, &asker).await);

    asks(&world, &yard, &asker, HEAR, 1).await;
    assert!(!is_tainted(&world, &yard, &asker).await, "the other session was handed it, so this is a new run");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_whose_taint_cannot_be_written_is_not_handed_out() {
    let mut world = redis(1).await;
    let yard = Yard::new();
    let session = opened(&world, &yard).await;
    yard.target.holds_looks();
    let executor = executor(&world).clone();
    let call = yard.call_with(&executor, HEAR, json!({ "n": -1 }), within(&session));
    let meanwhile = async {
        yard.target.look_reached().await;
        world.redis().stop();
        yard.target.lets_looks_go();
    };
    let (outcome, ()) = tokio::join!(call, meanwhile);
    assert_eq!(outcome.unwrap_err().code, Code::StoreUnavailable);
}

/// What a session is told to be.
async fn tainted_by_rest(agent: &Actor, session: &str) -> Value {
    agent.rest().get(&format!("/v1/sessions/{session}")).await.json()["tainted"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn tp4_what_a_cluster_says_taints_and_so_does_what_was_written_after_reading_it() {
    let cluster = "default_toolsets: [k8s, memory]\nclusters: [{ name: play, sandbox: true, default_namespace: shop }]";
    // Nothing is carried over here, so that the second session is tainted by what it reads and by nothing else.
    let plan = Plan::redis(1).tenant("acme", cluster).setting("QM_SESSIONS__CARRY_OVER", "0s");
    let world = plan.start(in_process()).await;
    let (agent, ana) = (world.tenant("acme").agent(), world.tenant("acme").approver());
    let session = agent.rest().open("write").await;
    let call = async |session: &str, tool: &str, arguments: Value| {
        let answer = agent.rest().call(session, tool, arguments).await;
        assert!(matches!(answer.status, 200 | 202), "{tool}: {}", answer.text());
        answer.json()["result"].clone()
    };
    call(&session, "load_toolset", json!({ "toolset": "memory", "include_write_tools": true })).await;
    call(&session, "k8s_get", json!({ "kind": "Deployment" })).await;
    assert_eq!(tainted_by_rest(&agent, &session).await, false, "names and numbers are no prose");
    let events = call(&session, "k8s_get", json!({ "kind": "Event" })).await;
    assert!(!events["items"].as_array().unwrap().is_empty(), "{events}");
    assert_eq!(tainted_by_rest(&agent, &session).await, true);

    let path = "tenant/runbooks/told-by-a-pod";
    let document = json!({ "path": path, "type": "note", "content": "it says so", "evidence": "an event" });
    let run = call(&session, "memory_remember", document).await["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(show(&ana, &run).await["session_tainted"], true);
    approve(&ana, &run).await;
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");

    let reader = agent.rest().open("read").await;
    call(&reader, "memory_list", json!({ "path": "tenant" })).await;
    let read = call(&reader, "memory_read", json!({ "path": path })).await;
    assert_eq!(read["provenance"]["tainted"], true);
    assert_eq!(tainted_by_rest(&agent, &reader).await, true, "the taint goes along with the text");
}
