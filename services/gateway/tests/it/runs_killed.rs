//! The program itself, `quartermaster serve`, killed by SIGKILL: at every step of an approved run, and all replicas at
//! once. The target is the tenant's memory, whose documents have one version per effect.

use crate::here::processes;
use crate::runs_desk::{PENDING, approve, ask, asker, await_run, ended, note, path, pending, show};
use crate::runs_invariants::{Effects, Watched};
use crate::runs_replica::stopping;
use crate::runs_scene::{Asleep, Ground, stopped};
use serde_json::json;
use std::time::Duration;
use testkit::{Actor, Plan, Process, World, until};

const STOPS: [&str; 5] = ["before_claim", "after_claim", "in_flight", "after_effect", "after_record"];

/// How often the document was written, as an agent sees it.
async fn written(agent: &Actor, name: &str) -> usize {
    let outcome = agent.modern().call("memory_history", json!({ "path": path(name) })).await;
    match outcome.code() {
        "ok" => outcome.ok()["versions"].as_array().map_or(0, Vec::len),
        "doc_not_found" => 0,
        other => panic!("{other}: {outcome:?}"),
    }
}

/// Asserts for documents and their runs whatever must hold after any fault.
async fn invariants(world: &World<Process>, on: usize, documents: &[(String, String)]) {
    let agent = world.tenant("acme").agent().on(on);
    let mut effects = Vec::new();
    for (name, run) in documents {
        effects.push(Effects { run: run.clone(), count: written(&agent, name).await, digests: Vec::new() });
    }
    Watched { world, on, tenant: "acme" }.invariants(&effects).await;
}

/// One document per step; the replica that took the yes is killed at that step, and then another starts.
async fn killed_at_every_step(ground: Ground) {
    let armed: Vec<String> = STOPS.iter().map(|stop| format!("{stop}=return")).collect();
    let mut stops: Vec<&str> = Vec::new();
    for (n, stop) in armed.iter().enumerate() {
        stops.push(stop);
        // The one that lives on stops nowhere. On the embedded store it is the same one, started once in between.
        if n == 0 || ground == Ground::File {
            stops.push("");
        }
    }
    let mut world = ground.plan().start(stopping(processes(), &stops)).await;
    let (tenant, on) = (world.tenant("acme"), ground.alive());
    let client = asker(&tenant.agent().on(on)).await;
    let mut documents = Vec::new();
    for (n, stop) in STOPS.into_iter().enumerate() {
        if n > 0 {
            if ground == Ground::File {
                world.stop(0).await;
            }
            world.begin(0).await;
        }
        let run = ask(&client, stop, "x").await;
        let yes = tenant.approver().post(&format!("/v1/runs/{run}/approve"), &json!({}));
        let (first, asleep) = (world.part(0).clone(), Asleep::others(&world, ground));
        tokio::join!(yes.try_send(world.address(0)), async {
            stopped(&first, stop, 1).await;
            first.kill();
        });
        drop(world.take(0));
        asleep.wake();
        if ground == Ground::File {
            world.begin(0).await;
        }
        let told = ended(&tenant.approver().on(on), &run).await;
        assert_eq!(told["state"], "succeeded", "{stop}: what may be repeated ends well: {told}");
        let again = client.call("memory_remember", note(stop, "x")).await.ok().clone();
        assert_eq!((&again["run"]["id"], &again["run"]["replayed"]), (&json!(run), &json!(true)), "{stop}");
        assert_eq!((&again["result"], &again["result"]["version"]), (&told["outcome"]["result"], &json!(1)), "{stop}");
        documents.push((stop.to_owned(), run));
    }
    invariants(&world, on, &documents).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_to_r5_the_program_killed_at_every_step_writes_each_document_once() {
    killed_at_every_step(Ground::Redis(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_to_r5_embedded_the_program_killed_at_every_step_writes_each_document_once() {
    killed_at_every_step(Ground::File).await;
}

/// Every replica is killed at once and started again.
async fn all_killed(ground: Ground, replicas: usize) {
    let mut world = ground.plan().start(processes()).await;
    let tenant = world.tenant("acme");
    let (client, ana) = (asker(&tenant.agent()).await, tenant.approver());
    let (waits, done) = (ask(&client, "waits", "x").await, ask(&client, "done", "x").await);
    approve(&ana, &done).await;
    let (done_before, waits_before) = (ended(&ana, &done).await, show(&ana, &waits).await);

    for replica in 0..replicas {
        world.part(replica).kill();
        drop(world.take(replica));
    }
    for replica in 0..replicas {
        world.begin(replica).await;
    }

    assert_eq!((show(&ana, &done).await, show(&ana, &waits).await), (done_before, waits_before));
    let again = client.call("memory_remember", note("waits", "x")).await;
    assert_eq!(pending(&again), waits, "session and run are found again");
    let handed = client.call("memory_remember", note("done", "x")).await.ok().clone();
    assert_eq!((&handed["run"]["id"], &handed["run"]["replayed"]), (&json!(done), &json!(true)));
    assert_eq!(show(&ana, &waits).await["state"], PENDING, "a start decides nothing");
    approve(&ana, &waits).await;
    assert_eq!(await_run(&client, &waits).await.ok()["run"]["state"], "succeeded");
    invariants(&world, 0, &[("waits".into(), waits), ("done".into(), done)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_every_replica_killed_and_started_again_knows_what_it_knew() {
    all_killed(Ground::Redis(3), 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_embedded_a_killed_process_finds_everything_in_its_file() {
    all_killed(Ground::File, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r7_memory_is_the_only_backend_that_forgets_and_it_says_so() {
    let mut world = Plan::embedded().start(processes()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let run = ask(&client, "gone", "x").await;
    world.part(0).kill();
    drop(world.take(0));
    world.begin(0).await;
    let lost = client.call("memory_remember", note("gone", "x")).await;
    assert_eq!(lost.answer.status, 404, "the client opens a new session: {lost:?}");
    assert_eq!(tenant.approver().rest().get(&format!("/v1/runs/{run}")).await.status, 404, "and never an approved run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_killed_at_any_moment_around_an_approval_leaves_the_truth() {
    let mut world = Ground::Redis(2).plan().start(processes()).await;
    let tenant = world.tenant("acme");
    let (client, ana) = (asker(&tenant.agent().on(1)).await, tenant.approver().on(1));
    let mut documents = Vec::new();
    for round in 0..6_u64 {
        let name = format!("kill-{round}");
        let run = ask(&client, &name, "x").await;
        let yes = ana.post(&format!("/v1/runs/{run}/approve"), &json!({}));
        // Killed at a moment of its own in every round: before, while or after the run is carried out.
        tokio::join!(yes.try_send(world.address(0)), async {
            tokio::time::sleep(Duration::from_millis(round * 3)).await;
            world.part(0).kill();
        });
        drop(world.take(0));
        documents.push((name, run));
        world.begin(0).await;
    }
    for (_, run) in &documents {
        until("the run to be left alone or ended", async || {
            let told = show(&ana, run).await;
            (!["approved", "executing"].iter().any(|state| told["state"] == *state)).then_some(())
        })
        .await;
    }
    invariants(&world, 1, &documents).await;
    for (_, run) in &documents {
        if show(&ana, run).await["state"] == PENDING {
            approve(&ana, run).await;
            assert_eq!(ended(&ana, run).await["state"], "succeeded");
        }
    }
    invariants(&world, 1, &documents).await;
}
