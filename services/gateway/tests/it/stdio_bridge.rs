//! `quartermaster stdio --url`: a desktop client reaches a hosted service as a local server. The service is real, and so is
//! the program between them.

use crate::here::{DEFAULT, FIXED, GROWN, embedded};
use crate::stdio_client::{StdioClient, meta, program};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use testkit::patience::in_time;
use testkit::until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A wire to the service that notes the first line of every request on it.
struct TappedWire {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl TappedWire {
    #[expect(clippy::disallowed_methods, reason = "a test's own tasks, never part of the service")]
    async fn to(service: SocketAddr) -> TappedWire {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(service).await.unwrap();
                let ((mut near_in, mut near_out), (mut far_in, mut far_out)) = (near.into_split(), far.into_split());
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let mut bytes = vec![0; 64 * 1024];
                    while let Ok(count @ 1..) = near_in.read(&mut bytes).await {
                        let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                        let heads = text.lines().filter(|line| line.ends_with(" HTTP/1.1")).map(str::to_owned);
                        noted.lock().unwrap().extend(heads);
                        if far_out.write_all(&bytes[..count]).await.is_err() {
                            return;
                        }
                    }
                });
                tokio::spawn(async move { tokio::io::copy(&mut far_in, &mut near_out).await });
            }
        });
        TappedWire { address, requests }
    }

    /// How many requests of a method there were.
    fn count(&self, method: &str) -> usize {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|line| line.starts_with(&format!("{method} /mcp"))).count()
    }
}

fn bridge(folder: &Path, url: &str, token: &str) -> StdioClient {
    std::fs::write(folder.join("token"), format!("{token}\n")).unwrap();
    StdioClient::start(folder, &["--url", url, "--token-file", "token"])
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_client_has_a_session_its_notices_and_one_round_trip_for_each_call() {
    let (world, folder) = (embedded().await, tempfile::tempdir().unwrap());
    let wire = TappedWire::to(world.address(0)).await;
    let token = world.tenant("acme").agent().token().to_owned();
    // The address needs no path.
    let mut client = bridge(folder.path(), &format!("http://{}", wire.address), &token);
    let opened = client.initialize().await;
    assert!(opened["instructions"].as_str().unwrap().contains("memory"), "the service's own: {opened}");
    assert_eq!(client.tools().await, DEFAULT);
    until("the stream of notices", async || (wire.count("GET") == 1).then_some(())).await;
    client.call("load_toolset", json!({ "toolset": "memory", "include_write_tools": true })).await;
    client.notification("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, GROWN, "the session is kept");

    let before = wire.count("POST");
    for _ in 0..10 {
        assert!(client.call("memory_list", json!({})).await["structuredContent"]["stores"].is_array());
    }
    assert_eq!(wire.count("POST") - before, 10, "one request for each call");
    assert_eq!(wire.count("GET"), 1);
    client.close();
    assert!(client.end().await.0.success());
    assert_eq!(wire.count("DELETE"), 1, "the session is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_client_lists_listens_and_gives_up() {
    let (world, folder) = (embedded().await, tempfile::tempdir().unwrap());
    let wire = TappedWire::to(world.address(0)).await;
    let token = world.tenant("acme").agent().token().to_owned();
    let mut client = bridge(folder.path(), &format!("http://{}/mcp", wire.address), &token);
    let found = client.ask("server/discover", json!({ "_meta": meta() })).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]), "{found}");
    assert_eq!(names(&client.ask("tools/list", json!({ "_meta": meta() })).await), FIXED);
    let call = json!({ "_meta": meta(), "name": "memory_list", "arguments": {} });
    assert!(client.ask("tools/call", call).await["result"]["structuredContent"]["stores"].is_array());
    assert_eq!((wire.count("POST"), wire.count("GET")), (3, 0));

    let gateway = Arc::clone(world.part(0));
    let idle = gateway.tasks.len();
    let wanted = json!({ "toolsListChanged": true });
    let listen = client.request("subscriptions/listen", json!({ "_meta": meta(), "notifications": wanted })).await;
    client.notification("notifications/subscriptions/acknowledged").await;
    world.configure("acme", "default_toolsets: []");
    client.notification("notifications/tools/list_changed").await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": listen } });
    client.send(&cancel).await;
    // The end of its request is the cancellation, so that is what the service must notice.
    until("the stream to end", async || (gateway.tasks.len() <= idle).then_some(())).await;
    client.close();
    let (_, rest) = client.end().await;
    assert!(!rest.iter().any(|message| message["id"] == listen), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_away_and_a_token_that_is_refused_are_reported_as_what_they_are() {
    let (world, folder) = (embedded().await, tempfile::tempdir().unwrap());
    let wire = TappedWire::to(world.address(0)).await;
    let mut client = bridge(folder.path(), &format!("http://{}/mcp", wire.address), "not-a-token");
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    let refused = client.ask("initialize", params.clone()).await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["code"]),
        (&json!(1001), &json!("unauthenticated"))
    );
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("refused the token in token"), "{message}");

    std::fs::remove_file(folder.path().join("token")).unwrap();
    let missing = client.ask("initialize", params.clone()).await;
    assert!(missing["error"]["message"].as_str().unwrap().contains("the token file token cannot be read"), "{missing}");
    // A renewed token counts from the next message on.
    std::fs::write(folder.path().join("token"), world.tenant("acme").agent().token()).unwrap();
    client.initialize().await;
    assert_eq!(client.tools().await, DEFAULT);

    // Nobody listens where nobody ever did.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut client = bridge(folder.path(), &format!("http://{free}/mcp"), "x");
    let away = client.ask("initialize", params).await;
    assert_eq!(
        (&away["error"]["code"], &away["error"]["data"]["code"]),
        (&json!(-32603), &json!("service_unreachable"))
    );
    let message = away["error"]["message"].as_str().unwrap();
    assert!(message.contains("nothing was sent") && message.contains(&free.to_string()), "{message}");
    client.write(b"rubbish\n").await;
    assert_eq!(client.next().await["error"]["code"], -32700);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_service_forgot_is_opened_again_and_the_call_is_made() {
    let (world, folder) = (embedded().await, tempfile::tempdir().unwrap());
    let wire = TappedWire::to(world.address(0)).await;
    let agent = world.tenant("acme").agent();
    let mut client = bridge(folder.path(), &format!("http://{}/mcp", wire.address), agent.token());
    client.initialize().await;
    client.call("load_toolset", json!({ "toolset": "memory", "include_write_tools": true })).await;
    client.notification("notifications/tools/list_changed").await;
    let session = client.call("load_toolset", json!({ "toolset": "memory" })).await;
    let session = session["structuredContent"]["session"].as_str().unwrap().to_owned();
    let closed = agent.send(&agent.request("DELETE", "/mcp").header("Mcp-Session-Id", &session)).await;
    assert_eq!(closed.status, 204);

    let read = client.call("memory_list", json!({})).await;
    assert!(read["structuredContent"]["stores"].is_array(), "{read}");
    client.notification("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, DEFAULT, "another session, which has loaded nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_is_used_for_a_service_elsewhere_and_never_for_this_machine() {
    let (world, folder) = (embedded().await, tempfile::tempdir().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = format!("http://{}", listener.local_addr().unwrap());
    std::fs::write(folder.path().join("token"), world.tenant("acme").agent().token()).unwrap();
    let start = |url: &str| {
        let mut command = program(folder.path(), &["stdio", "--url", url, "--token-file", "token"]);
        for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            command.env(name, &proxy);
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy");
        StdioClient::of(command)
    };
    let mut near = start(&format!("http://{}/mcp", world.address(0)));
    near.initialize().await;
    assert_eq!(near.tools().await, DEFAULT);

    let mut far = start("https://quartermaster.invalid/mcp");
    let asking = far.request("ping", json!({})).await;
    let (mut connection, _) = in_time("the proxy to be asked", listener.accept()).await.unwrap();
    let mut head = vec![0; 4096];
    let count = connection.read(&mut head).await.unwrap();
    let head = String::from_utf8_lossy(&head[..count]).into_owned();
    assert!(head.starts_with("CONNECT quartermaster.invalid:443 "), "{head}");
    assert!(!head.to_ascii_lowercase().contains("bearer"), "the token is not for the proxy: {head}");
    connection.write_all(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    drop(connection);
    let away = far.answer(asking).await;
    assert_eq!(away["error"]["data"]["code"], "service_unreachable", "{away}");
}
