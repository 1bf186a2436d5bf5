//! What is lost on the way: the answer to an ending that was written, a claim that the store forgot, a claim that no
//! replica of the store confirms.
//!
//! A store that has forgotten is another store: one that holds the run as it was before the claim, or not at all.

use super::*;
use crate::executor::Leases;
use crate::keys::ServiceKeys;
use crate::runs::example;
use store::{Config, Confirm, SessionConfig, Store};
use testkit::redis::RedisServer;
use tokio::time::Instant;

fn tenant() -> Tenant {
    Tenant::parse("acme").unwrap()
}

fn approved(idempotent: bool) -> Run {
    let mut run = example::run(RunState::Approved);
    run.asked.idempotent = idempotent;
    run
}

fn done(result: &str) -> Ending {
    Ending::done(Some(result.to_owned()))
}

fn no_answer() -> Ending {
    Ending::failed(Code::Deadline, "no answer within 5 s")
}

/// A run that this executor has claimed, and perhaps sent.
async fn claimed(executor: &Executor, run: &Run, sent: bool) -> (Lease, Claim) {
    let held = example::put(executor, run).await;
    let (renewed, lineage) = (Instant::now(), executor.store.lineages().now());
    let now = executor.time().await.unwrap();
    let shelf = executor.store.of(&tenant());
    let ClaimOutcome::Mine(held, proof) = executor.claim_run(&shelf, held, now, None).await.unwrap() else {
        panic!("nobody else claims it")
    };
    let claim = proof.claim().clone();
    let (began, audited) = (renewed, 0);
    (Lease { held: *held, proof, renewed, lineage, approved_at: None, sent, began, audited }, claim)
}

/// The run as this executor's store has it.
async fn stored(executor: &Executor) -> Run {
    executor.find_run(&tenant(), approved(true).id).await.unwrap().0.run
}

/// How often the audit log says that a replica was too late.
async fn fenced(executor: &Executor) -> usize {
    let page = executor.store.of(&tenant()).audit().page(None, 100).await.unwrap();
    page.iter().filter(|recorded| recorded.entry["phase"] == "fenced").count()
}

/// Another replica takes the run over and ends it in its own words.
async fn ended_by_another(executor: &Executor) {
    let (held, now) = executor.find_run(&tenant(), approved(true).id).await.unwrap();
    let (shelf, later) = (executor.store.of(&tenant()), now.plus(Duration::from_secs(60)));
    let taken = RunEvent::Claimed { owner: "rep_b".into(), lease_until: later, span: None };
    let RunUpdate::Done(held) = executor.fold_run(&shelf, held, RunStep::of_service(&taken, later)).await.unwrap()
    else {
        panic!("the lease is over")
    };
    let ended = RunEvent::Finished { owner: "rep_b".into(), epoch: 2, ending: done("theirs") };
    assert!(matches!(
        executor.fold_run(&shelf, *held, RunStep::of_service(&ended, later)).await,
        Ok(RunUpdate::Done(_))
    ));
}

#[tokio::test]
async fn an_ending_whose_answer_was_lost_is_told_again_and_fences_nobody() {
    let executor = example::executor().await;
    let (lease, claim) = claimed(&executor, &approved(false), true).await;
    for _ in 0..2 {
        executor.write_end(&tenant(), &lease, &claim, done("7")).await.unwrap();
    }
    let run = stored(&executor).await;
    assert_eq!((run.state, run.ending, fenced(&executor).await), (RunState::Succeeded, Some(done("7")), 0));

    let executor = example::executor().await;
    let (lease, claim) = claimed(&executor, &approved(false), true).await;
    for _ in 0..2 {
        executor.write_lost(&tenant(), &lease, &claim, no_answer()).await.unwrap();
    }
    let run = stored(&executor).await;
    assert_eq!((run.state, run.ending, fenced(&executor).await), (RunState::OutcomeUnknown, Some(no_answer()), 0));
}

#[tokio::test]
async fn an_ending_that_another_replica_wrote_stays_and_the_late_one_is_noted() {
    for sent in [true, false] {
        let executor = example::executor().await;
        let (lease, claim) = claimed(&executor, &approved(true), sent).await;
        ended_by_another(&executor).await;

        executor.write_end(&tenant(), &lease, &claim, done("mine")).await.unwrap();
        assert_eq!(fenced(&executor).await, 1);
        executor.write_lost(&tenant(), &lease, &claim, no_answer()).await.unwrap();
        assert_eq!(fenced(&executor).await, 2);

        let run = stored(&executor).await;
        assert_eq!((run.state, run.ending), (RunState::Succeeded, Some(done("theirs"))), "sent: {sent}");
    }
}

#[tokio::test]
async fn what_was_sent_under_a_claim_that_the_store_forgot_is_written_back() {
    let (lease, claim) = claimed(&example::executor().await, &approved(false), true).await;
    for still_there in [true, false] {
        let store = async || {
            let executor = example::executor().await;
            if still_there {
                example::put(&executor, &approved(false)).await;
            }
            executor
        };

        let executor = store().await;
        executor.write_end(&tenant(), &lease, &claim, done("7")).await.unwrap();
        let run = stored(&executor).await;
        assert_eq!((run.state, run.ending), (RunState::ReconciledSucceeded, Some(done("7"))), "{still_there}");
        assert_eq!(fenced(&executor).await, 1);

        let executor = store().await;
        executor.write_lost(&tenant(), &lease, &claim, no_answer()).await.unwrap();
        let run = stored(&executor).await;
        assert_eq!((run.state, run.ending.map(|ending| ending.attempted)), (RunState::OutcomeUnknown, Some(true)));

        let executor = store().await;
        assert!(executor.renew(&tenant(), &lease, &claim).await.unwrap().is_none(), "the lease is lost");
        assert_eq!(stored(&executor).await.state, RunState::OutcomeUnknown, "{still_there}");
    }
}

#[tokio::test]
async fn what_was_not_sent_under_a_claim_that_the_store_forgot_may_begin_once_more() {
    let (lease, claim) = claimed(&example::executor().await, &approved(false), false).await;
    let executor = example::executor().await;
    example::put(&executor, &approved(false)).await;

    assert!(executor.renew(&tenant(), &lease, &claim).await.unwrap().is_none());
    executor.write_end(&tenant(), &lease, &claim, Ending::not_attempted(Code::Stale, "it changed")).await.unwrap();
    executor.write_lost(&tenant(), &lease, &claim, unsent("nobody confirmed it")).await.unwrap();

    let run = stored(&executor).await;
    assert_eq!((run.state, run.claim, run.ending), (RunState::Approved, None, None), "as it was");
}

#[tokio::test]
async fn a_claim_that_the_store_has_is_renewed_and_one_that_another_has_is_lost() {
    let executor = example::executor().await;
    let (lease, claim) = claimed(&executor, &approved(true), true).await;
    let held = executor.renew(&tenant(), &lease, &claim).await.unwrap().expect("it is this replica's");
    assert!(held.run.claim.is_some_and(|held| held.epoch == 1 && held.lease_until >= claim.lease_until));

    ended_by_another(&executor).await;
    assert!(executor.renew(&tenant(), &lease, &claim).await.unwrap().is_none());
    assert_eq!(stored(&executor).await.ending, Some(done("theirs")), "nothing is written back over it");
}

/// An executor on a store that wants a replica to confirm what counts.
async fn wanting_a_replica(redis: &RedisServer) -> Executor {
    let config = Config { confirm_replicas: Confirm::Exactly(1), ..Config::at(&redis.url()) };
    let long = Duration::from_secs(3600);
    let lives = SessionConfig { idle: long, longest: long, carry_over: long };
    let keys = Arc::new(ServiceKeys::derive(&[1; 32]).unwrap());
    let leases = Leases { lease: Duration::from_secs(1), renew_every: Duration::from_secs(1) };
    Executor::new(Store::open(&config).await.unwrap(), crate::tasks::Tasks::default(), lives, keys, leases)
}

#[tokio::test]
async fn a_claim_that_no_replica_of_the_store_confirms_sends_nothing() {
    let redis = RedisServer::start();
    let executor = wanting_a_replica(&redis).await;
    let (lease, claim) = claimed(&executor, &approved(false), false).await;

    assert!(!executor.is_confirmed(&tenant(), &lease, &claim).await.unwrap());

    let run = stored(&executor).await;
    let ending = run.ending.unwrap();
    assert_eq!((run.state, ending.attempted), (RunState::OutcomeUnknown, false));
    assert!(ending.basis.contains("did not confirm the claim"), "{}", ending.basis);
}

#[tokio::test]
async fn a_claim_that_no_replica_confirms_of_what_may_be_repeated_is_left_to_the_next() {
    let redis = RedisServer::start();
    let executor = wanting_a_replica(&redis).await;
    let (lease, claim) = claimed(&executor, &approved(true), false).await;

    assert!(!executor.is_confirmed(&tenant(), &lease, &claim).await.unwrap());

    let run = stored(&executor).await;
    assert_eq!((run.state, run.ending, fenced(&executor).await), (RunState::Executing, None, 0));
}

#[tokio::test]
async fn a_claim_that_is_confirmed_or_anothers_is_told_apart() {
    let (redis, follower) = (RedisServer::start(), RedisServer::start());
    follower.follow(redis.port());
    let executor = wanting_a_replica(&redis).await;
    let (lease, claim) = claimed(&executor, &approved(true), false).await;
    // Its lease is short, so that others need not wait long; here nobody is late.
    let lease = Lease { renewed: Instant::now() + Duration::from_secs(60), ..lease };

    assert!(executor.is_confirmed(&tenant(), &lease, &claim).await.unwrap());

    ended_by_another(&executor).await;
    assert!(!executor.is_confirmed(&tenant(), &lease, &claim).await.unwrap());
    assert_eq!(fenced(&executor).await, 1);
}

#[tokio::test]
async fn replicas_are_asked_again_about_a_run_until_nobody_can_wait_any_longer() {
    let redis = RedisServer::start();
    let executor = wanting_a_replica(&redis).await;
    let (shelf, before) = (executor.store.of(&tenant()), executor.store.lineages().now());
    let over = Run { ending: Some(done("7")), ..example::run(RunState::Succeeded) };
    example::put(&executor, &over).await;

    let asked = executor.store.round_trips();
    let refused = executor.confirm_told(&shelf, &over, before).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreUnavailable);
    assert!(executor.store.round_trips() > asked + 1, "an agent waits for more than one look");

    executor.tasks.stopping().cancel();
    let asked = executor.store.round_trips();
    executor.keep_ending(&tenant(), over.id, before, || async { panic!("the store has it") }).await;
    assert_eq!(executor.store.round_trips(), asked + 1, "a process that leaves does not");
}

#[tokio::test]
async fn an_end_that_is_held_is_not_written_again_and_one_that_is_forgotten_is_told_to_nobody() {
    let (redis, follower) = (RedisServer::start(), RedisServer::start());
    follower.follow(redis.port());
    let executor = wanting_a_replica(&redis).await;
    let (shelf, before) = (executor.store.of(&tenant()), executor.store.lineages().now());
    let over = Run { ending: Some(done("7")), ..example::run(RunState::Succeeded) };
    example::put(&executor, &over).await;

    executor.keep_ending(&tenant(), over.id, before, || async { panic!("the store has it") }).await;

    let forgotten = Run { ending: Some(done("8")), ..over };
    let refused = executor.confirm_told(&shelf, &forgotten, before).await.unwrap_err();
    assert_eq!(refused.code, Code::StoreUnavailable, "asked again, it tells what is true by then");
}
