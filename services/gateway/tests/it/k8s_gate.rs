//! What changes a cluster waits for a person, who sees what would change and signs for exactly that.

use crate::k8s_yard::{Yard, config_map, deployment, manifest};
use crate::runs_desk::{PENDING, approve, ended, moves, reject};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Value, json};

fn scale(replicas: u32) -> Value {
    json!({ "kind": "Deployment", "name": "web", "replicas": replicas })
}

/// Wants an object to carry the mark of a run. Views hide it, so it is looked for among the fields that have an owner.
async fn marked(yard: &Yard, kind: &str, name: &str) {
    let owned = yard.field(kind, name, "metadata.managedFields").await.to_string();
    assert!(owned.contains("f:quartermaster/run"), "{kind} {name}: {owned}");
}

fn preview(told: &Value) -> &str {
    told["preview"]["text"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_apply_shows_its_difference_and_happens_once_when_it_is_signed() {
    let yard = Yard::open().await;
    yard.runs("web", 2).await;
    let wanted = json!({ "manifest": manifest(&[deployment("web", 3), config_map("settings", "hello")]) });
    let before = yard.field("Deployment", "web", "metadata.generation").await;

    let run = yard.ask("k8s_apply", wanted.clone()).await;
    let shown = yard.shown(&run).await;
    assert_eq!((&shown["state"], &shown["effect"]), (&json!(PENDING), &json!("change")));
    assert_eq!(shown["preview"]["summary"], "apply 2 objects: create 1, change 1");
    for part in ["-  replicas: 2", "+  replicas: 3", "+  greeting: hello", "create ConfigMap", "change Deployment"] {
        assert!(preview(&shown).contains(part), "{part} in\n{}", preview(&shown));
    }
    assert_eq!(yard.field("Deployment", "web", "spec.replicas").await, 2, "nothing happens before the yes");
    assert_eq!(yard.refused("k8s_get", json!({ "kind": "cm", "name": "settings" })).await["code"], "not_found");

    let told = yard.sign(&run).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
    let lines: Vec<&Value> =
        told["outcome"]["result"]["objects"].as_array().unwrap().iter().map(|o| &o["action"]).collect();
    assert_eq!(lines, ["change", "create"]);
    assert_eq!(yard.field("ConfigMap", "settings", "data.greeting").await, "hello");
    for (kind, name) in [("ConfigMap", "settings"), ("Deployment", "web")] {
        marked(&yard, kind, name).await;
    }
    yard.rolled_out("web").await;

    // The same call again is answered by the run that did it, and changes nothing more.
    let again = yard.call("k8s_apply", wanted).await;
    let once = before.as_u64().unwrap() + 1;
    assert_eq!(yard.field("Deployment", "web", "metadata.generation").await, once, "{again:?}");
    let moves = moves(&yard.world, &run).await;
    assert_eq!(moves.iter().filter(|step| *step == "approved>executing").count(), 1, "{moves:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_sign_at_once_cause_one_effect() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    let before = yard.field("Deployment", "web", "metadata.generation").await.as_u64().unwrap();
    let run = yard.ask("k8s_rollout", json!({ "action": "restart", "kind": "deploy", "name": "web" })).await;

    let people: Vec<_> = (0..8).map(|n| yard.ana.named(&format!("person-{n}"))).collect();
    let answers = people.iter().map(|person| person.rest());
    let path = format!("/v1/runs/{run}/approve");
    let body = json!({});
    let answers: Vec<_> = answers.collect();
    let heard = join_all(answers.iter().map(|rest| rest.post(&path, &body))).await;
    assert!(heard.iter().any(|answer| answer.status == 200));

    let told = ended(&yard.ana, &run).await;
    assert_eq!(told["state"], "succeeded", "{told:#}");
    assert_eq!(yard.field("Deployment", "web", "metadata.generation").await, before + 1);
    yard.rolled_out("web").await;
    let status = yard.read("k8s_rollout_status", json!({ "kind": "deploy", "name": "web" })).await;
    assert_eq!(status["revision"], 2, "{status:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_moved_since_it_was_shown_voids_the_yes() {
    let yard = Yard::open().await;
    yard.runs("web", 2).await;
    let run = yard.ask("k8s_scale", scale(5)).await;
    assert!(preview(&yard.shown(&run).await).contains("replicas 2 → 5"));
    yard.act("k8s_scale", scale(3)).await;

    let told = yard.sign(&run).await;
    let outcome = &told["outcome"];
    assert_eq!(
        (&told["state"], &outcome["code"], &outcome["attempted"]),
        (&json!("failed"), &json!("stale"), &json!(false))
    );
    assert!(outcome["message"].as_str().unwrap().contains("changed since it was approved"), "{outcome}");
    assert_eq!(yard.field("Deployment", "web", "spec.replicas").await, 3, "what nobody judged was not done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_made_anew_under_the_same_name_voids_the_yes() {
    let yard = Yard::open().await;
    yard.make(&[config_map("settings", "old")]).await;
    let run = yard.ask("k8s_delete", json!({ "kind": "ConfigMap", "name": "settings" })).await;
    let uid = yard.field("ConfigMap", "settings", "metadata.uid").await;
    assert!(preview(&yard.shown(&run).await).contains(uid.as_str().unwrap()));
    yard.act("k8s_delete", json!({ "kind": "cm", "name": "settings" })).await;
    yard.make(&[config_map("settings", "new")]).await;

    let told = yard.sign(&run).await;
    assert_eq!((&told["state"], &told["outcome"]["code"]), (&json!("failed"), &json!("stale")), "{told:#}");
    assert_eq!(yard.field("ConfigMap", "settings", "data.greeting").await, "new");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_moves_by_itself_leaves_the_yes_alone() {
    let yard = Yard::open().await;
    // Asked for while the pods are still on their way, signed when they have come.
    yard.make(&[deployment("web", 3)]).await;
    let patch = json!({ "metadata": { "labels": { "tier": "front" } } }).to_string();
    let run = yard.ask("k8s_patch", json!({ "kind": "deploy", "name": "web", "patch": patch })).await;
    yard.rolled_out("web").await;
    assert_eq!(yard.sign(&run).await["state"], "succeeded");
    assert_eq!(yard.field("Deployment", "web", "metadata.labels.tier").await, "front");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_patched_is_applied_again() {
    let yard = Yard::open().await;
    yard.make(&[config_map("settings", "hello")]).await;
    let patch = json!({ "metadata": { "labels": { "tier": "front" } } }).to_string();
    yard.act("k8s_patch", json!({ "kind": "cm", "name": "settings", "patch": patch })).await;
    yard.make(&[config_map("settings", "goodbye")]).await;
    assert_eq!(yard.field("ConfigMap", "settings", "data.greeting").await, "goodbye");
    assert_eq!(yard.field("ConfigMap", "settings", "metadata.labels.tier").await, "front");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_rejected_leaves_nothing() {
    let yard = Yard::open().await;
    yard.runs("web", 2).await;
    let wishes = [
        ("k8s_apply", json!({ "manifest": manifest(&[config_map("settings", "x")]) })),
        ("k8s_scale", scale(0)),
        ("k8s_patch", json!({ "kind": "deploy", "name": "web", "patch": "{\"spec\":{\"replicas\":7}}" })),
        ("k8s_rollout", json!({ "action": "pause", "kind": "deploy", "name": "web" })),
        ("k8s_delete", json!({ "kind": "deploy", "name": "web" })),
        ("k8s_run", json!({ "image": "registry.example/tool:1" })),
    ];
    let spec = yard.field("Deployment", "web", "spec").await;
    for (tool, wish) in wishes {
        let run = yard.ask(tool, wish).await;
        reject(&yard.ana, &run, "not today").await;
        let told = yard.call("await_run", json!({ "run_id": run, "wait_ms": 5_000 })).await;
        let run = &told.ok()["run"];
        assert_eq!((&run["state"], &run["reason"]), (&json!("rejected"), &json!("not today")), "{tool}: {told:?}");
    }
    assert_eq!(yard.field("Deployment", "web", "spec").await, spec);
    assert_eq!(yard.read("k8s_get", json!({ "kind": "jobs" })).await["count"], 0);
    assert_eq!(yard.refused("k8s_get", json!({ "kind": "cm", "name": "settings" })).await["code"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_another_manager_are_not_taken_without_the_word() {
    let yard = Yard::open().await;
    yard.runs("web", 2).await;
    // Who scales is another manager than who applies, be it the same program.
    yard.act("k8s_scale", scale(4)).await;
    let wanted = manifest(&[deployment("web", 2)]);
    let diff = yard.read("k8s_diff", json!({ "manifest": wanted })).await;
    assert_eq!(diff["objects"][0]["conflicts"], json!(["quartermaster"]), "{diff:#}");
    let why = yard.not_shown("k8s_apply", json!({ "manifest": wanted })).await;
    assert!(why.contains("belong to another manager"), "{why}");
    let run = yard.ask("k8s_apply", json!({ "manifest": wanted, "force": true })).await;
    let shown = yard.shown(&run).await;
    assert_eq!(shown["effect"], "disrupt");
    assert!(shown["warnings"].to_string().contains("that belong to quartermaster"), "{shown:#}");
    assert_eq!(yard.sign(&run).await["state"], "succeeded");
    assert_eq!(yard.field("Deployment", "web", "spec.replicas").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_was_patched_in_plain_text_is_in_dispute_as_well() {
    let yard = Yard::open().await;
    let secret = |value: &str| {
        let data = json!({ "key": STANDARD.encode(value) });
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "vault" }, "data": data })
    };
    yard.make(&[secret("one")]).await;
    let patch = json!({ "stringData": { "key": "two" } }).to_string();
    yard.act("k8s_patch", json!({ "kind": "Secret", "name": "vault", "patch": patch })).await;
    let why = yard.not_shown("k8s_apply", json!({ "manifest": manifest(&[secret("three")]) })).await;
    assert!(why.contains("belong to another manager"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_one_who_asked_does_not_sign() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    let run = yard.ask("k8s_scale", scale(2)).await;
    let agent = yard.world.tenant("acme").agent();
    let refused = agent.rest().post(&format!("/v1/runs/{run}/approve"), &json!({})).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    let other = yard.world.tenant("other").approver();
    let refused = other.rest().post(&format!("/v1/runs/{run}/approve"), &json!({})).await;
    assert_eq!(refused.status, 404, "another tenant's run is not there: {}", refused.text());
    assert_eq!(yard.field("Deployment", "web", "spec.replicas").await, 1);
    approve(&yard.ana, &run).await;
    assert_eq!(ended(&yard.ana, &run).await["state"], "succeeded");
}
