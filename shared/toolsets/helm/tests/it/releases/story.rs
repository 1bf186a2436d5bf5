//! The life of a release.

use crate::releases::chart::MISSING;
use crate::releases::world::World;
use catalog::ProbeResult;
use domain::RunId;
use serde_json::json;

#[tokio::test]
async fn a_release_is_installed_upgraded_broken_rolled_back_tested_and_removed() {
    let Some(world) = World::new().await else { return };
    let install = json!({ "release": "shop", "chart": "stable/web", "values": { "replicas": 1 }, "timeout_s": 60 });

    let drawn = world.preview("helm_install", install.clone()).await.unwrap();
    assert!(drawn.text.contains("3 to create, 0 to change, 0 to remove"), "{}", drawn.text);
    assert!(drawn.text.contains("create Deployment shop-web"), "{}", drawn.text);
    let again = world.preview("helm_install", install.clone()).await.unwrap();
    assert_eq!(drawn.fingerprint, again.fingerprint);
    let installed = world.run("helm_install", install.clone()).await.unwrap();
    assert_eq!((&installed["revision"], &installed["status"]), (&json!(1), &json!("deployed")));
    assert!(installed["resources"].to_string().contains("Deployment shop-web"), "{installed}");
    assert_eq!(world.run("helm_install", install.clone()).await.unwrap_err().code, helm::codes::RELEASE_EXISTS);
    let first = RunId::from_random([3; 16]);
    assert_eq!(world.probe("helm_install", install.clone(), first).await, ProbeResult::Done(None));
    assert_eq!(world.probe("helm_install", install, RunId::from_random([77; 16])).await, ProbeResult::NotDone);

    let listed = world.run("helm_list", json!({ "status": "deployed", "filter": "^sh" })).await.unwrap();
    assert_eq!(listed["releases"][0]["chart"], "web-1.0.0", "{listed}");
    let status = world.run("helm_get", json!({ "release": "shop" })).await.unwrap();
    assert_eq!((&status["status"], &status["chart"]), (&json!("deployed"), &json!("web-1.0.0")));

    world.publish(&["1.0.0", "1.1.0"]);
    let upgrade = json!({ "release": "shop", "chart": "stable/web", "version": "1.0.0", "values": { "replicas": 3, "greeting": "hi" }, "timeout_s": 60 });
    let drawn = world.preview("helm_upgrade", upgrade.clone()).await.unwrap();
    assert!(drawn.text.contains("-  replicas: 1") && drawn.text.contains("+  replicas: 3"), "{}", drawn.text);
    let dry = world.run("helm_upgrade", with(&upgrade, "dry_run", json!(true))).await.unwrap();
    assert_eq!((&dry["status"], dry["diff"].as_str().unwrap().contains("+  replicas: 3")), (&json!("dry-run"), true));
    let upgraded = world.run_as("helm_upgrade", upgrade, RunId::from_random([4; 16])).await.unwrap();
    assert_eq!((&upgraded["revision"], &upgraded["from_revision"]), (&json!(2), &json!(1)));

    let broken = json!({ "release": "shop", "chart": "stable/web", "version": "1.0.0", "values": { "image": MISSING }, "timeout_s": 10 });
    let failure = world.run_as("helm_upgrade", broken.clone(), RunId::from_random([5; 16])).await.unwrap_err();
    assert_eq!(failure.code, helm::codes::TIMED_OUT, "{failure:?}");
    assert_eq!(failure.details.as_ref().unwrap()["status"], "failed");
    assert_eq!(world.probe("helm_upgrade", broken, RunId::from_random([5; 16])).await, ProbeResult::NotDone);

    let diff = world.run("helm_get", json!({ "release": "shop", "show": "diff", "revision": 2 })).await.unwrap();
    assert!(diff["diff"].as_str().unwrap().contains("web:1.0"), "{diff}");
    let rollback = json!({ "release": "shop", "timeout_s": 60 });
    let drawn = world.preview("helm_rollback", rollback.clone()).await.unwrap();
    assert!(drawn.text.contains("back to revision 2"), "{}", drawn.text);
    let back = world.run_as("helm_rollback", rollback.clone(), RunId::from_random([6; 16])).await.unwrap();
    assert_eq!((&back["to_revision"], &back["revision"], &back["status"]), (&json!(2), &json!(4), &json!("deployed")));
    assert_eq!(world.probe("helm_rollback", rollback, RunId::from_random([6; 16])).await, ProbeResult::Done(None));
    let history = world.run("helm_get", json!({ "release": "shop", "show": "history" })).await.unwrap();
    let states: Vec<&str> =
        history["revisions"].as_array().unwrap().iter().map(|r| r["status"].as_str().unwrap()).collect();
    assert_eq!(states, ["deployed", "failed", "superseded", "superseded"]);

    let drawn = world.preview("helm_test", json!({ "release": "shop" })).await.unwrap();
    assert!(drawn.text.contains("all good"), "{}", drawn.text);
    let tested = world.run("helm_test", json!({ "release": "shop", "timeout_s": 60 })).await.unwrap();
    assert_eq!(tested["passed"], true, "{tested}");
    assert!(tested["tests"][0]["log"].as_str().unwrap().contains("all good"), "{tested}");

    let drawn = world.preview("helm_uninstall", json!({ "release": "shop" })).await.unwrap();
    assert!(drawn.text.contains("remove Deployment shop-web"), "{}", drawn.text);
    let removed = world.run("helm_uninstall", json!({ "release": "shop", "timeout_s": 60 })).await.unwrap();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 3, "{removed}");
    assert_eq!(
        world.probe("helm_uninstall", json!({ "release": "shop" }), RunId::from_random([3; 16])).await,
        ProbeResult::Done(None)
    );
    let again = world.run("helm_uninstall", json!({ "release": "shop" })).await.unwrap();
    assert_eq!(again["removed"], json!([]), "a repetition finds nothing to do");
    let failure = world.run("helm_get", json!({ "release": "shop" })).await.unwrap_err();
    assert_eq!(failure.code, helm::codes::RELEASE_NOT_FOUND);
}

#[tokio::test]
async fn an_upgrade_that_fails_goes_back_by_itself_if_it_is_told_to() {
    let Some(world) = World::new().await else { return };
    world.run("helm_install", json!({ "release": "shop", "chart": "stable/web", "timeout_s": 60 })).await.unwrap();

    let broken = json!({ "release": "shop", "chart": "stable/web", "values": { "image": MISSING }, "timeout_s": 10, "rollback_on_failure": true });
    let failure = world.run_as("helm_upgrade", broken, RunId::from_random([5; 16])).await.unwrap_err();

    assert_eq!(failure.details.as_ref().unwrap()["rolled_back"], true, "{failure:?}");
    let status = world.run("helm_get", json!({ "release": "shop" })).await.unwrap();
    assert_eq!((&status["status"], &status["revision"]), (&json!("deployed"), &json!(3)));
}

#[tokio::test]
async fn a_chart_that_moved_under_its_version_is_noticed() {
    let Some(world) = World::new().await else { return };
    let install = json!({ "release": "shop", "chart": "stable/web" });
    let shown = world.preview("helm_install", install.clone()).await.unwrap();

    world.publish(&["1.0.1"]);
    let refreshed = world.run("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
    let now = world.preview("helm_install", install).await.unwrap();

    assert!(refreshed.to_string().contains("1.0.1"), "{refreshed}");
    assert_ne!(shown.fingerprint, now.fingerprint, "another chart is another thing to sign for");
}

pub(crate) fn with(args: &serde_json::Value, key: &str, value: serde_json::Value) -> serde_json::Value {
    let mut args = args.clone();
    args[key] = value;
    args
}
