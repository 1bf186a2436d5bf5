//! What people review at their own pace: it waits long, blocks nobody, and a no says why.

use crate::here::{World, embedded, redis};
use crate::runs_yard::{ADOPT, House, REVIEW, SET, Yard, run_id, told};
use domain::Code;
use domain::run::{OnReject, Run, RunState, Verdict};
use executor::{ApprovalRules, Executor, RunDecision};
use serde_json::json;
use std::time::Duration;

fn executor(world: &World) -> &Executor {
    &world.part(0).executor
}

fn house(change: impl FnOnce(&mut ApprovalRules)) -> House {
    let mut house = House::default();
    change(&mut house.approvals);
    house
}

async fn propose(world: &World, yard: &Yard, n: i64) -> Run {
    yard.run(&world.part(0).store, yard.ask(executor(world), ADOPT, n).await).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_review_has_its_own_time_which_the_tenant_may_set() {
    let world = embedded().await;
    let lasts = |run: &Run| run.asked.expires_at.since(run.asked.asked_at);
    let yard = Yard::new();
    let usual = propose(&world, &yard, 1).await;
    assert_eq!((lasts(&usual), usual.asked.reviewed), (REVIEW, true));
    let week = Duration::from_secs(7 * 24 * 3600);
    let shorter = propose(&world, &yard.under(&house(|approvals| approvals.review = Some(week))), 2).await;
    assert_eq!(lasts(&shorter), week);
    let urgent = yard.run(&world.part(0).store, yard.ask(executor(&world), SET, 3).await).await;
    assert_eq!((lasts(&urgent), urgent.asked.reviewed), (House::default().approvals.expires, false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_answers_at_once_however_patient_the_caller_is() {
    let world = embedded().await;
    let yard = Yard::new();
    let patient = |request: &mut executor::CallRequest| request.hold = Some(Duration::from_secs(3600));
    let first = told(&yard.call_with(executor(&world), ADOPT, json!({ "n": 1 }), patient).await);
    assert_eq!(first["run"]["state"], "pending_approval");
    let again = told(&yard.call_with(executor(&world), ADOPT, json!({ "n": 1 }), patient).await);
    assert_eq!((run_id(&again), &again["run"]["replayed"]), (run_id(&first), &json!(true)), "it is the same proposal");
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_are_bounded_and_never_stand_in_the_way_of_what_is_urgent() {
    let world = redis(1).await;
    let yard = Yard::of(&house(|approvals| approvals.most_waiting = 2));
    let first = propose(&world, &yard, 1).await;
    propose(&world, &yard, 2).await;
    let refused = yard.call(executor(&world), ADOPT, json!({ "n": 3 })).await.unwrap_err();
    assert_eq!((refused.code, refused.message.contains("proposals")), (Code::TooManyPending, true));

    for n in [4, 5] {
        yard.ask(executor(&world), SET, n).await;
    }
    let refused = yard.call(executor(&world), SET, json!({ "n": 6 })).await.unwrap_err();
    assert_eq!((refused.code, refused.message.contains("runs")), (Code::TooManyPending, true));

    yard.approve(executor(&world), first.id).await;
    assert_eq!(yard.settled(executor(&world), first.id).await.state, RunState::Succeeded);
    propose(&world, &yard, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_no_says_why_and_ends_no_step() {
    let world = redis(1).await;
    let yard = Yard::of(&House { fail: vec![ADOPT, SET], ..House::default() });
    let proposed = propose(&world, &yard, 1).await;
    assert_eq!(proposed.asked.on_reject, OnReject::Continue, "although a rule says otherwise");
    let person = yard.caller("ana", "runs:decide");
    for reason in [None, Some(String::new()), Some(" \n".to_owned())] {
        let said = RunDecision { verdict: Verdict::Reject, reason };
        let refused = Box::pin(executor(&world).answer(&yard.snapshot, &person, proposed.id, said)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidArgument);
    }
    assert_eq!(yard.run(&world.part(0).store, proposed.id).await.state, RunState::PendingApproval);

    yard.answer(executor(&world), "ana", proposed.id, Verdict::Reject).await.unwrap();
    let heard = told(&yard.call(executor(&world), "await_run", json!({ "run_id": proposed.id.to_string() })).await);
    assert_eq!((&heard["run"]["state"], &heard["run"]["reason"]), (&json!("rejected"), &json!("ana said so")));

    let urgent = yard.ask(executor(&world), SET, 2).await;
    let said = RunDecision { verdict: Verdict::Reject, reason: None };
    let run = Box::pin(executor(&world).answer(&yard.snapshot, &person, urgent, said)).await.unwrap();
    assert_eq!((run.state, run.asked.on_reject), (RunState::Rejected, OnReject::Fail), "other runs are as they were");
}
