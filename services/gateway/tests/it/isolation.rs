//! Nothing of one tenant can be had with another's token, and nothing anybody said stands in the audit log or the log.

use crate::here::{embedded, processes, redis};
use domain::Tenant;
use serde_json::{Value, json};
use testkit::{Actor, Plan, until};

const PATH: &str = "session/notes/plan";
const CANARY: &str = "canary-7Yq2vT";

/// Every kind of request that names a session, answered without its trace id.
async fn replay(actor: &Actor, session: &str) -> Vec<(String, (u16, String))> {
    let mut said = Vec::new();
    let rest = actor.rest();
    let at = format!("/v1/sessions/{session}");
    said.push(("show".to_owned(), rest.get(&at).await));
    said.push(("tools".to_owned(), rest.tools(session, "openai").await));
    let calls = [
        ("memory_read", json!({ "path": PATH })),
        ("memory_list", json!({ "path": "session" })),
        ("memory_search", json!({ "query": CANARY })),
        ("memory_history", json!({ "path": PATH })),
        ("memory_remember", json!({ "path": PATH, "type": "note", "content": "b", "evidence": "c" })),
        ("load_toolset", json!({ "toolset": "memory" })),
        ("unload_toolset", json!({ "toolset": "memory" })),
        ("search_tools", json!({ "query": "memory" })),
        ("call_tool", json!({ "tool": "memory_read", "arguments": { "path": PATH } })),
    ];
    let legacy = actor.legacy().await.named(session);
    for (tool, arguments) in calls {
        said.push((format!("rest {tool}"), rest.call(session, tool, arguments.clone()).await));
        let params = json!({ "name": tool, "arguments": arguments });
        said.push((
            format!("legacy {tool}"),
            legacy.send(&legacy.prepare_as(json!(1), "tools/call", params.clone())).await,
        ));
        said.push((
            format!("modern {tool}"),
            actor.modern().with_session(session).call(tool, arguments.clone()).await.answer,
        ));
        let inner = json!({ "tool": tool, "arguments": arguments, "session": session });
        said.push((format!("call_tool {tool}"), actor.modern().call("call_tool", inner).await.answer));
    }
    said.push(("list".to_owned(), legacy.send(&legacy.prepare_as(json!(1), "tools/list", json!({}))).await));
    said.push(("stream".to_owned(), legacy.send(&legacy.stream_request()).await));
    said.push(("end".to_owned(), legacy.delete().await));
    said.push(("close".to_owned(), rest.delete(&at).await));
    said.into_iter().map(|(name, answer)| (name, answer.anonymous())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn id10_every_call_replayed_by_a_stranger_reads_like_a_random_id() {
    let world = redis(2).await;
    let agent = world.tenant("acme").agent();
    let owner = agent.legacy().await;
    owner.load("memory:write").await;
    let note = json!({ "path": PATH, "type": "note", "content": format!("the {CANARY} sings"), "evidence": "y" });
    owner.call("memory_remember", note).await.ok();

    for stranger in [world.tenant("other").agent().on(1), agent.named("mallory")] {
        let stolen = replay(&stranger, owner.session()).await;
        let random = replay(&stranger, "ses_7Qm2VtX9cK4hT1bN8rLwEa").await;
        for ((name, theirs), (_, nobodys)) in stolen.iter().zip(&random) {
            assert_eq!(theirs, nobodys, "{name}");
            assert!(!theirs.1.contains(CANARY) && !theirs.1.contains(owner.session()), "{name}: {}", theirs.1);
            assert!(matches!(theirs.0, 200 | 403 | 404), "{name}: {}", theirs.0);
        }
    }

    let read = owner.call("memory_read", json!({ "path": PATH })).await;
    assert_eq!((&read.ok()["version"], read.code()), (&json!(1), "ok"), "nothing of that reached it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_holds_every_call_and_nothing_anybody_said() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    client.load("memory:write").await;
    let note =
        json!({ "path": "session/notes/a", "type": "note", "content": CANARY, "evidence": CANARY, "title": CANARY });
    client.call("memory_remember", note).await.ok();
    client.call("memory_search", json!({ "query": CANARY })).await.ok();
    client.call("memory_search", json!({ "query": CANARY, "scope": CANARY })).await.refusal();
    client.call(CANARY, json!({ CANARY: CANARY })).await.error();
    client.call("memory_read", json!({ "path": "session/notes/none" })).await.refusal();
    agent
        .modern()
        .call(
            "memory_remember",
            json!({ "path": "session/notes/a", "type": "note", "content": CANARY, "evidence": "x" }),
        )
        .await
        .refusal();

    let audit = world.part(0).store.of(&Tenant::parse("acme").unwrap()).audit();
    let phase = |entries: &[Value], phase: &str| entries.iter().filter(|entry| entry["phase"] == phase).count();
    let entries: Vec<Value> = until("every entry to be closed", async || {
        let entries: Vec<Value> = audit.page(None, 1_000).await.unwrap().into_iter().map(|noted| noted.entry).collect();
        (phase(&entries, "open") == phase(&entries, "close")).then_some(entries)
    })
    .await;

    assert_eq!(phase(&entries, "open"), 5, "calls that got as far as the store: {entries:?}");
    let codes: Vec<&str> = entries.iter().filter_map(|entry| entry["outcome"]["code"].as_str()).collect();
    assert_eq!(codes.iter().filter(|code| **code == "ok").count(), 3, "{codes:?}");
    assert!(codes.contains(&"doc_not_found") && codes.contains(&"write_not_loaded"), "{codes:?}");
    let text = json!(entries).to_string();
    assert!(!text.contains(CANARY), "{text}");
    assert!(!text.contains(agent.token()), "no token either");
    let other = world.part(0).store.of(&Tenant::parse("other").unwrap()).audit();
    assert_eq!(other.page(None, 10).await.unwrap(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_holds_nothing_anybody_said() {
    let world = Plan::redis(1).setting("QM_TELEMETRY__LOG", "debug").start(processes()).await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    client.load("memory:write").await;
    let note = json!({ "path": "session/notes/a", "type": "note", "content": CANARY, "evidence": CANARY });
    client.call("memory_remember", note).await.ok();
    client.call("memory_search", json!({ "query": CANARY })).await.ok();
    client.call(CANARY, json!({ CANARY: CANARY })).await.error();
    agent
        .send(&agent.post(&format!("/mcp/x/{CANARY}"), &json!({ "jsonrpc": "2.0", "id": CANARY, "method": CANARY })))
        .await;
    agent.rest().get(&format!("/v1/{CANARY}?token={CANARY}")).await;
    agent.send(&agent.request("GET", "/mcp").with("Authorization", format!("Bearer {CANARY}"))).await;
    agent.send(&agent.request("GET", "/mcp").header("Mcp-Session-Id", CANARY).header("Origin", CANARY)).await;

    // Lines come through a pipe, a moment after what they tell of; the refusal is among the last of them.
    let log = until("the refusal to be logged", async || {
        let log = world.part(0).log();
        log.contains("requests were refused before a call").then_some(log)
    })
    .await;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(CANARY) || line.contains(agent.token())).collect();
    assert_eq!(lines, Vec::<&str>::new());
}
