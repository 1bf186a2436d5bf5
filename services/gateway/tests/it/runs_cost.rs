//! How often anybody waits for the store on the way of a run: the numbers the architecture promises.

use crate::here::{in_process, redis};
use crate::runs_desk::{ask, asker, asking, note, pending, reject};
use crate::runs_yard::{RAZE, Yard};
use domain::run::{RunState, Verdict};
use serde_json::json;
use testkit::Plan;

#[tokio::test(flavor = "multi_thread")]
async fn a_gated_call_waits_twice_until_it_is_pending_and_an_approval_three_times() {
    let world = redis(2).await;
    let (here, elsewhere) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let trips = || here.store.round_trips();

    let before = trips();
    let run = yard.ask(&here.executor, RAZE, 1).await;
    assert_eq!(trips() - before, 2, "until pending");

    let before = trips();
    yard.target.holds();
    yard.approve(&here.executor, run).await;
    assert_eq!(trips() - before, 3, "read, answer, claim");
    yard.target.reached(1).await;
    assert_eq!(trips() - before, 3, "the target is reached without another");

    yard.target.lets_go();
    assert_eq!(yard.settled(&elsewhere.executor, run).await.state, RunState::Succeeded);
    assert!(trips() - before <= 3 + 2, "from the claim to the end: {}", trips() - before - 3);

    let run = yard.ask(&here.executor, RAZE, 2).await;
    let before = trips();
    yard.answer(&here.executor, "ana", run, Verdict::Reject).await.unwrap();
    assert_eq!(trips() - before, 2, "a no is read and answered");
    let before = trips();
    yard.answer(&here.executor, "bo", run, Verdict::Approve).await.unwrap_err();
    assert_eq!(trips() - before, 1, "a loser reads and learns who won");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_looks_once_and_notes_once_that_it_was_told() {
    let plan = asking(Plan::redis(1), "deciders: 1").setting("QM_APPROVALS__SWEEP_EVERY", "1h");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let store = &world.part(0).store;
    let run = ask(&client, "await", "x").await;
    let waits = async || {
        let before = store.round_trips();
        let told = client.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await;
        assert!(["ok", "rejected"].contains(&told.code()), "{told:?}");
        store.round_trips() - before
    };
    let begins = 1;
    assert_eq!(waits().await, begins + 1, "a look");
    reject(&tenant.approver(), &run, "no").await;
    assert_eq!(waits().await, begins + 2, "a look, and the delivery is noted");
    assert_eq!(waits().await, begins + 1, "it was noted before");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doors_add_nothing_to_that() {
    let plan = asking(Plan::redis(1), "deciders: 1").setting("QM_APPROVALS__SWEEP_EVERY", "1h");
    let world = plan.start(in_process()).await;
    let tenant = world.tenant("acme");
    let client = asker(&tenant.agent()).await;
    let modern = tenant.agent().modern().loaded("memory:write").await;
    let store = &world.part(0).store;
    let before = store.round_trips();
    let run = ask(&client, "cost", "x").await;
    assert_eq!(store.round_trips() - before, 3, "two, and the document its preview looks at");
    let before = store.round_trips();
    assert_eq!(ask(&client, "cost", "x").await, run);
    assert_eq!(store.round_trips() - before, 2, "asked again: the beginning, and the run that is there");
    let before = store.round_trips();
    pending(&modern.call("memory_remember", note("cost-2", "x")).await);
    assert_eq!(store.round_trips() - before, 3);
}
