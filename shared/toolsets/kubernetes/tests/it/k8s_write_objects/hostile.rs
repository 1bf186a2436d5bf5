//! CI1, CI2 and CI7: every string argument as flag, shell text, path and subresource. Each is refused by its grammar, or
//! is taken literally; none of them changes anything or reaches an address it should not.

use crate::k8s_write_objects::world::World;
use domain::Code;
use serde_json::{Value, json};

const CORPUS: [&str; 30] = [
    "--server=http://x",
    "-sx",
    "-Ashttps://x",
    "--kube-token=x",
    "--kubeconfig=/etc/passwd",
    "--all",
    "--watch",
    "-",
    ";id",
    "$(id)",
    "`id`",
    "a\nb",
    "a\0b",
    "a%0ab",
    "a b",
    "../../secrets/x",
    "..",
    "%2e%2e",
    "%2e%2e%2fsecrets",
    "?fieldSelector=metadata.name=x",
    "x?dryRun=",
    "x#y",
    "pods/x/exec",
    "nodes/x/proxy",
    "x/scale",
    "/api/v1/secrets",
    "http://169.254.169.254/",
    "\u{202e}evil",
    "Ünïcode",
    "*",
];

fn good(tool: &str) -> Value {
    match tool {
        "k8s_scale" => json!({ "kind": "Deployment", "name": "catalog", "namespace": "shop", "replicas": 3 }),
        "k8s_delete" => json!({ "kind": "Deployment", "name": "catalog", "namespace": "shop" }),
        "k8s_patch" => {
            json!({ "kind": "Deployment", "name": "catalog", "namespace": "shop", "patch": "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}" })
        }
        "k8s_apply" => {
            json!({ "manifest": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "namespace": "shop" })
        }
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn ci1_ci2_ci7_no_string_becomes_anything_but_itself() {
    let world = World::shop().await;
    let before = world.writes();
    for tool in ["k8s_scale", "k8s_delete", "k8s_patch", "k8s_apply"] {
        let Value::Object(fields) = good(tool) else { panic!("an object") };
        world.preview(tool, good(tool)).await.unwrap();
        let strings = fields.iter().filter(|(_, value)| value.is_string()).map(|(key, _)| key.as_str());
        for key in strings.chain(["cluster", "type", "cascade"]) {
            for hostile in CORPUS {
                let mut args = good(tool);
                args[key] = json!(hostile);
                let refused = world.run(tool, args.clone()).await;
                let refused = refused.err().unwrap_or_else(|| panic!("{tool} took {args}"));
                let known = [
                    Code::InvalidArgument,
                    Code::UnknownArgument,
                    kubernetes::codes::INVALID_MANIFEST,
                    kubernetes::codes::CLUSTER_UNKNOWN,
                ];
                assert!(known.contains(&refused.code), "{tool} {key}={hostile:?}: {refused}");
            }
        }
    }
    assert_eq!(world.writes(), before);
    let sent = world.sandbox.requests().join("\n");
    for trace in ["passwd", "exec", "proxy", "169.254", "%2e", "fieldSelector", "/secrets/x"] {
        assert!(!sent.contains(trace), "{trace} in {sent}");
    }
}

#[tokio::test]
async fn names_inside_a_manifest_obey_the_same_grammar() {
    let world = World::shop().await;
    let before = world.writes();
    for hostile in CORPUS {
        for object in [
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": hostile } }),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": hostile } }),
            json!({ "apiVersion": "v1", "kind": hostile, "metadata": { "name": "a" } }),
            json!({ "apiVersion": hostile, "kind": "ConfigMap", "metadata": { "name": "a" } }),
        ] {
            let refused = world.run("k8s_apply", json!({ "manifest": object.to_string() })).await;
            assert!(refused.is_err(), "{object}");
        }
    }
    assert_eq!(world.writes(), before);
}

#[tokio::test]
async fn values_are_literal_however_they_look() {
    let world = World::shop().await;
    // A value that looks like a token is kept, and shown masked.
    for (n, hostile) in CORPUS.iter().enumerate().filter(|(_, text)| !text.contains("token")) {
        let patch = json!({ "data": { format!("key-{n}"): hostile } });
        let args = json!({ "kind": "ConfigMap", "name": "shop-config", "patch": patch.to_string() });
        world.run("k8s_patch", args).await.unwrap();
        let kept = world.get("ConfigMap", "shop-config").await["data"][format!("key-{n}")].clone();
        assert_eq!(kept, json!(hostile), "{hostile:?}");
    }
}
