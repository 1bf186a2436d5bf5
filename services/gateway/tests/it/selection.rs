//! `/mcp/x/SELECTION`: a set of toolsets fixed by the address.

use crate::here::{FIXED, FIXED_VIRTUAL, in_process, told};
use serde_json::{Value, json};
use testkit::{Actor, Answer, Plan};

async fn world() -> crate::here::World {
    Plan::embedded().tenant("library", "mode: read").tenant("bare", "default_toolsets: []").start(in_process()).await
}

async fn list(actor: &Actor, path: &str) -> Answer {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    actor.send(&actor.post(path, &body)).await
}

fn names(answer: &Answer) -> Vec<String> {
    testkit::legacy::names(&answer.json()["result"])
}

fn code(answer: &Answer) -> Value {
    answer.json()["error"]["data"]["code"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_fixes_the_list_in_both_eras() {
    let world = world().await;
    let bare = world.tenant("bare").agent();
    assert_eq!(names(&list(&bare, "/mcp").await), FIXED_VIRTUAL);
    assert_eq!(names(&list(&bare, "/mcp/x/memory").await).len(), FIXED.len());
    assert_eq!(bare.modern().at("/mcp/x/memory").list().await.len(), FIXED.len());
    let write = bare.modern().at("/mcp/x/memory:write").list().await;
    assert!(write.contains(&"memory_remember".to_owned()), "{write:?}");

    let called = bare.modern().at("/mcp/x/memory").call("memory_list", json!({})).await;
    assert!(called.ok()["stores"].is_array());
    let elsewhere = bare.modern().call("memory_list", json!({})).await;
    assert_eq!(elsewhere.refusal()["code"], "not_loaded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opened_at_an_address_begins_with_its_set() {
    let world = world().await;
    let client = world.tenant("bare").agent().legacy_at("/mcp/x/memory:write").await;
    assert!(client.list().await.contains(&"memory_remember".to_owned()));
    let note = json!({ "path": "session/notes/a", "type": "note", "content": "x", "evidence": "y" });
    assert_eq!(client.call("memory_remember", note).await.ok()["created"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_toolset_is_not_found_and_names_those_there_are() {
    let world = world().await;
    let answer = list(&world.tenant("acme").agent(), "/mcp/x/memroy").await;
    assert_eq!(
        told(&answer),
        r#"404 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"there is no toolset `memroy`","data":{"code":"unknown_toolset","retryable":false,"toolsets":["memory"],"did_you_mean":["memory"],"trace_id":"TRACE"}}}"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn id18_every_set_has_one_address_and_nothing_else_is_one() {
    let world = world().await;
    let agent = world.tenant("acme").agent();
    let many = vec!["memory"; 1_000].join(",");
    for path in [
        "memory,memory",
        "memory:write,memory",
        "memory,memory:write",
        "memory:admin",
        "memory:",
        ":write",
        "memory,",
        ",memory",
        "MEMORY",
        "..",
        "..%2f..",
        "a%2fb",
        "memory%00",
        "memory%20",
        "%6demory:x",
        many.as_str(),
    ] {
        let answer = list(&agent, &format!("/mcp/x/{path}")).await;
        let shown = &path[..path.len().min(40)];
        assert_eq!((answer.status, code(&answer)), (400, json!("malformed_selection")), "{shown}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], -32600, "{shown}");
        assert_eq!(answer.json()["id"], 7, "{shown}");
    }
    // An address of that length is refused by the parser already, which has no id to answer.
    let endless = vec!["memory"; 10_000].join(",");
    assert_eq!(told(&list(&agent, &format!("/mcp/x/{endless}")).await), "400");
}

#[tokio::test(flavor = "multi_thread")]
async fn id17_write_tools_by_address_need_the_scope() {
    let world = world().await;
    let answer = list(&world.tenant("acme").reader(), "/mcp/x/memory:write").await;
    assert_eq!((answer.status, code(&answer)), (403, json!("insufficient_scope")));
    assert_eq!(
        answer.header("www-authenticate"),
        Some(
            r#"Bearer error="insufficient_scope", resource_metadata="https://qm.example.com/.well-known/oauth-protected-resource/mcp", scope="tools:write""#
        )
    );
    assert_eq!(list(&world.tenant("acme").reader(), "/mcp/x/memory").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_tenant_issues_no_write_tools_by_address() {
    let world = world().await;
    let answer = list(&world.tenant("library").agent(), "/mcp/x/memory:write").await;
    assert_eq!((answer.status, code(&answer)), (404, json!("unknown_toolset")));
}
