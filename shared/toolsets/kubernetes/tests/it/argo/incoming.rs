//! What an action makes run is judged like any other write, although the action itself only moves a Rollout on.

use crate::argo::world::{World, until};
use kubernetes::client::{ImagePattern, WorkloadBounds};
use kubernetes::codes::{IMAGE_DENIED, REPLICAS_DENIED};
use sandbox::Seed;
use serde_json::{Value, json};

/// The shop of a tenant that runs its own images, and five replicas at most.
async fn bounded() -> World {
    World::with(Seed::shop(), |config| {
        let images = ["registry.sandbox/*", "docker.io/library/*"].map(|text| ImagePattern::parse(text).unwrap());
        config.bounds = WorkloadBounds { images: Some(images.to_vec()), most_replicas: Some(5) };
    })
    .await
}

fn pods(container: &Value) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [container] } })
}

fn plain(image: &str) -> Value {
    json!({ "name": "app", "image": image })
}

fn privileged() -> Value {
    json!({ "name": "app", "image": "app:2", "command": ["sleep", "4242"], "securityContext": { "privileged": true } })
}

fn act(action: &str) -> Value {
    json!({ "action": action, "name": "web" })
}

fn rollout(spec: Value) -> Value {
    let metadata = json!({ "name": "web", "namespace": "shop" });
    json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": spec })
}

/// A canary that waits for a person with this container, after these steps.
async fn waiting(world: &World, first: &Value, then: &Value, steps: Value) {
    let spec = json!({
        "replicas": 2, "selector": { "matchLabels": { "app": "web" } }, "template": pods(first),
        "strategy": { "canary": { "steps": steps } },
    });
    world.make(rollout(spec)).await;
    world.becomes("web", "Healthy").await;
    world.change("rollouts", "web", json!({ "spec": { "template": pods(then) } })).await;
    world.becomes("web", "Paused").await;
}

fn pause() -> Value {
    json!([{ "setWeight": 50 }, { "pause": {} }, { "setWeight": 100 }])
}

#[tokio::test]
async fn what_comes_to_run_is_shown_and_its_dangers_stand_first() {
    let world = World::shop().await;
    waiting(&world, &plain("app:1"), &privileged(), pause()).await;

    for action in ["promote", "promote_full", "restart"] {
        let shown = world.preview("argo_rollout", act(action)).await.unwrap();
        assert_eq!(shown.warnings[0], "Rollout shop/web: container app would be privileged.", "{action}");
        assert!(shown.text.contains("4242"), "{action}: {}", shown.text);
    }
    for harmless in ["pause", "abort", "undo"] {
        let shown = world.preview("argo_rollout", act(harmless)).await.unwrap();
        assert!(!shown.warnings.iter().any(|warning| warning.contains("privileged")), "{harmless}: {shown:?}");
    }

    // Once it serves it is no news; the way back to it after another version is.
    world.run("argo_rollout", act("promote")).await.unwrap();
    world.becomes("web", "Healthy").await;
    let restart = world.preview("argo_rollout", act("restart")).await.unwrap();
    assert!(!restart.warnings.iter().any(|warning| warning.contains("privileged")), "{restart:?}");
    let back =
        world.preview("argo_rollout", json!({ "action": "undo", "name": "web", "to_revision": 1 })).await.unwrap();
    assert!(!back.warnings.iter().any(|warning| warning.contains("privileged")), "{back:?}");
    world.change("rollouts", "web", json!({ "spec": { "template": pods(&plain("app:3")) } })).await;
    world.becomes("web", "Paused").await;
    world.run("argo_rollout", act("promote")).await.unwrap();
    world.becomes("web", "Healthy").await;
    let back =
        world.preview("argo_rollout", json!({ "action": "undo", "name": "web", "to_revision": 2 })).await.unwrap();
    assert_eq!(back.warnings[0], "Rollout shop/web: container app would be privileged.", "{back:?}");
}

#[tokio::test]
async fn a_version_beyond_the_tenants_bounds_can_be_stopped_and_not_brought_in() {
    let world = bounded().await;
    waiting(&world, &plain("app:1"), &plain("evil.example/app:2"), pause()).await;

    for action in ["promote", "promote_full", "restart"] {
        let refused = world.preview("argo_rollout", act(action)).await.unwrap_err();
        assert_eq!(refused.code, IMAGE_DENIED, "{action}: {refused:?}");
    }
    assert!(world.preview("argo_rollout", act("abort")).await.is_ok());
    world.run("argo_rollout", act("abort")).await.unwrap();
    world.becomes("web", "Degraded").await;
    assert_eq!(world.preview("argo_rollout", act("retry")).await.unwrap_err().code, IMAGE_DENIED);
    assert!(world.preview("argo_rollout", act("undo")).await.is_ok(), "back to what is allowed");
}

#[tokio::test]
async fn pods_that_only_a_step_adds_count_as_replicas() {
    let world = bounded().await;
    let steps = json!([{ "setWeight": 50 }, { "pause": {} }, { "setCanaryScale": { "replicas": 6 } }]);
    waiting(&world, &plain("app:1"), &plain("app:2"), steps).await;
    assert_eq!(world.preview("argo_rollout", act("promote")).await.unwrap_err().code, REPLICAS_DENIED);
}

#[tokio::test]
async fn a_template_that_a_workload_lends_is_judged_and_one_that_cannot_be_read_is_a_warning() {
    let world = bounded().await;
    let lent = |kind: &str, version: &str| {
        rollout(json!({
            "replicas": 1, "selector": { "matchLabels": { "app": "catalog" } }, "strategy": { "canary": {} },
            "workloadRef": { "apiVersion": version, "kind": kind, "name": "catalog" },
        }))
    };
    world.make(lent("Deployment", "apps/v1")).await;
    assert!(world.preview("argo_rollout", act("restart")).await.is_ok());
    let evil = json!([{ "name": "catalog", "image": "evil.example/catalog" }]);
    world.change("deployments", "catalog", json!({ "spec": { "template": { "spec": { "containers": evil } } } })).await;
    assert_eq!(world.preview("argo_rollout", act("restart")).await.unwrap_err().code, IMAGE_DENIED);

    let reference = json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "catalog" });
    world.change("rollouts", "web", json!({ "spec": { "workloadRef": reference } })).await;
    let shown = world.preview("argo_rollout", act("restart")).await.unwrap();
    assert!(
        shown.warnings[0].contains("StatefulSet catalog") && shown.warnings[0].contains("does not see what would run"),
        "{:?}",
        shown.warnings
    );
}

/// An analysis template whose one metric is this pod.
fn by_job(name: &str, container: &Value) -> Value {
    let pod = json!({ "restartPolicy": "Never", "containers": [container] });
    let job = json!({ "spec": { "backoffLimit": 0, "template": { "spec": pod } } });
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": { "name": name, "namespace": "shop" },
        "spec": { "metrics": [{ "name": "job", "provider": { "job": job } }] },
    })
}

#[tokio::test]
async fn analyses_on_the_way_are_judged_by_what_they_run() {
    let world = bounded().await;
    let named = |name: &str| json!({ "analysis": { "templates": [{ "templateName": name }] } });
    let steps = json!([{ "setWeight": 50 }, { "pause": {} }, named("by-job"), named("elsewhere")]);
    world.make(by_job("by-job", &privileged())).await;
    waiting(&world, &plain("app:1"), &plain("app:2"), steps).await;

    let shown = world.preview("argo_rollout", act("promote")).await.unwrap();
    assert_eq!(
        shown.warnings[..2],
        [
            "analysis template by-job: container app would be privileged.".to_owned(),
            "The analysis template elsewhere cannot be read: this service does not see what it would run.".to_owned()
        ]
    );
    assert!(shown.text.contains("analysis template by-job runs") && shown.text.contains("4242"));
    let full = world.preview("argo_rollout", act("promote_full")).await.unwrap();
    assert!(!full.warnings.iter().any(|warning| warning.contains("by-job")), "all analyses are skipped: {full:?}");

    world.make(by_job("elsewhere", &plain("evil.example/tool"))).await;
    assert_eq!(world.preview("argo_rollout", act("promote")).await.unwrap_err().code, IMAGE_DENIED);
}

#[tokio::test]
async fn an_experiment_that_starts_again_is_judged_by_what_it_starts() {
    let world = bounded().await;
    let experiment = |name: &str, template: Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Experiment", "metadata": { "name": name, "namespace": "shop" },
            "spec": { "templates": [template] }, "status": { "phase": "Failed" },
        })
    };
    let retry = |name: &str| json!({ "action": "retry", "kind": "experiment", "name": name });
    for (name, replicas, container) in
        [("host", 1, privileged()), ("evil", 1, plain("evil.example/app")), ("many", 6, plain("app:1"))]
    {
        world.make(experiment(name, json!({ "name": "a", "replicas": replicas, "template": pods(&container) }))).await;
        world.change("experiments", name, json!({ "status": { "phase": "Failed" } })).await;
    }

    let shown = world.preview("argo_analysis", retry("host")).await.unwrap();
    assert_eq!(shown.warnings[0], "Experiment shop/host: container app would be privileged.");
    assert!(shown.text.contains("4242"), "{}", shown.text);
    assert_eq!(world.preview("argo_analysis", retry("evil")).await.unwrap_err().code, IMAGE_DENIED);
    assert_eq!(world.preview("argo_analysis", retry("many")).await.unwrap_err().code, REPLICAS_DENIED);
}

#[tokio::test]
async fn ending_an_analysis_is_judged_by_the_version_that_then_goes_on() {
    let world = World::shop().await;
    world.make(by_job("slow", &json!({ "name": "main", "image": "tool:1", "command": ["sleep", "600"] }))).await;
    let steps = json!([{ "pause": { "duration": 1 } }, { "analysis": { "templates": [{ "templateName": "slow" }] } }]);
    waiting(&world, &plain("app:1"), &privileged(), steps).await;
    let mut name = String::new();
    until("the analysis", async || {
        let runs = world.run("argo_get", json!({ "kind": "analysisrun", "rollout": "web" })).await.unwrap();
        name = runs["items"][0]["name"].as_str().unwrap_or_default().to_owned();
        runs["items"][0]["phase"] == "Running"
    })
    .await;
    let args = json!({ "action": "terminate", "kind": "analysisrun", "name": name });
    let shown = world.preview("argo_analysis", args).await.unwrap();
    assert_eq!(shown.warnings[0], "Rollout shop/web: container app would be privileged.", "{:?}", shown.warnings);
}
