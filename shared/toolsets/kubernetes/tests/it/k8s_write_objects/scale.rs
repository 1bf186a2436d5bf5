//! `k8s_scale`.

use crate::k8s_write_objects::world::{World, run, until};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

fn to(name: &str, replicas: u32) -> Value {
    json!({ "kind": "Deployment", "name": name, "replicas": replicas })
}

async fn replicas(world: &World, name: &str) -> u64 {
    world.get("Deployment", name).await["spec"]["replicas"].as_u64().unwrap()
}

#[tokio::test]
async fn a_workload_is_scaled_once_and_the_answer_says_from_where() {
    let world = World::shop().await;
    let before = world.writes();

    let answer = world.run("k8s_scale", to("catalog", 5)).await.unwrap();
    assert_eq!((&answer["from"], &answer["to"], answer.get("hpa")), (&json!(2), &json!(5), None));
    assert_eq!(replicas(&world, "catalog").await, 5);

    // Carried out again, as after a crash, it has the effect of one.
    let again = world.run("k8s_scale", to("catalog", 5)).await.unwrap();
    assert_eq!((&again["from"], &again["to"]), (&json!(5), &json!(5)));
    assert_eq!(world.writes_since(before), ["PATCH shop/deployments/catalog/scale"]);
}

#[tokio::test]
async fn the_preview_says_what_the_cluster_adds_to_it() {
    let world = World::shop().await;
    let before = world.writes();

    let drawn = world.preview("k8s_scale", to("frontend", 6)).await.unwrap();
    assert_eq!(drawn.summary, "scale Deployment shop/frontend from 3 to 6 replicas");
    assert!(drawn.text.starts_with("cluster main (simulated)\nscale Deployment shop/frontend, uid "), "{}", drawn.text);
    assert!(drawn.text.contains("replicas 3 → 6\nready now: 3"), "{}", drawn.text);
    assert_eq!(drawn.warnings, ["Autoscaler frontend (3 to 8 replicas) sets the replicas too and would undo it."]);

    let drawn = world.preview("k8s_scale", to("checkout", 0)).await.unwrap();
    assert_eq!(
        drawn.warnings,
        ["0 replicas stops the service.", "It goes below what budget checkout demands (minAvailable 2)."]
    );
    assert_eq!(world.writes_since(before), Vec::<String>::new(), "a preview changes nothing");
}

#[tokio::test]
async fn a_yes_outlives_a_status_and_not_another_number() {
    let world = World::shop().await;
    let shown = world.preview("k8s_scale", to("catalog", 5)).await.unwrap();

    world.change_status("Deployment", "catalog", json!({ "status": { "observedGeneration": 77 } })).await;
    let same = world.last_look("k8s_scale", to("catalog", 5)).await.unwrap();
    assert_eq!(same.fingerprint, shown.fingerprint);

    world.run("k8s_scale", to("catalog", 3)).await.unwrap();
    let other = world.last_look("k8s_scale", to("catalog", 5)).await.unwrap();
    assert_ne!(other.fingerprint, shown.fingerprint);
    assert_ne!(other.text, shown.text, "the approver would read something else");
}

#[tokio::test]
async fn what_the_caller_believes_must_be_so() {
    let world = World::shop().await;
    let before = world.writes();
    let mut args = to("catalog", 5);
    args["current_replicas"] = json!(4);

    let refused = world.preview("k8s_scale", args.clone()).await.unwrap_err();
    assert_eq!((refused.code, refused.details), (kubernetes::codes::REPLICAS_CHANGED, Some(json!({ "replicas": 2 }))));
    assert_eq!(world.run("k8s_scale", args.clone()).await.unwrap_err().code, kubernetes::codes::REPLICAS_CHANGED);
    assert_eq!(world.writes(), before);

    args["current_replicas"] = json!(2);
    world.run("k8s_scale", args).await.unwrap();
    assert_eq!(replicas(&world, "catalog").await, 5);
}

#[tokio::test]
async fn what_is_not_there_or_cannot_be_scaled_is_named() {
    let world = World::shop().await;
    let refused = world.preview("k8s_scale", to("frontned", 5)).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["frontend".to_owned()]));
    let map = json!({ "kind": "ConfigMap", "name": "shop-config", "replicas": 1 });
    assert_eq!(world.run("k8s_scale", map).await.unwrap_err().code, kubernetes::codes::NOT_SCALABLE);
    let unknown = json!({ "kind": "Deploymint", "name": "catalog", "replicas": 1 });
    assert_eq!(world.preview("k8s_scale", unknown).await.unwrap_err().code, kubernetes::codes::UNKNOWN_KIND);
}

#[tokio::test]
async fn namespaces_outside_the_list_and_protected_ones_are_left_alone() {
    let world = World::limited(&["platform", "shop"]).await;
    let elsewhere = json!({ "kind": "Deployment", "name": "x", "namespace": "default", "replicas": 1 });
    assert_eq!(
        world.preview("k8s_scale", elsewhere.clone()).await.unwrap_err().code,
        kubernetes::codes::NAMESPACE_DENIED
    );
    assert_eq!(world.run("k8s_scale", elsewhere).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    world.preview("k8s_scale", to("catalog", 3)).await.unwrap();

    let world = World::protected().await;
    let before = world.writes();
    assert_eq!(world.preview("k8s_scale", to("catalog", 3)).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!(world.run("k8s_scale", to("catalog", 3)).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!(world.writes(), before);
}

#[tokio::test]
async fn k2_a_lost_answer_is_unknown_and_the_probe_settles_it() {
    for (harm, done) in [(ClusterHarm::CutAfter, true), (ClusterHarm::LateAnswer(504), true), (ClusterHarm::Cut, false)]
    {
        let world = World::shop().await;
        let fault =
            ClusterFault { method: Some("PATCH".into()), path: "catalog/scale".into(), times: 1, harm: harm.clone() };
        world.sandbox.plant(fault);
        let failure = world.run("k8s_scale", to("catalog", 5)).await.unwrap_err();
        assert_eq!(failure.code, Code::OutcomeUnknown, "{harm:?}");
        let probe = world.probe("k8s_scale", to("catalog", 5), run()).await;
        assert_eq!(probe, if done { ProbeResult::Done(None) } else { ProbeResult::NotDone }, "{harm:?}");
    }
}

#[tokio::test]
async fn with_an_autoscaler_another_number_proves_nothing() {
    let world = World::shop().await;
    assert_eq!(world.probe("k8s_scale", to("frontend", 7), run()).await, ProbeResult::Unknown);
    assert_eq!(world.probe("k8s_scale", to("catalog", 7), run()).await, ProbeResult::NotDone);
    assert_eq!(world.probe("k8s_scale", to("gone", 7), run()).await, ProbeResult::Unknown);
}

#[tokio::test]
async fn a_status_may_move_meanwhile_and_the_replicas_may_not() {
    let world = World::shop().await;
    let status = world.change_status("Deployment", "catalog", json!({ "status": { "observedGeneration": 77 } }));
    world.meanwhile("catalog/scale", world.run("k8s_scale", to("catalog", 5)), status).await.unwrap();
    assert_eq!(replicas(&world, "catalog").await, 5);

    let world = World::shop().await;
    let change = world.change("Deployment", "catalog", json!({ "spec": { "replicas": 4 } }));
    let refused = world.meanwhile("catalog/scale", world.run("k8s_scale", to("catalog", 5)), change).await.unwrap_err();
    assert_eq!((refused.code, refused.details), (kubernetes::codes::REPLICAS_CHANGED, Some(json!({ "replicas": 4 }))));
    assert_eq!(replicas(&world, "catalog").await, 4);
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_told_or_leaves_no_preview() {
    let world = World::shop().await;
    let plant = |method: &str, path: &str, code: u16, times: u32| {
        let harm = ClusterHarm::Answer(code, None);
        world.sandbox.plant(ClusterFault { method: Some(method.into()), path: path.into(), times, harm });
    };
    plant("GET", "horizontalpodautoscalers", 403, 1);
    let drawn = world.preview("k8s_scale", to("frontend", 6)).await.unwrap();
    assert_eq!(drawn.warnings, ["The tenant's credential may not look at autoscalers, so they are not counted here."]);
    plant("GET", "horizontalpodautoscalers", 500, 1);
    assert_eq!(world.preview("k8s_scale", to("frontend", 6)).await.unwrap_err().code, target::codes::TARGET_BUSY);
    // What the server would refuse is heard before anybody signs.
    plant("PATCH", "frontend/scale", 403, 1);
    assert_eq!(world.preview("k8s_scale", to("frontend", 6)).await.unwrap_err().code, target::codes::FORBIDDEN);
}

#[tokio::test]
async fn the_pods_follow() {
    let world = World::shop().await;
    world.run("k8s_scale", to("catalog", 4)).await.unwrap();
    until("four are ready", || async { world.get("Deployment", "catalog").await["status"]["readyReplicas"] == 4 })
        .await;
}
