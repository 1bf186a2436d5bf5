//! Rollouts of Argo: moved by the patches that move real ones, and by nothing else.

use serde_json::{Value, json};

use super::support::Cluster;

const ROLLOUTS: &str = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts";
const WEB: &str = "/apis/argoproj.io/v1alpha1/namespaces/shop/rollouts/web";

fn template(tag: &str) -> Value {
    json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "app", "image": format!("app:{tag}") }] } })
}

/// A Rollout at its first version, healthy, and then told to have its second.
async fn updating(steps: Value) -> Cluster {
    let cluster = Cluster::empty().await;
    let spec = json!({
        "replicas": 4, "selector": { "matchLabels": { "app": "web" } }, "template": template("1"),
        "strategy": { "canary": { "steps": steps } },
    });
    let metadata = json!({ "name": "web" });
    cluster
        .create(
            ROLLOUTS,
            &json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": spec }),
        )
        .await;
    becomes(&cluster, "Healthy", None).await;
    change(&cluster, json!({ "spec": { "template": template("2") } })).await;
    cluster
}

async fn change(cluster: &Cluster, change: Value) {
    let path = if change.get("status").is_some() { format!("{WEB}/status") } else { WEB.to_owned() };
    let (code, said) = cluster.patch(&path, "merge", &change).await;
    assert_eq!(code, 200, "{said}");
}

async fn becomes(cluster: &Cluster, phase: &str, step: Option<u64>) -> Value {
    let is_there = |rollout: &Value| {
        let status = &rollout["status"];
        let generation = rollout["metadata"]["generation"].to_string();
        let seen = status["observedGeneration"].as_str() == Some(generation.as_str());
        seen && status["phase"] == phase && step.is_none_or(|step| status["currentStepIndex"] == step)
    };
    cluster.until_path(WEB, is_there).await
}

#[tokio::test]
async fn a_pause_stands_until_its_condition_is_gone() {
    let cluster = updating(json!([{ "setWeight": 25 }, { "pause": {} }, { "setWeight": 75 }, { "pause": {} }])).await;
    let paused = becomes(&cluster, "Paused", Some(1)).await;
    change(&cluster, json!({ "status": { "pauseConditions": null } })).await;
    let further = becomes(&cluster, "Paused", Some(3)).await;
    change(&cluster, json!({ "status": { "pauseConditions": null } })).await;
    let healthy = becomes(&cluster, "Healthy", Some(4)).await;

    assert_eq!(
        (&paused["status"]["message"], &paused["status"]["controllerPause"]),
        (&json!("CanaryPauseStep"), &json!(true))
    );
    assert_eq!((&paused["status"]["updatedReplicas"], &further["status"]["updatedReplicas"]), (&json!(1), &json!(3)));
    assert_ne!(paused["status"]["stableRS"], paused["status"]["currentPodHash"]);
    assert_eq!(healthy["status"]["stableRS"], healthy["status"]["currentPodHash"]);
    assert!(healthy["status"].get("controllerPause").is_none());
}

#[tokio::test]
async fn a_pause_with_a_duration_ends_by_itself() {
    let cluster = updating(json!([{ "setWeight": 50 }, { "pause": { "duration": "1s" } }])).await;
    let healthy = becomes(&cluster, "Healthy", Some(2)).await;
    assert_eq!(healthy["metadata"]["annotations"]["rollout.argoproj.io/revision"], "2");
}

#[tokio::test]
async fn an_abort_brings_the_stable_version_back_and_a_retry_begins_anew() {
    let cluster = updating(json!([{ "setWeight": 50 }, { "pause": {} }])).await;
    becomes(&cluster, "Paused", Some(1)).await;
    change(&cluster, json!({ "status": { "abort": true } })).await;
    let aborted = becomes(&cluster, "Degraded", Some(0)).await;
    cluster.until_path(WEB, |rollout| rollout["status"]["updatedReplicas"] == 0).await;
    change(&cluster, json!({ "status": { "abort": false } })).await;
    becomes(&cluster, "Paused", Some(1)).await;
    change(&cluster, json!({ "status": { "promoteFull": true } })).await;
    let healthy = becomes(&cluster, "Healthy", Some(2)).await;

    assert_eq!(aborted["status"]["message"], "RolloutAborted: Rollout aborted update to revision 2");
    assert!(aborted["status"]["pauseConditions"].is_null() && aborted["status"]["abortedAt"].is_string());
    assert!(healthy["status"].get("promoteFull").is_none() && healthy["status"].get("abortedAt").is_none());
}

#[tokio::test]
async fn going_back_to_the_stable_template_is_a_new_revision_without_steps() {
    let cluster = updating(json!([{ "setWeight": 50 }, { "pause": {} }])).await;
    becomes(&cluster, "Paused", Some(1)).await;
    change(&cluster, json!({ "spec": { "template": template("1") } })).await;
    let healthy = becomes(&cluster, "Healthy", Some(2)).await;

    assert_eq!(healthy["metadata"]["annotations"]["rollout.argoproj.io/revision"], "3");
    let sets = cluster.get("/apis/apps/v1/namespaces/shop/replicasets").await;
    assert_eq!(sets["items"].as_array().unwrap().len(), 2, "the old set came back");
}

#[tokio::test]
async fn a_person_s_pause_keeps_a_new_template_from_coming_in() {
    let cluster = updating(json!([{ "setWeight": 50 }, { "pause": {} }])).await;
    becomes(&cluster, "Paused", Some(1)).await;
    change(&cluster, json!({ "spec": { "paused": true, "template": template("3") } })).await;
    let held = becomes(&cluster, "Paused", None).await;
    let sets = cluster.get("/apis/apps/v1/namespaces/shop/replicasets").await;

    assert_eq!(held["status"]["message"], "manually paused");
    assert_eq!(sets["items"].as_array().unwrap().len(), 2, "no set of the third template");
}

#[tokio::test]
async fn an_analysis_without_conclusion_waits_for_somebody() {
    let cluster = Cluster::empty().await;
    cluster
        .create(
            "/apis/argoproj.io/v1alpha1/namespaces/shop/analysistemplates",
            &json!({
                "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
                "metadata": { "name": "unsure", "annotations": { "sandbox/behave": "inconclusive" } },
                "spec": { "metrics": [{ "name": "one", "provider": { "web": {} } }] },
            }),
        )
        .await;
    let spec = |tag: &str| {
        json!({
            "replicas": 1, "selector": { "matchLabels": { "app": "web" } }, "template": template(tag),
            "strategy": { "canary": { "steps": [{ "analysis": { "templates": [{ "templateName": "unsure" }] } }, { "pause": {} }] } },
        })
    };
    cluster.create(ROLLOUTS, &json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": "web" }, "spec": spec("1") })).await;
    becomes(&cluster, "Healthy", None).await;
    change(&cluster, json!({ "spec": spec("2") })).await;
    let held = becomes(&cluster, "Paused", Some(0)).await;
    change(&cluster, json!({ "status": { "pauseConditions": null, "controllerPause": false, "currentStepIndex": 1 } }))
        .await;
    let further = cluster.until_path(WEB, |rollout| rollout["status"]["message"] == "CanaryPauseStep").await;

    assert_eq!(held["status"]["message"], "InconclusiveAnalysisRun");
    assert_eq!(held["status"]["canary"]["currentStepAnalysisRunStatus"]["status"], "Inconclusive");
    assert_eq!(further["status"]["currentStepIndex"], 1);
    assert!(further["status"]["canary"].get("currentStepAnalysisRunStatus").is_none(), "that step is over");
}
