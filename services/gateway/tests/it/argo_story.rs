//! A canary from its first pod to its last, on whatever cluster is under test: paused, promoted, aborted, tried again
//! and undone, each time by an agent that asks and a person who decides, and moved by the cluster's own controller.

use crate::k8s_yard::{Draft, TENANT, Yard, loaded};
use crate::runs_desk::{approve, ended, pending};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use testkit::until;

/// A Rollout of one container, by this strategy.
pub(crate) fn rollout(name: &str, replicas: u32, strategy: &Value) -> Value {
    let labels = json!({ "app": name });
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": labels }, "strategy": strategy,
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "app", "image": "registry.example/app:1.0" }] },
            },
        },
    })
}

/// Two weights, and a person after each.
pub(crate) fn canary() -> Value {
    json!({ "canary": { "steps": [{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 50 }, { "pause": {} }] } })
}

pub(crate) fn act(action: &str) -> Value {
    json!({ "action": action, "name": "web" })
}

pub(crate) fn image(tag: &str) -> Value {
    json!({ "action": "set_image", "name": "web", "images": { "app": format!("registry.example/app:{tag}") } })
}

fn second() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Waits until the Rollout is in a phase, at a step if one is named, and the second it got there is over: a decision is
/// later than what it is about.
pub(crate) async fn becomes(yard: &Yard, phase: &str, step: Option<u64>) -> Value {
    let came = until(&format!("{phase} at {step:?}"), async || {
        let shown = yard.read("argo_get", json!({ "name": "web" })).await;
        let there = shown["phase"] == phase && step.is_none_or(|step| shown["current_step"] == step);
        there.then_some(shown)
    })
    .await;
    let now = second();
    until("the next second", async || (second() > now).then_some(())).await;
    came
}

/// A Rollout at its first version, all of it running.
pub(crate) async fn first(yard: &Yard, strategy: &Value) {
    yard.make(&[rollout("web", 4, strategy)]).await;
    becomes(yard, "Healthy", None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dangerous_version_is_the_first_thing_its_approver_reads() {
    let yard = Yard::open().await;
    first(&yard, &canary()).await;
    let container =
        json!({ "name": "app", "image": "registry.example/app:2.0", "securityContext": { "privileged": true } });
    let mut dangerous = rollout("web", 4, &canary());
    dangerous["spec"]["template"]["spec"]["containers"] = json!([container]);
    yard.make(&[dangerous]).await;
    becomes(&yard, "Paused", Some(1)).await;

    let run = yard.ask("argo_rollout", act("promote")).await;
    let shown = yard.shown(&run).await;

    let place = format!("Rollout {}/web", yard.namespace);
    assert_eq!(shown["warnings"][0], json!(format!("{place}: container app would be privileged.")), "{shown:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_is_paused_promoted_aborted_tried_again_and_undone() {
    let yard = Yard::open().await;
    first(&yard, &canary()).await;
    assert_eq!(yard.refused("argo_rollout", act("promote")).await["code"], "preview_unavailable");

    let told = yard.act("argo_rollout", image("2.0")).await;
    assert_eq!(told["noop"], false, "{told}");
    let paused = becomes(&yard, "Paused", Some(1)).await;
    assert_eq!((&paused["message"], &paused["weight"]), (&json!("CanaryPauseStep"), &json!(25)), "{paused:#}");
    let roles = |shown: &Value| -> Vec<(Value, Value)> {
        let sets = shown["replica_sets"].as_array().unwrap().iter();
        sets.filter(|set| set["role"].is_string()).map(|set| (set["role"].clone(), set["ready"].clone())).collect()
    };
    assert_eq!(roles(&paused), [(json!("canary"), json!("1/1")), (json!("stable"), json!("3/3"))], "{paused:#}");

    yard.act("argo_rollout", act("pause")).await;
    let resumed = yard.act("argo_rollout", act("resume")).await;
    assert_eq!((&resumed["held_by_step"], &resumed["noop"]), (&json!(true), &json!(false)), "{resumed}");
    becomes(&yard, "Paused", Some(1)).await;

    let run = yard.ask("argo_rollout", act("promote")).await;
    let shown = yard.shown(&run).await;
    let text = shown["preview"]["text"].as_str().unwrap();
    for part in ["step: step 2 of 4, pause until promoted", "next: step 3 of 4, set weight 50%", "traffic: 25% -> 50%"]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(shown["effect"], "change");
    let told = yard.sign(&run).await;
    assert_eq!((&told["state"], &told["outcome"]["result"]["step_to"]), (&json!("succeeded"), &json!(2)), "{told:#}");
    // An ending that the agent has heard of is history: the same words then mean a new promotion.
    yard.call("await_run", json!({ "run_id": run, "wait_ms": 0 })).await.ok();
    let half = becomes(&yard, "Paused", Some(3)).await;
    assert_eq!(roles(&half), [(json!("canary"), json!("2/2")), (json!("stable"), json!("2/2"))], "{half:#}");

    let run = yard.ask("argo_rollout", act("abort")).await;
    assert_eq!(yard.shown(&run).await["effect"], "disrupt");
    assert_eq!(yard.sign(&run).await["state"], "succeeded");
    let aborted = becomes(&yard, "Degraded", Some(0)).await;
    assert_eq!((&aborted["aborted"], &aborted["weight"]), (&json!(true), &json!(0)), "{aborted:#}");
    assert!(aborted["message"].as_str().unwrap().starts_with("RolloutAborted"), "{aborted:#}");
    until("the stable version serves alone", async || {
        let shown = yard.read("argo_get", json!({ "name": "web" })).await;
        (roles(&shown) == [(json!("canary"), json!("0/0")), (json!("stable"), json!("4/4"))]).then_some(())
    })
    .await;

    yard.act("argo_rollout", act("retry")).await;
    becomes(&yard, "Paused", Some(1)).await;
    yard.act("argo_rollout", act("promote")).await;
    becomes(&yard, "Paused", Some(3)).await;
    yard.act("argo_rollout", act("promote")).await;
    let healthy = becomes(&yard, "Healthy", Some(4)).await;
    assert_eq!((&healthy["weight"], &healthy["ready"], &healthy["revision"]), (&json!(100), &json!("4/4"), &json!(2)));

    undone(&yard).await;
}

/// The way back: a new revision with the old template, whose steps are run again, or skipped by somebody's decision.
async fn undone(yard: &Yard) {
    let run = yard.ask("argo_rollout", act("undo")).await;
    let shown = yard.shown(&run).await;
    let text = shown["preview"]["text"].as_str().unwrap();
    for part in ["app:2.0 -> registry.example/app:1.0", "the steps run again", "-", "+"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!((&shown["effect"], &yard.sign(&run).await["state"]), (&json!("disrupt"), &json!("succeeded")));
    let again = becomes(yard, "Paused", Some(1)).await;
    assert_eq!((&again["revision"], &again["images"]), (&json!(3), &json!(["registry.example/app:1.0"])), "{again:#}");

    let run = yard.ask("argo_rollout", act("promote_full")).await;
    let shown = yard.shown(&run).await;
    assert!(shown["warnings"].to_string().contains("3 steps are skipped"), "{shown:#}");
    assert_eq!(yard.sign(&run).await["state"], "succeeded");
    becomes(yard, "Healthy", Some(4)).await;
    let history = yard.read("argo_history", json!({ "name": "web", "revision": 2 })).await;
    let lines = history["revisions"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = lines.iter().map(|line| (&line["revision"], &line["role"])).collect();
    assert_eq!(told, [(&json!(3), &json!("stable")), (&json!(2), &Value::Null)], "{history:#}");
    assert_eq!(history["template"]["spec"]["containers"][0]["image"], "registry.example/app:2.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn g1_two_promotes_at_once_go_one_step_and_the_second_is_told_so() {
    let yard = Yard::open().await;
    first(&yard, &canary()).await;
    yard.act("argo_rollout", image("2.0")).await;
    becomes(&yard, "Paused", Some(1)).await;
    // The same words of the same session would be the same run.
    let elsewhere = loaded(&yard.world.tenant(TENANT).agent()).await;
    let one = yard.ask("argo_rollout", act("promote")).await;
    let other = pending(&elsewhere.call("argo_rollout", act("promote")).await);

    tokio::join!(approve(&yard.ana, &one), approve(&yard.ana, &other));
    let ends = [ended(&yard.ana, &one).await, ended(&yard.ana, &other).await];

    let moved = |end: &&Value| end["state"] == "succeeded" && end["outcome"]["result"]["noop"] == false;
    assert_eq!(ends.iter().filter(moved).count(), 1, "{ends:#?}");
    let second = ends.iter().find(|end| !moved(end)).unwrap();
    let already = second["outcome"]["result"]["noop"] == true || second.to_string().contains("stale");
    assert!(already, "{second:#}");
    let next = becomes(&yard, "Paused", Some(3)).await;
    assert_eq!(next["weight"], 50, "one step, and its pause: {next:#}");
    assert_eq!(becomes(&yard, "Paused", None).await["current_step"], 3, "and there it stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_analysis_is_ended_early_and_a_failed_one_stops_the_rollout() {
    let yard = Yard::open().await;
    let pod = |command: Value| json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "registry.example/tool:1", "command": command }] });
    let template = |name: &str, command: Value| {
        let job = json!({ "spec": { "backoffLimit": 0, "template": { "spec": pod(command) } } });
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": { "name": name },
            "spec": { "metrics": [{ "name": "job", "provider": { "job": job } }] } })
    };
    yard.make(&[template("endless", json!(["sleep", "600"])), template("hopeless", json!(["false"]))]).await;
    let of = |name: &str| json!({ "analysis": { "templates": [{ "templateName": name }] } });
    let steps = json!([{ "setWeight": 25 }, of("endless"), { "pause": {} }, of("hopeless")]);
    first(&yard, &json!({ "canary": { "steps": steps } })).await;
    yard.act("argo_rollout", image("2.0")).await;
    let run = until("the analysis to run", async || {
        let runs = yard.read("argo_get", json!({ "kind": "analysisrun", "rollout": "web" })).await;
        let row = &runs["items"][0];
        (row["phase"] == "Running").then(|| row["name"].as_str().unwrap().to_owned())
    })
    .await;
    until("its measurement to begin", async || {
        let shown = yard.read("argo_get", json!({ "kind": "analysisrun", "name": run })).await;
        (shown["metrics"][0]["phase"] == "Running").then_some(())
    })
    .await;

    let asked = yard.ask("argo_analysis", json!({ "action": "terminate", "kind": "analysisrun", "name": run })).await;
    let shown = yard.shown(&asked).await;
    assert_eq!(shown["effect"], "disrupt");
    assert!(shown["warnings"].to_string().contains("Rollout web may go on unchecked"), "{shown:#}");
    assert_eq!(yard.sign(&asked).await["state"], "succeeded");
    let held = becomes(&yard, "Paused", Some(1)).await;
    assert_eq!(held["message"], "InconclusiveAnalysisRun", "a measurement was under way: {held:#}");
    yard.act("argo_rollout", act("promote")).await;
    becomes(&yard, "Paused", Some(2)).await;
    let ended = yard.read("argo_get", json!({ "kind": "analysisrun", "name": run })).await;
    assert_eq!(
        (&ended["phase"], &ended["trigger"], &ended["step"]),
        (&json!("Inconclusive"), &json!("Step"), &json!("1")),
        "{ended:#}"
    );

    yard.act("argo_rollout", act("promote")).await;
    let stopped = becomes(&yard, "Degraded", None).await;
    assert!(
        stopped["aborted"] == true && stopped["message"].as_str().unwrap().contains("failed (1) > failureLimit (0)"),
        "{stopped:#}"
    );
    let runs = yard.read("argo_get", json!({ "kind": "analysisrun", "rollout": "web" })).await;
    assert_eq!((&runs["count"], &runs["items"][0]["phase"]), (&json!(2), &json!("Failed")), "{runs:#}");
    let over = json!({ "action": "terminate", "kind": "analysisrun", "name": runs["items"][0]["name"] });
    assert_eq!(yard.refused("argo_analysis", over).await["details"]["cause"], "already_finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn blue_and_green_are_switched_and_pods_restarted() {
    let yard = Yard::open().await;
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "name": "http", "port": 80 }] } });
    yard.make(&[service]).await;
    first(&yard, &json!({ "blueGreen": { "activeService": "web", "autoPromotionEnabled": false } })).await;
    yard.act("argo_rollout", image("2.0")).await;
    let waiting = becomes(&yard, "Paused", None).await;
    assert_eq!((&waiting["message"], &waiting["strategy"]), (&json!("BlueGreenPause"), &json!("blue-green")));

    let run = yard.ask("argo_rollout", act("promote")).await;
    let shown = yard.shown(&run).await;
    let text = shown["preview"]["text"].as_str().unwrap();
    assert!(text.contains("service web switches from revision 1") && text.contains("to revision 2"), "{text}");
    assert_eq!(yard.sign(&run).await["state"], "succeeded");
    becomes(&yard, "Healthy", None).await;
    let selector = yard.field("Service", "web", "spec.selector").await;
    let serves = yard.field("Rollout", "web", "status.stableRS").await;
    assert_eq!(selector["rollouts-pod-template-hash"], serves);

    let told = yard.act("argo_rollout", act("restart")).await;
    assert_eq!(told["noop"], false);
    let wanted = yard.field("Rollout", "web", "spec.restartAt").await;
    until("every pod to be a new one", async || {
        let status = yard.field("Rollout", "web", "status").await;
        (status["restartedAt"] == wanted).then_some(())
    })
    .await;
}

/// What `dev` has to show: a canary that waits for somebody.
#[tokio::test(flavor = "multi_thread")]
async fn the_built_in_cluster_has_a_canary_to_promote() {
    let yard = Draft::built_in().await;
    let found = yard.read("argo_get", json!({})).await;
    assert_eq!(
        (&found["items"][0]["name"], &found["items"][0]["phase"]),
        (&json!("search"), &json!("Paused")),
        "{found:#}"
    );

    let told = yard.act("argo_rollout", json!({ "action": "promote", "name": "search" })).await;

    assert_eq!((&told["step_from"], &told["step_to"]), (&json!(2), &json!(3)), "{told:#}");
    let waited = json!({ "kind": "rollouts", "name": "search", "until": "status.currentStepIndex=4", "timeout_s": 4 });
    until("the next pause", async || (yard.read("k8s_wait", waited.clone()).await["met"] == true).then_some(())).await;
}
