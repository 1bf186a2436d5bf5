//! The modern era: no handshake, no transport session, a list that never changes.

use crate::here::{FIXED, FIXED_VIRTUAL, embedded, told, with_more_to_draw};
use crate::stock;
use serde_json::json;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn discover_tells_versions_capabilities_and_instructions() {
    let world = with_more_to_draw().await;
    let outcome = world.tenant("acme").agent().modern().ask("server/discover", json!({})).await;
    let result = outcome.result();
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(result["capabilities"], json!({ "tools": { "listChanged": true } }));
    assert_eq!(
        result["instructions"],
        "Read tools for memory are issued. Draw more with load_toolset: jenkins. Call what it returns through call_tool, or by name with _meta quartermaster/session."
    );
    assert_eq!((&result["ttlMs"], &result["cacheScope"]), (&json!(300_000), &json!("private")));
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "quartermaster");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_says_how_long_and_for_whom_it_may_be_kept() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let outcome = client.ask("tools/list", json!({})).await;
    assert_eq!(outcome.message["id"], "m1");
    let result = outcome.result();
    assert_eq!(testkit::legacy::names(result), FIXED);
    assert_eq!(
        (&result["resultType"], &result["ttlMs"], &result["cacheScope"]),
        (&json!("complete"), &json!(30_000), &json!("private"))
    );
    for tool in result["tools"].as_array().unwrap() {
        let hints = tool["annotations"].as_object().unwrap();
        assert_eq!(hints.len(), 4, "{tool}");
        assert!(tool["description"].is_string() && tool["inputSchema"]["type"] == "object", "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stray_session_header_is_ignored_and_never_echoed() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let client = agent.modern();
    for stray in ["ses_0000000000000000000000", "anything", agent.legacy().await.session()] {
        let request =
            client.prepare("tools/list", json!({})).header("Mcp-Session-Id", stray).header("Last-Event-ID", "3");
        let answer = client.send(&request).await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, None));
        assert_eq!(testkit::legacy::names(&answer.json()["result"]), FIXED);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_are_taken_and_dropped() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let request = agent.post("/mcp", &body).header("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(told(&agent.send(&request).await), "202");
    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let request = agent.post("/mcp", &response).header("MCP-Protocol-Version", "2026-07-28");
    assert_eq!(agent.send(&request).await.status, 400);
    let unknown = agent.post("/mcp", &body).header("MCP-Protocol-Version", "2031-01-01");
    assert_eq!(
        told(&agent.send(&unknown).await),
        r#"400 {"jsonrpc":"2.0","error":{"code":-32022,"message":"Unsupported protocol version","data":{"code":"unsupported_version","retryable":false,"supported":["2026-07-28"],"requested":"2031-01-01","trace_id":"TRACE"}}}"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn listening_begins_with_what_is_honoured_and_ends_with_the_answer() {
    let mut world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let filter = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
    let mut stream = client.stream(&client.prepare("subscriptions/listen", filter)).await;
    assert_eq!(stream.head.header("cache-control"), Some("no-cache, no-transform"));
    assert_eq!(stream.head.header("x-accel-buffering"), Some("no"));
    let mark = json!({ "io.modelcontextprotocol/subscriptionId": "m1" });
    let first = stream.message().await;
    assert_eq!(first["params"], json!({ "_meta": mark, "notifications": { "toolsListChanged": true } }));

    world.stop(0).await;
    let rest = stream.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!((&rest[0]["id"], &rest[0]["result"]["resultType"]), (&json!("m1"), &json!("complete")));
    assert_eq!(rest[0]["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "m1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_did_not_ask_hears_nothing() {
    let mut world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let mut deaf = client.stream(&client.prepare("subscriptions/listen", json!({ "notifications": {} }))).await;
    assert_eq!(deaf.message().await["params"]["notifications"], json!({}));
    let mut heard = client.listen().await;

    world.configure("acme", "policy:\n  deny: [memory_history]");
    assert_eq!(heard.notice().await, "notifications/tools/list_changed");
    world.stop(0).await;

    let rest = deaf.rest().await;
    assert_eq!(rest.len(), 1, "only the final answer: {rest:?}");
    assert_eq!(rest[0]["id"], "m1");
}

#[tokio::test(flavor = "multi_thread")]
async fn listening_wants_a_stream_and_a_filter() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let request = client.prepare("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(told(&client.send(&request.clone().with("Accept", "application/json")).await), "406");
    assert_eq!(told(&client.send(&request.without("Accept")).await), "406");
    let outcome = client.ask("subscriptions/listen", json!({})).await;
    assert_eq!((outcome.answer.status, &outcome.error()["code"]), (400, &json!(-32602)));
}

#[tokio::test(flavor = "multi_thread")]
async fn t6_a_stream_ends_with_the_token_that_opened_it() {
    let world = embedded().await;
    let brief = world.tenant("acme").agent().for_only(Duration::from_secs(1));
    let rest = brief.modern().listen().await.rest().await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    assert_eq!(rest[0]["result"]["resultType"], "complete");

    let client = brief.legacy().await;
    let stream = client.open_stream().await;
    assert_eq!(stream.rest().await, Vec::<serde_json::Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_come_in_pages_whose_cursors_belong_to_one_list() {
    let world = embedded().await;
    stock::install_wide(world.part(0), 130);
    let client = world.tenant(stock::TENANT).agent().modern();

    let first = client.ask("tools/list", json!({})).await;
    let cursor = first.result()["nextCursor"].as_str().unwrap().to_owned();
    let second = client.ask("tools/list", json!({ "cursor": cursor })).await;
    let mut all = testkit::legacy::names(first.result());
    assert_eq!(all.len(), 100);
    all.extend(testkit::legacy::names(second.result()));
    assert!(second.result()["nextCursor"].is_null());
    let mut unique = all.clone();
    unique.sort();
    unique.dedup();
    assert_eq!((all.len(), unique.len()), (130 + FIXED_VIRTUAL.len(), 130 + FIXED_VIRTUAL.len()));

    // A cursor of another list, or of the same list before it changed, is no cursor.
    let other = world.tenant("acme").agent().modern().ask("tools/list", json!({ "cursor": cursor })).await;
    assert_eq!((other.answer.status, other.code()), (400, "bad_cursor"));
    stock::install_wide(world.part(0), 131);
    let late = client.ask("tools/list", json!({ "cursor": cursor })).await;
    assert_eq!((late.answer.status, late.code()), (400, "bad_cursor"));
}
