//! Nothing is written where nothing changed, and people are told once.

use crate::on_a_cluster::yard::{Yard, using};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;
use std::time::Duration;
use testkit::upstream::{Era, McpServer};

/// As long as the acceptance wants it.
const IDLE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_minute_writes_nothing() {
    let Some(yard) = Yard::open().await else { return };
    // It is looked at all the time, and asked what it offers.
    let settings = operator::context::OperatorSettings { resync: Duration::from_secs(1), ..yard.settings("one") };
    let operator = yard.operator_with(settings).await;
    let server = McpServer::start(Era::Both).await;
    server.offer(vec![
        json!({ "name": "a", "inputSchema": { "type": "object", "properties": { "b": { "default": null } } } }),
    ]);
    // Values that the API server writes its own way.
    let resources = json!({ "requests": { "cpu": "1000m", "memory": "1024Ki" }, "limits": { "cpu": 2 } });
    yard.tool("still", json!({ "image": "registry.example/tool:1", "port": server.port(), "resources": resources }))
        .await;
    yard.tool(
        "aside",
        json!({ "image": "registry.example/tool:1", "deploymentMode": "sidecar", "resources": resources }),
    )
    .await;
    yard.agent("ana", using(&["still", "aside"])).await;
    yard.see_condition("LanguageTool", "still", "SchemaSynced", ("True", "Listed")).await;
    yard.see_condition("LanguageAgent", "ana", "Ready", ("True", "ReplicasReady")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;

    let (before, asked) = (yard.writes(&yard.user("one")), server.count("tools/list"));
    tokio::time::sleep(IDLE).await;
    let after = yard.writes(&yard.user("one"));
    let more = &after[before.len()..];
    assert!(more.is_empty(), "nothing changed, so nothing is written: {more:?}");
    let looks = server.count("tools/list") - asked;
    assert!(looks > 20, "it was looked at meanwhile: {looks}");
    println!("{looks} looks, {} writes before, 0 in {} s", before.len(), IDLE.as_secs());
    assert!(operator.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_told_by_events_what_changed() {
    let Some(yard) = Yard::open().await else { return };
    let operator = yard.operator().await;
    yard.tool("told", json!({ "image": "registry.example/tool:1" })).await;
    yard.see_condition("LanguageTool", "told", "Ready", ("True", "ReplicasReady")).await;
    yard.tool("told", json!({ "image": "registry.example/tool:1", "resources": { "nonsense": {} } })).await;
    yard.see_condition("LanguageTool", "told", "Accepted", ("False", "Refused")).await;
    let events = yard
        .until("a warning", async || {
            let all = yard.api::<Event>().list(&ListParams::default()).await.unwrap().items;
            let ours: Vec<Event> = all
                .into_iter()
                .filter(|one| one.reporting_controller.as_deref() == Some("quartermaster-operator"))
                .collect();
            ours.iter()
                .any(|one| one.type_.as_deref() == Some("Warning") && one.reason.as_deref() == Some("Refused"))
                .then_some(ours)
        })
        .await;
    let count = |reason: &str| events.iter().filter(|one| one.reason.as_deref() == Some(reason)).count();
    assert_eq!((count("Applied"), count("ReplicasReady"), count("Refused")), (1, 1, 1));
    assert!(operator.stop().await);
}
