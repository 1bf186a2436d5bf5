//! A primary dies and its replica takes over, having missed the last things it was told. Two real servers; what one does
//! not hear from the other is held on the line between them.

use crate::here::{World, in_process};
use crate::runs_desk::{ask, asker, asking, ended, refusal, say, show, versions};
use crate::runs_store::{brief, healed, replicas_on, well};
use crate::runs_yard::{RAZE, SET, Yard, pass, run_id};
use domain::run::{RunState, Verdict};
use domain::{Code, RunId};
use gateway::app::Gateway;
use serde_json::json;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use testkit::redis::{RedisServer, SYNCED};
use testkit::{Line, Plan, until};

/// The version of a run that was asked for, and of one that a person has answered.
const ASKED: &str = "1";
const ANSWERED: &str = "2";

/// A primary, the replica that follows it over a line of its own, and the address everybody uses.
struct Pair {
    primary: RedisServer,
    replica: RedisServer,
    between: Line,
    address: Line,
}

impl Pair {
    async fn start() -> Pair {
        let (primary, replica) = (RedisServer::start(), RedisServer::start());
        let (between, address) = (Line::to(primary.port()).await, Line::to(primary.port()).await);
        let port = between.port();
        // Off the runtime: the line itself is carried by it.
        let replica = tokio::task::spawn_blocking(move || {
            replica.follow(port);
            replica
        });
        let replica = replica.await.unwrap();
        primary.followed_by(1);
        Pair { primary, replica, between, address }
    }

    /// Waits until the replica has a version of a run. What it says cannot be seen from outside.
    async fn has(&self, run: &str, version: &str) {
        let key = format!("world:{{yard}}:run:{run}");
        let script = "local v = redis.call('HGET', KEYS[1], 'v') return v == ARGV[1] and 1 or 0";
        until("the replica to have it", async || {
            (self.replica.command(&["EVAL_RO", script, "1", &key, version]) == ":1").then_some(())
        })
        .await;
    }

    /// The primary dies with what its replica has not heard, and the replica takes its place.
    fn fail_over(&mut self) {
        self.primary.stop();
        self.between.cut();
        self.replica.lead();
        self.address.lead_to(self.replica.port());
        self.address.cut();
    }
}

/// Waits until a process has seen that the server has replicas, and whatever it was told before counts.
async fn confirming(gateways: &[&Gateway]) {
    for gateway in gateways {
        assert!(gateway.store.health().await.ready());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_decision_counts_when_a_replica_has_it_and_giving_it_again_is_no_second_one() {
    let pair = Pair::start().await;
    let plan = brief(asking(Plan::redis_away(1), "deciders: 1")).setting("QM_APPROVALS__LEASE", "30s");
    let url = format!("redis://127.0.0.1:{}", pair.address.port());
    let world: World = plan.setting("QM_STORE__URL", &url).start(in_process()).await;
    let tenant = world.tenant("acme");
    let (client, ana) = (asker(&tenant.agent()).await, tenant.approver());
    let (run, other) = (ask(&client, "a", "x").await, ask(&client, "b", "x").await);

    pair.replica.pause();
    for _ in 0..2 {
        let answer = say(&ana, &run, "approve", json!({})).await;
        assert_eq!(refusal(&answer), (503, "decision_not_durable".to_owned()), "{}", answer.text());
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let no = say(&ana, &other, "reject", json!({ "reason": "no" })).await;
    assert_eq!(refusal(&no), (503, "decision_not_durable".to_owned()), "a no is a decision as well");
    // The sweep has claimed it by now, or will: a claim that nobody confirms sends nothing either.
    until("the claim", async || (show(&ana, &run).await["state"] == "executing").then_some(())).await;
    assert_eq!(versions(&world, "a").await, 0, "nothing is sent before a replica has the claim");

    pair.replica.resume();
    until("the yes to count", async || (say(&ana, &run, "approve", json!({})).await.status == 200).then_some(())).await;
    let told = ended(&ana, &run).await;
    assert_eq!((&told["state"], told["decisions"].as_array().unwrap().len()), (&json!("succeeded"), 1));
    assert_eq!(versions(&world, "a").await, 1);
    let no = say(&ana, &other, "reject", json!({ "reason": "no" })).await;
    assert_eq!((no.status, &no.json()["state"]), (200, &json!("rejected")));
    let moves = crate::runs_desk::moves(&world, &run).await;
    assert_eq!(moves.iter().filter(|moved| moved.ends_with(">approved")).count(), 1, "{moves:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_decision_that_was_lost_comes_back_as_pending_and_never_as_approved() {
    let mut pair = Pair::start().await;
    let world = replicas_on(pair.address.port(), 2).await;
    let (a, b, yard) = (world.part(0), world.part(1), Yard::new());
    confirming(&[a, b]).await;
    let run = yard.ask(&a.executor, RAZE, 1).await;
    pair.has(&run.to_string(), ASKED).await;

    pair.between.hold();
    let refused = yard.answer(&a.executor, "ana", run, Verdict::Approve).await.unwrap_err();
    assert_eq!(refused.code, Code::DecisionNotDurable);
    pair.fail_over();

    well(&a.store).await;
    well(&b.store).await;
    let seen = yard.run(&b.store, run).await;
    assert_eq!((seen.state, seen.answers.len()), (RunState::PendingApproval, 0));
    yard.sweep(&a.executor).await;
    yard.sweep(&b.executor).await;
    assert_eq!(yard.target.all_effects(), 0);
    yard.approve(&b.executor, run).await;
    assert_eq!(yard.settled(&b.executor, run).await.state, RunState::Succeeded);
    healed(&b.store, &yard, &[run]).await;
}

/// Sweeps once the time is over in which a forgotten owner might still act.
async fn sweep_when_it_is_over(gateway: &Gateway, yard: &Yard) {
    let since = gateway.store.lineages().now().since.expect("the server has changed");
    pass(&gateway.store, since.plus(gateway.settings.approvals.lease)).await;
    yard.sweep(&gateway.executor).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_claim_that_was_lost_sends_nothing_and_only_what_may_be_repeated_goes_on() {
    let mut pair = Pair::start().await;
    let world = replicas_on(pair.address.port(), 2).await;
    let (a, b, yard) = (world.part(0), world.part(1), Yard::new());
    confirming(&[a, b]).await;
    let (raze, set) = (yard.ask(&a.executor, RAZE, 1).await, yard.ask(&a.executor, SET, 2).await);
    for run in [raze, set] {
        yard.approved_by_the_dead(&a.store, run).await;
        pair.has(&run.to_string(), ANSWERED).await;
    }

    pair.between.hold();
    yard.sweep(&a.executor).await;
    for run in [raze, set] {
        assert_eq!(yard.run(&a.store, run).await.state, RunState::Executing, "the old primary has the claim");
    }
    pair.fail_over();

    well(&b.store).await;
    let seen = yard.run(&b.store, raze).await;
    assert_eq!((seen.state, seen.claim), (RunState::Approved, None), "the new one has not");
    yard.sweep(&b.executor).await;
    assert_eq!(yard.run(&b.store, raze).await.state, RunState::Approved, "its owner may still be at it");
    assert_eq!(yard.settled(&b.executor, set).await.state, RunState::Succeeded);

    sweep_when_it_is_over(b, &yard).await;
    let seen = yard.settled(&b.executor, raze).await;
    assert_eq!((seen.state, seen.ending.unwrap().attempted), (RunState::OutcomeUnknown, false));
    assert_eq!((yard.target.effects(raze), yard.target.effects(set)), (0, 1));
    healed(&b.store, &yard, &[raze, set]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_what_was_approved_before_the_change_goes_on_with_proof_and_is_found_if_it_happened() {
    let mut server = RedisServer::start_with(&SYNCED);
    let world = replicas_on(server.port(), 1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let (fresh, happened) = (yard.ask(&here.executor, RAZE, 1).await, yard.ask(&here.executor, RAZE, 2).await);
    for run in [fresh, happened] {
        yard.approved_by_the_dead(&here.store, run).await;
    }
    // As if its claim, and the end of it, had been written in the moment that the server forgot.
    yard.target.happened(happened);
    yard.target.absence_proves();

    server.restart();
    well(&here.store).await;
    yard.sweep(&here.executor).await;
    assert_eq!(yard.run(&here.store, fresh).await.state, RunState::Approved, "whoever had it may still be sending");
    sweep_when_it_is_over(here, &yard).await;

    assert_eq!(yard.settled(&here.executor, fresh).await.state, RunState::Succeeded);
    assert_eq!(yard.settled(&here.executor, happened).await.state, RunState::Succeeded);
    assert_eq!((yard.target.effects(fresh), yard.target.effects(happened)), (1, 1));
    healed(&here.store, &yard, &[fresh, happened]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_of_two_primaries_only_the_one_that_is_followed_sends() {
    let pair = Pair::start().await;
    let one = replicas_on(pair.primary.port(), 1).await;
    let (old, yard) = (one.part(0), Yard::new());
    confirming(&[old]).await;
    let (raze, set) = (yard.ask(&old.executor, RAZE, 1).await, yard.ask(&old.executor, SET, 2).await);
    for run in [raze, set] {
        yard.approved_by_the_dead(&old.store, run).await;
        pair.has(&run.to_string(), ANSWERED).await;
    }

    // A partition: the replica is promoted, and the old primary lives on with those who cannot see it.
    pair.between.hold();
    pair.replica.lead();
    pair.between.cut();
    let two = replicas_on(pair.replica.port(), 1).await;
    let new = two.part(0);
    let grants = async |gateway: &Gateway, run: RunId| yard.run(&gateway.store, run).await.state == RunState::Executing;
    yard.sweep(&old.executor).await;
    assert!(grants(old, raze).await && grants(old, set).await, "it grants what nobody will remember");
    yard.sweep(&new.executor).await;
    assert_eq!(yard.settled(&new.executor, set).await.state, RunState::Succeeded);
    sweep_when_it_is_over(new, &yard).await;
    assert_eq!(yard.settled(&new.executor, raze).await.state, RunState::OutcomeUnknown);

    let left = yard.settled(&old.executor, raze).await;
    assert_eq!((left.state, left.ending.unwrap().attempted), (RunState::OutcomeUnknown, false));
    assert_eq!((yard.target.effects(raze), yard.target.effects(set)), (0, 1));
    healed(&new.store, &yard, &[raze, set]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_confirmation_is_asked_for_only_where_there_are_replicas() {
    let alone = RedisServer::start();
    let world = replicas_on(alone.port(), 1).await;
    let (here, yard) = (world.part(0), Yard::new());
    let number = AtomicI64::new(1);
    // What the service does in the background waits for the store too, now and then: the cheapest of some tries counts.
    let costs = async || {
        let before = here.store.round_trips();
        let run = yard.ask(&here.executor, RAZE, number.fetch_add(1, Ordering::Relaxed)).await;
        yard.answer(&here.executor, "ana", run, Verdict::Reject).await.ok()?;
        Some(here.store.round_trips() - before)
    };
    let mut without = u64::MAX;
    for _ in 0..5 {
        without = without.min(costs().await.unwrap());
    }

    let follower = RedisServer::start();
    follower.follow(alone.port());
    alone.followed_by(1);
    confirming(&[here]).await;
    // On a busy machine the replica may need more than one look.
    until("a question and a decision that cost one more each", async || {
        let with = costs().await?;
        assert!(with > without, "both are confirmed");
        (with == without + 2).then_some(())
    })
    .await;
    let asked = yard.ask(&here.executor, RAZE, 0).await;

    // A replica that falls away is not forgotten while the server stays: it may be the one that is promoted.
    drop(follower);
    until("it to be gone", async || {
        let gone = "return tonumber(redis.call('INFO','replication'):match('connected_slaves:(%d+)'))";
        (alone.command(&["EVAL", gone, "0"]) == ":0").then_some(())
    })
    .await;
    tokio::time::timeout(Duration::from_secs(5), here.store.health()).await.unwrap();
    let refused = yard.answer(&here.executor, "ana", asked, Verdict::Reject).await.unwrap_err();
    assert_eq!(refused.code, Code::DecisionNotDurable);
    let refused = yard.call(&here.executor, RAZE, json!({ "n": 1_000_000 })).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreUnavailable);
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_a_run_is_answered_as_waiting_once_a_replica_has_it_and_asking_again_finds_it() {
    let mut pair = Pair::start().await;
    let world = replicas_on(pair.address.port(), 2).await;
    let (a, b, yard) = (world.part(0), world.part(1), Yard::new());
    confirming(&[a, b]).await;
    let kept = async |gateway: &Gateway| {
        gateway.store.of(&yard.tenant).runs().ids(None, None, 9).await.unwrap().into_iter().collect::<Vec<RunId>>()
    };

    pair.between.hold();
    let refused = yard.call(&a.executor, RAZE, json!({ "n": 1 })).await.unwrap_err();
    assert_eq!((refused.code, refused.code.retryable()), (Code::StoreUnavailable, true), "{refused:?}");
    let written = kept(a).await;
    pair.between.release();
    let run = until("the replica to have it", async || {
        let told = yard.call(&a.executor, RAZE, json!({ "n": 1 })).await;
        told.is_ok().then(|| run_id(&crate::runs_yard::told(&told)))
    })
    .await;
    assert_eq!((written, kept(a).await), (vec![run], vec![run]), "asking again is no second run");

    pair.between.hold();
    yard.call(&a.executor, RAZE, json!({ "n": 2 })).await.unwrap_err();
    pair.fail_over();
    well(&b.store).await;
    assert_eq!(kept(b).await, [run], "what vanished with the primary was told to nobody, and what was told is there");
    yard.approve(&b.executor, run).await;
    assert_eq!(yard.settled(&b.executor, run).await.state, RunState::Succeeded);
    healed(&b.store, &yard, &[run]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_an_end_is_told_once_a_replica_has_it_and_written_again_if_the_primary_took_it_along() {
    let mut pair = Pair::start().await;
    let world = replicas_on(pair.address.port(), 2).await;
    let (a, b, yard) = (world.part(0), world.part(1), Yard::new());
    confirming(&[a, b]).await;
    let run = yard.ask(&a.executor, RAZE, 1).await;
    yard.target.holds();
    yard.approve(&a.executor, run).await;
    yard.target.reached(1).await;

    pair.between.hold();
    yard.target.lets_go();
    until("the end to be written", async || (yard.run(&a.store, run).await.state == RunState::Succeeded).then_some(()))
        .await;
    let waiting = json!({ "run_id": run.to_string(), "wait_ms": 0 });
    let refused = yard.call(&a.executor, "await_run", waiting.clone()).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreUnavailable, "{refused:?}");
    pair.fail_over();

    well(&b.store).await;
    // The replica that carried it out has only its memory to go by; nobody sweeps meanwhile.
    until("the end to be there again", async || {
        (yard.run(&b.store, run).await.state == RunState::Succeeded).then_some(())
    })
    .await;
    let told = crate::runs_yard::told(&yard.call(&b.executor, "await_run", waiting).await);
    assert_eq!(told["run"]["state"], "succeeded", "{told}");
    healed(&b.store, &yard, &[run]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_nobody_is_told_of_a_decision_or_a_cancellation_that_may_be_forgotten() {
    let mut pair = Pair::start().await;
    let world = replicas_on(pair.address.port(), 1).await;
    let (here, yard) = (world.part(0), Yard::new());
    confirming(&[here]).await;
    let (run, taken_back) = (yard.ask(&here.executor, RAZE, 1).await, yard.ask(&here.executor, RAZE, 2).await);
    let agent = yard.caller("agent", "tools:read tools:write");

    pair.between.hold();
    let first = yard.answer(&here.executor, "ana", run, Verdict::Reject).await.unwrap_err();
    let second = yard.answer(&here.executor, "bo", run, Verdict::Approve).await.unwrap_err();
    assert_eq!([first.code, second.code], [Code::DecisionNotDurable; 2], "bo is not told that ana decided");
    for _ in 0..2 {
        let refused = here.executor.cancel_run(&agent, taken_back).await.unwrap_err();
        assert_eq!(refused.code, Code::StoreUnavailable);
    }
    pair.fail_over();

    well(&here.store).await;
    for run in [run, taken_back] {
        assert_eq!(yard.run(&here.store, run).await.state, RunState::PendingApproval);
    }
    yard.approve(&here.executor, run).await;
    let lost = yard.answer(&here.executor, "bo", run, Verdict::Reject).await.unwrap_err();
    assert_eq!(lost.code, Code::AlreadyDecided);
    assert_eq!(here.executor.cancel_run(&agent, taken_back).await.unwrap().state, RunState::Cancelled);
    assert_eq!(yard.settled(&here.executor, run).await.state, RunState::Succeeded);
    healed(&here.store, &yard, &[run, taken_back]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_each_confirmation_is_one_round_trip() {
    let (primary, follower) = (RedisServer::start(), RedisServer::start());
    follower.follow(primary.port());
    primary.followed_by(1);
    let world = replicas_on(primary.port(), 1).await;
    let here = world.part(0);
    confirming(&[here]).await;
    let number = AtomicI64::new(1);
    // What the service does in the background costs round trips too, and a slow replica is asked twice: one try without
    // either is enough.
    Box::pin(until("a run at the price of its steps and one confirmation for each", async || {
        let (yard, mut before) = (Yard::new(), here.store.round_trips());
        let mut cost = || {
            let now = here.store.round_trips();
            now - std::mem::replace(&mut before, now)
        };
        let run = yard.ask(&here.executor, RAZE, number.fetch_add(1, Ordering::Relaxed)).await;
        let asked = cost();
        yard.target.holds();
        yard.answer(&here.executor, "ana", run, Verdict::Approve).await.ok()?;
        yard.target.reached(1).await;
        let approved = cost();
        yard.target.lets_go();
        yard.settled(&here.executor, run).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        cost();
        yard.call(&here.executor, "await_run", json!({ "run_id": run.to_string(), "wait_ms": 0 })).await.ok()?;
        let told = cost();
        assert!(asked >= 3 && approved >= 5 && told >= 4, "{asked} {approved} {told}: something was not confirmed");
        ((asked, approved, told) == (3, 5, 4)).then_some(())
    }))
    .await;
}
