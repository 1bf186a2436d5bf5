//! What a tool offers: asked in both eras, with and without a token, and told in its status.

use crate::on_a_cluster::yard::{Yard, condition_of};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::upstream::{Era, McpServer};

fn offered() -> Vec<Value> {
    let schema =
        json!({ "type": "object", "properties": { "content": { "type": "string" } }, "required": ["content"] });
    vec![
        json!({ "name": "remember", "description": "Store information", "inputSchema": schema }),
        json!({ "name": "recall", "description": "Find information", "inputSchema": { "type": "object" } }),
    ]
}

fn names(object: &Value) -> Value {
    object["status"]["availableTools"].clone()
}

async fn token(yard: &Yard, value: &str) {
    let secret: Secret = crate::on_a_cluster::yard::object(
        json!({ "metadata": { "name": "access" }, "stringData": { "token": value } }),
    );
    let params = PatchParams::apply("person").force();
    yard.api::<Secret>().patch("access", &params, &Patch::Apply(secret)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_a_tool_is_in_its_status_in_both_eras() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    for (name, era) in [("older", Era::Legacy), ("newer", Era::Modern), ("both", Era::Both)] {
        let server = McpServer::start(era).await;
        server.offer(offered());
        server.page(1);
        yard.tool(name, json!({ "image": "registry.example/tool:1", "port": server.port() })).await;
        let seen = yard.see_condition("LanguageTool", name, "SchemaSynced", ("True", "Listed")).await;
        assert_eq!(names(&seen), json!(["remember", "recall"]));
        let schemas = &seen["status"]["toolSchemas"];
        assert_eq!(schemas[0]["inputSchema"]["required"], json!(["content"]));
        assert_eq!(schemas[1]["description"], "Find information");
        assert_eq!(
            seen["status"]["endpoint"],
            format!("http://{name}.{}.svc.cluster.local:{}", yard.namespace, server.port())
        );
        assert_eq!((&seen["status"]["phase"], &seen["status"]["readyReplicas"]), (&json!("Running"), &json!(1)));
    }
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_shown_and_a_rotated_one_is_read_again() {
    let Some(yard) = Yard::open().await else { return };
    let settings = operator::context::OperatorSettings { resync: Duration::from_secs(2), ..yard.settings("one") };
    let operator = yard.operator_with(settings).await;
    let server = McpServer::start(Era::Both).await;
    server.offer(offered());
    server.require("authorization", "Bearer first");
    let reference = json!({ "name": "access", "key": "token" });
    let spec = json!({ "image": "registry.example/tool:1", "port": server.port(), "tokenSecretRef": reference });
    yard.tool("locked", spec).await;
    let missing = yard.see_condition("LanguageTool", "locked", "ResolvedRefs", ("False", "SecretNotFound")).await;
    assert!(condition_of(&missing, "ResolvedRefs")["message"].as_str().unwrap().contains("access"));

    token(&yard, "wrong").await;
    yard.see_condition("LanguageTool", "locked", "SchemaSynced", ("False", "Unauthorized")).await;
    token(&yard, "first").await;
    yard.see_condition("LanguageTool", "locked", "SchemaSynced", ("True", "Listed")).await;

    // Rotated: the tool wants another one, and offers more.
    server.require("authorization", "Bearer second");
    token(&yard, "second").await;
    let more = json!({ "name": "forget", "inputSchema": { "type": "object" } });
    server.offer(offered().into_iter().chain([more]).collect());
    let seen = yard
        .see("LanguageTool", "locked", "three tools", |object| {
            names(object).as_array().is_some_and(|all| all.len() == 3)
        })
        .await;
    let text = seen.to_string();
    assert!(!text.contains("first") && !text.contains("second"), "no value of a Secret is in the resource: {text}");
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_stops_answering_keeps_its_list() {
    let Some(yard) = Yard::open().await else { return };
    let settings = operator::context::OperatorSettings { resync: Duration::from_secs(1), ..yard.settings("one") };
    let operator = yard.operator_with(settings).await;
    let server = McpServer::start(Era::Both).await;
    server.offer(offered());
    yard.tool("gone", json!({ "image": "registry.example/tool:1", "port": server.port(), "path": "/mcp" })).await;
    yard.see_condition("LanguageTool", "gone", "SchemaSynced", ("True", "Listed")).await;
    drop(server);
    let seen = yard.see_condition("LanguageTool", "gone", "SchemaSynced", ("False", "NoAnswer")).await;
    assert_eq!(names(&seen), json!(["remember", "recall"]));

    // Where it is asked is a field of its own.
    let server = McpServer::start(Era::Both).await;
    server.offer(offered());
    yard.tool("gone", json!({ "image": "registry.example/tool:1", "port": server.port(), "path": "/elsewhere" })).await;
    yard.see_condition("LanguageTool", "gone", "SchemaSynced", ("False", "Refused")).await;
    assert!(operator.stop().await);
}
