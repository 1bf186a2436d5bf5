//! A client of the REST turn API.

use crate::actor::Actor;
use crate::http::{Answer, Request};
use serde_json::{Value, json};

/// One client.
#[derive(Clone)]
pub struct Rest {
    actor: Actor,
}

impl Rest {
    pub(crate) fn new(actor: Actor) -> Rest {
        Rest { actor }
    }

    /// Opens a session of a mode and gives its id.
    pub async fn open(&self, mode: &str) -> String {
        let answer = self.post("/v1/sessions", &json!({ "mode": mode })).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().expect("a session has an id").to_owned()
    }

    /// Calls a tool in a session.
    pub async fn call(&self, session: &str, tool: &str, arguments: Value) -> Answer {
        let body = json!({ "tool": tool, "arguments": arguments });
        self.post(&format!("/v1/sessions/{session}/calls"), &body).await
    }

    /// This turn's tools in a format.
    pub async fn tools(&self, session: &str, format: &str) -> Answer {
        self.get(&format!("/v1/sessions/{session}/tools?format={format}")).await
    }

    /// Gets an address.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(&self.actor.request("GET", path)).await
    }

    /// Deletes what is at an address.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(&self.actor.request("DELETE", path)).await
    }

    /// Posts JSON to an address.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(&self.actor.post(path, body)).await
    }

    /// A request that has not been sent.
    pub fn prepare(&self, method: &str, path: &str) -> Request {
        self.actor.request(method, path)
    }

    /// Sends a prepared request.
    pub async fn send(&self, request: &Request) -> Answer {
        self.actor.send(request).await
    }
}
