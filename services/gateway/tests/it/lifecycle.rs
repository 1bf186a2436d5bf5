//! A legacy session from its opening to its end, and who it serves.

use crate::here::{DEFAULT, embedded, told, with_more_to_draw};
use serde_json::{Value, json};
use testkit::Request;

const GONE: &str = r#"404 {"jsonrpc":"2.0","id":7,"error":{"code":1004,"message":"no such session","data":{"code":"session_not_found","retryable":false,"next":"open a new session","trace_id":"TRACE"}}}"#;

fn initialize(revision: &str) -> Value {
    let params =
        json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opens_lists_answers_and_ends() {
    let world = with_more_to_draw().await;
    let client = world.tenant("acme").agent().legacy().await;

    let opened = &client.opened["result"];
    assert_eq!(opened["protocolVersion"], "2025-11-25");
    assert_eq!(opened["capabilities"], json!({ "tools": { "listChanged": true } }));
    assert_eq!(opened["serverInfo"]["name"], "quartermaster");
    assert_eq!(opened["instructions"], "Read tools for memory are issued. Draw more with load_toolset: jenkins.");
    assert!(client.session().starts_with("ses_") && client.session().len() == 26);

    assert_eq!(client.list().await, DEFAULT);
    assert_eq!(
        told(&client.send(&client.prepare_as(json!("p"), "ping", json!({}))).await),
        r#"200 {"jsonrpc":"2.0","id":"p","result":{}}"#
    );

    let ended = client.delete().await;
    assert_eq!((ended.status, ended.text().as_str()), (204, ""));
    assert_eq!(told(&client.send(&client.prepare_as(json!(7), "tools/list", json!({}))).await), GONE);
    assert_eq!(client.delete().await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asked_revision_is_answered_with_and_another_one_becomes_the_newest() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for (asked, answered) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("1900-01-01", "2025-11-25"),
    ] {
        let answer = agent.send(&agent.post("/mcp", &initialize(asked))).await;
        assert_eq!(answer.json()["result"]["protocolVersion"], answered, "{asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn initialize_ignores_a_session_it_is_shown_and_opens_another() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let first = agent.legacy().await;
    let request = agent.post("/mcp", &initialize("2025-11-25")).header("Mcp-Session-Id", first.session());
    let second = agent.send(&request).await;
    assert_ne!(second.header("mcp-session-id").unwrap(), first.session());
    assert_eq!(first.list().await, DEFAULT);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_served_before_the_client_says_it_is_initialized() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let opened = agent.send(&agent.post("/mcp", &initialize("2025-06-18"))).await;
    let session = opened.header("mcp-session-id").unwrap();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let answer = agent.send(&agent.post("/mcp", &list).header("Mcp-Session-Id", session)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(testkit::legacy::names(&answer.json()["result"]), DEFAULT);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_initialize_opens_nothing() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for params in [
        json!({}),
        json!({ "protocolVersion": 1, "capabilities": {}, "clientInfo": {} }),
        json!({ "protocolVersion": "2025-11-25", "clientInfo": {} }),
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": "x" }),
    ] {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let answer = agent.send(&agent.post("/mcp", &body)).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (200, &json!(-32602)), "{params}");
        assert_eq!(answer.header("mcp-session-id"), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_52869_a_session_serves_its_principal_only() {
    let world = embedded().await;
    let owner = world.tenant("acme").agent();
    let client = owner.legacy().await;
    let mut stream = client.open_stream().await;
    let never_was = "ses_0000000000000000000000";

    for intruder in [owner.named("mallory"), world.tenant("other").agent()] {
        let stolen = client.spoken_by(&intruder);
        let unknown = stolen.named(never_was);
        for (method, params) in [
            ("tools/list", json!({})),
            ("tools/call", json!({ "name": "memory_list", "arguments": {} })),
            ("tools/call", json!({ "name": "load_toolset", "arguments": { "toolset": "memory" } })),
        ] {
            let theirs = stolen.send(&stolen.prepare_as(json!(7), method, params.clone())).await;
            let nobodys = unknown.send(&unknown.prepare_as(json!(7), method, params)).await;
            assert_eq!(told(&theirs), GONE, "{method}");
            assert_eq!(theirs.anonymous(), nobodys.anonymous(), "{method}");
        }
        let (theirs, nobodys) =
            (stolen.send(&stolen.stream_request()).await, unknown.send(&unknown.stream_request()).await);
        assert_eq!(theirs.status, 404);
        assert_eq!(theirs.anonymous(), nobodys.anonymous());
        let (theirs, nobodys) = (stolen.delete().await, unknown.delete().await);
        assert_eq!(theirs.status, 404);
        assert_eq!(theirs.anonymous(), nobodys.anonymous());
    }

    // Nothing of that reached the session: it lives, and its stream is still its own.
    client.load("memory:write").await;
    assert_eq!(stream.notice().await, "notifications/tools/list_changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn id16_a_handle_of_another_principal_is_told_like_one_that_never_was() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let handle = agent.modern().loaded("memory").await.handle().to_owned();
    for intruder in [agent.named("mallory"), world.tenant("other").agent()] {
        let refused = |handle: &str| {
            let client = intruder.modern().with_session(handle);
            async move { client.call("memory_list", json!({})).await.answer }
        };
        let theirs = refused(&handle).await;
        for never_was in ["ses_0000000000000000000000", "ses_", "", "run_0000000000000000000000"] {
            assert_eq!(theirs.anonymous(), refused(never_was).await.anonymous(), "{never_was}");
        }
        let outcome = testkit::Outcome::of(theirs);
        assert_eq!(outcome.refusal()["code"], "session_expired");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_session_is_not_served_by_any_method() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    let mut stream = client.open_stream().await;
    client.delete().await;
    assert_eq!(stream.next().await, None);
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "memory_list", "arguments": {} })),
        ("tools/call", json!({ "name": "search_tools", "arguments": { "query": "x" } })),
    ] {
        assert_eq!(told(&client.send(&client.prepare_as(json!(7), method, params)).await), GONE, "{method}");
    }
    assert_eq!(client.send(&client.stream_request()).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ping_in_a_session_that_is_over_says_so() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    client.delete().await;
    assert_eq!(told(&client.send(&client.prepare_as(json!(7), "ping", json!({}))).await), GONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_deletes_want_a_session_and_the_right_era() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().legacy().await;
    let agent = world.tenant("acme").agent();
    let get = |request: Request| {
        let agent = agent.clone();
        async move { agent.send(&request).await }
    };

    let bare = get(agent.request("GET", "/mcp").header("Accept", "text/event-stream")).await;
    assert_eq!((bare.status, bare.header("allow"), bare.text().as_str()), (405, Some("POST"), ""));
    let modern = get(client.stream_request().with("MCP-Protocol-Version", "2026-07-28")).await;
    assert_eq!((modern.status, modern.header("allow")), (405, Some("POST")));
    let wrong = get(client.stream_request().with("Accept", "application/json")).await;
    assert_eq!((wrong.status, wrong.text().as_str()), (406, ""));
    let nothing = get(agent.request("DELETE", "/mcp")).await;
    assert_eq!((nothing.status, nothing.text().as_str()), (400, ""));
    let put = get(agent.request("PUT", "/mcp")).await;
    assert_eq!((put.status, put.header("allow")), (405, Some("POST")));
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_and_responses_are_taken_without_an_answer() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let client = agent.legacy().await;
    for method in ["notifications/initialized", "notifications/roots/list_changed", "notifications/made_up"] {
        assert_eq!(told(&client.notify(method, json!({})).await), "202", "{method}");
    }
    let cancelled = client.notify("notifications/cancelled", json!({ "requestId": 99 })).await;
    assert_eq!(told(&cancelled), "202");

    let response = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    let with = agent.post("/mcp", &response).header("Mcp-Session-Id", client.session());
    assert_eq!(told(&agent.send(&with).await), "202");
    let without = agent.send(&agent.post("/mcp", &response)).await;
    assert_eq!(
        told(&without),
        r#"400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"A response was posted, but no request is open","data":{"code":"invalid_request","retryable":false,"trace_id":"TRACE"}}}"#
    );
}
