//! Toolsets on demand: what loading adds, who may load what, and what stays closed whichever door is tried.

use crate::here::{DEFAULT, FIXED, GROWN, MANAGING, World, embedded, in_process, told, with_more_to_draw};
use serde_json::{Value, json};
use testkit::{Actor, Outcome, Plan};

const NOTE: &str = "session/notes/a";

fn note() -> Value {
    json!({ "path": NOTE, "type": "note", "content": "x", "evidence": "y" })
}

async fn world() -> World {
    let strict = "policy:\n  deny: [memory_history, \"memory_read:tenant\"]";
    let plan = Plan::embedded().tenant("library", "mode: read").tenant("bare", "default_toolsets: []");
    plan.tenant("strict", strict).start(in_process()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_grows_the_list_and_returns_full_schemas() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    assert_eq!(client.list().await, DEFAULT);

    let loaded = client.load("memory:write").await;

    assert_eq!(client.list().await, GROWN);
    assert_eq!(loaded["session"], client.session());
    assert_eq!(loaded["loaded"], json!({ "memory": "write" }));
    assert_eq!(loaded["added"].as_array().unwrap().len(), 4);
    let added = &loaded["added"][0];
    assert_eq!(added["name"], "memory_remember");
    assert_eq!(added["inputSchema"]["required"], json!(["path", "type", "content", "evidence"]));
    assert_eq!(added["annotations"]["readOnlyHint"], false);
    assert!(loaded["tokens"]["added"].as_u64().unwrap() > 0);
    assert_eq!(client.call("memory_remember", note()).await.ok()["created"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_list_keeps_its_bytes_when_more_is_loaded() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    let before = client.list_text().await;
    client.load("memory:write").await;
    let after = client.list_text().await;
    let tools = before.strip_suffix("]}}").unwrap();
    assert!(after.starts_with(tools) && after.len() > before.len());
    assert_eq!(client.list_text().await, after, "the same set has the same bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_twice_is_loading_once() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    let first = client.load("memory:write").await;
    let again = client.load("memory:write").await;
    let lower = client.load("memory").await;
    assert_eq!((&again["added"], &again["loaded"]), (&first["added"], &first["loaded"]));
    assert_eq!(again["tokens"], json!({ "added": 0, "loaded": first["tokens"]["loaded"] }));
    assert_eq!(lower["loaded"], json!({ "memory": "write" }), "asking for less takes nothing away");
    assert_eq!(client.list().await, GROWN);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_toolsets_are_loaded_by_one_call_or_none_of_them() {
    let world = world().await;
    let client = world.tenant("bare").agent().legacy().await;
    assert_eq!(client.list().await, ["load_toolset"]);
    let mixed = client.call("load_toolset", json!({ "toolset": ["memory", "nope"] })).await;
    assert_eq!(mixed.refusal()["code"], "unknown_toolset");
    assert_eq!(client.list().await, ["load_toolset"]);

    let loaded = client.call("load_toolset", json!({ "toolset": ["memory", "memory"] })).await;
    assert_eq!(loaded.ok()["loaded"], json!({ "memory": "read" }));
    assert_eq!(loaded.ok()["added"].as_array().unwrap().len(), 4);
    let listed = client.list().await;
    assert_eq!(listed.len(), MANAGING.len() + 4);
    assert_eq!(listed[0], "load_toolset", "what is loaded later comes behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_toolset_is_answered_with_the_valid_ones() {
    let world = with_more_to_draw().await;
    let agent = world.tenant("acme").agent();
    for outcome in [
        agent.legacy().await.call("load_toolset", json!({ "toolset": "memroy" })).await,
        agent.modern().call("load_toolset", json!({ "toolset": "memroy" })).await,
    ] {
        let refusal = outcome.refusal();
        assert_eq!(refusal["code"], "unknown_toolset");
        assert_eq!(refusal["next"], "choose from: memory, jenkins");
        assert_eq!(
            (&refusal["did_you_mean"], &refusal["details"]["toolsets"]),
            (&json!(["memory"]), &json!(["memory", "jenkins"]))
        );
    }
    for odd in [json!({}), json!({ "toolset": [] }), json!({ "toolset": 1 }), json!({ "toolset": "memory", "x": 1 })] {
        let outcome = agent.modern().call("load_toolset", odd.clone()).await;
        assert!(matches!(outcome.code(), "invalid_argument" | "unknown_argument"), "{odd}: {outcome:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn id17_write_tools_need_the_scope_in_every_era() {
    let world = embedded().await;
    let reader = world.tenant("acme").reader();
    let wanted = json!({ "toolset": "memory", "include_write_tools": true });
    let client = reader.legacy().await;
    let refused = client.call("load_toolset", wanted.clone()).await;
    assert_eq!((refused.answer.status, refused.code()), (403, "insufficient_scope"));
    assert_eq!(refused.error()["data"]["details"]["scope"], "tools:write");
    let challenge = refused.answer.header("www-authenticate").unwrap();
    assert!(challenge.contains(r#"error="insufficient_scope""#) && challenge.contains(r#"scope="tools:write""#));
    let modern = reader.modern().call("load_toolset", wanted.clone()).await;
    assert_eq!((modern.answer.status, modern.code()), (403, "insufficient_scope"));
    let rest = reader.rest();
    let session = rest.open("read").await;
    assert_eq!(rest.call(&session, "load_toolset", wanted).await.status, 403);
    assert_eq!(client.list().await, DEFAULT, "the list never showed it");
    let inner = json!({ "tool": "memory_remember", "arguments": note() });
    let through = reader.modern().call("call_tool", inner).await;
    assert_eq!((through.answer.status, through.code()), (403, "insufficient_scope"));
}

#[tokio::test(flavor = "multi_thread")]
async fn write_tools_are_refused_in_a_read_session_and_in_a_read_tenant_with_the_reason() {
    let world = world().await;
    let wanted = json!({ "toolset": "memory", "include_write_tools": true });
    let library = world.tenant("library").agent();
    for outcome in [
        library.legacy().await.call("load_toolset", wanted.clone()).await,
        library.modern().call("load_toolset", wanted.clone()).await,
    ] {
        assert_eq!(outcome.refusal()["code"], "policy_denied");
        assert_eq!(outcome.refusal()["message"], "this tenant is read-only, so write tools are not issued");
    }
    let rest = world.tenant("acme").agent().rest();
    let session = rest.open("read").await;
    let refused = rest.call(&session, "load_toolset", wanted).await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (403, &json!("policy_denied")));
    assert_eq!(
        refused.json()["error"]["message"],
        "this session was opened for reading, so write tools are not issued"
    );
    assert_eq!(refused.header("www-authenticate"), None, "no other token would help");
}

#[tokio::test(flavor = "multi_thread")]
async fn unloading_shrinks_the_list_and_closes_the_tools() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    client.load("memory:write").await;

    let unloaded = client.call("unload_toolset", json!({ "toolset": "memory" })).await;

    assert_eq!(unloaded.ok()["removed"], json!(["memory"]));
    assert_eq!(unloaded.ok()["loaded"], json!({}));
    assert_eq!(client.list().await, MANAGING);
    assert_eq!(client.call("memory_list", json!({})).await.refusal()["code"], "not_loaded");
    let again = client.call("unload_toolset", json!({ "toolset": "memory" })).await;
    assert_eq!(again.ok()["removed"], json!([]));
    let without = world.tenant("acme").agent().modern().call("unload_toolset", json!({ "toolset": "memory" })).await;
    assert_eq!(without.refusal()["code"], "session_required");
}

#[tokio::test(flavor = "multi_thread")]
async fn searching_ranks_what_could_be_loaded_and_changes_nothing() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    let found = client.call("search_tools", json!({ "query": "remember" })).await;
    let first = &found.ok()["tools"][0];
    assert_eq!((&first["name"], &first["toolset"]), (&json!("memory_remember"), &json!("memory")));
    assert_eq!((&first["loaded"], &first["write"], &first["effect"]), (&json!(false), &json!(true), &json!("change")));
    let versions = client.call("search_tools", json!({ "query": "versions of a document", "limit": 2 })).await;
    let versions = versions.ok()["tools"].as_array().unwrap();
    assert_eq!((versions.len(), &versions[0]["name"]), (2, &json!("memory_history")));
    let nothing = client.call("search_tools", json!({ "query": "zzzz" })).await;
    assert_eq!(nothing.ok()["tools"], json!([]));
    assert_eq!(client.list().await, DEFAULT);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_modern_era_a_handle_opens_tools_and_the_list_stays() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let before = client.ask("tools/list", json!({})).await.answer.text();
    let loaded = client.loaded("memory:write").await;

    let by_meta = loaded.call("memory_remember", note()).await;
    assert_eq!(by_meta.ok()["created"], true);
    let inner = json!({ "session": loaded.handle(), "tool": "memory_read", "arguments": { "path": NOTE } });
    let by_argument = client.call("call_tool", inner).await;
    assert_eq!(by_argument.ok()["content"], "x");
    let inner = json!({ "tool": "memory_read", "arguments": { "path": NOTE } });
    assert_eq!(loaded.call("call_tool", inner.clone()).await.ok()["content"], "x");
    assert_eq!(client.call("call_tool", inner).await.refusal()["code"], "session_required");
    let itself = client.call("call_tool", json!({ "tool": "call_tool", "arguments": {} })).await;
    assert_eq!(itself.refusal()["code"], "invalid_argument");

    for client in [&client, &loaded] {
        assert_eq!(client.ask("tools/list", json!({})).await.answer.text(), before);
        assert_eq!(client.list().await, FIXED);
    }
    let again = client.call("load_toolset", json!({ "toolset": "memory", "session": loaded.handle() })).await;
    assert_eq!(again.ok()["session"], loaded.handle());
    assert_eq!(again.ok()["loaded"], json!({ "memory": "write" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_not_loaded_says_what_to_load() {
    let world = world().await;
    let bare = world.tenant("bare").agent();
    let read = bare.plain("tools/call", json!({ "name": "memory_read", "arguments": { "path": NOTE } })).await;
    assert_eq!(read.refusal()["code"], "not_loaded");
    assert_eq!(read.refusal()["next"], "call load_toolset with toolset=memory");
    let write = world
        .tenant("acme")
        .agent()
        .plain("tools/call", json!({ "name": "memory_remember", "arguments": note() }))
        .await;
    assert_eq!(write.refusal()["code"], "write_not_loaded");
    assert_eq!(write.refusal()["next"], "call load_toolset with toolset=memory, include_write_tools=true");
}

/// The same call through every door there is: what each one said, by its stable name.
async fn every_door(actor: &Actor, tool: &str, arguments: &Value) -> Vec<String> {
    let legacy = actor.legacy().await;
    let inner = json!({ "tool": tool, "arguments": arguments });
    let by_name = json!({ "name": tool, "arguments": arguments });
    let rest = actor.rest();
    let session = rest.open("read").await;
    let code = |outcome: Outcome| outcome.code().to_owned();
    let rest_code = |answer: testkit::Answer| answer.json()["error"]["code"].as_str().unwrap_or("ok").to_owned();
    vec![
        code(legacy.call(tool, arguments.clone()).await),
        code(legacy.call("call_tool", inner.clone()).await),
        code(actor.plain("tools/call", by_name).await),
        code(actor.modern().call(tool, arguments.clone()).await),
        code(actor.modern().call("call_tool", inner.clone()).await),
        code(actor.modern().at("/mcp/x/memory").call(tool, arguments.clone()).await),
        code(actor.modern().with_session(legacy.session()).call(tool, arguments.clone()).await),
        rest_code(rest.call(&session, tool, arguments.clone()).await),
        rest_code(rest.call(&session, "call_tool", inner).await),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_46519_a_hidden_tool_is_refused_when_called() {
    let world = world().await;
    for (tenant, tool, arguments, code) in [
        ("acme", "memory_remember", note(), "write_not_loaded"),
        ("strict", "memory_history", json!({ "path": "tenant/runbooks/a" }), "unknown_tool"),
        ("strict", "memory_read", json!({ "path": "tenant/runbooks/a" }), "policy_denied"),
    ] {
        let doors = every_door(&world.tenant(tenant).agent(), tool, &arguments).await;
        assert!(doors.iter().all(|told| told == code), "{tenant} {tool}: {doors:?}");
    }
    let doors = every_door(&world.tenant("acme").agent(), "memory_list", &json!({})).await;
    assert!(doors.iter().all(|told| told == "ok"), "an open tool is open at every door: {doors:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_the_tenant_denies_does_not_exist_for_it() {
    let world = world().await;
    let agent = world.tenant("strict").agent();
    let client = agent.legacy().await;
    assert!(!client.list().await.contains(&"memory_history".to_owned()));
    let denied = client.send(&client.prepare_as(json!(1), "tools/call", json!({ "name": "memory_history" }))).await;
    let made_up = client.send(&client.prepare_as(json!(1), "tools/call", json!({ "name": "memory_histori" }))).await;
    assert_eq!(told(&denied).replace("memory_history", "X"), told(&made_up).replace("memory_histori", "X"));
    let found = client.call("search_tools", json!({ "query": "history versions" })).await;
    assert!(!found.ok().to_string().contains("memory_history"), "{found:?}");
    assert!(!client.load("memory:write").await.to_string().contains("memory_history"));
}
