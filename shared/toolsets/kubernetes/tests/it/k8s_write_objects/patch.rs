//! `k8s_patch`.

use crate::k8s_write_objects::world::{World, another_run, run};
use catalog::ProbeResult;
use domain::Code;
use sandbox::{ClusterFault, ClusterHarm};
use serde_json::{Value, json};

fn on(kind: &str, name: &str, patch: &Value) -> Value {
    json!({ "kind": kind, "name": name, "patch": patch.to_string() })
}

fn label(value: &str) -> Value {
    on("Deployment", "catalog", &json!({ "metadata": { "labels": { "tier": value } } }))
}

async fn labels(world: &World) -> Value {
    world.get("Deployment", "catalog").await["metadata"]["labels"].clone()
}

#[tokio::test]
async fn every_form_of_patch_changes_what_it_says_and_carries_the_run() {
    let image = json!({ "spec": { "template": { "spec": { "containers": [{ "name": "catalog", "image": "registry.sandbox/shop/catalog:1.9.3" }] } } } });
    let mut strategic = on("Deployment", "catalog", &image);
    strategic["type"] = json!("strategic");
    let add = json!([{ "op": "test", "path": "/spec/replicas", "value": 2 }, { "op": "add", "path": "/metadata/labels/tier", "value": "back" }]);
    for args in [label("back"), strategic, on("Deployment", "catalog", &add)] {
        let world = World::shop().await;
        let before = world.writes();
        let answer = world.run("k8s_patch", args.clone()).await.unwrap();
        assert_eq!(answer["changed"], true, "{args}");
        let diff = answer["diff"].as_str().unwrap();
        assert!(diff.contains("+    tier: back") || diff.contains("catalog:1.9.3"), "{diff}");
        assert!(!diff.contains("quartermaster"), "the mark is not shown: {diff}");
        let live = world.get("Deployment", "catalog").await;
        assert_eq!(live["metadata"]["annotations"]["quartermaster/run"], json!(run().to_string()), "{args}");
        assert_eq!(live["metadata"]["annotations"]["kubernetes.io/change-cause"], "catalog: first release");
        assert_eq!(world.writes_since(before), ["PATCH shop/deployments/catalog"]);
        assert!(matches!(world.probe("k8s_patch", args.clone(), run()).await, ProbeResult::Done(Some(_))), "{args}");
        assert_eq!(world.probe("k8s_patch", args, another_run()).await, ProbeResult::Unknown, "somebody wrote since");
    }
}

#[tokio::test]
async fn a_json_patch_marks_an_object_without_annotations_too() {
    let world = World::shop().await;
    let args = on("ConfigMap", "shop-config", &json!([{ "op": "replace", "path": "/data/currency", "value": "USD" }]));
    assert_eq!(world.probe("k8s_patch", args.clone(), run()).await, ProbeResult::NotDone);
    world.run("k8s_patch", args.clone()).await.unwrap();
    let live = world.get("ConfigMap", "shop-config").await;
    assert_eq!(live["metadata"]["annotations"], json!({ "quartermaster/run": run().to_string() }));
    assert!(matches!(world.probe("k8s_patch", args, run()).await, ProbeResult::Done(_)));
    // Annotations that are given as a whole are given as they are, so nothing is proven by them.
    let whole = on(
        "ConfigMap",
        "shop-config",
        &json!([{ "op": "add", "path": "/metadata/annotations", "value": { "a": "b" } }]),
    );
    world.run("k8s_patch", whole.clone()).await.unwrap();
    assert_eq!(world.get("ConfigMap", "shop-config").await["metadata"]["annotations"], json!({ "a": "b" }));
    assert_eq!(world.probe("k8s_patch", whole, run()).await, ProbeResult::Unknown);
}

#[tokio::test]
async fn a_dry_run_is_a_look() {
    let world = World::shop().await;
    let before = world.writes();
    let mut args = label("back");
    args["dry_run"] = json!(true);
    let answer = world.run("k8s_patch", args).await.unwrap();
    assert!(answer["diff"].as_str().unwrap().contains("+    tier: back"));
    assert_eq!(world.writes(), before);
    assert_eq!(labels(&world).await.get("tier"), None);
}

#[tokio::test]
async fn the_preview_is_the_difference_and_a_status_does_not_move_it() {
    let world = World::shop().await;
    let before = world.writes();
    let shown = world.preview("k8s_patch", label("back")).await.unwrap();
    assert_eq!(shown.summary, "patch Deployment shop/catalog");
    assert!(
        shown.text.contains("change Deployment shop/catalog, uid ") && shown.text.contains("+    tier: back"),
        "{}",
        shown.text
    );
    assert_eq!(shown.warnings, Vec::<String>::new());
    assert_eq!(world.writes(), before);

    world.change_status("Deployment", "catalog", json!({ "status": { "observedGeneration": 77 } })).await;
    assert_eq!(world.last_look("k8s_patch", label("back")).await.unwrap(), shown);

    world.change("Deployment", "catalog", json!({ "metadata": { "labels": { "tier": "middle" } } })).await;
    let other = world.last_look("k8s_patch", label("back")).await.unwrap();
    assert_ne!(other.fingerprint, shown.fingerprint);
    assert_ne!(other.text, shown.text);
}

#[tokio::test]
async fn an_unrelated_change_leaves_what_was_shown_as_it_was() {
    let world = World::shop().await;
    let shown = world.preview("k8s_patch", label("back")).await.unwrap();
    world.change("Deployment", "catalog", json!({ "spec": { "minReadySeconds": 7 } })).await;
    let now = world.last_look("k8s_patch", label("back")).await.unwrap();
    assert_ne!(now.fingerprint, shown.fingerprint, "the object is of another generation");
    assert_eq!((now.text, now.warnings), (shown.text, shown.warnings), "what was judged is what would be done");
}

#[tokio::test]
async fn a_mount_of_the_node_is_seen_whatever_its_volume_is_called() {
    let world = World::shop().await;
    let name = "kube-api-access-host";
    let volumes = json!({ "spec": { "template": { "spec": {
        "volumes": [{ "name": name, "hostPath": { "path": "/" } }],
        "containers": [{ "name": "catalog", "volumeMounts": [{ "name": name, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" }] }],
    } } } });
    let mut args = on("Deployment", "catalog", &volumes);
    args["type"] = json!("strategic");
    let shown = world.preview("k8s_patch", args.clone()).await.unwrap();
    assert_eq!(shown.summary, "patch Deployment shop/catalog");
    assert!(shown.text.contains("hostPath") && shown.text.contains("volumeMounts"), "{}", shown.text);
    assert_eq!(world.run("k8s_patch", args).await.unwrap()["changed"], true);
    let described = json!({ "kind": "Deployment", "name": "catalog", "view": "describe" });
    let described = world.run("k8s_get", described).await.unwrap().to_string();
    assert!(described.contains("hostPath") && described.contains(name), "{described}");
}

#[tokio::test]
async fn warnings_say_what_a_patch_means() {
    let world = World::shop().await;
    let replicas = |name: &str, n: u32| on("Deployment", name, &json!({ "spec": { "replicas": n } }));
    let drawn = world.preview("k8s_patch", replicas("frontend", 5)).await.unwrap();
    assert_eq!(drawn.warnings, ["Autoscaler frontend (3 to 8 replicas) sets the replicas too and would undo it."]);
    let drawn = world.preview("k8s_patch", replicas("checkout", 0)).await.unwrap();
    assert!(drawn.warnings.contains(&"0 replicas stops the service.".to_owned()), "{:?}", drawn.warnings);
    let finalizers = on("ConfigMap", "shop-config", &json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    let drawn = world.preview("k8s_patch", finalizers).await.unwrap();
    assert!(drawn.warnings.iter().any(|w| w.starts_with("It touches finalizers")), "{:?}", drawn.warnings);
    let wide = on("Namespace", "shop", &json!({ "metadata": { "labels": { "a": "b" } } }));
    let drawn = world.preview("k8s_patch", wide).await.unwrap();
    assert_eq!(drawn.warnings, ["A Namespace reaches further than one workload."]);
}

#[tokio::test]
async fn a_yes_about_a_secret_holds_while_the_secret_is_the_same() {
    let world = World::shop().await;
    let args = |value: &str| on("Secret", "payment-provider", &json!({ "stringData": { "api-key": value } }));
    let shown = world.preview("k8s_patch", args("entirely-new-value")).await.unwrap();
    assert_eq!(world.last_look("k8s_patch", args("entirely-new-value")).await.unwrap(), shown);
    let other = world.preview("k8s_patch", args("another-new-value")).await.unwrap();
    assert_ne!(other.fingerprint, shown.fingerprint);
    assert_eq!(other.text, shown.text, "what is shown says nothing about the value");
    assert!(!shown.text.contains(&shown.fingerprint["k8s:".len()..][..16]), "nobody is shown the fingerprint");
    world.change("Secret", "payment-provider", json!({ "stringData": { "api-key": "changed-meanwhile" } })).await;
    let now = world.last_look("k8s_patch", args("entirely-new-value")).await.unwrap();
    let unshown = |fingerprint: &str| fingerprint.rsplit_once('#').unwrap().1.to_owned();
    assert_ne!(unshown(&now.fingerprint), unshown(&shown.fingerprint), "the text is the same, the secret is not");
}

#[tokio::test]
async fn a_secret_is_shown_by_the_name_of_its_key_only() {
    let world = World::shop().await;
    let args = on(
        "Secret",
        "payment-provider",
        &json!({ "stringData": { "api-key": "entirely-new-value", "added": "second-value" } }),
    );
    let drawn = world.preview("k8s_patch", args.clone()).await.unwrap();
    let all = format!("{drawn:?}");
    for secret in ["entirely-new", "second-value", "not-a-real-key", "sandbox-shop", "ZW50aXJlbHk"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
    assert!(
        drawn
            .arguments
            .as_ref()
            .is_some_and(|shown| shown.contains("(hidden)") && !shown.contains("masked:") && shown.contains("added")),
        "{all}"
    );
    let operations = json!([{ "op": "add", "path": "/stringData", "value": { "api-key": "entirely-new-value" } }]);
    let drawn_so = world.preview("k8s_patch", on("Secret", "payment-provider", &operations)).await;
    assert!(!format!("{drawn_so:?}").contains("entirely-new"), "{drawn_so:?}");
    let password = json!([{ "op": "add", "path": "/data/db_password", "value": "entirely-new-value" }]);
    let shown = world.preview("k8s_patch", on("ConfigMap", "shop-config", &password)).await.unwrap();
    assert!(shown.text.contains("+  db_password: entirely-new-value"), "only a Secret hides by its kind: {shown:?}");
    let variable = json!([{ "op": "add", "path": "/spec/template/spec/containers/0/env/-",
        "value": { "name": "DB_PASSWORD", "value": "entirely-new-value" } }]);
    let shown = world.preview("k8s_patch", on("Deployment", "frontend", &variable)).await.unwrap();
    assert!(shown.text.contains("value: entirely-new-value") && shown.hidden.is_empty(), "{shown:?}");
    assert!(drawn.text.contains("api-key") && drawn.text.contains("added"), "{}", drawn.text);
    // Another value behind the same key is another change.
    world.change("Secret", "payment-provider", json!({ "stringData": { "api-key": "changed-meanwhile" } })).await;
    let other = world.last_look("k8s_patch", args.clone()).await.unwrap();
    assert_ne!((other.fingerprint, other.text), (drawn.fingerprint, drawn.text));

    let answer = world.run("k8s_patch", args).await.unwrap().to_string();
    assert!(
        !answer.contains("entirely-new") && !answer.contains("ZW50aXJlbHk") && !answer.contains("changed-mean"),
        "{answer}"
    );
}

#[tokio::test]
async fn what_nobody_may_patch_is_refused_before_anything_is_sent() {
    let world = World::shop().await;
    let requests = || world.sandbox.requests().iter().filter(|r| r.contains("PATCH")).count();
    for patch in [
        json!({ "status": { "replicas": 9 } }),
        json!({ "metadata": { "managedFields": [] } }),
        json!({ "metadata": { "annotations": { "quartermaster/run": "run_forged" } } }),
        json!({ "metadata": { "annotations": null } }),
        json!({ "metadata": null }),
        json!([]),
        json!([{ "op": "replace", "path": "", "value": {} }]),
        json!([{ "op": "replace", "path": "/metadata", "value": {} }]),
        json!([{ "op": "replace", "path": "/status/replicas", "value": 9 }]),
        json!([{ "op": "remove", "path": "/metadata/managedFields" }]),
        json!([{ "op": "add", "path": "/metadata/annotations/quartermaster~1run", "value": "x" }]),
        json!([{ "op": "add", "path": "/metadata/annotations", "value": { "quartermaster/run": "x" } }]),
        json!([{ "op": "copy", "from": "/spec", "path": "/metadata/annotations/x" }]),
        json!([{ "op": "move", "from": "/spec", "path": "/metadata/annotations/x" }]),
        json!([{ "op": "explode", "path": "/spec" }]),
        json!([{ "path": "/spec" }]),
        json!([7]),
        json!("text"),
    ] {
        for dry_run in [false, true] {
            let mut args = on("Deployment", "catalog", &patch);
            args["dry_run"] = json!(dry_run);
            assert_eq!(world.run("k8s_patch", args).await.unwrap_err().code, Code::InvalidArgument, "{patch}");
        }
    }
    for text in ["not json", "{\"a\":1,\"a\":2}"] {
        let args = json!({ "kind": "Deployment", "name": "catalog", "patch": text });
        assert_eq!(world.run("k8s_patch", args).await.unwrap_err().code, Code::InvalidArgument, "{text}");
    }
    for (form, patch) in [("json", json!({})), ("merge", json!([])), ("strategic", json!([]))] {
        let mut args = on("Deployment", "catalog", &patch);
        args["type"] = json!(form);
        assert_eq!(world.run("k8s_patch", args).await.unwrap_err().code, Code::InvalidArgument, "{form}");
    }
    let guess =
        on("Secret", "payment-provider", &json!([{ "op": "test", "path": "/data/api-key", "value": "Z3Vlc3M=" }]));
    assert_eq!(world.run("k8s_patch", guess).await.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(requests(), 0);
}

#[tokio::test]
async fn what_cannot_be_done_fails_with_its_reason_and_without_a_preview() {
    let world = World::shop().await;
    let missing = on("Deployment", "catalogue", &json!({ "spec": {} }));
    let refused = world.preview("k8s_patch", missing).await.unwrap_err();
    assert_eq!((refused.code, refused.did_you_mean), (Code::NotFound, vec!["catalog".to_owned()]));
    let test = on("Deployment", "catalog", &json!([{ "op": "test", "path": "/spec/replicas", "value": 9 }]));
    assert_eq!(world.preview("k8s_patch", test).await.unwrap_err().code, Code::Conflict);
    let unknown = on("Deployment", "catalog", &json!({ "spec": { "replicants": 9 } }));
    assert_eq!(world.preview("k8s_patch", unknown).await.unwrap_err().code, kubernetes::codes::UNKNOWN_FIELD);
    let other = json!({ "app": "other" });
    let selector = json!({ "selector": { "matchLabels": other }, "template": { "metadata": { "labels": other } } });
    let immutable = on("Deployment", "catalog", &json!({ "spec": selector }));
    assert_eq!(world.preview("k8s_patch", immutable).await.unwrap_err().code, kubernetes::codes::IMMUTABLE_FIELD);

    let system = json!({ "kind": "Lease", "name": "sandbox-node-1", "namespace": "kube-node-lease", "patch": "{\"spec\":{\"leaseDurationSeconds\":1}}" });
    assert_eq!(world.preview("k8s_patch", system).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    let world = World::protected().await;
    assert_eq!(world.preview("k8s_patch", label("x")).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    assert_eq!(world.run("k8s_patch", label("x")).await.unwrap_err().code, kubernetes::codes::PROTECTED);
    let world = World::limited(&["shop"]).await;
    let elsewhere =
        json!({ "kind": "ConfigMap", "name": "log-agent", "namespace": "platform", "patch": "{\"data\":{}}" });
    assert_eq!(world.run("k8s_patch", elsewhere).await.unwrap_err().code, kubernetes::codes::NAMESPACE_DENIED);
}

#[tokio::test]
async fn a_status_that_moves_meanwhile_does_not_stop_a_patch() {
    let world = World::shop().await;
    let status = world.change_status("Deployment", "catalog", json!({ "status": { "observedGeneration": 77 } }));
    let answer = world.meanwhile("deployments/catalog?", world.run("k8s_patch", label("back")), status).await.unwrap();
    assert_eq!(answer["changed"], true);
    assert_eq!(labels(&world).await["tier"], "back");
    let sent = world.sandbox.requests().iter().filter(|r| r.starts_with("PATCH") && r.contains("catalog?")).count();
    assert_eq!(sent, 2, "refused once, and sent for the version that is there now");
}

#[tokio::test]
async fn an_object_that_somebody_changes_meanwhile_is_left_alone() {
    let world = World::shop().await;
    let change = world.change("Deployment", "catalog", json!({ "spec": { "minReadySeconds": 7 } }));
    let refused = world.meanwhile("deployments/catalog?", world.run("k8s_patch", label("back")), change).await;
    assert_eq!(refused.unwrap_err().code, Code::Conflict);
    assert_eq!(labels(&world).await.get("tier"), None);
}

#[tokio::test]
async fn a_refusal_for_another_reason_is_not_argued_with() {
    let world = World::shop().await;
    let harm = ClusterHarm::Answer(409, None);
    world.sandbox.plant(ClusterFault { method: Some("PATCH".into()), path: "catalog".into(), times: 1, harm });
    assert_eq!(world.run("k8s_patch", label("back")).await.unwrap_err().code, Code::Conflict);
    assert_eq!(labels(&world).await.get("tier"), None);
}

#[tokio::test]
async fn k2_a_lost_answer_is_unknown_and_the_mark_settles_it() {
    for (harm, done) in [(ClusterHarm::CutAfter, true), (ClusterHarm::LateAnswer(504), true), (ClusterHarm::Cut, false)]
    {
        let world = World::shop().await;
        world.sandbox.plant(ClusterFault {
            method: Some("PATCH".into()),
            path: "deployments/catalog".into(),
            times: 1,
            harm,
        });
        assert_eq!(world.run("k8s_patch", label("back")).await.unwrap_err().code, Code::OutcomeUnknown);
        let probe = world.probe("k8s_patch", label("back"), run()).await;
        assert_eq!(matches!(probe, ProbeResult::Done(Some(_))), done, "{probe:?}");
        assert!(done || probe == ProbeResult::NotDone, "{probe:?}");
    }
}
