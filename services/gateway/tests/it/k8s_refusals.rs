//! What a cluster refuses is told by the same code whichever cluster it is, with what to do next.

use crate::k8s_yard::{Yard, config_map, deployment, manifest, service};
use serde_json::{Value, json};

/// A pod of one or more containers that behaves as its annotation says.
fn pod(name: &str, containers: &[&str], behave: &str) -> Value {
    let containers: Vec<Value> =
        containers.iter().map(|name| json!({ "name": name, "image": "registry.example/app:1.0" })).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "annotations": { "sandbox/behave": behave } },
        "spec": { "containers": containers, "restartPolicy": "Never" },
    })
}

async fn account(yard: &Yard) {
    // A real cluster gives a new namespace its service account a moment later, and makes no pods before.
    yard.awaits(json!({ "kind": "ServiceAccount", "name": "default", "until": "exists" })).await;
}

async fn waits(yard: &Yard, name: &str, until: &str) {
    yard.awaits(json!({ "kind": "Pod", "name": name, "until": until })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_looked_at_is_told_why() {
    let yard = Yard::open().await;
    account(&yard).await;
    yard.make(&[pod("pair", &["app", "side"], "unready")]).await;
    waits(&yard, "pair", "status.phase=Running").await;
    for (tool, args, code) in [
        ("k8s_get", json!({ "kind": "Widget" }), "unknown_kind"),
        ("k8s_get", json!({ "kind": "Pod", "name": "piar" }), "not_found"),
        ("k8s_get", json!({ "kind": "Pod", "name": "pair", "path": "spec.containrs" }), "unknown_field"),
        (
            "k8s_get",
            json!({ "kind": "Pod", "field_selector": "spec.terminationGracePeriodSeconds=30" }),
            "invalid_argument",
        ),
        ("k8s_get", json!({ "kind": "Pod", "selector": "a in (b" }), "invalid_argument"),
        ("k8s_get", json!({ "kind": "Pod", "cursor": "bm90IG91cnM" }), "cursor_mismatch"),
        ("k8s_logs", json!({ "pod": "pair" }), "container_required"),
        ("k8s_logs", json!({ "pod": "pair", "container": "sied" }), "container_not_found"),
        ("k8s_logs", json!({ "pod": "pair", "container": "app", "previous": true }), "no_previous_logs"),
        ("k8s_logs", json!({ "pod": "piar" }), "not_found"),
        ("k8s_rollout_status", json!({ "kind": "Pod", "name": "pair" }), "unsupported_kind"),
        ("k8s_wait", json!({ "kind": "Pod", "name": "piar", "timeout_s": 5 }), "not_found"),
        ("k8s_wait", json!({ "kind": "Pod", "name": "pair", "until": "rollout", "timeout_s": 5 }), "unsupported_kind"),
        ("k8s_discover", json!({ "ask": "explain", "target": "Pod.spec.containrs" }), "unknown_field"),
    ] {
        let refusal = yard.refused(tool, args.clone()).await;
        assert_eq!(refusal["code"], code, "{tool} {args}: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_applied_is_told_why() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    yard.make(&[service("web")]).await;
    let mut selector = deployment("web", 1);
    selector["spec"]["selector"]["matchLabels"] = json!({ "app": "other" });
    selector["spec"]["template"]["metadata"]["labels"] = json!({ "app": "other" });
    let mut mismatch = deployment("new", 1);
    mismatch["spec"]["template"]["metadata"]["labels"] = json!({ "app": "other" });
    let mut typo = deployment("web", 1);
    typo["spec"]["replicsa"] = json!(1);
    let mut wrong = deployment("web", 1);
    wrong["spec"]["replicas"] = json!("many");
    let mut negative = deployment("web", 1);
    negative["spec"]["replicas"] = json!(-1);
    let mut elsewhere = config_map("x", "y");
    elsewhere["metadata"]["namespace"] = json!(format!("{}-gone", yard.namespace));
    let mut address = service("web");
    address["spec"]["clusterIP"] = json!("10.0.0.99");
    let mut long = config_map("x", "y");
    long["metadata"]["labels"] = json!({ "a": "b".repeat(64) });
    let widget = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "x" } });
    for (object, code) in [
        (selector, "immutable_field"),
        (mismatch, "invalid_argument"),
        (typo, "unknown_field"),
        (wrong, "invalid_argument"),
        (negative, "invalid_argument"),
        (elsewhere, "not_found"),
        (address, "invalid_argument"),
        (long, "invalid_argument"),
        (widget, "unknown_kind"),
    ] {
        let refusal = yard.refused("k8s_diff", json!({ "manifest": manifest(std::slice::from_ref(&object)) })).await;
        assert_eq!((&refusal["code"], &refusal["retryable"]), (&json!(code), &json!(false)), "{object}: {refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_changed_is_told_before_anybody_is_asked() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    yard.make(&[config_map("settings", "hello"), service("web")]).await;
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "few" }, "spec": { "hard": { "services": "1" } } });
    yard.make(&[quota]).await;
    yard.awaits(json!({ "kind": "ResourceQuota", "name": "few", "until": "status.used.services=1" })).await;
    let web = |more: Value| {
        let mut args = json!({ "kind": "Deployment", "name": "web" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    for (tool, args, why) in [
        ("k8s_scale", json!({ "kind": "cm", "name": "settings", "replicas": 2 }), "has no replicas to set"),
        ("k8s_scale", json!({ "kind": "deploy", "name": "wbe", "replicas": 2 }), "not found"),
        ("k8s_rollout", web(json!({ "action": "undo" })), "revision"),
        ("k8s_rollout", web(json!({ "action": "undo", "to_revision": 99 })), "99"),
        ("k8s_rollout", web(json!({ "action": "set_image", "images": { "app2": "a:1" } })), "app2"),
        ("k8s_rollout", json!({ "kind": "cm", "name": "settings", "action": "restart" }), "roll out"),
        (
            "k8s_patch",
            web(json!({ "patch": "[{\"op\":\"test\",\"path\":\"/spec/replicas\",\"value\":9}]" })),
            "changed meanwhile",
        ),
        ("k8s_patch", web(json!({ "patch": "[{\"op\":\"remove\",\"path\":\"/spec/nothing\"}]" })), "changed meanwhile"),
        ("k8s_delete", json!({ "kind": "cm", "name": "setings" }), "not found"),
        ("k8s_apply", json!({ "manifest": manifest(&[service("second")]) }), "quota"),
        ("k8s_node", json!({ "action": "cordon", "name": "no-such-node" }), "not found"),
        ("k8s_run", json!({ "from_cronjob": "nightly" }), "not found"),
        ("k8s_probe", json!({ "kind": "pod", "name": "nobody", "port": 80 }), "not found"),
    ] {
        let told = yard.not_shown(tool, args.clone()).await;
        assert!(told.contains(why), "{tool} {args}: {told}");
    }
    let waiting = yard.ana.rest().get("/v1/runs?state=pending_approval").await.json();
    assert_eq!(waiting["runs"], json!([]), "nobody is asked to sign what cannot be done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_cannot_run_is_told_apart_from_one_that_fails() {
    let yard = Yard::open().await;
    account(&yard).await;
    yard.runs("web", 1).await;
    let pod = yard.pods("web").await.remove(0);
    let missing = yard.signed("k8s_exec", json!({ "pod": pod, "command": ["no-such-program"] })).await;
    assert_eq!(missing["outcome"]["code"], "command_not_found", "{missing:#}");
    let failing = json!(["sh", "-c", "echo out; echo err >&2; exit 7"]);
    let failed = yard.act("k8s_exec", json!({ "pod": pod, "command": failing })).await;
    assert_eq!(
        (&failed["exit_code"], &failed["stdout"], &failed["stderr"]),
        (&json!(7), &json!("out\n"), &json!("err\n")),
        "{failed:#}"
    );
}
