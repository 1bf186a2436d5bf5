//! Tenants' files are read again while the service runs: a good change is applied and announced, a bad one is kept out.

use crate::here::{DEFAULT, FIXED, embedded, told};
use serde_json::json;
use testkit::until;

const CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_changes_the_list_and_every_open_stream_hears_it() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    let (mut legacy, mut modern) = (client.open_stream().await, agent.modern().listen().await);

    world.configure("acme", "policy:\n  deny: [memory_history]");

    assert_eq!(legacy.notice().await, CHANGED);
    let heard = modern.message().await;
    assert_eq!(heard["method"], CHANGED);
    assert_eq!(heard["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "m1");
    let left: Vec<&str> = DEFAULT.into_iter().filter(|name| *name != "memory_history").collect();
    assert_eq!(client.list().await, left);
    assert!(!agent.modern().list().await.contains(&"memory_history".to_owned()));
    let called = client.call("memory_history", json!({ "path": "tenant/runbooks/a" })).await;
    assert_eq!(called.code(), "unknown_tool", "what is denied now is denied to sessions that were there before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_one_tenant_is_not_announced_to_another() {
    let world = embedded().await;
    let other = world.tenant("other").agent().legacy().await;
    let quiet = other.open_stream().await;
    let mut heard = world.tenant("acme").agent().modern().listen().await;
    world.configure("acme", "policy:\n  deny: [memory_history]");
    assert_eq!(heard.notice().await, CHANGED);
    other.delete().await;
    assert_eq!(quiet.rest().await, Vec::<serde_json::Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn t16_a_bad_file_keeps_the_old_one_whatever_is_wrong_with_it() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let tenants = &world.part(0).tenants;
    let bad =
        ["tenant: acme\nmode: admin\n", "tenant: acme\npolcy: {}\n", "tenant: acme\n  - [", "", "tenant: other\n"];
    for text in bad {
        world.write_tenant("acme", text);
        let problem = until("the problem", async || tenants.problems().first().map(ToString::to_string)).await;
        assert!(problem.contains("acme.yaml:"), "it says where: {problem}");
        assert_eq!(client.list().await.len(), FIXED.len(), "{text:?}");
        assert_eq!(client.call("memory_list", json!({})).await.code(), "ok", "{text:?}");

        world.configure("acme", "");
        until("the problem to be gone", async || tenants.problems().is_empty().then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn t16_a_bad_file_is_a_warning_and_no_reason_to_stop_serving() {
    let world = embedded().await;
    let warnings = async || world.get(0, "/readyz").await.json()["warnings"].clone();
    world.write_tenant("acme", "tenant: acme\nmode: admin\n");
    until("the warning", async || (warnings().await == json!(["config_reload_failed"])).then_some(())).await;
    assert_eq!(world.get(0, "/health").await.status, 200);
    world.configure("acme", "");
    until("the warning to go", async || (warnings().await == json!([])).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_whose_file_is_gone_is_served_no_longer() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    let stream = client.open_stream().await;
    world.remove_tenant("acme");
    let refused = until("the tenant to be gone", async || {
        let answer =
            agent.send(&agent.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))).await;
        (answer.status != 200).then_some(answer)
    })
    .await;
    assert_eq!(
        told(&refused),
        r#"403 {"jsonrpc":"2.0","error":{"code":1003,"message":"the token names no tenant that is served here","data":{"code":"forbidden_tenant","retryable":false,"trace_id":"TRACE"}}}"#
    );
    assert_eq!(stream.rest().await, Vec::<serde_json::Value>::new(), "its streams end");
    assert_eq!(world.tenant("other").agent().modern().list().await.len(), FIXED.len());

    world.configure("acme", "");
    until("the tenant to be back", async || {
        let answer =
            agent.send(&agent.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))).await;
        // Until the store has said whether something else holds for it, that is what is told.
        (answer.status == 200 && answer.json()["error"].is_null()).then_some(())
    })
    .await;
    assert_eq!(client.list().await, DEFAULT, "its sessions were only waiting");
}
