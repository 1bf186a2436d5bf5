//! CI1, CI2 and CI7: every text of every tool as a flag, as shell, as a path. Each is refused or taken literally, and
//! no request leaves for a place the call does not name.

use crate::k8s_yard::{Draft, Yard, config_map, manifest, service};
use crate::runs_desk::say;
use sandbox::Seed;
use serde_json::{Value, json};

/// Flags of the command lines that others build such calls into.
const FLAGS: [&str; 23] = [
    "--server=x",
    "-sx",
    "-Ashttps://x",
    "--kube-apiserver=x",
    "--kube-token=x",
    "--kube-as-user=x",
    "--kubeconfig=",
    "--post-renderer=/bin/sh",
    "--post-renderer-args",
    "--set-file a=/etc/shadow",
    "-f http://169.254.169.254/",
    "--values=/proc/self/environ",
    "--repository-config",
    "--registry-config",
    "--enable-dns",
    "--plain-http",
    "--insecure_skip_tls_verify",
    "--profile-output",
    "--log-file",
    "--cache-dir",
    "--debug",
    "--all",
    "--watch",
];
/// What a shell, a splitter or a terminal would act on.
const SHELL: [&str; 9] = [";id", "$(id)", "`id`", "a\nb", "a\0b", "a%0ab", "a b", "| tee /tmp/x", "\u{202e}evil"];
/// What an address would bend to.
const PATHS: [&str; 14] = [
    "../../secrets/x",
    "..",
    ".",
    "%2e%2e",
    "%2e%2e%2fsecrets",
    "..%2f..%2fsecrets",
    "?fieldSelector=metadata.name=x",
    "x?dryRun=",
    "x#y",
    "pods/x/exec",
    "nodes/x/proxy",
    "x/scale",
    "/api/v1/secrets",
    "http://169.254.169.254/",
];

/// A call of each tool that works, with every text it can be given. `*` stands before those that may hold any text.
fn calls(pod: &str) -> Vec<(&'static str, Value)> {
    let map = manifest(&[config_map("settings", "bye")]);
    let label = json!({ "metadata": { "labels": { "a": "b" } } }).to_string();
    let web = |more: Value| {
        let mut args = json!({ "kind": "Deployment", "name": "web", "namespace": "", "cluster": "main" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    let at = |more: Value| {
        let mut args = json!({ "namespace": "", "cluster": "main" });
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        args
    };
    vec![
        ("k8s_get", web(json!({ "view": "summary", "path": "spec.replicas" }))),
        (
            "k8s_get",
            at(
                json!({ "kind": "pods", "selector": "app=web", "field_selector": "status.phase=Running", "cursor": "" }),
            ),
        ),
        ("k8s_logs", at(json!({ "pod": pod, "container": "app", "since": "5m", "grep": "x", "cursor": "" }))),
        ("k8s_logs", at(json!({ "selector": "app=web" }))),
        ("k8s_top", at(json!({ "of": "pods", "name": pod, "sort": "cpu" }))),
        ("k8s_top", at(json!({ "of": "pods", "selector": "app=web" }))),
        ("k8s_rollout_status", web(json!({}))),
        ("k8s_wait", web(json!({ "until": "rollout", "timeout_s": 1 }))),
        ("k8s_discover", at(json!({ "ask": "can_i", "target": "pods", "verb": "get" }))),
        ("k8s_discover", json!({ "ask": "explain", "target": "Pod.spec", "cluster": "main" })),
        ("k8s_discover", json!({ "ask": "resources", "target": "apps", "cursor": "", "cluster": "main" })),
        ("k8s_diff", at(json!({ "manifest": map, "cursor": "" }))),
        ("k8s_apply", at(json!({ "manifest": map }))),
        ("k8s_patch", web(json!({ "patch": label, "type": "merge" }))),
        ("k8s_rollout", web(json!({ "action": "restart" }))),
        ("k8s_rollout", web(json!({ "action": "set_image", "images": { "app": "registry.example/app:2" } }))),
        ("k8s_scale", web(json!({ "replicas": 2 }))),
        ("k8s_delete", web(json!({ "cascade": "background" }))),
        ("k8s_node", json!({ "action": "cordon", "name": "sandbox-node-1", "cluster": "main" })),
        ("k8s_exec", at(json!({ "pod": pod, "command": ["true"], "container": "app", "stdin": "x" }))),
        ("k8s_run", at(json!({ "image": "registry.example/tool:1", "command": ["true"] }))),
        ("k8s_run", at(json!({ "image": "registry.example/tool:1", "debug_pod": pod }))),
        ("k8s_run", at(json!({ "from_cronjob": "nightly" }))),
        ("k8s_probe", at(json!({ "kind": "service", "name": "web", "port": 80, "path": "/readyz" }))),
    ]
}

/// Whether any text may stand there: it reaches a program, a search or a body as it is, and never an address.
fn is_free(tool: &str, args: &Value, key: &str, text: &str) -> bool {
    match (tool, key) {
        ("k8s_exec", "command" | "stdin") | ("k8s_run", "command") | ("k8s_logs", "grep") | ("k8s_probe", "path") => {
            true
        }
        // What the list of kinds is searched for.
        ("k8s_discover", "target") => args["ask"] == "resources",
        // A label whose key has a domain, asked whether it is there.
        (_, "selector") => text == "x/scale",
        // They read like images, and the registry is asked by the cluster and not by us.
        (_, "image" | "images") => ["pods/x/exec", "nodes/x/proxy", "x/scale"].contains(&text),
        (_, _) => false,
    }
}

/// Puts a text in the place of one argument.
fn with(args: &Value, key: &str, hostile: &str) -> Value {
    let mut args = args.clone();
    args[key] = match &args[key] {
        Value::Array(_) => json!(["true", hostile]),
        Value::Object(images) => {
            let container = images.keys().next().unwrap().clone();
            json!({ container: hostile })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => json!(hostile),
    };
    args
}

async fn prepared() -> Yard {
    let yard = Draft::simulated(Seed::empty()).await.start().await;
    yard.runs("web", 1).await;
    let job = json!({ "spec": { "template": { "spec": { "restartPolicy": "Never",
        "containers": [{ "name": "main", "image": "registry.example/tool:1" }] } } } });
    let nightly = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "nightly" },
        "spec": { "schedule": "0 3 * * *", "suspend": true, "jobTemplate": job } });
    yard.make(&[config_map("settings", "hello"), service("web"), nightly]).await;
    yard
}

/// Takes back what was taken literally and now waits for a person.
async fn withdrawn(yard: &Yard, structured: &Value) {
    if let Some(run) = structured["run"]["id"].as_str() {
        let agent = yard.world.tenant("acme").agent();
        assert_eq!(say(&agent, run, "cancel", json!({})).await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ci1_ci2_ci7_no_text_becomes_anything_but_itself() {
    let yard = prepared().await;
    let pod = yard.pods("web").await.remove(0);
    let (before, begun) = (yard.sandbox().writes(), yard.sandbox().requests().len());
    let (mut refused, mut literal) = (0, 0);
    for (tool, mut args) in calls(&pod) {
        if args["namespace"] == "" {
            args["namespace"] = json!(yard.namespace);
        }
        let keys: Vec<String> = args.as_object().unwrap().keys().cloned().collect();
        args.as_object_mut().unwrap().remove("cursor");
        let good = yard.call(tool, args.clone()).await;
        withdrawn(&yard, good.ok()).await;
        let texts = keys.iter().filter(|key| !args[key.as_str()].is_number());
        for (key, hostile) in
            texts.flat_map(|key| FLAGS.iter().chain(&SHELL).chain(&PATHS).map(move |text| (key, text)))
        {
            let outcome = yard.call(tool, with(&args, key, hostile)).await;
            if outcome.code() == "ok" {
                withdrawn(&yard, outcome.ok()).await;
                assert!(is_free(tool, &args, key, hostile), "{tool} took {hostile:?} for {key}");
                literal += 1;
            } else {
                refused += 1;
            }
        }
    }
    assert!(refused > 3_000 && literal > 100, "{refused} refused, {literal} taken literally");
    assert_eq!(yard.sandbox().writes(), before, "nothing was changed");
    let requests = yard.sandbox().requests().split_off(begun);
    assert!(requests.len() > 100, "there was something to look at: {}", requests.len());
    for request in requests {
        assert!(in_its_place(&yard, &request), "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_manifest_calls_its_objects_obeys_the_same_grammar() {
    let yard = Draft::simulated(Seed::empty()).await.start().await;
    let (before, begun) = (yard.sandbox().writes(), yard.sandbox().requests().len());
    for hostile in FLAGS.iter().chain(&SHELL).chain(&PATHS) {
        for object in [
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": hostile } }),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": hostile } }),
            json!({ "apiVersion": "v1", "kind": hostile, "metadata": { "name": "a" } }),
            json!({ "apiVersion": hostile, "kind": "ConfigMap", "metadata": { "name": "a" } }),
        ] {
            for tool in ["k8s_diff", "k8s_apply"] {
                yard.refused(tool, json!({ "manifest": object.to_string() })).await;
            }
        }
    }
    assert_eq!(yard.sandbox().writes(), before);
    for request in &yard.sandbox().requests()[begun..] {
        assert!(in_its_place(&yard, request), "{request}");
    }
}

/// What the queries of these tools are made of.
const QUERY: [&str; 21] = [
    "limit",
    "continue",
    "labelSelector",
    "fieldSelector",
    "fieldManager",
    "fieldValidation",
    "force",
    "dryRun",
    "container",
    "tailLines",
    "sinceSeconds",
    "previous",
    "timestamps",
    "limitBytes",
    "watch",
    "resourceVersion",
    "allowWatchBookmarks",
    "timeoutSeconds",
    "verbose",
    "resourceVersionMatch",
    "sendInitialEvents",
];
/// What no address of theirs holds. Nobody has signed for anything, so nothing is executed or reached through a proxy.
const BENT: [&str; 11] = ["..", "//", "%", "#", "secrets", "169.254", "passwd", "environ", "shadow", "/exec", "/proxy"];

/// Whether an honest call asks for that address: of the API, in the yard's namespace if in any, with known questions.
fn in_its_place(yard: &Yard, request: &str) -> bool {
    let (_, whole) = request.split_once(' ').unwrap();
    let (path, query) = whole.split_once('?').unwrap_or((whole, ""));
    let known = path.starts_with("/api") || path.starts_with("/openapi/v3") || ["/version", "/readyz"].contains(&path);
    let namespace = path.split_once("/namespaces/").and_then(|(_, rest)| rest.split('/').next());
    let mut questions = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split('=').next().unwrap());
    known
        && !BENT.iter().any(|trace| path.contains(trace))
        && namespace.is_none_or(|namespace| namespace == yard.namespace)
        && questions.all(|question| QUERY.contains(&question))
}
