//! What goes wrong: an operator killed between writes, others who write as well, names that are taken.

use crate::on_a_cluster::yard::{Yard, condition_of, using};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// What the operator made, without what differs between two clusters.
async fn made(yard: &Yard) -> Value {
    let mut all = Vec::new();
    for (kind, name) in [
        ("NetworkPolicy", "tool"),
        ("Deployment", "tool"),
        ("Service", "tool"),
        ("ConfigMap", "agent-tools"),
        ("Deployment", "agent"),
    ] {
        let object = yard.find(kind, name).await.unwrap_or_default();
        let mut spec = if object["spec"].is_null() { object["data"].clone() } else { object["spec"].clone() };
        for key in ["clusterIP", "clusterIPs"] {
            spec.as_object_mut().map(|spec| spec.remove(key));
        }
        all.push(json!({ "kind": kind, "name": name, "spec": spec, "owner": object["metadata"]["ownerReferences"][0]["name"] }));
    }
    let text = Value::Array(all).to_string().replace(&yard.namespace, "NAMESPACE");
    serde_json::from_str(&text).unwrap()
}

async fn wanted(yard: &Yard) {
    yard.tool("tool", json!({ "image": "registry.example/tool:1" })).await;
    yard.agent("agent", using(&["tool"])).await;
}

async fn settled(yard: &Yard) {
    yard.see_condition("LanguageTool", "tool", "Ready", ("True", "ReplicasReady")).await;
    yard.see_condition("LanguageAgent", "agent", "Ready", ("True", "ReplicasReady")).await;
    let let_in = "/spec/ingress/0/from/1/podSelector/matchExpressions/0/values/0";
    yard.see("NetworkPolicy", "tool", "the agent", |policy| policy.pointer(let_in) == Some(&json!("agent"))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_killed_after_any_write_is_finished_by_the_next_one() {
    let Some(yard) = Yard::open().await else { return };
    wanted(&yard).await;
    let (operator, meter) = yard.operator_until(yard.settings("whole"), usize::MAX).await;
    settled(&yard).await;
    let want = made(&yard).await;
    assert!(operator.stop().await);
    let writes = usize::MAX - meter.left.load(Ordering::Relaxed);
    assert!(writes >= 7, "five objects and two statuses: {writes}");

    for after in 1..=writes.min(16) {
        println!("killed after write {after} of {writes}");
        let Some(yard) = Yard::open().await else { return };
        wanted(&yard).await;
        let (first, _) = yard.operator_until(yard.settings("first"), after).await;
        // How often status is written depends on how quick the pods are: the last kills may find nothing to kill.
        let died = tokio::time::timeout(std::time::Duration::from_secs(8), first.ended()).await;
        println!("  {}", if died.is_ok() { "it died" } else { "it had nothing more to write" });
        let second = yard.operator_with(yard.settings("second")).await;
        settled(&yard).await;
        assert_eq!(made(&yard).await, want, "killed after write {after}");
        second.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_others_stay_and_our_own_come_back() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.tool("tool", json!({ "image": "registry.example/tool:1" })).await;
    yard.see_condition("LanguageTool", "tool", "Ready", ("True", "ReplicasReady")).await;
    let by = |manager: &'static str, spec: Value| {
        let patch =
            json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "tool" }, "spec": spec });
        let api = yard.dynamic("Deployment");
        async move { api.patch("tool", &PatchParams::apply(manager).force(), &Patch::Apply(&patch)).await.unwrap() }
    };
    // Whoever scales is not overruled, as long as the resource says nothing of it.
    by("scaler", json!({ "replicas": 3 })).await;
    let container =
        json!({ "name": "tool", "image": "registry.example/other:9", "env": [{ "name": "THEIRS", "value": "1" }] });
    by("meddler", json!({ "template": { "spec": { "containers": [container] } } })).await;
    let place = "/spec/template/spec/containers/0";
    let seen = yard.see("Deployment", "tool", "our image back", |one| {
        one.pointer(place).unwrap()["image"] == "registry.example/tool:1"
    });
    let seen = seen.await;
    assert_eq!(seen["spec"]["replicas"], 3);
    assert_eq!(seen.pointer(place).unwrap()["env"][0]["name"], "THEIRS");
    yard.see("LanguageTool", "tool", "three replicas", |one| one["status"]["readyReplicas"] == 3).await;

    // What we made and somebody deleted is made again.
    yard.delete("Service", "tool").await;
    yard.see("Service", "tool", "to be back", |_| true).await;
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_somebody_else_is_left_alone() {
    let Some(yard) = Yard::open().await else { return };
    let labels = json!({ "app": "theirs" });
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "taken" },
        "spec": { "selector": { "matchLabels": labels }, "template": { "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "theirs", "image": "registry.example/theirs:1" }] } } },
    });
    let params = PatchParams::apply("somebody");
    yard.dynamic("Deployment").patch("taken", &params, &Patch::Apply(&theirs)).await.unwrap();
    let operator = yard.operator().await;
    yard.tool("taken", json!({ "image": "registry.example/tool:1" })).await;
    let seen = yard.see_condition("LanguageTool", "taken", "Accepted", ("False", "NameTaken")).await;
    assert!(condition_of(&seen, "Accepted")["message"].as_str().unwrap().contains("belongs to somebody else"));
    let deployment = yard.find("Deployment", "taken").await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["name"], "theirs");
    // Nor is it taken away with the tool.
    yard.tool("taken", json!({ "image": "registry.example/tool:1", "deploymentMode": "sidecar" })).await;
    yard.see_condition("LanguageTool", "taken", "Ready", ("True", "Sidecar")).await;
    assert!(yard.find("Deployment", "taken").await.is_some());
    assert!(operator.stop().await);
}
