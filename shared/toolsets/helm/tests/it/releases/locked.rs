//! What happens when helm is ended midway, when two want the same release, and when a hook never ends.

use crate::releases::chart::MISSING;
use crate::releases::world::{World, until};
use catalog::ProbeResult;
use domain::{Code, RunId};
use serde_json::json;
use std::process::Command;

/// Sends a signal to a process.
#[expect(clippy::disallowed_methods, reason = "the test plays the machine")]
fn signal(signal: &str, pid: i32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// Ends a process the way nothing can answer.
fn kill(pid: i32) {
    signal("-KILL", pid);
}

fn run(n: u8) -> RunId {
    RunId::from_random([n; 16])
}

#[tokio::test]
async fn h1_helm_that_is_asked_to_end_writes_down_that_it_failed() {
    let Some(world) = World::new().await else { return };
    world.run("helm_install", json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 })).await.unwrap();
    let stuck = json!({ "release": "shop", "chart": "stable/web", "values": { "image": MISSING }, "timeout_s": 300 });
    let ender = async {
        until("helm waits", || !world.children("upgrade").is_empty()).await;
        while !world.run("helm_get", json!({ "release": "shop" })).await.unwrap()["locked_for_s"].is_u64() {}
        world.children("upgrade").into_iter().for_each(|pid| signal("-TERM", pid));
    };

    let (ended, ()) = tokio::join!(world.run_as("helm_upgrade", stuck, run(5)), ender);

    let failure = ended.unwrap_err();
    assert_eq!(failure.details.as_ref().unwrap()["status"], "failed", "{failure:?}");
    let fine = json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60, "keep_values": "reset" });
    world.run_as("helm_upgrade", fine, run(6)).await.unwrap();
}

#[tokio::test]
async fn h2_helm_killed_midway_leaves_a_locked_release_that_a_run_of_its_own_frees() {
    let Some(world) = World::new().await else { return };
    world.run("helm_install", json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 })).await.unwrap();
    let stuck = json!({ "release": "shop", "chart": "stable/web", "values": { "image": MISSING }, "timeout_s": 300 });
    let fine = json!({ "release": "shop", "chart": "stable/web", "values": { "replicas": 1 }, "timeout_s": 60 });
    let recover = json!({ "release": "shop" });
    assert_eq!(world.preview("helm_recover", recover.clone()).await.unwrap_err().code, helm::codes::NOT_LOCKED);

    let killer = async {
        until("helm waits", || !world.children("upgrade").is_empty()).await;
        // The revision is written down before anything is changed.
        while !world
            .run("helm_get", json!({ "release": "shop", "show": "history" }))
            .await
            .unwrap()
            .to_string()
            .contains("pending-upgrade")
        {}
        world.children("upgrade").into_iter().for_each(kill);
    };
    let (ended, ()) = tokio::join!(world.run_as("helm_upgrade", stuck.clone(), run(5)), killer);

    assert_eq!(ended.unwrap_err().code, Code::OutcomeUnknown);
    assert_eq!(world.probe("helm_upgrade", stuck, run(5)).await, ProbeResult::Unknown, "nobody can tell what was done");
    let status = world.run("helm_get", json!({ "release": "shop" })).await.unwrap();
    assert!(status["locked_for_s"].is_u64(), "{status}");
    let locked = world.preview("helm_upgrade", fine.clone()).await.unwrap_err();
    assert_eq!((locked.code, &locked.details.as_ref().unwrap()["revision"]), (helm::codes::RELEASE_LOCKED, &json!(2)));
    assert!(locked.next.unwrap().contains("helm_recover"));
    assert_eq!(world.run_as("helm_upgrade", fine.clone(), run(6)).await.unwrap_err().code, helm::codes::RELEASE_LOCKED);
    assert_eq!(
        world.preview("helm_recover", recover.clone()).await.unwrap_err().code,
        helm::codes::STILL_RUNNING,
        "too soon"
    );

    world.pass(601);
    let drawn = world.preview("helm_recover", recover.clone()).await.unwrap();
    assert!(drawn.text.contains("pending-upgrade") && drawn.summary.contains("roll back to 1"), "{}", drawn.text);
    assert!(drawn.text.contains(&run(5).to_string()), "who began it is named: {}", drawn.text);
    let freed = world.run_as("helm_recover", recover, run(7)).await.unwrap();
    assert_eq!((&freed["was"], &freed["action"]), (&json!("pending-upgrade"), &json!("rollback")));
    assert_eq!(freed["status"], "deployed");
    let upgraded = world.run_as("helm_upgrade", fine, run(8)).await.unwrap();
    assert_eq!((&upgraded["status"], &upgraded["revision"]), (&json!("deployed"), &json!(4)));
}

#[tokio::test]
async fn a_first_install_that_was_killed_is_removed() {
    let Some(world) = World::new().await else { return };
    let stuck = json!({ "release": "shop", "chart": "stable/web", "values": { "image": MISSING }, "timeout_s": 300 });
    let killer = async {
        until("helm waits", || !world.children("install").is_empty()).await;
        while world.run("helm_get", json!({ "release": "shop" })).await.is_err() {}
        world.children("install").into_iter().for_each(kill);
    };
    let (ended, ()) = tokio::join!(world.run_as("helm_install", stuck, run(5)), killer);
    assert_eq!(ended.unwrap_err().code, Code::OutcomeUnknown);

    world.pass(601);
    let freed = world.run_as("helm_recover", json!({ "release": "shop" }), run(7)).await.unwrap();

    assert_eq!((&freed["was"], &freed["action"]), (&json!("pending-install"), &json!("uninstall")));
    let left = world.run("helm_list", json!({})).await.unwrap();
    assert_eq!(left["releases"], json!([]));
}

#[tokio::test]
async fn h3_the_second_who_wants_a_release_is_told_who_is_first() {
    let Some(world) = World::new().await else { return };
    world.run("helm_install", json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 })).await.unwrap();
    let slow = json!({ "release": "shop", "chart": "stable/web", "values": { "image": MISSING }, "timeout_s": 10 });
    let other = json!({ "release": "shop" });

    let second = async {
        until("the first is at work", || !world.children("upgrade").is_empty()).await;
        // Whoever asks while helm has written nothing yet meets the hold, and afterwards both.
        let told = world.run_as("helm_uninstall", other.clone(), run(6)).await.unwrap_err();
        let early = world.preview("helm_recover", other.clone()).await.unwrap_err();
        (told, early)
    };
    let (first, (told, early)) = tokio::join!(world.run_as("helm_upgrade", slow, run(5)), second);

    assert_eq!(told.code, helm::codes::RELEASE_BUSY);
    assert_eq!(told.details.unwrap()["run"], run(5).to_string());
    assert!(matches!(early.code, helm::codes::STILL_RUNNING | helm::codes::NOT_LOCKED), "{early:?}");
    assert_eq!(first.unwrap_err().code, helm::codes::TIMED_OUT, "the first went on undisturbed");
    world.run_as("helm_uninstall", other, run(6)).await.unwrap();
}

#[tokio::test]
async fn h5_a_hook_that_never_ends_is_reported_by_helm_itself() {
    let Some(world) = World::new().await else { return };
    world.run("helm_install", json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 })).await.unwrap();
    let upgrade = json!({ "release": "shop", "chart": "stable/web", "values": { "hook": true }, "timeout_s": 10 });
    let drawn = world.preview("helm_upgrade", upgrade.clone()).await.unwrap();
    assert!(drawn.text.contains("hook: Job shop-migrate (pre-upgrade)"), "{}", drawn.text);

    let failure = world.run_as("helm_upgrade", upgrade, run(5)).await.unwrap_err();

    assert_eq!(failure.code, helm::codes::HOOK_FAILED, "{failure:?}");
    let history = world.run("helm_get", json!({ "release": "shop", "show": "history" })).await.unwrap();
    assert_eq!(history["revisions"][0]["status"], "failed", "helm wrote down how it ended: {history}");
}
