//! Every tool of the toolset does what it says, seen through another tool.

use crate::k8s_yard::{Draft, Yard, config_map, deployment, is_real, manifest, service};
use sandbox::Seed;
use serde_json::{Value, json};

/// The names in a list of rows.
fn names(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_applied_is_seen_by_every_way_of_looking() {
    let yard = Yard::open().await;
    yard.runs("web", 2).await;

    let pods = yard.read("k8s_get", json!({ "kind": "Pod", "selector": "app=web" })).await;
    assert_eq!((&pods["count"], &pods["kind"]), (&json!(2), &json!("Pod")));
    assert_eq!(pods["target"], json!({ "cluster": "main", "namespace": yard.namespace }));
    let described = yard.read("k8s_get", json!({ "kind": "deploy", "name": "web", "view": "describe" })).await;
    assert_eq!(described["object"]["spec"]["replicas"], 2);
    assert!(described["events"].to_string().contains("ScalingReplicaSet"), "{described:#}");
    let pod = names(&pods)[0];
    let described = yard.read("k8s_get", json!({ "kind": "po", "name": pod, "view": "describe" })).await;
    assert!(described["events"].to_string().contains("Scheduled"), "{described:#}");

    let status = yard.read("k8s_rollout_status", json!({ "kind": "Deployment", "name": "web" })).await;
    assert_eq!((&status["done"], &status["failed"], &status["ready"]), (&json!(true), &json!(false), &json!(2)));
    assert_eq!((&status["revision"], &status["history"][0]["current"]), (&json!(1), &json!(true)), "{status:#}");
    let ready = yard.read("k8s_wait", json!({ "kind": "pod", "name": pod, "timeout_s": 20 })).await;
    assert_eq!(ready["met"], true, "{ready}");

    let logs = yard.read("k8s_logs", json!({ "selector": "app=web", "tail": 5 })).await;
    assert_eq!(logs["streams"].as_array().unwrap().len(), 2, "{logs:#}");
    assert!(!text(&logs["text"]).is_empty() && logs["untrusted"] == true, "{logs:#}");

    let same = yard.read("k8s_diff", json!({ "manifest": manifest(&[deployment("web", 2)]) })).await;
    assert_eq!(same["objects"][0]["action"], "none", "{same:#}");
    let more = manifest(&[deployment("web", 3), config_map("new", "x")]);
    let more = yard.read("k8s_diff", json!({ "manifest": more })).await;
    assert_eq!((&more["objects"][0]["action"], &more["objects"][1]["action"]), (&json!("change"), &json!("create")));
    let diff = text(&more["objects"][0]["diff"]);
    assert!(diff.contains("-  replicas: 2") && diff.contains("+  replicas: 3"), "{diff}");
    assert_eq!(yard.field("Deployment", "web", "spec.replicas").await, 2, "a diff changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_tells_what_it_is_and_what_may_be_done() {
    let yard = Yard::open().await;
    let facts = yard.read("k8s_discover", json!({ "ask": "cluster" })).await;
    assert!(facts["healthy"] == true && facts["nodes"]["ready"].as_u64().unwrap() >= 1, "{facts:#}");
    assert!(text(&facts["version"]).starts_with("v1."), "{facts:#}");
    assert_eq!(facts["default_namespace"], json!(yard.namespace));
    let kinds = yard.read("k8s_discover", json!({ "ask": "resources", "target": "apps" })).await;
    assert!(kinds["items"].to_string().contains("StatefulSet"), "{kinds:#}");
    let explained = yard.read("k8s_discover", json!({ "ask": "explain", "target": "Deployment.spec.strategy" })).await;
    assert!(explained.to_string().contains("rollingUpdate"), "{explained:#}");
    let verdict = yard.read("k8s_discover", json!({ "ask": "can_i", "verb": "delete", "target": "pods" })).await;
    assert_eq!(verdict["allowed"], true, "{verdict:#}");

    yard.runs("web", 1).await;
    let pods = json!({ "of": "pods" });
    if is_real() {
        assert_eq!(yard.refused("k8s_top", pods).await["code"], "metrics_unavailable");
    } else {
        let used = yard.read("k8s_top", pods).await;
        assert_eq!(names(&used), yard.pods("web").await, "{used:#}");
        let nodes = yard.read("k8s_top", json!({ "of": "nodes", "sort": "memory" })).await;
        assert!(nodes["items"].as_array().unwrap().iter().all(|node| node["cpu_pct"].is_u64()), "{nodes:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_is_scaled_and_patched() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;

    let scaled = yard.act("k8s_scale", json!({ "kind": "deploy", "name": "web", "replicas": 3 })).await;
    assert_eq!((&scaled["from"], &scaled["to"]), (&json!(1), &json!(3)), "{scaled}");
    yard.rolled_out("web").await;
    assert_eq!(yard.pods("web").await.len(), 3);
    let stale = json!({ "kind": "deploy", "name": "web", "replicas": 2, "current_replicas": 1 });
    let why = yard.not_shown("k8s_scale", stale).await;
    assert!(why.contains("it has 3 replicas and not 1"), "{why}");

    let merge = json!({ "metadata": { "labels": { "tier": "front" } } }).to_string();
    let patched = yard.act("k8s_patch", json!({ "kind": "deploy", "name": "web", "patch": merge })).await;
    assert_eq!(patched["changed"], true, "{patched}");
    assert_eq!(yard.field("Deployment", "web", "metadata.labels.tier").await, "front");
    let words = json!([{ "op": "add", "path": "/spec/minReadySeconds", "value": 1 }]).to_string();
    yard.act("k8s_patch", json!({ "kind": "deploy", "name": "web", "patch": words })).await;
    assert_eq!(yard.field("Deployment", "web", "spec.minReadySeconds").await, 1);
    let containers = json!([{ "name": "app", "env": [{ "name": "MODE", "value": "calm" }] }]);
    let strategic = json!({ "spec": { "template": { "spec": { "containers": containers } } } }).to_string();
    let patch = json!({ "kind": "deploy", "name": "web", "patch": strategic, "type": "strategic" });
    yard.act("k8s_patch", patch).await;
    let image = yard.field("Deployment", "web", "spec.template.spec.containers[0].image").await;
    assert_eq!(image, "registry.example/app:1.0", "a strategic patch keeps what it does not name");
    let nonsense =
        json!({ "kind": "deploy", "name": "web", "patch": json!({ "spec": { "replicsa": 1 } }).to_string() });
    let why = yard.not_shown("k8s_patch", nonsense).await;
    assert!(why.contains("does not have every field given"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_steered_there_and_back() {
    let yard = Yard::open().await;
    yard.runs("web", 2).await;
    let steer = |action: &str| json!({ "kind": "Deployment", "name": "web", "action": action });
    let image = "spec.template.spec.containers[0].image";

    let mut next = steer("set_image");
    next["images"] = json!({ "app": "registry.example/app:2.0" });
    let steered = yard.act("k8s_rollout", next).await;
    assert_eq!(steered["images"]["to"], json!({ "app": "registry.example/app:2.0" }), "{steered:#}");
    yard.rolled_out("web").await;
    assert_eq!(yard.field("Deployment", "web", image).await, "registry.example/app:2.0");
    let status = yard.read("k8s_rollout_status", json!({ "kind": "Deployment", "name": "web" })).await;
    assert_eq!((&status["revision"], status["history"].as_array().unwrap().len()), (&json!(2), 2), "{status:#}");
    let first = yard.read("k8s_rollout_status", json!({ "kind": "deploy", "name": "web", "revision": 1 })).await;
    assert_eq!(first["template"]["spec"]["containers"][0]["image"], "registry.example/app:1.0", "{first:#}");

    let undone = yard.act("k8s_rollout", steer("undo")).await;
    assert_eq!(undone["to_revision"], 1, "{undone}");
    yard.rolled_out("web").await;
    assert_eq!(yard.field("Deployment", "web", image).await, "registry.example/app:1.0");

    let before = yard.settled("web", 2).await;
    yard.act("k8s_rollout", steer("restart")).await;
    yard.rolled_out("web").await;
    let after = yard.settled("web", 2).await;
    assert!(before.iter().all(|pod| !after.contains(pod)), "{before:?} {after:?}");

    yard.act("k8s_rollout", steer("pause")).await;
    assert_eq!(yard.field("Deployment", "web", "spec.paused").await, true);
    yard.act("k8s_rollout", steer("resume")).await;
    let spec = yard.field("Deployment", "web", "spec").await;
    assert!(spec["paused"] != true, "{spec}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_deleted_is_gone() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    yard.make(&[config_map("settings", "hello")]).await;
    let uid = yard.field("ConfigMap", "settings", "metadata.uid").await;

    let dry = yard.read("k8s_delete", json!({ "kind": "cm", "name": "settings", "dry_run": true })).await;
    assert_eq!((&dry["deleted"], &dry["uid"]), (&json!(false), &uid), "{dry:#}");
    assert_eq!(yard.field("ConfigMap", "settings", "data.greeting").await, "hello");
    let gone = yard.act("k8s_delete", json!({ "kind": "cm", "name": "settings" })).await;
    assert_eq!((&gone["deleted"], &gone["uid"]), (&json!(true), &uid), "{gone:#}");
    let refusal = yard.refused("k8s_get", json!({ "kind": "cm", "name": "settings" })).await;
    assert_eq!(refusal["code"], "not_found");

    let pod = yard.pods("web").await.remove(0);
    yard.act("k8s_delete", json!({ "kind": "deploy", "name": "web", "cascade": "foreground" })).await;
    for (kind, name) in [("Deployment", "web"), ("Pod", pod.as_str())] {
        yard.awaits(json!({ "kind": kind, "name": name, "until": "deleted" })).await;
    }
    let rest = yard.read("k8s_get", json!({ "kind": "replicasets" })).await;
    assert_eq!(rest["count"], 0, "what it owned is gone too: {rest:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_taken_out_of_use_and_back() {
    let yard = Yard::open().await;
    let nodes = yard.read("k8s_get", json!({ "kind": "nodes" })).await;
    let node = *names(&nodes).last().unwrap();
    let told = yard.act("k8s_node", json!({ "action": "cordon", "name": node })).await;
    assert_eq!(told["unschedulable"], true);
    assert_eq!(yard.field("Node", node, "spec.unschedulable").await, true);
    let facts = yard.read("k8s_discover", json!({ "ask": "cluster" })).await;
    assert!(facts["nodes"]["unschedulable"].as_u64().unwrap() >= 1, "{facts:#}");
    let told = yard.act("k8s_node", json!({ "action": "uncordon", "name": node })).await;
    assert_eq!(told["unschedulable"], false);
    assert_ne!(yard.field("Node", node, "spec").await["unschedulable"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_says_whom_it_would_ask_to_go() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    let pod = yard.pods("web").await.remove(0);
    let node = yard.field("Pod", &pod, "spec.nodeName").await;
    let drain = json!({ "action": "drain", "name": node, "dry_run": true, "force": true, "delete_emptydir": true });
    let told = yard.read("k8s_node", drain).await;
    assert!(told["evicted"].to_string().contains(&format!("{}/{pod}", yard.namespace)), "{told:#}");
    assert_eq!(told["unschedulable"], yard.field("Node", text(&node), "spec").await["unschedulable"] == true);
    assert_eq!(yard.pods("web").await, [pod], "a rehearsal moves nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_node_is_left_by_its_pods_as_far_as_budgets_allow() {
    // A node of a shared cluster is not the test's to drain.
    let yard = Draft::simulated(Seed::empty()).await.start().await;
    yard.runs("web", 3).await;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "web" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } } });
    yard.make(&[budget]).await;
    yard.awaits(json!({ "kind": "pdb", "name": "web", "until": "status.disruptionsAllowed=1" })).await;
    let pod = yard.pods("web").await.remove(0);
    let node = yard.field("Pod", &pod, "spec.nodeName").await;

    let told = yard.act("k8s_node", json!({ "action": "drain", "name": node, "timeout_s": 60 })).await;
    assert_eq!((&told["unschedulable"], &told["remaining"]), (&json!(true), &json!(0)), "{told:#}");
    assert!(told["evicted"].to_string().contains(&pod), "{told:#}");
    yard.rolled_out("web").await;
    for pod in yard.settled("web", 3).await {
        assert_ne!(yard.field("Pod", &pod, "spec.nodeName").await, node, "{pod}");
    }

    let none = json!({ "spec": { "maxUnavailable": 0 } }).to_string();
    yard.act("k8s_patch", json!({ "kind": "pdb", "name": "web", "patch": none })).await;
    yard.awaits(json!({ "kind": "pdb", "name": "web", "until": "status.disruptionsAllowed=0" })).await;
    let pod = yard.pods("web").await.remove(0);
    let node = yard.field("Pod", &pod, "spec.nodeName").await;
    let told = yard.signed("k8s_node", json!({ "action": "drain", "name": node, "timeout_s": 10 })).await;
    assert_eq!((&told["state"], &told["outcome"]["code"]), (&json!("failed"), &json!("pdb_blocked")), "{told:#}");
    assert_eq!(yard.field("Pod", &pod, "spec.nodeName").await, node, "nobody is deleted instead");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_a_container_word_by_word() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    let pod = yard.pods("web").await.remove(0);
    let words = json!(["echo", "$(id)", "a b", "; ls"]);
    let ran = yard.act("k8s_exec", json!({ "pod": pod, "command": words })).await;
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("$(id) a b ; ls\n")), "{ran:#}");
    let ran = yard.act("k8s_exec", json!({ "pod": pod, "command": ["false"] })).await;
    assert_eq!(ran["exit_code"], 1, "a command that fails is no failure of the tool: {ran:#}");
    let ran = yard.act("k8s_exec", json!({ "pod": pod, "command": ["cat"], "stdin": "line\n" })).await;
    assert_eq!(ran["stdout"], "line\n", "{ran:#}");
    let other = json!({ "pod": pod, "command": ["true"], "container": "sidecar" });
    assert!(yard.not_shown("k8s_exec", other).await.contains("no container sidecar"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_runs_once_and_tells_what_it_wrote() {
    let yard = Yard::open().await;
    let job = json!({ "image": "registry.example/tool:1", "command": ["echo", "hello from the job"] });
    let ran = yard.act("k8s_run", job).await;
    assert_eq!(ran["exit_code"], 0, "{ran:#}");
    assert!(text(&ran["logs"]).contains("hello from the job"), "{ran:#}");
    let made = yard.read("k8s_get", json!({ "kind": "Job", "name": ran["job"] })).await;
    assert_eq!(made["object"]["name"], ran["job"], "{made:#}");
    let logs = yard.read("k8s_logs", json!({ "selector": format!("job-name={}", text(&ran["job"])) })).await;
    assert!(text(&logs["text"]).contains("hello from the job"), "{logs:#}");

    let template = json!({ "spec": { "template": { "spec": {
        "restartPolicy": "Never",
        "containers": [{ "name": "main", "image": "registry.example/tool:1", "command": ["sh", "-c", "echo tidied; exit 3"] }],
    } }, "backoffLimit": 0 } });
    let nightly = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": "nightly" },
        "spec": { "schedule": "0 3 * * *", "suspend": true, "jobTemplate": template } });
    yard.make(&[nightly]).await;
    let ran = yard.act("k8s_run", json!({ "from_cronjob": "nightly" })).await;
    assert_eq!(ran["exit_code"], 3, "{ran:#}");
    assert!(text(&ran["logs"]).contains("tidied"), "{ran:#}");

    yard.runs("web", 1).await;
    let pod = yard.pods("web").await.remove(0);
    let debug = json!({ "image": "registry.example/tool:1", "debug_pod": pod, "command": ["echo", "inside"] });
    let ran = yard.act("k8s_run", debug).await;
    assert!(text(&ran["logs"]).contains("inside"), "{ran:#}");
    let containers = yard.field("Pod", &pod, "spec.ephemeralContainers").await;
    assert_eq!(containers.as_array().unwrap().len(), 1, "{containers:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_asked_through_the_api_server() {
    let yard = Yard::open().await;
    yard.runs("web", 1).await;
    yard.make(&[service("web"), service("empty")]).await;
    let probe = |name: &str| json!({ "kind": "service", "name": name, "port": 80, "path": "/readyz" });
    let told = yard.signed("k8s_probe", probe("empty")).await;
    assert_eq!((&told["state"], &told["outcome"]["code"]), (&json!("failed"), &json!("no_endpoints")), "{told:#}");

    let told = yard.signed("k8s_probe", probe("web")).await;
    let outcome = &told["outcome"];
    if is_real() {
        // Nothing listens behind simulated nodes. Who says so is the API server, or whatever stands between it and them.
        let refused = outcome["result"]["status"].as_u64().is_some_and(|status| status >= 400);
        assert!(refused || outcome["code"].is_string(), "{told:#}");
    } else {
        assert_eq!((&told["state"], &outcome["result"]["status"]), (&json!("succeeded"), &json!(200)), "{told:#}");
    }
}
