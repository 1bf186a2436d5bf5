//! The header ladder of the modern era, rung by rung, with the exact answers; and what both eras say to the unknown.

use crate::here::{embedded, told};
use crate::stock;
use serde_json::{Value, json};
use testkit::{Modern, Request};

const MISMATCH: &str = r#"400 {"jsonrpc":"2.0","id":"m1","error":{"code":-32020,"message":"WHY","data":{"code":"header_mismatch","retryable":false,"trace_id":"TRACE"}}}"#;

fn mismatch(why: &str) -> String {
    MISMATCH.replace("WHY", why)
}

fn call(client: &Modern) -> Request {
    client.prepare("tools/call", json!({ "name": "memory_list", "arguments": {} }))
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_say_what_the_body_says_pass_in_any_lawful_form() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    for request in [
        call(&client),
        call(&client).with("Mcp-Name", "   memory_list   "),
        call(&client).with("mcp-name", "=?base64?bWVtb3J5X2xpc3Q=?="),
        call(&client).with("MCP-METHOD", " tools/call "),
        call(&client).with("Mcp-Protocol-Version", "2026-07-28 "),
        call(&client).header("Mcp-Param-Unknown", "x"),
    ] {
        assert_eq!(client.send(&request).await.status, 200, "{request:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pa5_headers_that_contradict_the_body_are_refused() {
    let world = embedded().await;
    let client = world.tenant("acme").agent().modern();
    let name = "Mcp-Name header does not match params.name";
    for (request, why) in [
        (call(&client).header("Mcp-Name", "memory_list"), "Mcp-Name header was sent more than once"),
        (call(&client).header("Mcp-Method", "tools/call"), "Mcp-Method header was sent more than once"),
        (
            call(&client).header("MCP-Protocol-Version", "2026-07-28"),
            "MCP-Protocol-Version header was sent more than once",
        ),
        (call(&client).without("MCP-Protocol-Version"), "MCP-Protocol-Version header is missing"),
        (
            call(&client).with("MCP-Protocol-Version", "2025-11-25"),
            "MCP-Protocol-Version header does not match the version in params._meta",
        ),
        (call(&client).without("Mcp-Method"), "Mcp-Method header is missing"),
        (call(&client).with("Mcp-Method", "Tools/Call"), "Mcp-Method header does not match method"),
        (call(&client).without("Mcp-Name"), "Mcp-Name header is missing"),
        (call(&client).with("Mcp-Name", "memory_read"), name),
        (call(&client).with("Mcp-Name", "MEMORY_LIST"), name),
        (call(&client).with("Mcp-Name", "=?base64?bWVtb3J5X2xpc3Q?="), name),
        (call(&client).with("Mcp-Name", "=?BASE64?bWVtb3J5X2xpc3Q=?="), name),
    ] {
        assert_eq!(told(&client.send(&request).await), mismatch(why));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pa6_an_envelope_that_lacks_something_is_told_what() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let send = |params: Value, version: &'static str| {
        let body = json!({ "jsonrpc": "2.0", "id": "m1", "method": "tools/list", "params": params });
        let request =
            agent.post("/mcp", &body).header("MCP-Protocol-Version", version).header("Mcp-Method", "tools/list");
        let agent = agent.clone();
        async move { agent.send(&request).await }
    };
    let version = "io.modelcontextprotocol/protocolVersion";
    let capabilities = "io.modelcontextprotocol/clientCapabilities";

    let bare = send(json!({}), "2026-07-28").await;
    assert_eq!((bare.status, &bare.json()["error"]["code"]), (400, &json!(-32602)));
    assert_eq!(bare.json()["error"]["data"]["missing"], json!([version, capabilities]));
    assert_eq!(bare.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
    let half = send(json!({ "_meta": { version: "2026-07-28" } }), "2026-07-28").await;
    assert_eq!((half.status, &half.json()["error"]["data"]["missing"]), (400, &json!([capabilities])));
    let odd = send(json!({ "_meta": { version: "2026-07-28", capabilities: [] } }), "2026-07-28").await;
    assert_eq!((odd.status, &odd.json()["error"]["data"]["code"]), (400, &json!("invalid_envelope")));

    let future = send(json!({ "_meta": { version: "2027-01-01", capabilities: {} } }), "2027-01-01").await;
    assert_eq!(
        told(&future),
        r#"400 {"jsonrpc":"2.0","id":"m1","error":{"code":-32022,"message":"Unsupported protocol version","data":{"code":"unsupported_version","retryable":false,"supported":["2026-07-28"],"requested":"2027-01-01","trace_id":"TRACE"}}}"#
    );
    let level =
        json!({ "_meta": { version: "2026-07-28", capabilities: {}, "io.modelcontextprotocol/logLevel": "loud" } });
    assert_eq!(send(level, "2026-07-28").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn pa6_a_capability_that_was_not_declared_is_named() {
    let world = embedded().await;
    stock::install(&world, 1);
    let client = world.tenant(stock::TENANT).agent().modern();
    let outcome = client.call("needy", json!({})).await;
    assert_eq!(
        told(&outcome.answer),
        r#"400 {"jsonrpc":"2.0","id":"m1","error":{"code":-32021,"message":"The client did not declare the capability sampling","data":{"code":"missing_client_capability","retryable":false,"requiredCapabilities":{"sampling":{}},"trace_id":"TRACE"}}}"#
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_not_there_is_404_in_the_modern_era_and_200_before() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list", "Tools/List"] {
        let outcome = agent.modern().ask(method, json!({})).await;
        let wanted = format!(
            r#"404 {{"jsonrpc":"2.0","id":"m1","error":{{"code":-32601,"message":"Method not found: {method}","data":{{"code":"method_not_found","retryable":false,"trace_id":"TRACE"}}}}}}"#
        );
        assert_eq!(told(&outcome.answer), wanted);
    }
    for method in
        ["server/discover", "subscriptions/listen", "prompts/list", "resources/read", "completion/complete", "x"]
    {
        let outcome = agent.plain(method, json!({})).await;
        assert_eq!(
            told(&outcome.answer),
            format!(
                r#"200 {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"Method not found: {method}","data":{{"code":"method_not_found","retryable":false,"trace_id":"TRACE"}}}}}}"#
            )
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_tool_is_told_with_the_nearest_names() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let error = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"Unknown tool: memory_serch","data":{{"code":"unknown_tool","retryable":false,"did_you_mean":["memory_search"],"trace_id":"TRACE"}}}}}}"#
        )
    };
    let modern = agent.modern().call("memory_serch", json!({ "query": "x" })).await;
    assert_eq!(told(&modern.answer), format!("400 {}", error("\"m1\"")));
    let legacy = agent.plain("tools/call", json!({ "name": "memory_serch" })).await;
    assert_eq!(told(&legacy.answer), format!("200 {}", error("1")));
}

#[tokio::test(flavor = "multi_thread")]
async fn pa10_a_cursor_that_is_not_ours_is_refused() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for cursor in ["", "x", "MQ", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "../../etc/passwd", "\u{0}"] {
        let modern = agent.modern().ask("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!((modern.answer.status, modern.code(), &modern.error()["code"]), (400, "bad_cursor", &json!(-32602)));
        let legacy = agent.plain("tools/list", json!({ "cursor": cursor })).await;
        assert_eq!((legacy.answer.status, legacy.code(), &legacy.error()["code"]), (200, "bad_cursor", &json!(-32602)));
    }
    for odd in [json!(1), json!([]), json!({})] {
        let modern = agent.modern().ask("tools/list", json!({ "cursor": odd })).await;
        assert_eq!((modern.answer.status, &modern.error()["code"]), (400, &json!(-32602)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_are_a_tool_error_the_model_can_mend() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for client in [
        agent.modern().call("memory_read", json!({ "paht": "x" })).await,
        agent.plain("tools/call", json!({ "name": "memory_read", "arguments": { "paht": "x" } })).await,
    ] {
        let refusal = client.refusal();
        assert_eq!((&refusal["code"], &refusal["did_you_mean"]), (&json!("unknown_argument"), &json!(["path"])));
        assert_eq!(refusal["retryable"], false);
    }
    for arguments in [
        json!({}),
        json!({ "path": 1 }),
        json!({ "path": "session/../../etc" }),
        json!({ "path": "session/notes/a", "version": 0 }),
    ] {
        let outcome = agent.modern().call("memory_read", arguments.clone()).await;
        assert_eq!(outcome.refusal()["code"], "invalid_argument", "{arguments}");
    }
    for odd in [json!([]), json!("x"), json!(1)] {
        let outcome = agent.modern().ask("tools/call", json!({ "name": "memory_read", "arguments": odd })).await;
        assert_eq!((outcome.answer.status, &outcome.error()["code"]), (400, &json!(-32602)));
    }
}
