//! Who holds a run, and how long: leases are renewed by those who live, and lost by those who are silent.
//!
//! A silent owner is an executor that never renews its lease, beside replicas that look at it.

use crate::here::{in_process, redis};
use crate::runs_yard::{RAZE, SET, Yard, frozen, lease_over, pass};
use domain::run::RunState;
use std::time::Duration;
use testkit::{Plan, until};

const BRIEF_LEASE: Duration = Duration::from_millis(150);

#[tokio::test(flavor = "multi_thread")]
async fn r6_a_frozen_owner_is_fenced_when_it_comes_back() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let (yard, zombie) = (Yard::new(), frozen(a, BRIEF_LEASE));
    yard.target.holds();
    let run = yard.ask(&zombie, SET, 1).await;
    yard.approve(&zombie, run).await;
    yard.target.reached(1).await;
    lease_over(&world, &yard, run).await;

    yard.sweep(&b.executor).await;
    yard.target.reached(1).await;
    let taken = yard.run(&a.store, run).await.claim.unwrap();
    assert_eq!((taken.epoch, taken.owner.as_str()), (2, b.store.replica()));
    yard.target.lets_go();

    let ended = yard.settled(&a.executor, run).await;
    assert_eq!((ended.state, ended.claim), (RunState::Succeeded, Some(taken.clone())), "the end is the new owner's");
    let steps = yard.moves(&a.store, run).await;
    assert_eq!(steps.iter().filter(|to| *to == "succeeded").count(), 1, "one end in the audit log: {steps:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_a_frozen_owner_of_what_is_not_idempotent_settles_it_by_its_late_report() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let (yard, zombie) = (Yard::new(), frozen(a, BRIEF_LEASE));
    yard.target.holds();
    let run = yard.ask(&zombie, RAZE, 1).await;
    yard.approve(&zombie, run).await;
    yard.target.reached(1).await;
    lease_over(&world, &yard, run).await;

    yard.sweep(&b.executor).await;
    assert_eq!(yard.run(&b.store, run).await.state, RunState::OutcomeUnknown, "it is not taken over");
    yard.target.lets_go();

    until("the late report", async || yard.run(&b.store, run).await.state.is_final().then_some(())).await;
    assert_eq!(yard.run(&b.store, run).await.state, RunState::ReconciledSucceeded);
    assert_eq!(yard.target.effects(run), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_an_owner_that_lost_its_lease_before_sending_sends_nothing() {
    let world = redis(2).await;
    let (a, b) = (world.part(0), world.part(1));
    let (yard, zombie) = (Yard::new(), frozen(a, BRIEF_LEASE));
    yard.target.absence_proves();
    let run = yard.ask(&zombie, RAZE, 1).await;
    yard.target.holds_previews();
    yard.approve(&zombie, run).await;
    // Claimed, and frozen while it looks at the target for the last time before it sends.
    yard.target.preview_reached().await;
    lease_over(&world, &yard, run).await;
    yard.sweep(&b.executor).await;
    let found = yard.run(&b.store, run).await.state;
    assert!(found.is_settled(), "others have settled what they could: {found:?}");
    let under_way = a.tasks.len();
    yard.target.lets_previews_go();

    let over = async || (a.tasks.len() < under_way || yard.target.effects(run) > 0).then_some(());
    until("the thawed owner to have done what it does", over).await;
    assert_eq!(yard.target.effects(run), 0, "the agent was told {found:?}, and then it happened");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_while_the_last_look_takes_its_time() {
    let plan = Plan::redis(2).setting("QM_APPROVALS__LEASE", "450ms").setting("QM_APPROVALS__RENEW_EVERY", "100ms");
    let world = plan.start(in_process()).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    let run = yard.ask(&a.executor, RAZE, 1).await;
    yard.target.holds_previews();
    yard.approve(&a.executor, run).await;
    yard.target.preview_reached().await;
    lease_over(&world, &yard, run).await;
    yard.sweep(&b.executor).await;
    let seen = yard.run(&b.store, run).await;
    yard.target.lets_previews_go();
    assert_eq!(seen.state, RunState::Executing, "the owner lives and only looks");
    assert_eq!(yard.settled(&b.executor, run).await.state, RunState::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_lives_keeps_its_lease_as_long_as_the_target_takes() {
    let plan = Plan::redis(2).setting("QM_APPROVALS__LEASE", "450ms").setting("QM_APPROVALS__RENEW_EVERY", "100ms");
    let world = plan.start(in_process()).await;
    let (a, b) = (world.part(0), world.part(1));
    let yard = Yard::new();
    yard.target.holds();
    let run = yard.ask(&a.executor, RAZE, 1).await;
    yard.approve(&a.executor, run).await;
    yard.target.reached(1).await;
    let first = yard.run(&a.store, run).await.claim.unwrap().lease_until;
    pass(&b.store, first).await;
    yard.sweep(&b.executor).await;
    let seen = yard.run(&b.store, run).await;
    assert_eq!((seen.state, seen.claim.unwrap().epoch), (RunState::Executing, 1));
    yard.target.lets_go();
    assert_eq!(yard.settled(&b.executor, run).await.state, RunState::Succeeded);
    assert_eq!(yard.target.effects(run), 1);
}
