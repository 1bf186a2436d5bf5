//! The whole way on the cluster under test: a sandbox, or a real API server with Argo's own controller.

use crate::argo::world::{World, approval, run, until};
use domain::{Code, RunId};
use policy::PermitApproval;
use serde_json::{Value, json};

fn template(tag: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "app", "image": format!("registry.example/app:{tag}") }] } })
}

/// A Rollout `web` at its first version, all of it running.
async fn first(strategy: Value) -> World {
    let world = World::under_test().await;
    make(&world, strategy).await;
    world
}

async fn make(world: &World, strategy: Value) {
    let spec = json!({ "replicas": 4, "selector": { "matchLabels": { "app": "web" } }, "template": template("1.0"), "strategy": strategy });
    world.make(json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": "web" }, "spec": spec })).await;
    world.becomes("web", "Healthy").await;
}

fn canary() -> Value {
    json!({ "canary": { "steps": [{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 50 }, { "pause": {} }] } })
}

fn act(action: &str) -> Value {
    json!({ "action": action, "name": "web" })
}

fn image(tag: &str) -> Value {
    json!({ "action": "set_image", "name": "web", "images": { "app": format!("registry.example/app:{tag}") } })
}

async fn paused_at(world: &World, step: u64) -> Value {
    until("a pause", async || {
        let shown = world.rollout("web").await;
        shown["phase"] == "Paused" && shown["current_step"] == step
    })
    .await;
    world.becomes("web", "Paused").await
}

/// Role and ready pods of every set that has a role.
fn roles(shown: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let sets = shown["replica_sets"].as_array().unwrap().iter();
    sets.filter(|set| set["role"].is_string()).map(|set| (text(&set["role"]), text(&set["ready"]))).collect()
}

fn pair(role: &str, ready: &str) -> (String, String) {
    (role.to_owned(), ready.to_owned())
}

#[tokio::test]
async fn a_canary_is_paused_promoted_aborted_tried_again_and_undone() {
    let world = first(canary()).await;
    assert_eq!(
        world.run("argo_rollout", act("promote")).await.unwrap_err().code,
        kubernetes::codes::NOTHING_TO_PROMOTE
    );
    world.run("argo_rollout", image("2.0")).await.unwrap();
    let paused = paused_at(&world, 1).await;
    assert_eq!((&paused["message"], &paused["weight"]), (&json!("CanaryPauseStep"), &json!(25)), "{paused:#}");
    assert_eq!(roles(&paused), [pair("canary", "1/1"), pair("stable", "3/3")], "{paused:#}");

    world.run("argo_rollout", act("pause")).await.unwrap();
    let resumed = world.run("argo_rollout", act("resume")).await.unwrap();
    assert_eq!((&resumed["held_by_step"], &resumed["noop"]), (&json!(true), &json!(false)), "{resumed}");
    paused_at(&world, 1).await;

    let shown = world.preview("argo_rollout", act("promote")).await.unwrap();
    assert!(shown.text.contains("next: step 3 of 4, set weight 50%"), "{}", shown.text);
    world.run("argo_rollout", act("promote")).await.unwrap();
    let half = paused_at(&world, 3).await;
    assert_eq!(roles(&half), [pair("canary", "2/2"), pair("stable", "2/2")], "{half:#}");

    world.run("argo_rollout", act("abort")).await.unwrap();
    let aborted = world.becomes("web", "Degraded").await;
    assert_eq!(aborted["message"], "RolloutAborted: Rollout aborted update to revision 2");
    assert_eq!(
        (&aborted["aborted"], &aborted["current_step"], &aborted["weight"]),
        (&json!(true), &json!(0), &json!(0))
    );
    until("the stable version serves alone", async || {
        roles(&world.rollout("web").await) == [pair("canary", "0/0"), pair("stable", "4/4")]
    })
    .await;
    world.run("argo_rollout", act("retry")).await.unwrap();
    paused_at(&world, 1).await;
    world.run("argo_rollout", act("promote")).await.unwrap();
    paused_at(&world, 3).await;
    world.run("argo_rollout", act("promote")).await.unwrap();
    let healthy = world.becomes("web", "Healthy").await;
    assert_eq!((&healthy["step"], &healthy["weight"], &healthy["revision"]), (&json!("4/4"), &json!(100), &json!(2)));

    let back = world.preview("argo_rollout", act("undo")).await.unwrap();
    assert!(
        back.text.contains("app:2.0 -> registry.example/app:1.0") && back.text.contains("the steps run again"),
        "{}",
        back.text
    );
    world.run("argo_rollout", act("undo")).await.unwrap();
    let again = paused_at(&world, 1).await;
    assert_eq!((&again["revision"], &again["images"]), (&json!(3), &json!(["registry.example/app:1.0"])), "{again:#}");
    world.run("argo_rollout", act("promote_full")).await.unwrap();
    let healthy = world.becomes("web", "Healthy").await;
    assert_eq!((&healthy["step"], &healthy["revision"]), (&json!("4/4"), &json!(3)), "{healthy:#}");
    let history = world.run("argo_history", json!({ "name": "web", "revision": 2 })).await.unwrap();
    let lines: Vec<(&Value, &Value)> =
        history["revisions"].as_array().unwrap().iter().map(|line| (&line["revision"], &line["role"])).collect();
    assert_eq!(lines, [(&json!(3), &json!("stable")), (&json!(2), &Value::Null)], "{history:#}");
    world.tidy().await;
}

#[tokio::test]
async fn g1_two_promotes_at_once_go_one_step() {
    let world = first(canary()).await;
    world.run("argo_rollout", image("2.0")).await.unwrap();
    paused_at(&world, 1).await;
    let one = approval(run());
    let other = PermitApproval { run: RunId::from_random([5; 16]), ..one.clone() };

    let (first, second) = tokio::join!(
        world.run_by("argo_rollout", act("promote"), one),
        world.run_by("argo_rollout", act("promote"), other.clone())
    );
    let next = paused_at(&world, 3).await;
    let late = world.run_by("argo_rollout", act("promote"), other).await.unwrap_err();

    let moved =
        [&first, &second].into_iter().filter(|end| end.as_ref().is_ok_and(|told| told["noop"] == false)).count();
    assert_eq!(moved, 1, "{first:?} {second:?}");
    for end in [first, second] {
        match end {
            Ok(told) => assert_eq!(told["step_to"], 2, "{told}"),
            Err(failure) => assert_eq!(failure.code, Code::Stale, "{failure}"),
        }
    }
    assert_eq!((next["weight"].as_u64(), late.code), (Some(50), Code::Stale));
    assert_eq!(world.rollout("web").await["current_step"], 3);
    world.tidy().await;
}

#[tokio::test]
async fn an_analysis_is_ended_early_and_a_failed_one_stops_the_rollout() {
    let world = World::under_test().await;
    for (name, command) in [("endless", json!(["sleep", "600"])), ("hopeless", json!(["false"]))] {
        let pod = json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "registry.example/tool:1", "command": command }] });
        let job = json!({ "spec": { "backoffLimit": 0, "template": { "spec": pod } } });
        let spec = json!({ "metrics": [{ "name": "job", "provider": { "job": job } }] });
        world.make(json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": { "name": name }, "spec": spec })).await;
    }
    let of = |name: &str| json!({ "analysis": { "templates": [{ "templateName": name }] } });
    make(
        &world,
        json!({ "canary": { "steps": [{ "setWeight": 25 }, of("endless"), { "pause": {} }, of("hopeless")] } }),
    )
    .await;
    world.run("argo_rollout", image("2.0")).await.unwrap();
    let runs = json!({ "kind": "analysisrun", "rollout": "web" });
    let mut name = Value::Null;
    until("a measurement", async || {
        name = world.run("argo_get", runs.clone()).await.unwrap()["items"][0]["name"].clone();
        name.is_string()
            && world.run("argo_get", json!({ "kind": "analysisrun", "name": name })).await.unwrap()["metrics"][0]["phase"] == "Running"
    })
    .await;

    let shown = world
        .preview("argo_analysis", json!({ "action": "terminate", "kind": "analysisrun", "name": name }))
        .await
        .unwrap();
    world.run("argo_analysis", json!({ "action": "terminate", "kind": "analysisrun", "name": name })).await.unwrap();
    let held = paused_at(&world, 1).await;
    world.run("argo_rollout", act("promote")).await.unwrap();
    paused_at(&world, 2).await;
    let ended = world.run("argo_get", json!({ "kind": "analysisrun", "name": name })).await.unwrap();
    world.run("argo_rollout", act("promote")).await.unwrap();
    let stopped = world.becomes("web", "Degraded").await;

    assert!(shown.warnings[0].contains("Rollout web may go on unchecked"), "{:?}", shown.warnings);
    assert_eq!(held["message"], "InconclusiveAnalysisRun", "{held:#}");
    assert_eq!((&ended["trigger"], &ended["step"]), (&json!("Step"), &json!("1")), "{ended:#}");
    assert_eq!(ended["phase"], "Inconclusive", "a measurement was under way: {ended:#}");
    assert!(stopped["message"].as_str().unwrap().contains("failed (1) > failureLimit (0)"), "{stopped:#}");
    let all = world.run("argo_get", runs).await.unwrap();
    assert_eq!(all["count"], 2, "{all:#}");
    world.tidy().await;
}

#[tokio::test]
async fn blue_and_green_are_switched_and_pods_restarted() {
    let world = World::under_test().await;
    let service = json!({ "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80 }] });
    world.make(json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" }, "spec": service })).await;
    make(&world, json!({ "blueGreen": { "activeService": "web", "autoPromotionEnabled": false } })).await;
    world.run("argo_rollout", image("2.0")).await.unwrap();
    let waiting = world.becomes("web", "Paused").await;
    let shown = world.preview("argo_rollout", act("promote")).await.unwrap();
    world.run("argo_rollout", act("promote")).await.unwrap();
    world.becomes("web", "Healthy").await;

    assert_eq!((&waiting["message"], &waiting["strategy"]), (&json!("BlueGreenPause"), &json!("blue-green")));
    assert!(shown.text.contains("service web switches from revision 1"), "{}", shown.text);
    let (service, live) = (world.get("services", "web").await, world.get("rollouts", "web").await);
    assert_eq!(service["spec"]["selector"]["rollouts-pod-template-hash"], live["status"]["stableRS"]);

    world.run("argo_rollout", act("restart")).await.unwrap();
    let wanted = world.get("rollouts", "web").await["spec"]["restartAt"].clone();
    until("every pod is a new one", async || world.get("rollouts", "web").await["status"]["restartedAt"] == wanted)
        .await;
    world.tidy().await;
}
