//! A session says for whom it was opened, and external servers are told accordingly: default, tenant, agent, workflow,
//! and what the workflow brings along; also when a person approves long after the session is closed.

use crate::here::in_process;
use crate::runs_desk::approve;
use crate::upstream_yard::{Shelf, admin, ours, put_secret, settled};
use serde_json::{Value, json};
use testkit::upstream::{Era, McpServer, tools};
use testkit::{Actor, Plan, until};

const ENTRY: &str = r#"
auth: { header: X-Api-Key, scheme: raw, secret: "{{ params.key }}" }
params:
  key: { secret: true }
  region: { default: from-the-entry }
  depth: { default: "1" }
effects: { look: read }
"#;

const TENANT: &str = r#"
mode: write
params:
  wiki_key: { secret: true }
servers:
  - use: wiki
    params: { key: "{{ params.wiki_key }}", region: from-the-tenant }
agents:
  - name: triage
    params: { wiki: { region: from-the-agent } }
workflows:
  - name: nightly
    agent: triage
    params: { wiki: { region: from-the-workflow } }
"#;

/// The parameters that went along with the last call of a tool.
fn told(server: &McpServer, tool: &str) -> Value {
    let seen = server.requests();
    let mut latest_first = seen.iter().rev().map(|seen| seen.message()["params"].clone());
    latest_first
        .find(|call| call["name"] == tool)
        .map(|call| call["_meta"]["quartermaster/params"].clone())
        .unwrap_or_default()
}

async fn session(agent: &Actor, opening: Value) -> String {
    let opened = agent.send(&agent.post("/v1/sessions", &opening)).await;
    assert_eq!(opened.status, 201, "{}", opened.text());
    let id = opened.json()["id"].as_str().expect("an id").to_owned();
    let arguments = json!({ "toolset": "mcp_wiki", "include_write_tools": true });
    let loaded = agent
        .send(
            &agent
                .post(&format!("/v1/sessions/{id}/calls"), &json!({ "tool": "load_toolset", "arguments": arguments })),
        )
        .await;
    assert_eq!(loaded.status, 200, "{}", loaded.text());
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_decides_what_servers_are_told_and_a_run_keeps_it() {
    let server = McpServer::start(Era::Both).await;
    server.require("x-api-key", "canary-key");
    server.offer(vec![tools::named("look"), tools::named("change")]);
    let shelf = Shelf::new().of("wiki", &server, ENTRY);
    let world = shelf.under(Plan::embedded()).tenant("acme", TENANT).start(in_process()).await;
    let (agent, ana) = (world.tenant("acme").agent(), world.tenant("acme").approver());
    let paul = admin(&agent);
    // Without its credential the server lists nothing; set over HTTP, it is used at once.
    assert!(put_secret(&paul, "wiki_key", "canary-key").await.status < 300);
    until("the tools", async || (!settled(&paul, "wiki").await["listed_at"].is_null()).then_some(())).await;

    let call = async |id: &str, tool: &str| {
        let body = json!({ "tool": ours("wiki", tool), "arguments": {} });
        agent.send(&agent.post(&format!("/v1/sessions/{id}/calls"), &body)).await
    };
    for (opening, region) in [
        (json!({ "mode": "write" }), "from-the-tenant"),
        (json!({ "mode": "write", "agent": "triage" }), "from-the-agent"),
        (json!({ "mode": "write", "workflow": "nightly" }), "from-the-workflow"),
        (
            json!({ "mode": "write", "workflow": "nightly", "params": { "wiki": { "region": "of-tonight" } } }),
            "of-tonight",
        ),
    ] {
        let id = session(&agent, opening).await;
        assert_eq!(call(&id, "look").await.status, 200);
        assert_eq!(
            told(&server, "look"),
            json!({ "region": region, "depth": "1" }),
            "no secret, and the last word counts"
        );
    }

    let id = session(&agent, json!({ "mode": "write", "params": { "wiki": { "depth": "9" } } })).await;
    let asked = call(&id, "change").await;
    assert_eq!(asked.status, 202, "{}", asked.text());
    let run = asked.json()["result"]["run"]["id"].as_str().expect("a run").to_owned();
    agent.send(&agent.request("DELETE", &format!("/v1/sessions/{id}"))).await;
    assert_eq!(server.calls("change").len(), 0);
    approve(&ana, &run).await;
    until("the call", async || (server.calls("change").len() == 1).then_some(())).await;
    assert_eq!(told(&server, "change")["depth"], "9", "what was approved is what is sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_tenant_does_not_know_opens_no_session() {
    let server = McpServer::start(Era::Both).await;
    let shelf = Shelf::new().of("wiki", &server, ENTRY);
    let world = shelf.under(Plan::embedded()).tenant("acme", TENANT).start(in_process()).await;
    let agent = world.tenant("acme").agent();
    for (opening, wanted) in [
        (json!({ "agent": "triag" }), "triage"),
        (json!({ "workflow": "weekly" }), "weekly"),
        (json!({ "params": { "wik": {} } }), "wiki"),
        (json!({ "params": { "wiki": { "regio": "x" } } }), "region"),
        (json!({ "params": { "wiki": { "key": "smuggled" } } }), "secret"),
    ] {
        let refused = agent.send(&agent.post("/v1/sessions", &opening)).await;
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].as_str()),
            (400, Some("invalid_argument")),
            "{opening}"
        );
        assert!(refused.text().contains(wanted), "{opening}: {}", refused.text());
        assert!(!refused.text().contains("smuggled"), "a value is not repeated");
    }
}
