//! Asks a tool what it offers: `tools/list` in both protocol eras, with or without a token.
//!
//! The modern request comes first: it needs no session, and a server that only knows the plain request of the contract
//! answers it as well. A server that refuses it is asked the older way, with `initialize` and a session.
//!
//! The address is a Service that the operator made, so it is on the cluster's own network. Whatever else its name resolves
//! to is refused, as are redirects; a token goes nowhere else.

use crate::resources::ToolSchema;
use egress::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use egress::{AddressGuard, Config, Guarded, GuardedRequest, GuardedResponse, Lookup, Method, SendError, Url};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The modern revision.
const MODERN: &str = "2026-07-28";
/// The revision that older servers are offered.
const LEGACY: &str = "2025-11-25";
/// The most that is read of one answer.
const LONGEST_ANSWER: usize = 4 << 20;
/// Pages of one list.
const MOST_PAGES: usize = 32;
/// Tools of one list.
const MOST_TOOLS: usize = 1_000;
/// The longest name of a tool.
const LONGEST_NAME: usize = 128;

/// Whom to ask.
#[derive(Clone)]
pub struct ToolAddress {
    /// The endpoint with the path of the protocol.
    pub url: String,
    /// What goes along, if the tool wants it.
    pub token: Option<String>,
    /// How its name is resolved; the system's way without it.
    pub lookup: Option<Lookup>,
}

/// Why a tool's list is not known.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The address cannot be used.
    #[error("the address cannot be asked")]
    Address(#[source] egress::AddressRefused),
    /// The client cannot be built.
    #[error("the HTTP client cannot be built")]
    Client(#[source] egress::ClientError),
    /// No answer.
    #[error("it does not answer")]
    NoAnswer(#[source] SendError),
    /// It wants another token, or one.
    #[error("it answers with status {0}: the token is missing or not accepted")]
    Unauthorized(u16),
    /// It answered with something else than a result.
    #[error("it refuses `{method}`: {message}")]
    Refused {
        /// What was asked.
        method: &'static str,
        /// What came back, in short.
        message: String,
    },
    /// Its answer is no list of tools.
    #[error("its list of tools is malformed: {0}")]
    Malformed(&'static str),
}

impl DiscoverError {
    /// The reason of the condition `SchemaSynced`.
    pub fn reason(&self) -> &'static str {
        match self {
            DiscoverError::Address(_) | DiscoverError::Client(_) => "BadAddress",
            DiscoverError::NoAnswer(_) => "NoAnswer",
            DiscoverError::Unauthorized(_) => "Unauthorized",
            DiscoverError::Refused { .. } => "Refused",
            DiscoverError::Malformed(_) => "Malformed",
        }
    }
}

/// Everything that a tool offers.
pub async fn list_tools(address: &ToolAddress) -> Result<Vec<ToolSchema>, DiscoverError> {
    let asking = Asking::new(address)?;
    match asking.pages(&ToolEra::Modern).await {
        Err(DiscoverError::Refused { .. } | DiscoverError::Malformed(_)) => asking.older_way().await,
        other => other,
    }
}

/// How requests are written.
enum ToolEra {
    Modern,
    Legacy { version: String, session: Option<String> },
}

struct Asking {
    client: Guarded,
    url: Url,
    token: Option<HeaderValue>,
}

impl Asking {
    fn new(address: &ToolAddress) -> Result<Asking, DiscoverError> {
        let url = Url::parse(&address.url).map_err(|_| DiscoverError::Address(egress::AddressRefused::NotAnAddress))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let guard = AddressGuard { private: true, ports: vec![port] };
        guard.check(&url).map_err(DiscoverError::Address)?;
        let config = Config { answer_within: Duration::from_secs(15), ..Config::default() };
        let client = match &address.lookup {
            Some(lookup) => guard.client_resolving(&config, Arc::clone(lookup)),
            None => guard.client(&config),
        };
        let token = address.token.as_ref().map(|token| HeaderValue::from_str(&format!("Bearer {}", token.trim())));
        let token = token.transpose().map_err(|_| DiscoverError::Unauthorized(0))?;
        Ok(Asking { client: client.map_err(DiscoverError::Client)?, url, token })
    }

    /// `initialize`, the list, and the end of the session.
    async fn older_way(&self) -> Result<Vec<ToolSchema>, DiscoverError> {
        let params = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": { "name": "quartermaster-operator", "version": env!("CARGO_PKG_VERSION") },
        });
        let opening = ToolEra::Legacy { version: LEGACY.to_owned(), session: None };
        let (answer, result) = self.ask("initialize", params, &opening).await?;
        let session = answer.headers.get("mcp-session-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        let version = result["protocolVersion"].as_str().unwrap_or(LEGACY).to_owned();
        let era = ToolEra::Legacy { version, session };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send("notifications/initialized", Some(&ready), &era).await?;
        let tools = self.pages(&era).await;
        if let ToolEra::Legacy { session: Some(_), .. } = &era
            && let Err(error) = self.send("", None, &era).await
        {
            // It ends by itself some time; what was listed is listed.
            tracing::debug!(error = &error as &dyn std::error::Error, "a session with a tool was not closed");
        }
        tools
    }

    async fn pages(&self, era: &ToolEra) -> Result<Vec<ToolSchema>, DiscoverError> {
        let mut tools = Vec::new();
        let mut params = json!({});
        for _ in 0..MOST_PAGES {
            let (_, result) = self.ask("tools/list", params, era).await?;
            let page = result["tools"].as_array().ok_or(DiscoverError::Malformed("`tools` is no list"))?;
            for tool in page {
                tools.push(read_tool(tool)?);
            }
            if tools.len() > MOST_TOOLS {
                return Err(DiscoverError::Malformed("it has more than 1000 tools"));
            }
            match result["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return Ok(tools),
            }
        }
        Err(DiscoverError::Malformed("it does not end"))
    }

    /// A request and its result.
    async fn ask(
        &self,
        method: &'static str,
        mut params: Value,
        era: &ToolEra,
    ) -> Result<(GuardedResponse, Value), DiscoverError> {
        if let ToolEra::Modern = era {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let answer = self.send(method, Some(&message), era).await?;
        let refused = |message: String| DiscoverError::Refused { method, message };
        let reply = reply(&answer).ok_or_else(|| refused(format!("status {}, and no message", answer.status)))?;
        if let Some(error) = reply.get("error") {
            // Its words stay out: they could hold what it was sent, the token among it.
            return Err(refused(format!(
                "status {}, error {}",
                answer.status,
                error["code"].as_i64().unwrap_or_default()
            )));
        }
        let result = reply.get("result").filter(|result| result.is_object()).cloned();
        Ok((answer, result.ok_or(DiscoverError::Malformed("the answer has no result"))?))
    }

    /// Sends a message, or without one closes the session.
    async fn send(
        &self,
        method: &'static str,
        message: Option<&Value>,
        era: &ToolEra,
    ) -> Result<GuardedResponse, DiscoverError> {
        let verb = if message.is_some() { Method::POST } else { Method::DELETE };
        let mut request = GuardedRequest::new(verb, &self.url);
        request.body = message.map(|message| message.to_string().into_bytes());
        let headers = &mut request.headers;
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = &self.token {
            let mut token = token.clone();
            token.set_sensitive(true);
            headers.insert(egress::header::AUTHORIZATION, token);
        }
        let mut more = Vec::new();
        match era {
            ToolEra::Modern => more.extend([("mcp-protocol-version", MODERN), ("mcp-method", method)]),
            // The first message negotiates what later ones name.
            ToolEra::Legacy { .. } if method == "initialize" => {}
            ToolEra::Legacy { version, session } => {
                more.push(("mcp-protocol-version", version.as_str()));
                more.extend(session.as_deref().map(|session| ("mcp-session-id", session)));
            }
        }
        for (name, value) in more {
            let value = HeaderValue::from_str(value).map_err(|_| DiscoverError::Malformed("its session has no id"))?;
            headers.insert(HeaderName::from_static(name), value);
        }
        let answer = self.client.send(request, LONGEST_ANSWER).await.map_err(DiscoverError::NoAnswer)?;
        match answer.status {
            401 | 403 => Err(DiscoverError::Unauthorized(answer.status)),
            _ => Ok(answer),
        }
    }
}

/// The message in an answer: the body, or that of an event stream which has our id.
fn reply(answer: &GuardedResponse) -> Option<Value> {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.starts_with("text/event-stream") {
        return serde_json::from_slice(&answer.body).ok().filter(Value::is_object);
    }
    let text = std::str::from_utf8(&answer.body).ok()?.replace("\r\n", "\n");
    let data = |event: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
    };
    let mut messages = text.split("\n\n").filter_map(|event| serde_json::from_str::<Value>(&data(event)).ok());
    messages.find(|message| message["id"] == 1)
}

fn read_tool(tool: &Value) -> Result<ToolSchema, DiscoverError> {
    let name = tool["name"].as_str().filter(|name| (1..=LONGEST_NAME).contains(&name.len()));
    let name = name.ok_or(DiscoverError::Malformed("a tool has no name, or one beyond 128 characters"))?;
    let schema = tool["inputSchema"].as_object().ok_or(DiscoverError::Malformed("a tool has no input schema"))?;
    Ok(ToolSchema {
        name: name.to_owned(),
        description: tool["description"].as_str().map(str::to_owned),
        input_schema: without_nulls(schema),
    })
}

/// The API server keeps no nulls, so they would read as a change for ever.
fn without_nulls(map: &Map<String, Value>) -> Map<String, Value> {
    let kept = |value: &Value| match value {
        Value::Object(map) => Value::Object(without_nulls(map)),
        other => other.clone(),
    };
    map.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), kept(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use egress::header::HeaderMap;

    fn answer(kind: &'static str, body: &str) -> GuardedResponse {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        GuardedResponse { status: 200, headers, body: body.as_bytes().to_vec(), cut: false }
    }

    #[test]
    fn the_answer_is_found_among_the_events_of_a_stream() {
        let stream = ": hello\r\n\r\nevent: message\r\ndata: {\"method\":\"notifications/x\"}\r\n\r\n\
            event: message\r\ndata: {\"id\":1,\r\ndata: \"result\":{}}\r\n\r\n";
        assert_eq!(reply(&answer("text/event-stream", stream)), Some(json!({ "id": 1, "result": {} })));
        assert_eq!(reply(&answer("text/event-stream; charset=utf-8", "data: {}\n\n")), None);
        assert_eq!(reply(&answer("application/json", "[1]")), None);
        assert_eq!(reply(&answer("text/html", "<p>")), None);
    }

    #[test]
    fn a_tool_needs_a_name_and_a_schema() {
        assert!(read_tool(&json!({ "name": "a" })).is_err());
        assert!(read_tool(&json!({ "name": "", "inputSchema": {} })).is_err());
        assert!(read_tool(&json!({ "name": "x".repeat(129), "inputSchema": {} })).is_err());
        let tool =
            read_tool(&json!({ "name": "a", "inputSchema": { "b": null, "c": { "d": null, "e": 1 } } })).unwrap();
        assert_eq!(Value::Object(tool.input_schema), json!({ "c": { "e": 1 } }));
    }
}
