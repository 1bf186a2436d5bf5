//! `k8s_delete`.

use crate::k8s_write_objects::world::{World, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

fn of(kind: &str, name: &str) -> Value {
    json!({ "kind": kind, "name": name })
}

fn map(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "shop" }, "data": { "a": "b" } })
}

#[tokio::test]
async fn one_object_is_deleted_and_a_repetition_finds_nothing() {
    let world = World::shop().await;
    let before = world.writes();
    let uid = world.get("ConfigMap", "shop-config").await["metadata"]["uid"].clone();

    let answer = world.run("k8s_delete", of("ConfigMap", "shop-config")).await.unwrap();
    assert_eq!((&answer["deleted"], &answer["terminating"], &answer["uid"]), (&json!(true), &json!(false), &uid));
    assert_eq!(world.find("ConfigMap", "shop-config").await, None);

    let again = world.run("k8s_delete", of("ConfigMap", "shop-config")).await.unwrap_err();
    assert_eq!(again.code, Code::NotFound);
    assert_eq!(world.writes_since(before), ["DELETE shop/configmaps/shop-config"]);
}

#[tokio::test]
async fn a_dry_run_is_a_look_and_tells_what_would_go() {
    let world = World::shop().await;
    let before = world.writes();
    let args = json!({ "kind": "Deployment", "name": "frontend", "dry_run": true });
    let answer = world.run("k8s_delete", args).await.unwrap();
    assert_eq!(answer["deleted"], false);
    let told = answer["warnings"].as_array().unwrap();
    assert!(
        told.contains(&json!("it owns: 1 replicasets.apps")) && told.contains(&json!("it owns: 3 pods")),
        "{told:?}"
    );
    assert_eq!(world.writes(), before);
    assert!(world.find("Deployment", "frontend").await.is_some());
}

#[tokio::test]
async fn the_preview_names_dependents_owners_and_finalizers() {
    let world = World::shop().await;
    let drawn = world.preview("k8s_delete", of("Deployment", "frontend")).await.unwrap();
    assert_eq!(drawn.summary, "delete Deployment shop/frontend and 4 objects with it");
    for line in ["it owns: 1 replicasets.apps", "it owns: 3 pods", "what it owns is deleted after it", "replicas: 3"] {
        assert!(drawn.text.contains(line), "{line} in {}", drawn.text);
    }
    assert_eq!(drawn.warnings, ["Deleting a workload stops its service."]);

    let mut orphan = of("Deployment", "frontend");
    orphan["cascade"] = json!("orphan");
    let drawn = world.preview("k8s_delete", orphan).await.unwrap();
    assert!(drawn.text.contains("what it owns stays, without an owner"));

    let mut object = map("held");
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    world.make(object).await;
    let drawn = world.preview("k8s_delete", of("ConfigMap", "held")).await.unwrap();
    assert!(drawn.text.contains("finalizers: example.com/held"), "{}", drawn.text);
    let answer = world.run("k8s_delete", of("ConfigMap", "held")).await.unwrap();
    assert_eq!((&answer["deleted"], &answer["terminating"]), (&json!(false), &json!(true)));
    assert_eq!(answer["finalizers"], json!(["example.com/held"]));
    assert_eq!(world.probe("k8s_delete", of("ConfigMap", "held"), run()).await, ProbeResult::Done(None));
}

#[tokio::test]
async fn a_claim_and_a_stateful_workload_say_what_becomes_of_the_data() {
    let world = World::shop().await;
    let drawn = world.preview("k8s_delete", of("StatefulSet", "redis")).await.unwrap();
    assert!(drawn.text.contains("its volume claims stay"), "{}", drawn.text);
    let drawn = world.preview("k8s_delete", of("PersistentVolumeClaim", "data-redis-0")).await.unwrap();
    assert!(drawn.text.contains("of claim data-redis-0: reclaim policy Delete"), "{}", drawn.text);
    assert!(drawn.warnings.iter().any(|w| w.starts_with("The data of volume ")), "{:?}", drawn.warnings);
}

#[tokio::test]
async fn a_namespace_is_counted_by_kind_and_reaches_far() {
    let world = World::shop().await;
    let args = of("Namespace", "shop");
    let drawn = world.preview("k8s_delete", args.clone()).await.unwrap();
    for line in
        ["in it: 4 deployments.apps", "in it: 1 secrets", "in it: 1 persistentvolumeclaims", "reclaim policy Delete"]
    {
        assert!(drawn.text.contains(line), "{line} in {}", drawn.text);
    }
    for warning in [
        "A Namespace reaches further than one workload.",
        "Deleting a Namespace deletes everything in it, and cannot be undone.",
    ] {
        assert!(drawn.warnings.iter().any(|w| w == warning), "{:?}", drawn.warnings);
    }
    // Pods come and go by themselves; one more thing in it is not what was signed for.
    let container = json!([{ "name": "a", "image": "a:1" }]);
    world.make(json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "passing", "namespace": "shop" }, "spec": { "containers": container } })).await;
    assert_eq!(world.last_look("k8s_delete", args.clone()).await.unwrap().fingerprint, drawn.fingerprint);
    world.make(map("one-more")).await;
    assert_ne!(world.last_look("k8s_delete", args).await.unwrap().fingerprint, drawn.fingerprint);
}

#[tokio::test]
async fn a_yes_is_about_one_object_and_not_about_its_name() {
    let world = World::shop().await;
    world.make(map("short-lived")).await;
    let shown = world.preview("k8s_delete", of("ConfigMap", "short-lived")).await.unwrap();
    let same = world.last_look("k8s_delete", of("ConfigMap", "short-lived")).await.unwrap();
    assert_eq!(same, shown);

    world.run("k8s_delete", of("ConfigMap", "short-lived")).await.unwrap();
    world.make(map("short-lived")).await;
    let other = world.last_look("k8s_delete", of("ConfigMap", "short-lived")).await.unwrap();
    assert_ne!(other.fingerprint, shown.fingerprint);
    assert_ne!(other.text, shown.text);
}

#[tokio::test]
async fn what_is_not_there_is_named_and_what_is_protected_stays() {
    let world = World::shop().await;
    let refused = world.preview("k8s_delete", of("Deployment", "frontned")).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["frontend".to_owned()]));
    for args in [
        of("Namespace", "kube-system"),
        json!({ "kind": "Lease", "name": "sandbox-node-1", "namespace": "kube-node-lease" }),
    ] {
        assert_eq!(
            world.preview("k8s_delete", args.clone()).await.unwrap_err().code,
            kubernetes::codes::PROTECTED,
            "{args}"
        );
        assert_eq!(
            world.run("k8s_delete", args.clone()).await.unwrap_err().code,
            kubernetes::codes::PROTECTED,
            "{args}"
        );
    }
    let world = World::limited(&["shop"]).await;
    let elsewhere = json!({ "kind": "ConfigMap", "name": "log-agent", "namespace": "platform" });
    assert_eq!(world.run("k8s_delete", elsewhere).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
    for kind in ["Namespace", "StorageClass"] {
        let name = if kind == "Namespace" { "shop" } else { "standard" };
        assert_eq!(
            world.run("k8s_delete", of(kind, name)).await.unwrap_err().code,
            kubernetes::codes::NAMESPACE_DENIED,
            "{kind}"
        );
    }
}

#[tokio::test]
async fn k2_a_lost_answer_is_unknown_and_the_probe_settles_it() {
    for (harm, expected) in [(ClusterHarm::CutAfter, ProbeResult::Done(None)), (ClusterHarm::Cut, ProbeResult::NotDone)]
    {
        let world = World::shop().await;
        world.sandbox.plant(ClusterFault { method: Some("DELETE".into()), path: "shop-config".into(), times: 1, harm });
        let failure = world.run("k8s_delete", of("ConfigMap", "shop-config")).await.unwrap_err();
        assert_eq!(failure.code, Code::OutcomeUnknown);
        assert_eq!(world.probe("k8s_delete", of("ConfigMap", "shop-config"), run()).await, expected);
    }
    // A pod that its controller makes anew under the same name tells nothing.
    let world = World::shop().await;
    assert_eq!(world.probe("k8s_delete", of("Pod", "redis-0"), run()).await, ProbeResult::Unknown);
}
