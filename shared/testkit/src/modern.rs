//! A client of the modern era: every request carries its version, and headers say what the body says.

use crate::actor::Actor;
use crate::http::{Answer, Request};
use crate::legacy::{load_arguments, names};
use crate::outcome::Outcome;
use crate::sse::Stream;
use serde_json::{Value, json};

/// The revision of the modern era.
pub const REVISION: &str = "2026-07-28";
const HANDLE: &str = "quartermaster/session";

/// One client. It holds a handle once it was given one.
#[derive(Clone)]
pub struct Modern {
    actor: Actor,
    path: String,
    handle: Option<String>,
}

impl Modern {
    pub(crate) fn new(actor: Actor) -> Modern {
        Modern { actor, path: "/mcp".to_owned(), handle: None }
    }

    /// The same client at an address that selects toolsets.
    #[must_use]
    pub fn at(&self, path: &str) -> Modern {
        Modern { path: path.to_owned(), ..self.clone() }
    }

    /// The same client, passing a session's handle in `_meta`.
    #[must_use]
    pub fn with_session(&self, handle: &str) -> Modern {
        Modern { handle: Some(handle.to_owned()), ..self.clone() }
    }

    /// The same client at another replica.
    #[must_use]
    pub fn on(&self, replica: usize) -> Modern {
        Modern { actor: self.actor.on(replica), ..self.clone() }
    }

    /// A request that has not been sent, with every header the era wants.
    pub fn prepare(&self, method: &str, mut params: Value) -> Request {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(REVISION);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        if let Some(handle) = &self.handle {
            params["_meta"][HANDLE] = json!(handle);
        }
        let body = json!({ "jsonrpc": "2.0", "id": "m1", "method": method, "params": params });
        let request = self
            .actor
            .post(&self.path, &body)
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", REVISION)
            .header("Mcp-Method", method);
        match params["name"].as_str() {
            Some(name) => request.header("Mcp-Name", name),
            None => request,
        }
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

    /// The names in `tools/list`.
    pub async fn list(&self) -> Vec<String> {
        names(self.ask("tools/list", json!({})).await.result())
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> Outcome {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Loads `memory`, or `memory:write`, and gives the same client with the handle of the session it is loaded in.
    pub async fn loaded(&self, set: &str) -> Modern {
        let outcome = self.call("load_toolset", load_arguments(set)).await;
        let handle = outcome.ok()["session"].as_str().expect("loading gives a handle");
        self.with_session(handle)
    }

    /// The handle this client passes.
    pub fn handle(&self) -> &str {
        self.handle.as_deref().expect("this client has loaded nothing")
    }

    /// Opens a stream of change notices and reads its first frame.
    pub async fn listen(&self) -> Stream {
        let request = self.prepare("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
        let mut stream = self.actor.stream(&request).await;
        assert_eq!(stream.notice().await, "notifications/subscriptions/acknowledged");
        stream
    }
}
