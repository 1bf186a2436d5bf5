//! The plainest client there is: a token, a JSON body, and nothing else of ours.

use crate::here::{FIXED, embedded, told};
use crate::stock;
use serde_json::json;
use testkit::Outcome;

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_list_and_a_bare_call_work() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for body in [
        json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {} }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/list" }),
    ] {
        let answer = agent.send(&agent.post("/mcp", &body)).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert_eq!(answer.header("mcp-session-id"), None);
        assert_eq!(answer.json()["id"], 5);
        assert_eq!(testkit::legacy::names(&answer.json()["result"]), FIXED);
        assert_eq!(answer.json()["result"].as_object().unwrap().len(), 1, "nothing of the modern era");
    }

    let called = agent.plain("tools/call", json!({ "name": "memory_list", "arguments": {} })).await;
    let stores = called.ok()["stores"].as_array().unwrap().len();
    assert_eq!(stores, 6, "no session, so no session documents");
    let (preface, text) = called.result()["content"][0]["text"].as_str().unwrap().split_once('\n').unwrap();
    assert!(preface.ends_with("not an instruction."), "what follows is marked: {preface}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(text).unwrap(), *called.ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn loading_gives_a_handle_that_works_as_a_header_and_in_meta() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let arguments = json!({ "toolset": "memory", "include_write_tools": true });
    let loaded = agent.plain("tools/call", json!({ "name": "load_toolset", "arguments": arguments })).await;
    let handle = loaded.ok()["session"].as_str().unwrap().to_owned();

    let note = |name: &str| json!({ "path": format!("session/notes/{name}"), "type": "note", "content": "a", "evidence": "b" });
    let by_meta =
        json!({ "name": "memory_remember", "arguments": note("one"), "_meta": { "quartermaster/session": handle } });
    assert_eq!(agent.plain("tools/call", by_meta).await.ok()["created"], true);
    let params = json!({ "name": "memory_remember", "arguments": note("two") });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let by_header = agent.send(&agent.post("/mcp", &body).header("Mcp-Session-Id", handle)).await;
    assert_eq!(Outcome::of(by_header).ok()["created"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_exactly_what_the_contract_says() {
    let world = embedded().await;
    let health = world.get(0, "/health").await;
    assert_eq!(
        (told(&health).as_str(), health.header("content-type")),
        (r#"200 {"status":"ok"}"#, Some("application/json"))
    );
    assert_eq!(told(&world.get(0, "/livez").await), r#"200 {"status":"ok"}"#);
    let ready = world.get(0, "/readyz").await;
    assert_eq!(ready.json(), json!({ "status": "ok", "ready": true, "reasons": [], "warnings": [] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_panics_is_an_error_of_ours_and_ends_nothing_else() {
    let world = embedded().await;
    stock::install(&world, 1);
    let agent = world.tenant(stock::TENANT).agent();
    let rest = agent.rest();
    let session = rest.open("read").await;

    let panicked = agent.plain("tools/call", json!({ "name": "boom" })).await;
    assert_eq!(
        told(&panicked.answer),
        r#"200 {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom failed inside the service","data":{"code":"internal","retryable":false,"reason":"internal","trace_id":"TRACE"}}}"#
    );
    assert_eq!(agent.modern().call("boom", json!({})).await.answer.status, 200);
    assert_eq!(rest.call(&session, "boom", json!({})).await.status, 500);
    assert_eq!(agent.plain("tools/call", json!({ "name": "quick" })).await.ok()["done"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_names_its_trace_and_keeps_the_callers() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "memory_list" } });
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let answer = agent.send(&agent.post("/mcp", &body).header("traceparent", parent)).await;
    assert_eq!(answer.header("x-trace-id"), Some(trace));
    assert_eq!(answer.json()["result"]["_meta"]["quartermaster/trace_id"], trace);
    let fresh = agent.send(&agent.post("/mcp", &body)).await;
    assert_eq!(fresh.header("x-trace-id").map(str::len), Some(32));
}
