//! The rights that the chart gives are those that are used, each of them, and no others are needed.

use crate::on_a_cluster::yard::{Yard, using};
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use testkit::upstream::{Era, McpServer};

/// Group, resource and verb.
type Right = (String, String, String);

fn given() -> BTreeSet<Right> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/chart/files/operator-rules.json");
    let rules: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let all = |rule: &Value, key: &str| -> Vec<String> {
        rule[key].as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in rules.as_object().unwrap().values().flat_map(|part| part.as_array().unwrap()) {
        for group in all(rule, "apiGroups") {
            for resource in all(rule, "resources") {
                rights.extend(all(rule, "verbs").into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
    }
    rights
}

#[tokio::test(flavor = "multi_thread")]
async fn every_right_of_the_chart_is_used_and_none_is_missing() {
    let Some(yard) = Yard::open().await else { return };
    let settings = operator::context::OperatorSettings { resync: Duration::from_secs(1), ..yard.settings("one") };
    let operator = yard.operator_with(settings).await;
    let secret: Secret =
        crate::on_a_cluster::yard::object(json!({ "metadata": { "name": "access" }, "stringData": { "token": "t" } }));
    yard.api().create(&PostParams::default(), &secret).await.unwrap();
    let server = McpServer::start(Era::Both).await;
    server.offer(vec![json!({ "name": "a", "inputSchema": { "type": "object" } })]);
    let reference = json!({ "name": "access", "key": "token" });
    yard.tool(
        "tool",
        json!({ "image": "registry.example/tool:1", "port": server.port(), "tokenSecretRef": reference }),
    )
    .await;
    yard.agent("agent", using(&["tool"])).await;
    yard.see_condition("LanguageTool", "tool", "SchemaSynced", ("True", "Listed")).await;
    // The same thing twice is one event that is counted: it fails, is mended and fails again.
    for _ in 0..2 {
        server.require("authorization", "Bearer other");
        yard.see_condition("LanguageTool", "tool", "SchemaSynced", ("False", "Unauthorized")).await;
        server.require("authorization", "Bearer t");
        yard.see_condition("LanguageTool", "tool", "SchemaSynced", ("True", "Listed")).await;
    }
    yard.tool("tool", json!({ "image": "registry.example/tool:1", "deploymentMode": "sidecar" })).await;
    for kind in ["Deployment", "Service", "NetworkPolicy"] {
        yard.see_gone(kind, "tool").await;
    }
    yard.see("Deployment", "agent", "the sidecar", |one| {
        one["spec"]["template"]["spec"]["initContainers"][0]["name"] == "tool"
    })
    .await;

    let mut missing = BTreeSet::new();
    yard.until("every right to be used", async || {
        let seen = yard.audited(&yard.user("one"));
        let refused: Vec<_> = seen.iter().filter(|one| one.status == 403).collect();
        assert_eq!(refused, Vec::<&crate::on_a_cluster::yard::Audited>::new(), "a right is missing");
        let mut used: BTreeSet<Right> =
            seen.iter().map(|one| (one.group.clone(), one.resource.clone(), one.verb.clone())).collect();
        // What is applied where nothing is yet is a patch to the audit log, and asks for `create` as well.
        let applied: Vec<Right> = seen
            .iter()
            .filter(|one| one.verb == "patch" && one.status == 201)
            .map(|one| (one.group.clone(), one.resource.clone(), "create".to_owned()))
            .collect();
        used.extend(applied);
        missing = given().difference(&used).cloned().collect();
        missing.is_empty().then_some(())
    })
    .await;
    assert_eq!(missing, BTreeSet::new());
    assert!(operator.stop().await);
}
