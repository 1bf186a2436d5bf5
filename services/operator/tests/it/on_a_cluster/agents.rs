//! Agents and their tools: endpoints, configuration, sidecars.

use crate::on_a_cluster::yard::{Yard, condition_of, template, using};
use serde_json::{Value, json};

fn env(object: &Value) -> &str {
    object.pointer("/spec/template/spec/containers/0/env/0/value").and_then(Value::as_str).unwrap_or("-")
}

fn config(object: &Value) -> &str {
    object["data"]["config.yaml"].as_str().unwrap_or("-")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_gets_the_endpoints_of_its_tools_ready_or_not() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    let never = json!({ "image": "registry.example/tool:1", "podAnnotations": { "sandbox/behave": "unready" } });
    yard.tool("never-ready", never).await;
    yard.agent("ana", using(&["never-ready", "later"])).await;
    let at = |name: &str, port: u16| format!("http://{name}.{}.svc.cluster.local:{port}", yard.namespace);

    let deployment = yard.see("Deployment", "ana", "the endpoint", |one| env(one) == at("never-ready", 8080)).await;
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["volumeMounts"][0]["mountPath"], "/etc/agent");
    assert_eq!(pod["volumes"][0]["configMap"]["name"], "ana-tools");
    let map = yard.find("ConfigMap", "ana-tools").await.unwrap();
    let entry = |name: &str, port| format!("  \"{name}\":\n    endpoint: {}\n    protocol: mcp\n", at(name, port));
    assert_eq!(config(&map), format!("tools:\n{}", entry("never-ready", 8080)));
    let agent = yard.see_condition("LanguageAgent", "ana", "ResolvedRefs", ("False", "ToolNotFound")).await;
    assert!(condition_of(&agent, "ResolvedRefs")["message"].as_str().unwrap().contains("later"));
    let tool = yard.find("LanguageTool", "never-ready").await.unwrap();
    assert_eq!(condition_of(&tool, "Ready")["status"], "False");

    // A tool that comes later, and one that moves.
    yard.tool("later", json!({ "image": "registry.example/tool:1", "port": 9000 })).await;
    let both = format!("{},{}", at("never-ready", 8080), at("later", 9000));
    yard.see("Deployment", "ana", "both", |one| env(one) == both).await;
    let agent = yard.see_condition("LanguageAgent", "ana", "ResolvedRefs", ("True", "Resolved")).await;
    assert_eq!(agent["status"]["tools"][1], json!({ "name": "later", "endpoint": at("later", 9000) }));
    yard.tool("later", json!({ "image": "registry.example/tool:1", "port": 9001 })).await;
    let want = format!("tools:\n{}{}", entry("never-ready", 8080), entry("later", 9001));
    yard.see("ConfigMap", "ana-tools", "the new port", |map| config(map) == want).await;
    yard.see_condition("LanguageAgent", "ana", "Ready", ("True", "ReplicasReady")).await;

    // A tool that goes, and then the agent: what was made of it goes with it.
    yard.delete("LanguageTool", "never-ready").await;
    yard.see("Deployment", "ana", "one less", |one| env(one) == at("later", 9001)).await;
    for kind in ["Deployment", "Service", "NetworkPolicy"] {
        yard.see_gone(kind, "never-ready").await;
    }
    yard.delete("LanguageAgent", "ana").await;
    yard.see_gone("Deployment", "ana").await;
    yard.see_gone("ConfigMap", "ana-tools").await;
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_runs_in_the_pod_of_each_agent_and_nowhere_else() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.tool("files", json!({ "image": "registry.example/files:1", "port": 7000 })).await;
    yard.agent("ben", using(&["files"])).await;
    yard.see("Deployment", "files", "to run by itself", |_| true).await;

    let sidecar = json!({
        "image": "registry.example/files:1", "port": 7000, "deploymentMode": "sidecar",
        "volumes": [{ "name": "scratch", "emptyDir": {} }],
        "volumeMounts": [{ "name": "workspace", "mountPath": "/workspace" }, { "name": "scratch", "mountPath": "/s" }],
    });
    let mut spec = using(&["files"]);
    spec["template"]["spec"]["volumes"] = json!([{ "name": "workspace", "emptyDir": {} }]);
    yard.agent("ben", spec.clone()).await;
    yard.tool("files", sidecar).await;
    for kind in ["Deployment", "Service", "NetworkPolicy"] {
        yard.see_gone(kind, "files").await;
    }
    let deployment = yard.see("Deployment", "ben", "a sidecar", |one| env(one) == "http://localhost:7000").await;
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["initContainers"][0];
    assert_eq!((&container["name"], &container["restartPolicy"]), (&json!("files"), &json!("Always")));
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/workspace");
    let volumes: Vec<&str> =
        pod["volumes"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(volumes, ["workspace", "scratch", "langop-agent-config"]);
    let tool = yard.see_condition("LanguageTool", "files", "Ready", ("True", "Sidecar")).await;
    assert_eq!(tool["status"]["endpoint"], "http://localhost:7000");
    yard.see_condition("LanguageAgent", "ben", "Ready", ("True", "ReplicasReady")).await;

    // Two of them on one port cannot be: the agent keeps what it has.
    yard.tool("other", json!({ "image": "registry.example/o:1", "port": 7000, "deploymentMode": "sidecar" })).await;
    spec["tools"] = json!([{ "name": "files" }, { "name": "other" }]);
    yard.agent("ben", spec).await;
    let agent = yard.see_condition("LanguageAgent", "ben", "Accepted", ("False", "Clash")).await;
    assert!(condition_of(&agent, "Accepted")["message"].as_str().unwrap().contains("port 7000"));
    let deployment = yard.find("Deployment", "ben").await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["initContainers"].as_array().unwrap().len(), 1);
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_that_the_api_server_refuses_is_told_with_its_words() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.agent("cem", json!({ "template": { "spec": { "containers": [{ "name": "a", "imgae": "x" }] } } })).await;
    let agent = yard.see_condition("LanguageAgent", "cem", "Accepted", ("False", "Refused")).await;
    assert!(condition_of(&agent, "Accepted")["message"].as_str().unwrap().contains("imgae"));
    yard.agent("cem", json!({ "template": template() })).await;
    yard.see_condition("LanguageAgent", "cem", "Accepted", ("True", "Applied")).await;
    assert!(operator.stop().await);
}
