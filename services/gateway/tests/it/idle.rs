//! Tenants that nobody uses cost nothing in the store and almost nothing in memory, and lose nothing by it.

use crate::here::{DEFAULT, World, in_process, processes};
use crate::runs_desk::{ask, asker, ended, rules};
use domain::Tenant;
use std::fs::{File, FileTimes};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use testkit::{Plan, until};

/// How long two services are left alone, at the same time.
const LEFT_ALONE: Duration = Duration::from_secs(6);

/// Where the store has what is due.
const DUTIES: &str = "world:{~}:duties";

fn tenant(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

/// A plan with so many tenants besides the usual two.
fn many(plan: Plan, tenants: usize) -> Plan {
    (0..tenants).fold(plan, |plan, number| plan.tenant(&format!("t{number}"), ""))
}

/// Waits until a replica has looked at every tenant once.
async fn settled(world: &World) {
    until("every tenant to be looked at", async || (world.part(0).duties.walks() > 0).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_idle_tenants_cost_the_store_does_not_depend_on_their_number() {
    let mut few = Plan::redis(1).start(in_process()).await;
    let mut lots = many(Plan::redis(1), 198).start(in_process()).await;
    settled(&few).await;
    settled(&lots).await;
    // What was begun in the last look ends first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = (few.redis().commands(), lots.redis().commands());
    // Both at the same time, so that a busy machine slows down both.
    tokio::time::sleep(LEFT_ALONE).await;
    let (few, lots) = (few.redis().commands() - before.0, lots.redis().commands() - before.1);
    assert!(few > 0, "somebody does look what is due");
    // The walk comes by at two or three tenants in this time, and both counts have a ragged edge.
    assert!(lots <= few + few / 2 + 40, "{few} commands with 2 tenants, {lots} with 200");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_made_ready_at_its_first_use_and_let_go_when_nobody_uses_it() {
    let world = many(Plan::redis(1), 60).setting("QM_TENANTS__IDLE", "1s").start(in_process()).await;
    let tenants = &world.part(0).tenants;
    assert_eq!(tenants.len(), 62, "all are known");
    assert!(tenants.awake() <= 32, "and most of them are dormant: {}", tenants.awake());
    until("all to be dormant", async || (tenants.awake() == 0).then_some(())).await;

    let agent = world.tenant("t59").agent();
    let client = agent.legacy().await;
    let digest = tenants.find(&tenant("t59")).expect("it is in use").catalog.digest().to_owned();
    assert_eq!(client.list().await, DEFAULT);
    until("it to be dormant again", async || (tenants.awake() == 0).then_some(())).await;

    let mut stream = client.open_stream().await;
    assert_eq!(client.list().await, DEFAULT, "its session only waited");
    assert_eq!(tenants.find(&tenant("t59")).unwrap().catalog.digest(), digest);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(tenants.awake(), 1, "an open stream keeps its tenant awake");
    world.configure("t59", "policy:\n  deny: [memory_history]");
    assert_eq!(stream.notice().await, "notifications/tools/list_changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_while_its_tenant_was_dormant_holds_at_the_next_use() {
    let world = Plan::redis(1).setting("QM_TENANTS__IDLE", "1s").start(in_process()).await;
    let tenants = &world.part(0).tenants;
    until("all to be dormant", async || (tenants.awake() == 0).then_some(())).await;
    world.configure("acme", "policy:\n  deny: [memory_history]");
    until("the file to be read", async || tenants.file_of(&tenant("acme")).filter(|file| file.text.contains("deny")))
        .await;
    assert_eq!(tenants.awake(), 0, "reading a file wakes nobody");
    let left: Vec<&str> = DEFAULT.into_iter().filter(|name| *name != "memory_history").collect();
    assert_eq!(world.tenant("acme").agent().legacy().await.list().await, left);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_found_without_looking_for_it() {
    let mut world = Plan::embedded().setting("QM_TENANTS__RELOAD_EVERY", "1h").start(in_process()).await;
    world.stop(0).await;
    // Files that were written long ago are not looked at once more by themselves.
    let folder = world.settings_file().parent().unwrap().join("tenants");
    let old = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(600));
    for name in ["acme.yaml", "other.yaml"] {
        File::options().write(true).open(folder.join(name)).unwrap().set_times(old).unwrap();
    }
    world.begin(0).await;
    let client = world.tenant("acme").agent().legacy().await;
    assert_eq!(client.list().await, DEFAULT);
    // The one look that follows the start is over.
    tokio::time::sleep(Duration::from_secs(3)).await;
    world.configure("acme", "policy:\n  deny: [memory_history]");
    until("the change", async || (client.list().await.len() < DEFAULT.len()).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_with_the_same_configuration_share_one_catalog() {
    let world = Plan::embedded().tenant("third", "policy:\n  deny: [memory_history]").start(in_process()).await;
    let catalog = |name: &str| Arc::clone(&world.part(0).tenants.find(&tenant(name)).unwrap().catalog);
    let (acme, other, third) = (catalog("acme"), catalog("other"), catalog("third"));
    assert!(Arc::ptr_eq(acme.parts(), other.parts()));
    for (one, two) in acme.entries().iter().zip(other.entries()) {
        assert!(Arc::ptr_eq(one.shape(), two.shape()), "{}: one schema, one validator", one.name());
    }
    assert!(!Arc::ptr_eq(acme.parts(), third.parts()));
    assert_ne!(acme.digest(), other.digest(), "a session is of one tenant");
}

/// Tenants whose runs nobody answers, each with one that waits.
async fn waiting(world: &testkit::World<testkit::Process>, on: usize, tenants: &[String]) -> Vec<String> {
    let mut runs = Vec::new();
    for name in tenants {
        runs.push(ask(&asker(&world.tenant(name).agent().on(on)).await, "note", "x").await);
    }
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn whichever_replica_owns_a_tenant_another_takes_over_when_it_is_killed() {
    let tenants: Vec<String> = (0..6).map(|number| format!("t{number}")).collect();
    let plan = tenants.iter().fold(Plan::redis(2), |plan, name| plan.tenant(name, &rules("expires: 4s")));
    let mut world = plan.start(processes()).await;
    // Of six tenants about half belong to the one that is killed.
    let runs = waiting(&world, 1, &tenants).await;
    world.take(0).part.kill();
    for (name, run) in tenants.iter().zip(runs) {
        let told = ended(&world.tenant(name).approver().on(1), &run).await;
        assert_eq!(told["state"], "expired", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_hint_was_lost_is_found_by_the_walk() {
    let plan = Plan::redis(1).tenant("acme", &rules("expires: 5s")).setting("QM_AUDIT__LOOK_EVERY", "500ms");
    let mut world = plan.start(in_process()).await;
    let approver = world.tenant("acme").approver();
    let run = ask(&asker(&world.tenant("acme").agent()).await, "note", "x").await;
    let redis = &*world.redis();
    // Written at once, and then moved to the moment at which the run is due.
    let due_later = ["EVAL", "return redis.call('ZSCORE', KEYS[1], 'r:acme') > '1' and 1 or 0", "1", DUTIES];
    until("the line to be moved to when it is due", async || (redis.command(&due_later) == ":1").then_some(())).await;
    redis.command(&["DEL", DUTIES]);
    assert_eq!(ended(&approver, &run).await["state"], "expired");
    until("nothing to be due", async || (redis.command(&["ZSCORE", DUTIES, "r:acme"]) == "$-1").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_log_that_a_killed_replica_left_unsealed_is_sealed_by_another() {
    let mut world = Plan::redis(2).start(processes()).await;
    let client = world.tenant("acme").agent().on(0).legacy().await;
    client.load("memory:write").await;
    // Its line says who is at work on the audit log; without it only the walk would come by, in an hour.
    let redis = &*world.redis();
    until("the line", async || (redis.command(&["ZCARD", DUTIES]) != ":0").then_some(())).await;
    world.take(0).part.kill();
    let survivor = world.part(1).clone();
    until("the other replica to take over", async || {
        survivor.log().contains("taken over from a replica that fell silent").then_some(())
    })
    .await;
}
