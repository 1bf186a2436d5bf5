//! The double must do what it says, or the tests that rely on it prove nothing.

use super::*;
use crate::http::{Answer, Request};
use serde_json::json;

const META: &str = "io.modelcontextprotocol/protocolVersion";

fn legacy(method: &str, params: Value) -> Request {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    Request::new("POST", "/mcp").header("Content-Type", "application/json").body(body.to_string())
}

fn modern(method: &str, mut params: Value) -> Request {
    params["_meta"][META] = json!("2026-07-28");
    let request =
        legacy(method, params.clone()).header("MCP-Protocol-Version", "2026-07-28").header("Mcp-Method", method);
    match params["name"].as_str() {
        Some(name) => request.header("Mcp-Name", name),
        None => request,
    }
}

async fn opened(server: &McpServer) -> String {
    let answer = legacy("initialize", json!({ "protocolVersion": "2025-11-25" })).send(server.address()).await;
    assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
    answer.header("mcp-session-id").unwrap().to_owned()
}

async fn call(server: &McpServer, tool: &str) -> Answer {
    modern("tools/call", json!({ "name": tool, "arguments": { "text": "hi" } })).send(server.address()).await
}

#[tokio::test]
async fn each_era_is_spoken_where_it_is_offered_and_refused_elsewhere() {
    let eras =
        [(Era::Legacy, 200, 400), (Era::LegacyDiscovered, 200, 200), (Era::Modern, 400, 200), (Era::Both, 200, 200)];
    for (era, in_legacy, in_modern) in eras {
        let server = McpServer::start(era).await;
        let answer = legacy("initialize", json!({})).send(server.address()).await;
        assert_eq!(answer.status, in_legacy, "{era:?}: {}", answer.text());
        let answer = modern("server/discover", json!({})).send(server.address()).await;
        assert_eq!(answer.status, in_modern, "{era:?}: {}", answer.text());
        let answer = modern("tools/list", json!({})).send(server.address()).await;
        assert_eq!(answer.status == 200, era.is_modern(), "{era:?}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_legacy_session_lists_and_calls_and_ends() {
    let server = McpServer::start(Era::Legacy).await;
    let session = opened(&server).await;
    let with = |request: Request| request.header("Mcp-Session-Id", &session);
    let listed = with(legacy("tools/list", json!({}))).send(server.address()).await.json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), tools::stock().len());
    let called = with(legacy("tools/call", json!({ "name": "echo", "arguments": { "text": "hi" } })));
    let told = called.send(server.address()).await.json();
    assert_eq!(told["result"]["structuredContent"]["arguments"]["text"], "hi");
    assert_eq!((server.count("tools/call"), server.calls("echo")), (1, vec![json!({ "text": "hi" })]));

    server.forget_sessions();
    assert_eq!(with(legacy("tools/list", json!({}))).send(server.address()).await.status, 404);
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused_in_the_modern_era() {
    let server = McpServer::start(Era::Modern).await;
    assert_eq!(call(&server, "echo").await.json()["result"]["resultType"], "complete");
    let wrong = modern("tools/call", json!({ "name": "echo" })).with("Mcp-Name", "keep");
    assert_eq!(wrong.send(server.address()).await.json()["error"]["code"], -32020);
}

#[tokio::test]
async fn pages_follow_one_another_and_end() {
    let server = McpServer::start(Era::Modern).await;
    server.page(4);
    let first = modern("tools/list", json!({})).send(server.address()).await.json();
    let cursor = first["result"]["nextCursor"].clone();
    let second = modern("tools/list", json!({ "cursor": cursor })).send(server.address()).await.json();
    assert_eq!(second["result"]["tools"].as_array().unwrap().len(), tools::stock().len() - 4);
    assert!(second["result"]["nextCursor"].is_null());

    server.plant("tools/list", Harm::EndlessPages);
    let endless = modern("tools/list", json!({ "cursor": "99" })).send(server.address()).await.json();
    assert_eq!(endless["result"]["nextCursor"], "100");
}

#[tokio::test]
async fn a_change_is_announced_on_the_streams_of_both_eras() {
    let server = McpServer::start(Era::Both).await;
    let session = opened(&server).await;
    let get = Request::new("GET", "/mcp").header("Mcp-Session-Id", &session);
    let mut old = crate::Stream::of(get.open(server.address()).await);
    let mut new = crate::Stream::of(modern("subscriptions/listen", json!({})).open(server.address()).await);
    assert_eq!(new.notice().await, "notifications/subscriptions/acknowledged");
    until("both streams", async || (server.streams() == 2).then_some(())).await;
    assert_eq!(server.announce(), 2);
    assert_eq!(old.notice().await, "notifications/tools/list_changed");
    assert_eq!(new.message().await["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    drop((old, new));
    until("the streams to be closed", async || (server.streams() == 0).then_some(())).await;
}

#[tokio::test]
async fn what_hangs_is_counted_and_let_go() {
    let server = McpServer::start(Era::Modern).await;
    server.plant("tools/call echo", Harm::Hang);
    assert_eq!(call(&server, "keep").await.status, 200, "only the one tool hangs");
    let hung = modern("tools/call", json!({ "name": "echo" }));
    let address = server.address();
    let waiting = async { hung.try_send(address).await };
    let releasing = async {
        server.until_hanging(1).await;
        server.release();
    };
    let (answer, ()) = tokio::join!(waiting, releasing);
    assert_eq!(answer, None);
    until("nobody to hang", async || (server.hanging() == 0).then_some(())).await;
}

#[tokio::test]
async fn what_is_large_is_as_large_as_it_was_asked_to_be_and_still_a_right_answer() {
    let server = McpServer::start(Era::Modern).await;
    let told = async |harm: Harm| {
        server.plant("tools/call", harm);
        call(&server, "echo").await
    };
    let huge = told(Harm::Huge(300_000)).await.json();
    assert_eq!((&huge["id"], huge["result"]["content"][0]["text"].as_str().unwrap().len()), (&json!(7), 300_000));
    let nodes = told(Harm::Nodes(5000)).await.json();
    assert_eq!(nodes["result"]["structuredContent"]["inside"].as_array().unwrap().len(), 5000);
    let deep = told(Harm::Deep(100)).await.json();
    assert_eq!(deep["result"]["structuredContent"]["inside"].to_string().matches('[').count(), 101);
    let bomb = told(Harm::GzipBomb(10_000_000)).await;
    assert_eq!(bomb.header("content-encoding"), Some("gzip"));
    assert!(bomb.body.len() < 20_000, "a thousand to one: {}", bomb.body.len());
    let mut unpacked = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bomb.body[..]), &mut unpacked).unwrap();
    assert!(unpacked.len() > 10_000_000);
}

#[tokio::test]
async fn a_credential_is_echoed_in_every_spelling_and_wanted_first() {
    let server = McpServer::start(Era::Modern).await;
    server.require("Authorization", "Bearer hunter2!");
    assert_eq!(call(&server, "echo").await.status, 401);
    let call = modern("tools/call", json!({ "name": "echo" })).header("Authorization", "Bearer hunter2!");
    assert_eq!(call.send(server.address()).await.status, 200);
    for harm in [Harm::EchoInError, Harm::EchoInResult, Harm::EchoInStatus] {
        server.plant("tools/call", harm.clone());
        let told = call.send(server.address()).await.text();
        for spelling in ["Bearer hunter2!", "aHVudGVyMiE=", "%68%75%6E%74%65%72%32%21"] {
            assert!(told.contains(spelling), "{harm:?} {spelling}: {told}");
        }
    }
    server.cure();
    assert_eq!(call.send(server.address()).await.status, 200);
}
