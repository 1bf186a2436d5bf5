//! What the argo tools must not do: reach another namespace, act where nothing is installed, or take a text for anything
//! but itself.

use crate::argo_story::{canary, rollout};
use crate::k8s_yard::{Draft, TENANT, loaded};
use crate::runs_desk::say;
use sandbox::Seed;
use serde_json::{Value, json};

/// Every tool, about one Rollout of a namespace.
fn calls(namespace: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("argo_get", json!({ "namespace": namespace })),
        ("argo_get", json!({ "namespace": namespace, "name": "web" })),
        ("argo_get", json!({ "namespace": namespace, "kind": "analysisrun", "rollout": "web" })),
        ("argo_history", json!({ "namespace": namespace, "name": "web" })),
        ("argo_rollout", json!({ "namespace": namespace, "name": "web", "action": "restart" })),
        ("argo_rollout", json!({ "namespace": namespace, "name": "web", "action": "undo" })),
        (
            "argo_analysis",
            json!({ "namespace": namespace, "name": "web", "action": "terminate", "kind": "experiment" }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_outside_of_the_allow_list_is_out_of_reach() {
    let fence = ", default_namespace: elsewhere, namespaces: [elsewhere]";
    let yard = Draft::new().await.tenant("fenced", "admin", fence).start().await;
    yard.make(&[rollout("web", 1, &canary())]).await;
    let fenced = loaded(&yard.world.tenant("fenced").agent()).await;

    for (tool, args) in calls(&yard.namespace) {
        let outcome = fenced.call(tool, args.clone()).await;
        let refusal = outcome.refusal();
        assert!(refusal.to_string().contains("namespace_denied"), "{tool} {args}: {refusal}");
    }
    let everywhere = fenced.call("argo_get", json!({ "namespace": "*" })).await;
    assert_eq!(everywhere.ok()["items"], json!([]), "only what the tenant may see");
    let own = yard.read("argo_get", json!({ "name": "web" })).await;
    assert_eq!(own["name"], "web", "it was there all the time");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_without_argo_is_told_apart_from_one_without_rollouts() {
    let yard = Draft::simulated(Seed::empty().without_rollouts()).await.start().await;
    for (tool, args) in calls(&yard.namespace) {
        let refusal = yard.refused(tool, args).await;
        assert!(refusal.to_string().contains("argo_not_installed"), "{tool}: {refusal}");
    }
}

/// Flags, shells and addresses.
const TEXTS: [&str; 22] = [
    "--server=x",
    "-sx",
    "--kubeconfig=",
    "--all",
    "-f http://169.254.169.254/",
    ";id",
    "$(id)",
    "`id`",
    "a\nb",
    "a\0b",
    "a%0ab",
    "a b",
    "\u{202e}evil",
    "../../secrets/x",
    "..",
    ".",
    "%2e%2e%2fsecrets",
    "?fieldSelector=metadata.name=x",
    "x?dryRun=",
    "x#y",
    "pods/x/exec",
    "web/status",
];

#[tokio::test(flavor = "multi_thread")]
async fn ci1_ci2_ci7_no_text_becomes_anything_but_itself() {
    let yard = Draft::simulated(Seed::empty()).await.start().await;
    yard.make(&[rollout("web", 1, &canary())]).await;
    let whole = |more: Value| {
        let mut args = json!({ "namespace": yard.namespace, "cluster": "main" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let calls = [
        ("argo_get", whole(json!({ "kind": "rollout", "name": "web" }))),
        ("argo_get", whole(json!({ "kind": "analysisrun", "rollout": "web", "cursor": "x" }))),
        ("argo_history", whole(json!({ "name": "web" }))),
        ("argo_rollout", whole(json!({ "action": "restart", "name": "web" }))),
        (
            "argo_rollout",
            whole(json!({ "action": "set_image", "name": "web", "images": { "app": "registry.example/app:9" } })),
        ),
        ("argo_analysis", whole(json!({ "action": "terminate", "kind": "analysisrun", "name": "x" }))),
    ];
    let (before, begun) = (yard.sandbox().writes(), yard.sandbox().requests().len());
    for (tool, args) in &calls {
        for key in args.as_object().unwrap().keys() {
            for text in TEXTS {
                let mut bent = args.clone();
                bent[key] = if key == "images" { json!({ "app": text }) } else { json!(text) };
                let outcome = yard.call(tool, bent).await;
                // They read like images, and the registry is asked by the cluster and not by us.
                let is_image = key == "images" && ["pods/x/exec", "web/status"].contains(&text);
                assert_eq!(outcome.code() == "ok", is_image, "{tool} {key}={text:?}: {outcome:?}");
                if let Some(run) = outcome.message["result"]["structuredContent"]["run"]["id"].as_str() {
                    let agent = yard.world.tenant(TENANT).agent();
                    assert_eq!(say(&agent, run, "cancel", json!({})).await.status, 200);
                }
            }
        }
    }
    assert_eq!(yard.sandbox().writes(), before, "nothing was changed");
    let own = format!("/namespaces/{}/", yard.namespace);
    for request in &yard.sandbox().requests()[begun..] {
        let (_, address) = request.split_once(' ').unwrap();
        let path = address.split('?').next().unwrap();
        let bent = ["..", "//", "%", "#", "secrets", "169.254", "/exec"].iter().any(|trace| path.contains(trace));
        assert!(!bent && (!path.contains("/namespaces/") || path.contains(&own)), "{request}");
    }
}
