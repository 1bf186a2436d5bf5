//! The protocol without a web framework: another transport, lines in and lines out, drives it in this process.

use crate::here::{DEFAULT, FIXED, GROWN, World};
use crate::stock::{self, TENANT};
use gateway::app::Gateway;
use gateway::protocol::{self, Frame, Instructions, McpAnswer, McpExchange, McpMessage, McpRequest, stream, turn};
use gateway::settings::Settings;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use testkit::legacy::names;
use testkit::patience::in_time;
use testkit::world::Work;
use testkit::{Leftovers, Plan, Replica, Start};
use tokio::sync::mpsc::Receiver;

/// One replica with its state in memory, and nothing that listens.
async fn without_a_server() -> World {
    let start: Start<Arc<Gateway>> = Arc::new(|setup| {
        Box::pin(async move {
            rustls::crypto::aws_lc_rs::default_provider().install_default().ok();
            let gateway = Gateway::build(Settings::read(Some(&setup.config), setup.environment)?).await?;
            let stopping = Arc::clone(&gateway);
            let stop = move || -> Work<Leftovers> {
                Box::pin(async move {
                    stopping.tasks.drain(Duration::from_secs(10)).await;
                    stopping.store.close().await;
                    Leftovers { receipts: stopping.store.open_receipts(), tasks: stopping.tasks.len() }
                })
            };
            Ok(Replica { address: ([127, 0, 0, 1], 0).into(), part: gateway, stop: Box::new(stop) })
        })
    });
    Plan::embedded().start(start).await
}

async fn exchange(world: &World, tenant: &str) -> McpExchange {
    let gateway = Arc::clone(world.part(0));
    let token = world.tenant(tenant).agent().token().to_owned();
    let caller = gateway.verifier.caller(&token, gateway.clock.now()).await.unwrap();
    let snapshot = gateway.tenants.get(&caller.tenant).unwrap();
    McpExchange { gateway, caller, snapshot, trace_id: "4bf92f3577b34da6a3ce929d0e0e4736".to_owned(), client: None }
}

/// The adapter of a transport that carries one message per line. It has no headers.
struct Lines {
    exchange: McpExchange,
    session: Option<String>,
    /// Where frames come from, once an answer was a stream.
    frames: Option<Receiver<Frame>>,
}

impl Lines {
    fn open(exchange: McpExchange) -> Lines {
        Lines { exchange, session: None, frames: None }
    }

    /// Hands over one line.
    async fn handle(&self, line: &Value) -> McpAnswer {
        let request = McpRequest {
            exchange: self.exchange.clone(),
            headers: None,
            session: self.session.clone(),
            selection: None,
            takes_frames: true,
            connection: None,
            instructions: Instructions::Toolsets,
        };
        protocol::answer(request, line.to_string().as_bytes()).await
    }

    /// Hands over one line and wants one in return.
    async fn ask(&self, method: &str, params: Value) -> Value {
        let request = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let message = message(self.handle(&request).await);
        let answer: Value = serde_json::from_slice(&message.reply.body).unwrap();
        assert_eq!(answer["id"], 7);
        answer["result"].clone()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        result["structuredContent"].clone()
    }

    /// Opens a legacy session, and lets its notices come as frames.
    async fn initialize(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "lines", "version": "1" } });
        let request = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let message = message(self.handle(&request).await);
        let session = message.session.expect("a session should be opened").to_string();
        self.frames = Some(frames(stream::follow_session(&self.exchange, session.clone()).await));
        self.session = Some(session);
        let ready = self.handle(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert!(matches!(ready, McpAnswer::Accepted));
    }

    /// The next line that is no answer to a line.
    async fn frame(&mut self) -> Value {
        loop {
            let frames = self.frames.as_mut().expect("an answer should be a stream");
            match in_time("a frame", frames.recv()).await.expect("the queue should be open") {
                Frame::Message(message) => return serde_json::from_slice(&message).unwrap(),
                Frame::KeepAlive => {}
            }
        }
    }
}

fn frames(answer: McpAnswer) -> Receiver<Frame> {
    match answer {
        McpAnswer::Streaming(frames) => frames,
        other @ (McpAnswer::Message(_) | McpAnswer::Accepted | McpAnswer::Cancelled | McpAnswer::NeedsStream) => {
            panic!("a stream should be the answer, and not {other:?}")
        }
    }
}

fn message(answer: McpAnswer) -> McpMessage {
    match answer {
        McpAnswer::Message(message) => message,
        other @ (McpAnswer::Streaming(_) | McpAnswer::Accepted | McpAnswer::Cancelled | McpAnswer::NeedsStream) => {
            panic!("one message should be the answer, and not {other:?}")
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_session_needs_no_http_server() {
    let world = without_a_server().await;
    let mut lines = Lines::open(exchange(&world, "acme").await);

    lines.initialize().await;
    assert_eq!(names(&lines.ask("tools/list", json!({})).await), DEFAULT);
    assert!(lines.call("memory_list", json!({})).await["stores"].is_array());

    let loaded = lines.call("load_toolset", json!({ "toolset": "memory", "include_write_tools": true })).await;
    assert_eq!(loaded["loaded"], json!({ "memory": "write" }));
    assert_eq!(lines.frame().await["method"], "notifications/tools/list_changed");
    assert_eq!(names(&lines.ask("tools/list", json!({})).await), GROWN);

    let note = json!({ "path": "session/notes/a", "type": "note", "content": "x", "evidence": "y" });
    assert_eq!(lines.call("memory_remember", note).await["created"], true);
    assert_eq!(lines.call("memory_read", json!({ "path": "session/notes/a" })).await["content"], "x");
    let session = lines.session.clone().unwrap();
    lines.exchange.close_session(session).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_modern_era_needs_no_http_server() {
    let world = without_a_server().await;
    let mut lines = Lines::open(exchange(&world, "acme").await);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });

    assert_eq!(names(&lines.ask("tools/list", json!({ "_meta": meta })).await), FIXED);
    let listen = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
    let listen = json!({ "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": listen });
    lines.frames = Some(frames(lines.handle(&listen).await));
    assert_eq!(lines.frame().await["method"], "notifications/subscriptions/acknowledged");
    world.configure("acme", "default_toolsets: []");
    assert_eq!(lines.frame().await["method"], "notifications/tools/list_changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_cancels_a_call_without_an_http_server() {
    let world = without_a_server().await;
    let hold = stock::install(&world, 1);
    let mut lines = Lines::open(exchange(&world, TENANT).await);
    lines.initialize().await;

    let call =
        json!({ "jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": { "name": "hold", "arguments": {} } });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "c" } });
    let (answer, accepted) = tokio::join!(lines.handle(&call), async {
        hold.entered(1).await;
        lines.handle(&cancel).await
    });

    assert!(matches!((&answer, &accepted), (McpAnswer::Cancelled, McpAnswer::Accepted)), "{answer:?}, {accepted:?}");
    hold.dropped().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_needs_no_http_server() {
    let world = without_a_server().await;
    let exchange = exchange(&world, "acme").await;

    let request = serde_json::from_value(json!({ "mode": "write" })).unwrap();
    let session = turn::open(&exchange, request).await.unwrap().id;
    let page = turn::tools(&exchange, session.clone(), Some("openai")).await.unwrap();
    let tools: Value = serde_json::from_slice(&page.bytes).unwrap();
    assert_eq!(tools["tools"][0]["function"]["name"], DEFAULT[0]);
    let call = json!({ "tool": "memory_list", "arguments": {} });
    let reply = turn::call(&exchange, session.clone(), serde_json::from_value(call).unwrap()).await.unwrap();
    let result: Value = serde_json::from_str(&reply.body).unwrap();
    assert!(!reply.waiting && result["result"]["stores"].is_array(), "{result}");

    exchange.close_session(session.clone()).await.unwrap();
    assert!(turn::show(&exchange, session).await.is_err());
}

#[test]
fn the_protocol_names_no_web_framework() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocol");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5, "the folder should be the one that is meant");
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for word in ["actix", "crate::http"] {
            assert!(!text.contains(word), "{} names {word}", file.display());
        }
    }
}
