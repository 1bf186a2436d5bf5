//! An owner is frozen past its lease and thawed: what it still wants to write is refused, and the audit log says so.
//!
//! The freeze is SIGSTOP, so the process finds on waking that time went on without it, as after a long pause of its host.

use crate::runs_replica::Errand;
use crate::runs_scene::{Ground, Scene};
use serde_json::{Value, json};
use testkit::until;

/// What the audit log says of claims that came too late: epoch and replica of each.
async fn fenced(scene: &Scene, errand: Errand) -> Vec<(Value, Value)> {
    let entries = scene.watched().audit_log(scene.run(errand)).await;
    let late = entries.iter().filter(|entry| entry["phase"] == "fenced");
    late.map(|entry| (entry["run"]["epoch"].clone(), entry["replica"].clone())).collect()
}

/// Waits until the thawed owner has found out about its run, once.
async fn is_fenced(scene: &Scene, errand: Errand, owner: &Value) {
    let found = until("the thawed owner to be fenced", async || {
        let found = fenced(scene, errand).await;
        (!found.is_empty()).then_some(found)
    })
    .await;
    assert_eq!(found, [(json!(1), owner.clone())], "{errand:?}: the claim that is over, by its owner, once");
}

/// Three runs are in flight, their owner is frozen, and its leases end. Gives the owner.
async fn frozen_in_flight(scene: &Scene) -> Value {
    scene.target.works(false);
    let asleep = scene.others_asleep();
    scene.approve_all().await;
    scene.target.reached(Errand::ALL.len()).await;
    asleep.wake();
    let owner = scene.now(Errand::Put).await["claim"]["owner"].clone();
    scene.world.part(0).signal("-STOP");
    for errand in [Errand::Add, Errand::Cast] {
        scene.becomes(errand, "outcome_unknown").await;
    }
    // What may be repeated is sent again by the one who lives, and by nobody else.
    scene.target.reached(Errand::ALL.len() + 1).await;
    let taken = scene.now(Errand::Put).await["claim"].clone();
    assert_eq!(taken["epoch"], 2);
    assert_ne!(taken["owner"], owner);
    owner
}

/// The end of what was taken over is the new owner's; what was not is settled by evidence; nothing happened twice.
async fn ended_once(scene: &Scene, owner: &Value) {
    let told = scene.becomes(Errand::Put, "succeeded").await;
    assert_eq!(told["claim"]["epoch"], 2);
    assert_ne!(&told["claim"]["owner"], owner);
    assert_eq!(scene.counted(Errand::Put), (1, 2));
    for errand in [Errand::Add, Errand::Cast] {
        let told = scene.becomes(errand, "reconciled_succeeded").await;
        let probed = told["outcome"]["basis"] == "a probe of the target";
        assert!(errand == Errand::Add || !probed, "nobody can probe it: {told}");
        assert_eq!(scene.counted(errand), (1, 1), "{errand:?}");
    }
    for errand in Errand::ALL {
        is_fenced(scene, errand, owner).await;
    }
    scene.invariants().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_an_owner_that_wakes_while_another_holds_its_run_is_fenced() {
    let scene = Scene::open(Ground::Redis(2), &[]).await;
    let owner = frozen_in_flight(&scene).await;

    scene.world.part(0).signal("-CONT");

    // It wants to renew what is no longer its own, while the target still works for both.
    for errand in Errand::ALL {
        is_fenced(&scene, errand, &owner).await;
    }
    assert_eq!(scene.now(Errand::Put).await["state"], "executing");
    scene.target.works(true);
    ended_once(&scene, &owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_an_owner_that_wakes_when_all_is_over_is_fenced_and_its_answer_is_evidence() {
    let scene = Scene::open(Ground::Redis(2), &[]).await;
    let owner = frozen_in_flight(&scene).await;
    scene.target.works(true);
    let told = scene.becomes(Errand::Put, "succeeded").await;

    scene.world.part(0).signal("-CONT");

    is_fenced(&scene, Errand::Put, &owner).await;
    assert_eq!(scene.now(Errand::Put).await, told, "what it wanted to write was refused");
    ended_once(&scene, &owner).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn r6_an_owner_frozen_before_it_sends_sends_nothing_when_it_wakes() {
    let scene = Scene::open(Ground::Redis(2), &[]).await;
    let looked = scene.target.looks();
    scene.target.shows(false);
    let asleep = scene.others_asleep();
    scene.approve_all().await;
    let looking = async || (scene.target.looks() >= looked + Errand::ALL.len()).then_some(());
    until("the last look before sending", looking).await;
    asleep.wake();
    let owner = scene.now(Errand::Put).await["claim"]["owner"].clone();

    scene.world.part(0).signal("-STOP");
    let told = scene.becomes(Errand::Add, "reconciled_failed").await;
    assert_eq!(told["outcome"]["attempted"], false, "the target never heard of it");
    scene.becomes(Errand::Cast, "outcome_unknown").await;
    until("another to take it over", async || (scene.now(Errand::Put).await["claim"]["epoch"] == 2).then_some(()))
        .await;
    scene.target.shows(true);
    scene.becomes(Errand::Put, "succeeded").await;
    scene.world.part(0).signal("-CONT");

    for errand in Errand::ALL {
        is_fenced(&scene, errand, &owner).await;
    }
    let counted = Errand::ALL.map(|errand| scene.counted(errand));
    assert_eq!(counted, [(1, 1), (0, 0), (0, 0)], "what others settled was not sent by the one who woke");
    scene.invariants().await;
}
