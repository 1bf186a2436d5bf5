//! The crash matrix: a replica is killed by SIGKILL at every step of an execution, for every class of tool, on both
//! backends. What is promised afterwards is asserted state by state; [`Scene::invariants`] asserts the rest.

use crate::runs_desk::{await_run, pending, say};
use crate::runs_replica::Errand;
use crate::runs_scene::{Ground, Scene, stopped};
use serde_json::{Value, json};

const REDIS: Ground = Ground::Redis(2);

/// The epoch of a run's claim: how many owners it has had.
fn epoch(told: &Value) -> u64 {
    told["claim"]["epoch"].as_u64().unwrap_or_else(|| panic!("nobody has claimed {told}"))
}

/// A person settles what nobody can find out, and what they say holds.
async fn settled_by_a_person(scene: &Scene, errand: Errand, outcome: &str) {
    let told = say(&scene.ana(), scene.run(errand), "resolve", json!({ "outcome": outcome })).await.json();
    assert_eq!(
        (&told["state"], &told["outcome"]["basis"]),
        (&json!(format!("reconciled_{outcome}")), &json!("settled by ana"))
    );
}

/// What the agent is told while nobody knows what happened: that, and not to call again.
async fn told_that_it_is_unknown(scene: &Scene, errand: Errand) {
    for outcome in [await_run(&scene.client, scene.run(errand)).await, scene.call(errand).await] {
        assert_eq!(outcome.code(), "outcome_unknown", "{outcome:?}");
        let details = outcome.message.to_string();
        assert!(details.contains(scene.run(errand)) && details.contains("do not call again"), "{details}");
    }
}

async fn r1(ground: Ground) {
    let scene = Scene::die_at(ground, "before_claim").await;
    for errand in Errand::ALL {
        let told = scene.becomes(errand, "succeeded").await;
        assert_eq!((epoch(&told), scene.counted(errand)), (1, (1, 1)), "{errand:?}: {told}");
    }
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_kill_before_the_claim_leaves_it_to_others() {
    // Two that live look at once, and one of them claims it.
    r1(Ground::Redis(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r1_embedded_kill_before_the_claim_leaves_it_to_the_next_start() {
    r1(Ground::File).await;
}

async fn r2(ground: Ground) {
    let scene = Scene::die_at(ground, "after_claim").await;
    let told = scene.becomes(Errand::Put, "succeeded").await;
    assert!(epoch(&told) >= 2, "an idempotent run is taken over: {told}");
    assert_eq!(scene.counted(Errand::Put), (1, 1));
    let told = scene.becomes(Errand::Add, "reconciled_failed").await;
    assert_eq!((&told["outcome"]["attempted"], scene.counted(Errand::Add)), (&json!(false), (0, 0)), "{told}");
    scene.becomes(Errand::Cast, "outcome_unknown").await;
    assert_eq!(scene.counted(Errand::Cast), (0, 0), "no proof leaves it to a person");
    told_that_it_is_unknown(&scene, Errand::Cast).await;
    scene.invariants().await;

    assert_eq!(await_run(&scene.client, scene.run(Errand::Add)).await.code(), "not_possible");
    assert_ne!(pending(&scene.call(Errand::Add).await), scene.run(Errand::Add), "whoever was told may ask anew");
    settled_by_a_person(&scene, Errand::Cast, "failed").await;
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_kill_after_the_claim_repeats_only_what_may_be_repeated() {
    r2(REDIS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r2_embedded_kill_after_the_claim_repeats_only_what_may_be_repeated() {
    r2(Ground::File).await;
}

async fn r3(ground: Ground) {
    let mut scene = Scene::open(ground, &["in_flight=return"]).await;
    scene.target.works(false);
    let (first, asleep) = (scene.world.part(0).clone(), scene.others_asleep());
    tokio::join!(scene.approve_all(), async {
        stopped(&first, "in_flight", Errand::ALL.len()).await;
        scene.target.reached(Errand::ALL.len()).await;
        first.kill();
    });
    scene.go_on(asleep).await;

    for errand in [Errand::Add, Errand::Cast] {
        let told = scene.becomes(errand, "outcome_unknown").await;
        assert_eq!((epoch(&told), scene.counted(errand)), (1, (0, 1)), "the target works on it: {told}");
        told_that_it_is_unknown(&scene, errand).await;
    }
    // What may be repeated has been sent once more, while the target still works on the first one.
    scene.target.reached(Errand::ALL.len() + 1).await;
    scene.target.works(true);
    assert!(epoch(&scene.becomes(Errand::Put, "succeeded").await) >= 2);
    assert_eq!(scene.counted(Errand::Put), (1, 2), "sent twice, and one effect");
    let told = scene.becomes(Errand::Add, "reconciled_succeeded").await;
    assert_eq!((&told["outcome"]["basis"], scene.counted(Errand::Add)), (&json!("a probe of the target"), (1, 1)));
    assert_eq!(scene.now(Errand::Cast).await["state"], "outcome_unknown", "nobody can look");
    assert_eq!(scene.counted(Errand::Cast), (1, 1));
    scene.invariants().await;

    settled_by_a_person(&scene, Errand::Cast, "succeeded").await;
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_kill_in_flight_leaves_the_outcome_unknown() {
    r3(REDIS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r3_embedded_kill_in_flight_leaves_the_outcome_unknown() {
    r3(Ground::File).await;
}

async fn r4(ground: Ground) {
    let scene = Scene::die_at(ground, "after_effect").await;
    assert!(epoch(&scene.becomes(Errand::Put, "succeeded").await) >= 2);
    assert_eq!(scene.target.effects(scene.run(Errand::Put)), 1, "done again, and nothing changed by it");
    let told = scene.becomes(Errand::Add, "reconciled_succeeded").await;
    assert_eq!((&told["outcome"]["basis"], scene.counted(Errand::Add)), (&json!("a probe of the target"), (1, 1)));
    scene.becomes(Errand::Cast, "outcome_unknown").await;
    assert_eq!(scene.counted(Errand::Cast), (1, 1));
    told_that_it_is_unknown(&scene, Errand::Cast).await;
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_kill_after_the_effect_is_found_out_by_a_probe() {
    r4(REDIS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r4_embedded_kill_after_the_effect_is_found_out_by_a_probe() {
    r4(Ground::File).await;
}

async fn r5(ground: Ground) {
    let mut scene = Scene::open(ground, &["after_record=return"]).await;
    let (first, asleep) = (scene.world.part(0).clone(), scene.others_asleep());
    let meta = json!({ "quartermaster/hold_ms": 20_000 });
    let held = json!({ "name": Errand::Add.name(), "arguments": Scene::arguments(Errand::Add), "_meta": meta });
    let held = scene.client.prepare("tools/call", held);
    // One who waits at the replica that dies is stopped as well, before the answer is written.
    let (answer, ..) = tokio::join!(held.try_send(scene.world.address(0)), scene.approve_all(), async {
        stopped(&first, "after_record", Errand::ALL.len() + 1).await;
        first.kill();
    });
    assert_eq!(answer, None, "nobody was answered");
    scene.go_on(asleep).await;

    let mut first_told = Vec::new();
    for errand in Errand::ALL {
        let told = scene.becomes(errand, "succeeded").await;
        assert_eq!((epoch(&told), scene.counted(errand)), (1, (1, 1)), "{errand:?}: {told}");
        let again = scene.call(errand).await.ok().clone();
        assert_eq!((&again["run"]["replayed"], &again["run"]["id"]), (&json!(true), &json!(scene.run(errand))));
        assert_eq!(again["result"], told["outcome"]["result"], "the stored outcome, not a new one");
        first_told.push(again["result"].clone());
    }
    assert_eq!(first_told, [json!({ "now": 7 }), json!({ "now": 7 }), json!({ "now": 7 })]);
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_kill_after_the_record_hands_the_same_outcome_to_the_repeated_call() {
    r5(REDIS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r5_embedded_kill_after_the_record_hands_the_same_outcome_to_the_repeated_call() {
    r5(Ground::File).await;
}
