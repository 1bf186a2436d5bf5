//! A client of the legacy era: `initialize`, a session in a header, a stream by `GET`.

use crate::actor::Actor;
use crate::http::{Answer, Request};
use crate::outcome::Outcome;
use crate::sse::Stream;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The revision these clients ask for.
pub const REVISION: &str = "2025-11-25";

/// One client with its session.
#[derive(Clone)]
pub struct Legacy {
    actor: Actor,
    session: String,
    path: String,
    next: Arc<AtomicU64>,
    /// The answer to `initialize`.
    pub opened: Value,
}

impl Legacy {
    pub(crate) async fn open(actor: Actor, path: &str) -> Legacy {
        let params = json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "testkit", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let both = "application/json, text/event-stream";
        let answer = actor.send(&actor.post(path, &body).header("Accept", both)).await;
        let session = answer.header("mcp-session-id").unwrap_or_else(|| panic!("no session: {}", answer.text()));
        let (session, opened) = (session.to_owned(), answer.json());
        let client = Legacy { actor, session, path: path.to_owned(), next: Arc::new(AtomicU64::new(1)), opened };
        let answer = client.notify("notifications/initialized", json!({})).await;
        assert_eq!((answer.status, answer.text().as_str()), (202, ""));
        client
    }

    /// The session's name.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The same session, spoken of by somebody else.
    #[must_use]
    pub fn spoken_by(&self, actor: &Actor) -> Legacy {
        Legacy { actor: actor.clone(), ..self.clone() }
    }

    /// The same client with another session's name.
    #[must_use]
    pub fn named(&self, session: &str) -> Legacy {
        Legacy { session: session.to_owned(), ..self.clone() }
    }

    /// The same session at another replica.
    #[must_use]
    pub fn on(&self, replica: usize) -> Legacy {
        Legacy { actor: self.actor.on(replica), ..self.clone() }
    }

    /// A request of this session that has not been sent.
    pub fn prepare(&self, method: &str, params: Value) -> Request {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.prepare_as(json!(id), method, params)
    }

    /// The same, with an id of the test's choosing.
    pub fn prepare_as(&self, id: Value, method: &str, params: Value) -> Request {
        self.dressed(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
    }

    /// Asks for anything.
    pub async fn ask(&self, method: &str, params: Value) -> Outcome {
        Outcome::of(self.actor.send(&self.prepare(method, params)).await)
    }

    /// Sends a prepared request.
    pub async fn send(&self, request: &Request) -> Answer {
        self.actor.send(request).await
    }

    /// Sends a prepared request whose answer is a stream.
    pub async fn stream(&self, request: &Request) -> Stream {
        self.actor.stream(request).await
    }

    /// Tells something that wants no answer.
    pub async fn notify(&self, method: &str, params: Value) -> Answer {
        self.actor.send(&self.dressed(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))).await
    }

    /// The names in `tools/list`.
    pub async fn list(&self) -> Vec<String> {
        names(self.ask("tools/list", json!({})).await.result())
    }

    /// The list as it stands on the wire, from the first tool on.
    pub async fn list_text(&self) -> String {
        let text = self.actor.send(&self.prepare("tools/list", json!({}))).await.text();
        let at = text.find(r#""tools":["#).unwrap_or_else(|| panic!("no list: {text}"));
        text[at..].to_owned()
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Loads `memory`, or `memory:write`, and wants it to work.
    pub async fn load(&self, set: &str) -> Value {
        self.call("load_toolset", load_arguments(set)).await.ok().clone()
    }

    /// Opens the session's stream.
    pub async fn open_stream(&self) -> Stream {
        let mut stream = self.actor.stream(&self.stream_request()).await;
        assert_eq!(stream.frame().await.as_deref(), Some("retry: 1000"));
        stream
    }

    /// The request that opens the session's stream.
    pub fn stream_request(&self) -> Request {
        self.actor
            .request("GET", &self.path)
            .header("Accept", "text/event-stream")
            .header("Mcp-Session-Id", &self.session)
            .header("MCP-Protocol-Version", REVISION)
    }

    /// Ends the session.
    pub async fn delete(&self) -> Answer {
        let request = self.actor.request("DELETE", &self.path).header("Mcp-Session-Id", &self.session);
        self.actor.send(&request).await
    }

    fn dressed(&self, body: &Value) -> Request {
        self.actor
            .post(&self.path, body)
            .header("Accept", "application/json, text/event-stream")
            .header("Mcp-Session-Id", &self.session)
            .header("MCP-Protocol-Version", REVISION)
    }
}

/// The names of the tools in a list.
pub fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().unwrap_or_else(|| panic!("no list of tools: {result}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// `memory:write` as arguments of `load_toolset`.
pub(crate) fn load_arguments(set: &str) -> Value {
    match set.strip_suffix(":write") {
        Some(name) => json!({ "toolset": name, "include_write_tools": true }),
        None => json!({ "toolset": set }),
    }
}
