//! Another template: back to a revision, other images, and workloads that lend theirs.

use crate::argo::world::{World, approval, run};
use catalog::ProbeResult;
use domain::Code;
use serde_json::{Value, json};

fn undo(to: Option<u32>) -> Value {
    let mut args = json!({ "action": "undo", "name": "search" });
    if let Some(to) = to {
        args["to_revision"] = json!(to);
    }
    args
}

fn image(rollout: &Value) -> String {
    rollout.pointer("/spec/template/spec/containers/0/image").unwrap().as_str().unwrap().to_owned()
}

#[tokio::test]
async fn going_back_to_the_stable_version_needs_no_steps() {
    let world = World::shop().await;

    let shown = world.preview("argo_rollout", undo(None)).await.unwrap();
    let told = world.run("argo_rollout", undo(None)).await.unwrap();
    let healthy = world.becomes("search", "Healthy").await;

    for line in ["search:4.2.0 -> registry.sandbox/shop/search:4.1.0", "no steps are run", "+", "-"] {
        assert!(shown.text.contains(line), "{line} in\n{}", shown.text);
    }
    assert_eq!((shown.summary.as_str(), &told["revision"]), ("undo Rollout shop/search to revision 1", &json!(1)));
    assert_eq!(
        (&healthy["revision"], &healthy["weight"]),
        (&json!(3), &json!(100)),
        "kept as a new revision: {healthy}"
    );
    assert!(image(&world.get("rollouts", "search").await).ends_with(":4.1.0"));
    assert!(matches!(world.probe("argo_rollout", undo(Some(3)), approval(run())).await, ProbeResult::Done(_)));
    let again = world.run("argo_rollout", undo(Some(3))).await.unwrap();
    assert_eq!(again["noop"], true, "{again}");
}

#[tokio::test]
async fn a_revision_that_is_not_there_is_told() {
    let world = World::shop().await;
    let refused = world.preview("argo_rollout", undo(Some(9))).await.unwrap_err();
    assert_eq!(
        (refused.code, refused.next.as_deref()),
        (kubernetes::codes::REVISION_NOT_FOUND, Some("choose from: 2, 1"))
    );
    assert_eq!(world.run("argo_rollout", undo(Some(9))).await.unwrap_err().code, kubernetes::codes::REVISION_NOT_FOUND);
}

/// A canary that waits after its first step, with a variable that nobody should read.
async fn quick(world: &World, tag: &str, token: &str) {
    let labels = json!({ "app": "quick" });
    let container =
        json!({ "name": "app", "image": format!("app:{tag}"), "env": [{ "name": "API_TOKEN", "value": token }] });
    let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
    let steps = json!([{ "setWeight": 50 }, { "pause": {} }]);
    let spec = json!({ "replicas": 2, "selector": { "matchLabels": labels }, "template": template, "strategy": { "canary": { "steps": steps } } });
    match tag {
        "1" => {
            let metadata = json!({ "name": "quick", "namespace": "shop" });
            world.make(json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": metadata, "spec": spec })).await;
            world.becomes("quick", "Healthy").await;
        }
        _ => {
            world.change("rollouts", "quick", json!({ "spec": spec })).await;
            world.becomes("quick", "Paused").await;
        }
    }
}

#[tokio::test]
async fn secrets_of_a_template_are_written_back_and_never_shown() {
    let world = World::shop().await;
    quick(&world, "1", "hunter2hunter2").await;
    quick(&world, "2", "other-value-here").await;
    let back = |to: u32| json!({ "action": "undo", "name": "quick", "to_revision": to });

    let known = world.run("argo_history", json!({ "name": "quick", "revision": 1 })).await.unwrap();
    let shown = world.preview("argo_rollout", back(1)).await.unwrap();
    world.run("argo_rollout", back(1)).await.unwrap();
    let healthy = world.becomes("quick", "Healthy").await;

    assert!(known.to_string().contains("API_TOKEN") && !known.to_string().contains("hunter2"), "{known}");
    assert!(shown.text.contains("app:2") && !shown.text.contains("hunter2"), "{}", shown.text);
    // Were it the mask that had been written, the old ReplicaSet would not be the one of this template.
    assert_eq!(
        (&healthy["revision"], &healthy["replica_sets"].as_array().unwrap().len()),
        (&json!(3), &2),
        "{healthy}"
    );
    assert_eq!(world.run("argo_rollout", back(3)).await.unwrap()["noop"], true);
}

#[tokio::test]
async fn an_image_is_set_where_its_container_stands() {
    let world = World::shop().await;
    quick(&world, "1", "x").await;
    let args = |images: Value| json!({ "action": "set_image", "name": "quick", "images": images });

    let shown = world.preview("argo_rollout", args(json!({ "app": "app:2" }))).await.unwrap();
    world.run("argo_rollout", args(json!({ "*": "app:2" }))).await.unwrap();
    let again = world.run("argo_rollout", args(json!({ "app": "app:2" }))).await.unwrap();
    let wrong = world.run("argo_rollout", args(json!({ "apt": "a:1" }))).await.unwrap_err();

    assert!(shown.text.contains("image of app: app:1 -> app:2"), "{}", shown.text);
    assert!(shown.text.contains("steps: set weight 50%; pause until promoted"), "{}", shown.text);
    assert_eq!(again["noop"], true);
    assert_eq!((wrong.code, wrong.did_you_mean), (kubernetes::codes::CONTAINER_NOT_FOUND, vec!["app".to_owned()]));
    let paused = world.becomes("quick", "Paused").await;
    assert_eq!((&paused["revision"], &paused["current_step"]), (&json!(2), &json!(1)), "the steps run: {paused}");
    assert!(matches!(
        world.probe("argo_rollout", args(json!({ "app": "app:2" })), approval(run())).await,
        ProbeResult::Done(_)
    ));
}

#[tokio::test]
async fn a_workload_that_lends_its_template_is_what_is_changed() {
    let world = World::shop().await;
    world.change("deployments", "catalog", json!({ "spec": { "replicas": 0 } })).await;
    let reference = |kind: &str, version: &str| json!({ "apiVersion": version, "kind": kind, "name": "catalog" });
    let rollout = |name: &str, reference: Value| {
        json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": name, "namespace": "shop" },
            "spec": { "replicas": 1, "selector": { "matchLabels": { "app": "catalog" } }, "workloadRef": reference, "strategy": { "canary": {} } },
        })
    };
    world.make(rollout("lent", reference("Deployment", "apps/v1"))).await;
    world.make(rollout("odd", reference("StatefulSet", "apps/v1"))).await;
    world.becomes("lent", "Healthy").await;
    let args = |name: &str| json!({ "action": "set_image", "name": name, "images": { "catalog": "registry.sandbox/shop/catalog:2.0" } });

    world.run("argo_rollout", args("lent")).await.unwrap();
    let refused = world.run("argo_rollout", args("odd")).await.unwrap_err();
    assert!(image(&world.get("deployments", "catalog").await).ends_with("catalog:2.0"));
    assert_eq!(refused.code, kubernetes::codes::UNSUPPORTED_WORKLOAD);
    world.becomes("lent", "Healthy").await;

    let back = json!({ "action": "undo", "name": "lent" });
    let shown = world.preview("argo_rollout", back.clone()).await.unwrap();
    world.run("argo_rollout", back).await.unwrap();
    assert!(shown.text.contains("written to: Deployment catalog"), "{}", shown.text);
    assert!(image(&world.get("deployments", "catalog").await).ends_with("catalog:1.9.2"));
    let odd = json!({ "action": "undo", "name": "odd" });
    assert_eq!(world.run("argo_rollout", odd).await.unwrap_err().code, kubernetes::codes::UNSUPPORTED_WORKLOAD);
}

#[tokio::test]
async fn arguments_of_another_action_are_refused() {
    let world = World::shop().await;
    for args in [
        json!({ "action": "promote", "name": "search", "to_revision": 1 }),
        json!({ "action": "undo", "name": "search", "images": { "a": "b:1" } }),
        json!({ "action": "set_image", "name": "search" }),
        json!({ "action": "set_image", "name": "search", "images": {} }),
        json!({ "action": "undo", "name": "search", "to_revision": 0 }),
    ] {
        assert_eq!(world.run("argo_rollout", args.clone()).await.unwrap_err().code, Code::InvalidArgument, "{args}");
    }
}
