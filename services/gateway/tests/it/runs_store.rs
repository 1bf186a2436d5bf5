//! The store under runs: restarted, emptied, frozen, full, demoted. Whatever it does, nothing is sent twice and nothing that
//! was forgotten is taken for a yes.

use crate::here::{World, in_process};
use crate::runs_desk::{PENDING, acme, approve, ask, asker, asking, ended, refusal, say, show, versions};
use crate::runs_yard::{RAZE, SET, Yard};
use domain::run::{Run, RunState, Verdict};
use domain::{Code, RunId};
use serde_json::json;
use std::time::Duration;
use store::Store;
use testkit::redis::{RedisServer, SYNCED};
use testkit::{Line, Plan, until};

/// Far above the deadline of a second, far below the patience of a client.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(5), work).await.expect("a store that is away should cost about a second")
}

/// Production's own deadline: these tests are about it.
fn strict(plan: Plan) -> Plan {
    brief(plan).setting("QM_STORE__DEADLINE", "1s")
}

/// Leases that a test can wait for.
pub(crate) fn brief(plan: Plan) -> Plan {
    plan.setting("QM_APPROVALS__LEASE", "1500ms").setting("QM_APPROVALS__RENEW_EVERY", "300ms")
}

/// Replicas on a server that is the test's own, by way of this port.
pub(crate) async fn replicas_on(port: u16, replicas: usize) -> World {
    let plan = brief(Plan::redis_away(replicas)).setting("QM_STORE__URL", &format!("redis://127.0.0.1:{port}"));
    plan.setting("QM_STORE__ACCEPT_UNSAFE", "true").start(in_process()).await
}

/// Waits until the store answers the test, whose runtime has connections of its own.
pub(crate) async fn well(store: &Store) {
    until("the store to answer", async || store.now().await.ok()).await;
}

/// What must hold when the fault is over: every run has ended or is said to be unknown, had at most one effect and one
/// decision, and the audit log is whole.
pub(crate) async fn healed(store: &Store, yard: &Yard, runs: &[RunId]) {
    for &id in runs {
        let run = yard.run(store, id).await;
        assert!(run.state.is_settled(), "I8: {run:?}");
        assert!(yard.target.effects(id) <= 1, "I2: {} effects of {run:?}", yard.target.effects(id));
        assert!(run.answers.len() <= 1, "I3: {run:?}");
        let done = matches!(run.state, RunState::Succeeded | RunState::ReconciledSucceeded);
        assert!(!done || yard.target.effects(id) == 1, "I5: {run:?}");
    }
    assert!(yard.target.all_effects() <= runs.len(), "I1: something without a run");
    let shelf = store.of(&yard.tenant);
    // What is done in the background may still write an entry.
    until("I7: an audit log that is sealed to its end", async || {
        while shelf.seal(250).await.unwrap().behind {}
        let verified = shelf.verify().await.unwrap();
        (verified.sealed > 0 && verified.unsealed == 0).then_some(())
    })
    .await;
}

async fn seen(store: &Store, yard: &Yard, id: RunId, state: RunState) -> Run {
    until("the run to get there", async || {
        let (found, _) = store.of(&yard.tenant).runs().find(id).await.ok()?;
        found.map(|held| held.run).filter(|run| run.state == state)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_restart_keeps_what_waits_and_nothing_is_executed_meanwhile() {
    let mut world = strict(asking(Plan::redis(2), "deciders: 1")).start(in_process()).await;
    world.redis().sync_every_write();
    let tenant = world.tenant("acme");
    let (client, ana) = (asker(&tenant.agent()).await, tenant.approver());
    let waiting = [ask(&client, "a", "x").await, ask(&client, "b", "x").await, ask(&client, "c", "x").await];
    let list = async || {
        let answer = ana.rest().get(&format!("/v1/runs?state={PENDING}")).await;
        let runs = answer.json()["runs"].as_array().cloned();
        runs.map(|runs| runs.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect::<Vec<String>>())
    };
    let before = list().await.unwrap();
    assert_eq!(before.len(), waiting.len());

    world.redis().stop();
    for on in [0, 1] {
        let answer = soon(say(&ana.on(on), &waiting[0], "approve", json!({}))).await;
        assert_eq!(refusal(&answer), (503, "store_unavailable".to_owned()), "{}", answer.text());
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let asked = soon(client.call("memory_remember", crate::runs_desk::note("d", "x"))).await;
    assert_eq!(asked.code(), "store_unavailable");
    // The new server knows no script: the first commit is sent whole.
    world.redis().restart();
    let after = until("the list to be back", async || list().await).await;
    assert_eq!(after, before, "what waited still waits, and nothing was approved meanwhile");

    until("a yes to be taken", async || {
        (say(&ana, &waiting[0], "approve", json!({})).await.status == 200).then_some(())
    })
    .await;
    assert_eq!(ended(&ana, &waiting[0]).await["state"], "succeeded");
    assert_eq!([versions(&world, "a").await, versions(&world, "b").await], [1, 0]);
    assert_eq!(show(&ana, &waiting[0]).await["decisions"].as_array().unwrap().len(), 1);
    world.part(0).store.of(&acme()).verify().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_a_run_that_ends_while_the_store_is_away_is_written_down_when_it_is_back() {
    let mut server = RedisServer::start_with(&SYNCED);
    let world = replicas_on(server.port(), 1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.holds();
    let run = yard.ask(&here.executor, RAZE, 1).await;
    yard.approve(&here.executor, run).await;
    yard.target.reached(1).await;

    server.stop();
    yard.target.lets_go();
    until("the effect", async || (yard.target.effects(run) == 1).then_some(())).await;
    server.restart();

    well(&here.store).await;
    seen(&here.store, &yard, run, RunState::Succeeded).await;
    yard.sweep(&here.executor).await;
    healed(&here.store, &yard, &[run]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_a_store_that_lost_everything_begins_anew_and_what_is_under_way_is_unknown() {
    let mut server = RedisServer::start_with(&["--appendonly", "no", "--maxmemory-policy", "noeviction"]);
    let world = replicas_on(server.port(), 2).await;
    let (a, b, yard) = (world.part(0), world.part(1), Yard::new());
    let session = world.tenant("acme").agent().legacy().await;
    yard.target.holds();
    let under_way = yard.ask(&a.executor, RAZE, 1).await;
    yard.approve(&a.executor, under_way).await;
    yard.target.reached(1).await;
    let pending = yard.ask(&a.executor, RAZE, 2).await;
    let approved = yard.ask(&a.executor, RAZE, 3).await;
    yard.approved_by_the_dead(&a.store, approved).await;

    server.restart();

    let back = seen(&b.store, &yard, under_way, RunState::OutcomeUnknown).await;
    assert!(back.ending.unwrap().attempted, "it was at the target");
    for gateway in [a, b] {
        until("the loss to be known", async || (gateway.store.lineages().now().generation == 2).then_some(())).await;
        for missing in [pending, approved] {
            yard.sweep(&gateway.executor).await;
            let refused = yard.answer(&gateway.executor, "ana", missing, Verdict::Approve).await.unwrap_err();
            assert_eq!(refused.code, Code::NotFound, "what is missing is not approved");
        }
    }
    assert_eq!(session.call("memory_list", json!({})).await.answer.status, 404, "sessions are gone");
    let ready = until("it to be said", async || {
        let told = world.get(1, "/readyz").await.json();
        told["warnings"].as_array().unwrap().contains(&json!("store_lost")).then_some(told)
    })
    .await;
    assert_eq!(ready["ready"], json!(true), "{ready}");
    let told = yard.call(&b.executor, RAZE, json!({ "n": 1 })).await.unwrap_err();
    assert_eq!(told.code, Code::OutcomeUnknown, "asking the same again finds what was written back");

    let anew = yard.ask(&b.executor, RAZE, 2).await;
    assert_ne!(anew, pending, "a name that may have been sent under is not given twice");

    yard.target.lets_go();
    seen(&a.store, &yard, under_way, RunState::ReconciledSucceeded).await;
    assert_eq!(yard.target.all_effects(), 1);
    healed(&b.store, &yard, &[under_way]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s2_a_damaged_file_is_refused_with_that_sentence_and_a_missing_one_is_a_new_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state.redb");
    let mut world =
        Plan::file().setting("QM_STORE__URL", &format!("file:{}", file.display())).start(in_process()).await;
    let client = asker(&world.tenant("acme").agent()).await;
    ask(&client, "a", "x").await;
    world.stop(0).await;
    let whole = std::fs::read(&file).unwrap();
    for damaged in [whole[..whole.len() / 3].to_vec(), b"not a store".repeat(2_000)] {
        std::fs::write(&file, &damaged).unwrap();
        let error = world.begin_another().await.err().expect("a damaged file is no store");
        assert!(error.contains("the store's file is damaged or is not a store; move it away to begin anew"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), damaged, "it is left as it is");
    }
    std::fs::remove_file(&file).unwrap();
    world.begin(0).await;
    assert_eq!(world.get(0, "/health").await.status, 200);
    let runs = world.tenant("acme").approver().rest().get("/v1/runs").await.json();
    assert_eq!(runs["runs"], json!([]), "nothing is taken for approved");
}

#[tokio::test(flavor = "multi_thread")]
async fn s4_a_store_that_stands_still_costs_everybody_their_deadline_and_decides_nothing_twice() {
    let mut world = strict(asking(Plan::redis(1), "deciders: 1")).start(in_process()).await;
    let tenant = world.tenant("acme");
    let (client, ana) = (asker(&tenant.agent()).await, tenant.approver());
    // Frozen by the kernel, then by its own command: neither gives an error, both only silence.
    for (round, name) in ["frozen", "paused"].into_iter().enumerate() {
        let run = ask(&client, name, "x").await;
        match round {
            0 => world.redis().pause(),
            _ => assert_eq!(world.redis().command(&["CLIENT", "PAUSE", "3000", "ALL"]), "+OK"),
        }
        let path = format!("/v1/runs/{run}");
        let (yes, shown, waited) = (say(&ana, &run, "approve", json!({})), ana.rest(), client.clone());
        let (yes, shown, waited, asked) = soon(async {
            tokio::join!(
                yes,
                shown.get(&path),
                waited.call("await_run", json!({ "run_id": run })),
                client.call("memory_remember", crate::runs_desk::note(&format!("{name}-more"), "x")),
            )
        })
        .await;
        for answer in [&yes, &shown] {
            assert_eq!(refusal(answer), (503, "store_unavailable".to_owned()), "{}", answer.text());
        }
        assert_eq!([waited.code(), asked.code()], ["store_unavailable"; 2]);
        if round == 0 {
            world.redis().resume();
        }
        until("calls to work again", async || {
            (client.call("memory_list", json!({})).await.code() == "ok").then_some(())
        })
        .await;
        // Whether the yes was written is unknown to whoever gave it; giving it again is right in both cases.
        until("a yes to be taken", async || (say(&ana, &run, "approve", json!({})).await.status == 200).then_some(()))
            .await;
        let told = ended(&ana, &run).await;
        assert_eq!((&told["state"], told["decisions"].as_array().unwrap().len()), (&json!("succeeded"), 1));
        assert_eq!(versions(&world, name).await, 1);
    }
    world.part(0).store.of(&acme()).verify().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn s5_a_store_without_room_decides_nothing_and_an_effect_is_written_down_when_there_is_some() {
    let server = RedisServer::start();
    let world = replicas_on(server.port(), 1).await;
    let (here, yard) = (world.part(0), Yard::new());
    yard.target.holds();
    let under_way = yard.ask(&here.executor, RAZE, 1).await;
    let pending = yard.ask(&here.executor, RAZE, 2).await;
    yard.approve(&here.executor, under_way).await;
    yard.target.reached(1).await;

    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    let refused = yard.answer(&here.executor, "ana", pending, Verdict::Approve).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreFull);
    let asked = yard.call(&here.executor, RAZE, json!({ "n": 3 })).await.unwrap_err();
    assert_eq!(asked.code, Code::StoreFull);
    yard.target.lets_go();
    until("the effect", async || (yard.target.effects(under_way) == 1).then_some(())).await;
    yard.sweep(&here.executor).await;
    assert_eq!(yard.run(&here.store, pending).await.state, RunState::PendingApproval);
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");

    until("the end to be written", async || yard.run(&here.store, under_way).await.state.is_final().then_some(()))
        .await;
    yard.approve(&here.executor, pending).await;
    assert_eq!(yard.settled(&here.executor, pending).await.state, RunState::Succeeded);
    healed(&here.store, &yard, &[under_way, pending]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s6_a_node_that_was_demoted_is_left_for_the_right_one_and_no_call_fails() {
    let (old, new) = (RedisServer::start(), RedisServer::start());
    let line = Line::to(old.port()).await;
    let world = replicas_on(line.port(), 1).await;
    let (here, yard) = (world.part(0), Yard::new());
    new.follow(old.port());
    let run = yard.ask(&here.executor, SET, 1).await;
    until("the replica to have it", async || {
        let key = format!("world:{{yard}}:run:{run}");
        (new.command(&["EXISTS", &key]) == ":1").then_some(())
    })
    .await;

    // The name leads to the new primary; the connections there are still lead to the old one, which now only follows.
    new.lead();
    line.lead_to(new.port());
    old.follow(new.port());

    yard.approve(&here.executor, run).await;
    assert_eq!(yard.settled(&here.executor, run).await.state, RunState::Succeeded);
    assert!(here.store.health().await.ready());
    healed(&here.store, &yard, &[run]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s6_a_node_that_only_follows_is_never_believed_and_answers_503() {
    let (node, other) = (RedisServer::start(), RedisServer::start());
    let line = Line::to(node.port()).await;
    let plan = strict(asking(Plan::redis_away(1), "deciders: 1"));
    let world = plan.setting("QM_STORE__URL", &format!("redis://127.0.0.1:{}", line.port())).start(in_process()).await;
    let tenant = world.tenant("acme");
    let (client, ana) = (asker(&tenant.agent()).await, tenant.approver());
    let run = ask(&client, "a", "x").await;
    other.follow(node.port());
    other.lead();
    node.follow(other.port());

    for _ in 0..10 {
        let answer = soon(say(&ana, &run, "approve", json!({}))).await;
        assert_eq!(refusal(&answer), (503, "store_unavailable".to_owned()), "{}", answer.text());
        let shown = soon(ana.rest().get(&format!("/v1/runs/{run}"))).await;
        assert_eq!(refusal(&shown), (503, "store_unavailable".to_owned()), "what it holds may be old");
    }
    let ready = until("it to be said", async || {
        let told = world.get(0, "/readyz").await.json();
        (told["reasons"] == json!(["store_readonly"])).then_some(())
    });
    ready.await;

    line.lead_to(other.port());
    until("the right node", async || (say(&ana, &run, "approve", json!({})).await.status == 200).then_some(())).await;
    assert_eq!(ended(&ana, &run).await["state"], "succeeded");
    assert_eq!(versions(&world, "a").await, 1);
    let again = approve(&ana, &run).await;
    assert_eq!(again["decisions"].as_array().unwrap().len(), 1);
}
