//! The store or its audit log takes nothing: no record, no act; and what was done and could not be recorded is never told
//! as anything but what is known.

use crate::runs_desk::refusal;
use crate::runs_replica::{Errand, TENANT};
use crate::runs_scene::{Ground, Scene};
use serde_json::json;
use testkit::{Answer, until};

/// Whether an answer says that the store is away and nothing was done.
fn is_refused(answer: Option<&Answer>) {
    let answer = answer.expect("it is refused, not dropped");
    assert_eq!(refusal(answer), (503, "store_unavailable".to_owned()), "{}", answer.text());
}

/// The replica is stopped in order and started again, with the failpoints that come next.
async fn started_again(scene: &mut Scene) {
    scene.world.stop(0).await;
    scene.world.begin(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn t14_a_claim_that_cannot_be_recorded_executes_nothing() {
    let mut scene = Scene::open(Ground::File, &["", "audit_open=return"]).await;
    started_again(&mut scene).await;

    for answer in scene.approve_all().await {
        is_refused(answer.as_ref());
    }
    for errand in Errand::ALL {
        let told = scene.now(errand).await;
        assert_eq!((&told["state"], &told["claim"]), (&json!("approved"), &json!(null)), "the yes stands: {told}");
    }
    let refused = scene.call(Errand::Cast).await;
    assert_eq!(refused.code(), "store_unavailable", "a call that cannot be opened is not looked at: {refused:?}");
    // The sweep tries the claim again and again; stopping waits for what it has begun.
    scene.world.stop(0).await;
    assert_eq!(scene.target.runs(), Vec::<String>::new(), "no record, no act");
    scene.world.begin(0).await;
    for errand in Errand::ALL {
        scene.becomes(errand, "succeeded").await;
        assert_eq!(scene.counted(errand), (1, 1), "{errand:?}: once, and only when it could be recorded");
    }
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn t14_nothing_is_sent_while_the_audit_log_takes_nothing() {
    let scene = Scene::open(Ground::Redis(2), &["audit_open=return"]).await;
    let agent = scene.world.tenant(TENANT).agent().legacy_at("/mcp").await;
    let refused = agent.call("load_toolset", json!({ "toolset": "yard" })).await;
    assert_eq!(refused.code(), "store_unavailable", "{refused:?}");
    for answer in scene.approve_all().await {
        is_refused(answer.as_ref());
    }
    // The other replica can record, and finds what was approved.
    for errand in Errand::ALL {
        let told = scene.becomes(errand, "succeeded").await;
        assert_eq!((&told["claim"]["epoch"], scene.counted(errand)), (&json!(1), (1, 1)), "{errand:?}: {told}");
    }
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn t14_an_end_that_cannot_be_recorded_is_told_to_nobody() {
    let mut scene = Scene::open(Ground::File, &["", "audit_close=return"]).await;
    started_again(&mut scene).await;
    scene.approve_all().await;
    scene.target.reached(Errand::ALL.len()).await;
    // The lease ends and others may look; what cannot be recorded still did not happen, as far as anybody is told.
    until("an idempotent run to be tried once more", async || {
        (scene.target.sent(scene.run(Errand::Put)) >= 2).then_some(())
    })
    .await;
    for errand in Errand::ALL {
        assert_eq!(scene.now(errand).await["state"], "executing", "{errand:?}: nobody is told of an end");
    }

    scene.world.part(0).kill();
    let asleep = scene.others_asleep();
    scene.go_on(asleep).await;

    scene.becomes(Errand::Put, "succeeded").await;
    scene.becomes(Errand::Add, "reconciled_succeeded").await;
    scene.becomes(Errand::Cast, "outcome_unknown").await;
    for errand in [Errand::Add, Errand::Cast] {
        assert_eq!(scene.counted(errand), (1, 1), "{errand:?}");
    }
    assert_eq!(scene.target.effects(scene.run(Errand::Put)), 1);
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s1_embedded_a_store_that_fails_executes_nothing_and_says_so() {
    let mut scene = Scene::open(Ground::File, &["", "store_error=return"]).await;
    started_again(&mut scene).await;
    for answer in scene.approve_all().await {
        is_refused(answer.as_ref());
    }
    assert_eq!(scene.target.runs(), Vec::<String>::new());
    started_again(&mut scene).await;
    for errand in Errand::ALL {
        assert_eq!(scene.now(errand).await["state"], "pending_approval", "the yes was not taken");
    }
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s7_embedded_a_slow_store_costs_time_and_nothing_else() {
    let mut scene = Scene::open(Ground::File, &["", "store_delay=return(50)"]).await;
    started_again(&mut scene).await;
    for answer in scene.approve_all().await {
        assert_eq!(answer.map(|answer| answer.status), Some(200));
    }
    for errand in Errand::ALL {
        scene.becomes(errand, "succeeded").await;
        assert_eq!(scene.counted(errand), (1, 1), "{errand:?}");
    }
    scene.invariants().await;
}
