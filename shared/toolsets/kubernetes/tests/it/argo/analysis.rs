//! Ending an analysis early, and running an experiment again.

use crate::argo::world::{World, approval, run, until};
use catalog::ProbeResult;
use serde_json::{Value, json};

fn act(action: &str, kind: &str, name: &str) -> Value {
    json!({ "action": action, "kind": kind, "name": name })
}

/// A template whose one metric is a Job that does this.
fn template(command: &[&str]) -> Value {
    let pod =
        json!({ "restartPolicy": "Never", "containers": [{ "name": "main", "image": "tool:1", "command": command }] });
    let job = json!({ "spec": { "backoffLimit": 0, "template": { "spec": pod } } });
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": { "name": "by-job", "namespace": "shop" },
        "spec": { "metrics": [{ "name": "job", "provider": { "job": job } }] },
    })
}

/// A canary whose first step is that analysis, at its second version.
async fn tried(world: &World, command: &[&str]) {
    world.make(template(command)).await;
    let labels = json!({ "app": "tried" });
    let pods = |tag: &str| json!({ "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "app", "image": format!("app:{tag}") }] } });
    let steps = json!([{ "analysis": { "templates": [{ "templateName": "by-job" }] } }, { "pause": {} }]);
    world
        .make(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": "tried", "namespace": "shop" },
            "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": pods("1"), "strategy": { "canary": { "steps": steps } } },
        }))
        .await;
    world.becomes("tried", "Healthy").await;
    world.change("rollouts", "tried", json!({ "spec": { "template": pods("2") } })).await;
}

async fn analysis(world: &World) -> Value {
    let mut found = Value::Null;
    until("an analysis runs", async || {
        let runs = world.run("argo_get", json!({ "kind": "analysisrun", "rollout": "tried" })).await.unwrap();
        found = runs["items"][0].clone();
        found["phase"] == "Running"
    })
    .await;
    found
}

#[tokio::test]
async fn a_measurement_that_is_ended_comes_to_no_conclusion_and_a_promote_passes_it_over() {
    let world = World::shop().await;
    tried(&world, &["sleep", "600"]).await;
    let running = analysis(&world).await;
    let name = running["name"].as_str().unwrap();
    let args = act("terminate", "analysisrun", name);

    let shown = world.preview("argo_analysis", args.clone()).await.unwrap();
    let unknown = world.probe("argo_analysis", args.clone(), approval(run())).await;
    world.run("argo_analysis", args.clone()).await.unwrap();
    let held = world.becomes("tried", "Paused").await;
    let promote = json!({ "action": "promote", "name": "tried" });
    let asked = world.preview("argo_rollout", promote.clone()).await.unwrap();
    world.run("argo_rollout", promote).await.unwrap();
    until("the next pause", async || world.rollout("tried").await["message"] == "CanaryPauseStep").await;
    let further = world.rollout("tried").await;

    assert!(
        shown.text.contains("belongs to: Rollout tried") && shown.text.contains("metric job: Running"),
        "{}",
        shown.text
    );
    assert!(shown.warnings[0].contains("Rollout tried may go on unchecked"), "{:?}", shown.warnings);
    assert_eq!(unknown, ProbeResult::Unknown);
    assert_eq!((&held["message"], &held["current_step"]), (&json!("InconclusiveAnalysisRun"), &json!(0)), "{held:#}");
    assert!(asked.warnings[0].contains("no conclusion"), "{:?}", asked.warnings);
    assert_eq!((&further["message"], &further["current_step"]), (&json!("CanaryPauseStep"), &json!(1)), "{further:#}");
    assert!(matches!(world.probe("argo_analysis", args.clone(), approval(run())).await, ProbeResult::Done(_)));
    let late = world.preview("argo_analysis", args).await.unwrap_err();
    assert_eq!(late.code, target::codes::ALREADY_FINISHED);
}

#[tokio::test]
async fn an_analysis_that_is_ended_between_two_measurements_is_successful() {
    let world = World::shop().await;
    let metric = json!({ "name": "slow", "interval": "600s", "count": 3, "provider": { "web": {} } });
    let metadata = json!({ "name": "alone", "namespace": "shop" });
    world.make(json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": metadata, "spec": { "metrics": [metric] } })).await;
    let shown = async || world.run("argo_get", json!({ "kind": "analysisrun", "name": "alone" })).await.unwrap();
    until("a first measurement", async || shown().await["metrics"][0]["ok"] == 1).await;

    world.run("argo_analysis", act("terminate", "analysisrun", "alone")).await.unwrap();

    until("its end", async || shown().await["phase"] == "Successful").await;
    assert_eq!(shown().await["message"], "Run Terminated");
}

#[tokio::test]
async fn an_analysis_that_fails_aborts_the_rollout() {
    let world = World::shop().await;
    tried(&world, &["false"]).await;

    let aborted = world.becomes("tried", "Degraded").await;

    let message = aborted["message"].as_str().unwrap();
    assert!(
        message.contains("Step-based analysis phase error/failed") && message.contains("failed (1) > failureLimit (0)"),
        "{message}"
    );
    assert_eq!(aborted["analysis_runs"][0]["phase"], "Failed");
}

#[tokio::test]
async fn a_promote_does_not_wait_for_the_analysis_of_its_step() {
    let world = World::shop().await;
    tried(&world, &["sleep", "600"]).await;
    analysis(&world).await;
    world.becomes("tried", "Progressing").await;

    let args = json!({ "action": "promote", "name": "tried" });
    let shown = world.preview("argo_rollout", args.clone()).await.unwrap();
    let told = world.run("argo_rollout", args).await.unwrap();

    assert!(shown.warnings.iter().any(|warning| warning.contains("still running")), "{:?}", shown.warnings);
    assert_eq!((&told["step_from"], &told["step_to"]), (&json!(0), &json!(1)));
    let paused = world.becomes("tried", "Paused").await;
    assert_eq!(paused["current_step"], 1);
}

#[tokio::test]
async fn only_a_failed_experiment_is_run_again() {
    let world = World::shop().await;
    let experiment = |name: &str, status: Value| {
        json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment", "metadata": { "name": name, "namespace": "shop" },
            "spec": { "templates": [{ "name": "one", "replicas": 2 }] }, "status": status })
    };
    world.make(experiment("failed", json!({ "phase": "Failed", "message": "no luck" }))).await;
    world.make(experiment("running", json!({ "phase": "Running", "templateStatuses": [{ "name": "one", "status": "Running", "readyReplicas": 1 }] }))).await;

    let shown = world.run("argo_get", json!({ "kind": "experiment", "name": "running" })).await.unwrap();
    let args = act("retry", "experiment", "failed");
    world.preview("argo_analysis", args.clone()).await.unwrap();
    let told = world.run("argo_analysis", args.clone()).await.unwrap();
    let again = world.run("argo_analysis", args.clone()).await.unwrap();

    assert_eq!((&shown["templates"][0]["ready"], &shown["phase"]), (&json!("1/2"), &json!("Running")), "{shown}");
    assert_eq!((&told["phase"], &again["phase"]), (&json!("Pending"), &json!("Pending")));
    assert!(world.get("experiments", "failed").await.get("status").is_none());
    assert!(matches!(world.probe("argo_analysis", args, approval(run())).await, ProbeResult::Done(_)));
    for (kind, name) in [("experiment", "running"), ("analysisrun", "any")] {
        let refused = world.preview("argo_analysis", act("retry", kind, name)).await.unwrap_err();
        assert_eq!(refused.code, target::codes::UNSUPPORTED, "{kind}: {refused}");
    }
    world.run("argo_analysis", act("terminate", "experiment", "running")).await.unwrap();
    assert_eq!(world.get("experiments", "running").await["spec"]["terminate"], true);
}
