//! `helm_template`, with the real binary. Without `QUARTERMASTER_TEST_HELM` there is none, and the tests say so and end.

use crate::charts::world::World;
use domain::Code;
use serde_json::{Value, json};

const CONFIG: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\n  namespace: {{ .Release.Namespace }}\n\
                      data:\n  color: {{ .Values.color | quote }}\n  kube: {{ .Capabilities.KubeVersion.Version | quote }}\n";
const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}-login\nstringData:\n  password: hunter2-hunter2\n";
const SECOND: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: echo\ndata:\n  said: the password is hunter2-hunter2\n";
const HOOK: &str = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: before\n  annotations:\n    helm.sh/hook: pre-upgrade\n\
                    spec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers: [{name: a, image: busybox}]\n";
const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: things.example.com\n\
                   spec:\n  group: example.com\n  names: {kind: Thing, plural: things}\n  scope: Namespaced\n  versions: []\n";

/// A world with helm, or nothing where there is none.
async fn world() -> Option<World> {
    if std::env::var_os("QUARTERMASTER_TEST_HELM").is_none() {
        println!("SKIPPED: QUARTERMASTER_TEST_HELM names no helm binary; see `deploy/testbed helm`");
        return None;
    }
    Some(World::new().await)
}

fn web(more: Value) -> Value {
    let mut args = json!({ "release": "front", "chart": "stable/web" });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    args
}

#[tokio::test]
async fn a_chart_is_rendered_with_values_and_its_secrets_are_masked_everywhere() {
    let Some(world) = world().await else { return };
    world.publish(
        "web",
        "1.0.0",
        &[
            ("values.yaml", "color: red\n"),
            ("templates/a.yaml", CONFIG),
            ("templates/b.yaml", SECRET),
            ("templates/c.yaml", SECOND),
            ("crds/t.yaml", CRD),
        ],
    );

    let answer = world.call("helm_template", web(json!({ "values": { "color": "blue; $(id) --x" } }))).await.unwrap();

    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("blue; $(id) --x") && text.contains("name: front-config"), "{text}");
    assert!(text.contains("v1.33"), "the cluster's own version: {text}");
    assert!(!text.contains("hunter2") && text.matches("masked:").count() >= 2, "{text}");
    assert_eq!(answer["objects"].as_array().unwrap().len(), 3, "{answer}");
    assert_eq!(answer["target"]["namespace"], "shop");

    let with = world.call("helm_template", web(json!({ "include_crds": true, "namespace": "shop" }))).await.unwrap();
    assert!(with["text"].as_str().unwrap().contains("things.example.com"), "{with}");
}

#[tokio::test]
async fn ci5_a_lookup_sees_nothing_and_is_told() {
    let Some(world) = world().await else { return };
    let asks = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  found: {{ lookup \"v1\" \"Namespace\" \"\" \"\" | toJson | quote }}\n  \
                dns: {{ getHostByName \"localhost\" | quote }}\n";
    world.publish("web", "1.0.0", &[("templates/a.yaml", asks)]);

    let answer = world.call("helm_template", web(json!({}))).await.unwrap();

    assert_eq!(answer["lookup_used"], true);
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("found: '{}'") || text.contains("found: \"{}\""), "{text}");
    assert!(!text.contains("127.0.0.1"), "{text}");
}

#[tokio::test]
async fn a_release_that_is_not_there_is_all_new() {
    let Some(world) = world().await else { return };
    world.publish("web", "1.0.0", &[("templates/a.yaml", CONFIG), ("templates/b.yaml", SECRET), ("crds/t.yaml", CRD)]);

    let answer =
        world.call("helm_template", web(json!({ "output": "diff", "values": { "color": "red" } }))).await.unwrap();

    let diff = answer["diff"].as_str().unwrap();
    assert!(diff.contains("create ConfigMap shop/front-config") && diff.contains("color: red"), "{diff}");
    assert!(!diff.contains("hunter2"), "{diff}");
    assert_eq!(answer["crds"], json!(["crds/t.yaml"]));
    assert!(answer["hint"].as_str().unwrap().contains("helm_install"), "{answer}");
}

#[tokio::test]
async fn a_live_release_is_compared_object_by_object() {
    let Some(world) = world().await else { return };
    world.publish(
        "web",
        "1.0.0",
        &[("values.yaml", "color: red\n"), ("templates/a.yaml", CONFIG), ("templates/b.yaml", SECRET)],
    );
    let install = web(json!({ "values": { "token": "canary-value", "size": 1 }, "wait": false, "namespace": "shop" }));
    world.call("helm_install", install).await.unwrap();
    world.publish(
        "web",
        "1.1.0",
        &[("values.yaml", "color: red\n"), ("templates/a.yaml", CONFIG), ("templates/h.yaml", HOOK)],
    );
    world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();

    let answer =
        world.call("helm_template", web(json!({ "output": "diff", "values": { "color": "blue" } }))).await.unwrap();

    let diff = answer["diff"].as_str().unwrap();
    assert!(diff.contains("change ConfigMap shop/front-config") && diff.contains("+  color: blue"), "{diff}");
    assert!(diff.contains("remove Secret") && !diff.contains("hunter2"), "{diff}");
    let values = answer["values_diff"].as_str().unwrap();
    assert!(values.contains("+color: blue") && !values.contains("canary"), "{values}");
    assert_eq!(answer["hooks"], json!(["Job before (pre-upgrade)"]));
}

#[tokio::test]
async fn lint_tells_what_is_wrong_and_nothing_of_this_machine() {
    let Some(world) = world().await else { return };
    world.publish(
        "web",
        "1.0.0",
        &[("values.yaml", "a: 1\n"), ("templates/a.yaml", "a: {{ .Values.a.b.c }}\n  b: [\n")],
    );

    let answer = world.call("helm_template", web(json!({ "output": "lint" }))).await.unwrap();

    let findings = answer["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["level"] == "error"), "{answer}");
    assert!(
        findings
            .iter()
            .any(|finding| finding["level"] == "info" && finding["message"].as_str().unwrap().contains("icon")),
        "{answer}"
    );
    assert!(!answer.to_string().contains(world.folder.path().to_str().unwrap()), "{answer}");
}

#[tokio::test]
async fn what_cannot_be_rendered_says_where_and_why() {
    let Some(world) = world().await else { return };
    world.publish("web", "1.0.0", &[("templates/a.yaml", "{{ fail \"no color\" }}\n")]);
    let failure = world.refused("helm_template", web(json!({}))).await;
    assert_eq!(failure.code, helm::codes::RENDER_FAILED);
    assert!(failure.details.unwrap()["message"].as_str().unwrap().contains("no color"));

    let schema = r#"{"type":"object","properties":{"color":{"enum":["red"]}}}"#;
    world.publish("web", "1.0.1", &[("values.schema.json", schema), ("templates/a.yaml", CONFIG)]);
    world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
    let failure = world.refused("helm_template", web(json!({ "values": { "color": "blue" } }))).await;
    assert_eq!(failure.code, helm::codes::SCHEMA_INVALID);

    world.publish("web", "1.0.2", &[("templates/a.yaml", "just words\n")]);
    world.call("helm_search", json!({ "query": "web", "refresh": true })).await.unwrap();
    assert_eq!(world.refused("helm_template", web(json!({}))).await.code, helm::codes::RENDER_FAILED);
}

#[tokio::test]
async fn a_long_manifest_comes_in_pages() {
    let Some(world) = world().await else { return };
    let many = "{{ range $n := until 600 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c{{ $n }}}\ndata: {n: \"{{ $n }}\"}\n{{ end }}";
    world.publish("web", "1.0.0", &[("templates/a.yaml", many)]);
    let mut args = web(json!({}));
    let mut whole = String::new();
    loop {
        let answer = world.call("helm_template", args.clone()).await.unwrap();
        whole.push_str(answer["text"].as_str().unwrap());
        assert_eq!(answer["objects"].as_array().unwrap().len(), 100);
        match answer["next_cursor"].as_str() {
            Some(cursor) => args["cursor"] = json!(cursor),
            None => break,
        }
    }
    assert_eq!(whole.matches("kind: ConfigMap").count(), 600);
}

#[tokio::test]
async fn ghsa_wmg3_no_argument_reaches_helm_as_a_flag() {
    let Some(world) = world().await else { return };
    world.publish("web", "1.0.0", &[("templates/a.yaml", CONFIG)]);
    for text in [
        "--kube-apiserver=x",
        "-f",
        "--post-renderer=/bin/sh",
        "--set-file=a=/etc/shadow",
        "--values=/proc/self/environ",
        "--debug",
        "a b",
        "$(id)",
        "../x",
        "a\nb",
        "a\0b",
        "{{ .x }}",
        "A",
        "a/b",
    ] {
        for key in ["release", "namespace", "cluster", "chart", "version", "output"] {
            let code = world.refused("helm_template", web(json!({ key: text }))).await.code;
            assert!(
                matches!(code, Code::InvalidArgument | kubernetes::codes::CLUSTER_UNKNOWN | Code::NotFound),
                "{key}={text:?}: {code:?}"
            );
        }
        let answer = world.call("helm_template", web(json!({ "values": { "color": text, text: text } }))).await;
        // Values are data; one that YAML cannot hold, or that a chart could evaluate, is refused and never bent.
        assert!(answer.is_ok() || text.contains('\0') || text.contains("{{"), "{text:?}: {answer:?}");
    }
    for denied in [
        json!({ "namespace": "kube-system" }),
        json!({ "values": "a=b" }),
        json!({ "set": "a=b" }),
        json!({ "values_file": "/etc/passwd" }),
    ] {
        let answer = world.call("helm_template", web(denied.clone())).await;
        assert!(answer.is_err() || denied["namespace"] == "kube-system", "{denied}: rendering changes nothing");
    }
}
