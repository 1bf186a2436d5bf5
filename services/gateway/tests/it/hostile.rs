//! What is not quite JSON, not quite HTTP, too large or not for us: each with its exact answer, none with a 5xx.

use crate::here::{embedded, in_process, told};
use serde_json::json;
use testkit::{Plan, Request};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

fn parse_error() -> &'static str {
    r#"400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"The body is not one JSON text","data":{"code":"parse_error","retryable":false,"trace_id":"TRACE"}}}"#
}

fn invalid(why: &str) -> String {
    format!(
        r#"400 {{"jsonrpc":"2.0","error":{{"code":-32600,"message":"{why}","data":{{"code":"invalid_request","retryable":false,"trace_id":"TRACE"}}}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn pa1_what_is_not_one_json_text_is_refused_without_an_id() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let deep_objects = format!("{}1{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    let trailing = format!("{LIST}{LIST}");
    let bom = format!("\u{feff}{LIST}");
    let texts: [&[u8]; 11] = [
        b"",
        b"{",
        b"not json",
        deep.as_bytes(),
        deep_objects.as_bytes(),
        trailing.as_bytes(),
        bom.as_bytes(),
        br#"{"jsonrpc":"2.0","id":NaN,"method":"ping"}"#,
        br#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#,
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
        br#"{'jsonrpc':'2.0'}"#,
    ];
    for text in texts {
        let answer = agent.send(&agent.post("/mcp", &json!(0)).body(text)).await;
        assert_eq!(told(&answer), parse_error(), "{}", String::from_utf8_lossy(&text[..text.len().min(60)]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pa2_a_batch_is_refused_in_every_era() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let batch = agent.post("/mcp", &json!([{ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }]));
    for version in ["2025-03-26", "2025-11-25", "2026-07-28"] {
        let answer = agent.send(&batch.clone().header("MCP-Protocol-Version", version)).await;
        assert_eq!(told(&answer), invalid("Batches are not accepted; send one message per request"), "{version}");
    }
    assert_eq!(agent.send(&batch.body("[]")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn pa1_a_key_named_twice_is_refused_wherever_it_stands() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_list","name":"memory_read"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"memory_read","arguments":{"path":"a","path":"b"}}}"#,
    ] {
        let answer = agent.send(&agent.post("/mcp", &json!(0)).body(text)).await;
        assert_eq!(told(&answer), invalid("An object names a key twice"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2026_27896_keys_are_case_sensitive() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"Method":"tools/list"}"#,
        r#"{"jsonrpc":"2.0","id":1,"METHOD":"tools/list"}"#,
        r#"{"JSONRPC":"2.0","id":1,"method":"tools/list"}"#,
    ] {
        let answer = agent.send(&agent.post("/mcp", &json!(0)).body(text)).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32600)), "{text}");
    }
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","PARAMS":{"name":"memory_list"}}"#;
    let answer = agent.send(&agent.post("/mcp", &json!(0)).body(text)).await;
    assert_eq!(answer.json()["error"]["code"], -32602, "other spellings are not read");
}

#[tokio::test(flavor = "multi_thread")]
async fn pa11_ids_that_are_none_are_refused_and_not_echoed() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let long = format!("\"{}\"", "x".repeat(257));
    for id in ["null", "1.5", "[]", "{}", "true", long.as_str()] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let answer = agent.send(&agent.post("/mcp", &json!(0)).body(text)).await;
        assert_eq!(answer.status, 400, "{id}");
        assert!(answer.json().get("id").is_none(), "{id}");
    }
    for id in ["9007199254740993", "-1", "\"\"", "\"a b\""] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let answer = agent.send(&agent.post("/mcp", &json!(0)).body(text)).await;
        assert_eq!(answer.status, 200, "{id}");
        assert!(answer.text().contains(&format!("\"id\":{id},")), "{id}: echoed as it was written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pa3_a_body_over_the_limit_is_413_however_it_is_sent() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let big = vec![b' '; 5 << 20];
    assert_eq!(told(&agent.send(&agent.post("/mcp", &json!(0)).body(big)).await), "413");
    let most = 4 << 20;
    assert_eq!(agent.send(&agent.post("/mcp", &json!(0)).body(vec![b' '; most + 1])).await.status, 413);
    let mut fits = LIST.as_bytes().to_vec();
    fits.resize(most, b' ');
    assert_eq!(agent.send(&agent.post("/mcp", &json!(0)).body(fits)).await.status, 200);

    // Without a length it is counted while it is read.
    let mut text = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        agent.token()
    );
    for _ in 0..5 {
        text.push_str(&format!("100000\r\n{}\r\n", " ".repeat(1 << 20)));
    }
    text.push_str("0\r\n\r\n");
    assert_eq!(world.raw(0, text.as_bytes()).await.unwrap().status, 413);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_client_cannot_read_or_did_not_say_is_refused_by_status_alone() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let list = agent.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    for accept in ["text/html", "application/xml, image/*", "application/json;q=0"] {
        assert_eq!(told(&agent.send(&list.clone().header("Accept", accept)).await), "406", "{accept}");
    }
    for accept in ["application/json", "*/*", "text/event-stream", "application/*;q=0.1"] {
        assert_eq!(agent.send(&list.clone().header("Accept", accept)).await.status, 200, "{accept}");
    }
    for kind in ["text/plain", "application/jsonx", "multipart/form-data", "application/x-www-form-urlencoded", ""] {
        assert_eq!(told(&agent.send(&list.clone().with("Content-Type", kind)).await), "415", "{kind}");
    }
    assert_eq!(told(&agent.send(&list.clone().without("Content-Type")).await), "415");
    let charset = list.with("Content-Type", "Application/JSON; charset=utf-8");
    assert_eq!(agent.send(&charset).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn id14_a_foreign_host_or_origin_is_refused_before_the_token_is_looked_at() {
    let world = embedded().await;
    let agent = world.tenant("acme").agent();
    let list = agent.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let foreign = r#"403 {"jsonrpc":"2.0","error":{"code":1003,"message":"this host or origin is not served here","data":{"code":"bad_origin","retryable":false,"trace_id":"TRACE"}}}"#;
    for origin in
        ["https://evil.example", "null", "http://qm.example.com", "https://qm.example.com.evil", "https://localhost"]
    {
        let answer = agent.send(&list.clone().header("Origin", origin)).await;
        assert_eq!(told(&answer), foreign, "{origin}");
        assert_eq!(answer.header("www-authenticate"), None);
    }
    for host in ["evil.example", "qm.example.com.evil", "127.0.0.1.nip.io"] {
        assert_eq!(told(&agent.send(&list.clone().header("Host", host)).await), foreign, "{host}");
    }
    let nobody = list.clone().without("Authorization").header("Origin", "https://evil.example");
    assert_eq!(told(&agent.send(&nobody).await), foreign, "also without a token");
    let twice = list.clone().header("Host", "localhost").header("Host", "evil.example");
    assert_eq!(agent.send(&twice).await.status, 400);

    for origin in ["https://qm.example.com", "http://localhost:3000", "http://127.0.0.1"] {
        assert_eq!(agent.send(&list.clone().header("Origin", origin)).await.status, 200, "{origin}");
    }
    for host in ["qm.example.com", "localhost:1", "[::1]:8080"] {
        assert_eq!(agent.send(&list.clone().header("Host", host)).await.status, 200, "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pa3_requests_that_hide_another_are_refused() {
    let world = embedded().await;
    let token = world.tenant("acme").agent().token().to_owned();
    let head = |more: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{more}\r\n"
        )
    };
    let smuggled = "0\r\n\r\n";
    for more in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "X-Folded: a\r\n b\r\nContent-Length: 5\r\n",
        "Content-Length : 5\r\n",
    ] {
        let answer = world.raw(0, format!("{}{smuggled}", head(more)).as_bytes()).await.unwrap();
        assert_eq!((answer.status, answer.header("connection")), (400, Some("close")), "{more:?}");
    }
    assert_eq!(world.get(0, "/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pa3_heads_without_measure_are_refused_and_the_connection_closed() {
    let world = embedded().await;
    let many = (0..10_000).map(|n| format!("X-{n}: a\r\n")).collect::<String>();
    let long = format!("X-Long: {}\r\n", "a".repeat(1 << 20));
    let path = format!("/{}", "a".repeat(1 << 20));
    for text in [
        format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{many}\r\n"),
        format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{long}\r\n"),
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        assert_eq!(world.raw(0, text.as_bytes()).await.unwrap().status, 431);
    }
    assert_eq!(world.get(0, "/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn pa3_a_head_that_never_ends_is_given_up() {
    let world = Plan::embedded().setting("QM_LISTEN__REQUEST_TIMEOUT", "200ms").start(in_process()).await;
    assert_eq!(world.raw(0, b"GET /livez HTTP/1.1\r\nHost: local").await.unwrap().status, 408);
}

#[tokio::test(flavor = "multi_thread")]
async fn pa4_http_2_is_not_spoken() {
    let world = embedded().await;
    let answer = world.raw(0, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00").await;
    assert_eq!(answer.unwrap().status, 400);
    let upgrade = Request::new("GET", "/livez").header("Upgrade", "h2c").header("HTTP2-Settings", "AAMAAABkAAQAAP__");
    assert_eq!(upgrade.send(world.address(0)).await.status, 200, "the wish is passed over");
}
