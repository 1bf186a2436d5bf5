//! What a well-behaved server says, in the era of each request.

use super::wire::{Pen, Seen, Wire};
use super::{Counted, Era, Stage};
use serde_json::{Map, Value, json};
use std::io;

pub(super) const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";
pub(super) const JSON: (&str, &str) = ("Content-Type", "application/json");
pub(super) const EVENTS: (&str, &str) = ("Content-Type", "text/event-stream");
const SESSION: &str = "mcp-session-id";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// What is said to one message.
enum Said {
    Result(Value),
    Error { status: u16, code: i64, message: &'static str },
}

/// Answers one request as its era wants it.
pub(super) async fn answer(seen: &Seen, stage: &Stage, wire: &mut Wire, pen: &mut Pen<'_>) -> io::Result<()> {
    if !stage.admits(seen) {
        // Where a client could go from here. One that does is seen.
        let host = seen.header("host").unwrap_or_default();
        let place = format!("Bearer resource_metadata=\"http://{host}/.well-known/oauth-protected-resource\"");
        return pen.whole(401, &[("WWW-Authenticate", &place)], b"").await;
    }
    match seen.method.as_str() {
        "GET" if stage.era.is_legacy() && known(seen, stage) => stream(None, stage, wire, pen).await,
        "DELETE" if stage.era.is_legacy() => {
            let session = seen.header(SESSION).unwrap_or_default();
            stage.state().sessions.remove(session);
            pen.whole(200, &[], b"").await
        }
        "POST" => posted(seen, stage, wire, pen).await,
        _ => pen.whole(405, &[("Allow", "POST")], b"").await,
    }
}

/// Whether a message is of the modern era, by its own words.
pub(super) fn is_modern(message: &Value) -> bool {
    message["params"]["_meta"].get(VERSION_KEY).is_some()
}

async fn posted(seen: &Seen, stage: &Stage, wire: &mut Wire, pen: &mut Pen<'_>) -> io::Result<()> {
    let message = seen.message();
    let (id, method) = (&message["id"], message["method"].as_str().unwrap_or_default());
    if id.is_null() {
        return pen.whole(202, &[], b"").await;
    }
    let modern = is_modern(&message);
    if modern && method == "subscriptions/listen" && stage.era.is_modern() {
        return stream(Some(id), stage, wire, pen).await;
    }
    if !modern && method == "initialize" && stage.era.is_legacy() {
        let session = open_session(stage);
        let body = envelope(id, Said::Result(initialized(&message))).1;
        return pen.whole(200, &[JSON, ("Mcp-Session-Id", &session)], body.to_string().as_bytes()).await;
    }
    let said = if modern { in_modern(seen, &message, stage) } else { in_legacy(seen, &message, stage) };
    let progress = progress_of(&message);
    let (status, body) = envelope(id, said);
    if status == 200 && (stage.state().in_streams || !progress.is_empty()) {
        pen.open(200, &[EVENTS]).await?;
        for notice in progress {
            pen.event(&notice).await?;
        }
        pen.event(&body).await?;
        return pen.close().await;
    }
    pen.whole(status, &[JSON], body.to_string().as_bytes()).await
}

fn in_modern(seen: &Seen, message: &Value, stage: &Stage) -> Said {
    let method = message["method"].as_str().unwrap_or_default();
    if stage.era == Era::LegacyDiscovered && method == "server/discover" {
        let capabilities = json!({ "tools": { "listChanged": true } });
        let spoken = json!({ "supportedVersions": [LEGACY, "2025-06-18"], "capabilities": capabilities });
        return Said::Result(complete(spoken));
    }
    if !stage.era.is_modern() {
        // What the servers of that era say to a request outside a session.
        return Said::Error { status: 400, code: -32000, message: "Bad Request: no valid session" };
    }
    let told = &message["params"]["_meta"][VERSION_KEY];
    if *told != MODERN {
        return Said::Error { status: 400, code: -32022, message: "Unsupported protocol version" };
    }
    let name = message["params"]["name"].as_str();
    if seen.header("mcp-protocol-version") != Some(MODERN)
        || seen.header("mcp-method") != Some(method)
        || (method == "tools/call" && seen.header("mcp-name") != name)
    {
        return Said::Error { status: 400, code: -32020, message: "Header mismatch" };
    }
    let said = match method {
        "server/discover" => json!({
            "supportedVersions": [MODERN], "capabilities": { "tools": { "listChanged": true } },
            "ttlMs": 1000, "cacheScope": "private"
        }),
        "tools/list" => {
            let mut listed = listed(message, stage);
            listed["ttlMs"] = json!(1000);
            listed["cacheScope"] = json!("private");
            listed
        }
        "tools/call" => match called(seen, message, stage) {
            Some(result) => result,
            None => return Said::Error { status: 400, code: -32602, message: "Unknown tool" },
        },
        _ => return Said::Error { status: 404, code: -32601, message: "Method not found" },
    };
    Said::Result(complete(said))
}

fn complete(mut result: Value) -> Value {
    result["resultType"] = json!("complete");
    result["_meta"] = json!({ "io.modelcontextprotocol/serverInfo": { "name": "double", "version": "1" } });
    result
}

fn in_legacy(seen: &Seen, message: &Value, stage: &Stage) -> Said {
    if !stage.era.is_legacy() {
        return Said::Error { status: 400, code: -32022, message: "Unsupported protocol version" };
    }
    if !known(seen, stage) {
        let status = if seen.header(SESSION).is_some() { 404 } else { 400 };
        return Said::Error { status, code: -32000, message: "Bad Request: no valid session" };
    }
    match message["method"].as_str().unwrap_or_default() {
        "ping" => Said::Result(json!({})),
        "tools/list" => Said::Result(listed(message, stage)),
        "tools/call" => match called(seen, message, stage) {
            Some(result) => Said::Result(result),
            None => Said::Error { status: 200, code: -32602, message: "Unknown tool" },
        },
        _ => Said::Error { status: 200, code: -32601, message: "Method not found" },
    }
}

/// One page of the list. A cursor is the number of the first tool on its page.
fn listed(message: &Value, stage: &Stage) -> Value {
    let state = stage.state();
    let from: usize = message["params"]["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
    let size = state.page.unwrap_or(usize::MAX);
    let page: Vec<&Value> = state.tools.iter().skip(from).take(size).collect();
    let next = from.saturating_add(page.len());
    let mut listed = json!({ "tools": page });
    if next < state.tools.len() {
        listed["nextCursor"] = json!(next.to_string());
    }
    listed
}

/// What a tool gives: what the test said it gives, or what it does of itself.
fn called(seen: &Seen, message: &Value, stage: &Stage) -> Option<Value> {
    let (name, arguments) = (message["params"]["name"].as_str()?, &message["params"]["arguments"]);
    let state = stage.state();
    if let Some(result) = state.results.get(name) {
        return Some(result.clone());
    }
    state.tools.iter().find(|tool| tool["name"] == name)?;
    Some(match name {
        "fail" => json!({ "content": [{ "type": "text", "text": "the disk is full" }], "isError": true }),
        "whoami" => {
            let headers: Map<String, Value> =
                seen.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
            structured(json!({ "path": seen.path, "headers": headers }))
        }
        _ => structured(json!({ "tool": name, "arguments": arguments })),
    })
}

fn structured(value: Value) -> Value {
    json!({ "content": [{ "type": "text", "text": value.to_string() }], "structuredContent": value })
}

/// Three notices on the way, if the caller of `progress` wants to hear of it.
fn progress_of(message: &Value) -> Vec<Value> {
    let token = &message["params"]["_meta"]["progressToken"];
    if message["params"]["name"] != "progress" || token.is_null() {
        return Vec::new();
    }
    let notice = |done: u32| {
        let params = json!({ "progressToken": token, "progress": done, "total": 3 });
        json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
    };
    (1..=3).map(notice).collect()
}

fn initialized(message: &Value) -> Value {
    let asked = message["params"]["protocolVersion"].as_str().unwrap_or(LEGACY);
    let spoken = if ["2025-03-26", "2025-06-18", LEGACY].contains(&asked) { asked } else { LEGACY };
    json!({
        "protocolVersion": spoken, "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": "double", "version": "1" }
    })
}

fn open_session(stage: &Stage) -> String {
    let mut state = stage.state();
    state.opened += 1;
    let session = format!("session-{}", state.opened);
    state.sessions.insert(session.clone());
    session
}

fn known(seen: &Seen, stage: &Stage) -> bool {
    seen.header(SESSION).is_some_and(|session| stage.state().sessions.contains(session))
}

fn envelope(id: &Value, said: Said) -> (u16, Value) {
    match said {
        Said::Result(result) => (200, json!({ "jsonrpc": "2.0", "id": id, "result": result })),
        Said::Error { status, code, message } => {
            let mut error = json!({ "code": code, "message": message });
            if code == -32022 {
                error["data"] = json!({ "supported": [MODERN] });
            }
            (status, json!({ "jsonrpc": "2.0", "id": id, "error": error }))
        }
    }
}

/// A stream of notices: a `GET` in the legacy era, a listening request in the modern one.
async fn stream(listener: Option<&Value>, stage: &Stage, wire: &mut Wire, pen: &mut Pen<'_>) -> io::Result<()> {
    let mut news = stage.news.subscribe();
    let _open = Counted::among(&stage.streams);
    let mark = listener.map(|id| json!({ "io.modelcontextprotocol/subscriptionId": id }));
    pen.open(200, &[EVENTS]).await?;
    if let Some(mark) = &mark {
        let params = json!({ "_meta": mark, "notifications": { "toolsListChanged": true } });
        let method = "notifications/subscriptions/acknowledged";
        pen.event(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await?;
    }
    loop {
        tokio::select! {
            () = wire.left() => return Err(io::ErrorKind::BrokenPipe.into()),
            heard = news.recv() => if heard.is_err() {
                return pen.close().await;
            },
        }
        let mut notice = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        if let Some(mark) = &mark {
            notice["params"] = json!({ "_meta": mark });
        }
        pen.event(&notice).await?;
    }
}
