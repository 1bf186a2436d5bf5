//! The measured requests, and what is aimed at.
//!
//! All of them can be repeated for ever with the same answer: lists, a tool that does nothing but answer, a read of an
//! empty memory, and loading what is loaded.

use crate::floor::FloorKind;
use serde_json::{Value, json};

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";
/// The token of requests that carry none.
const NOBODY: &str = "";
/// A list comes from finished bytes: close to a server that has nothing else.
const LIST: f64 = 0.75;
/// A call has to be written down before it may happen: close to a server that asks Redis once.
const CALL: f64 = 0.70;

/// What the requests of one contender carry.
pub(crate) struct Tickets {
    /// An agent's token.
    pub(crate) token: String,
    /// A session opened by `initialize`.
    pub(crate) legacy: String,
    /// A handle given by `load_toolset`.
    pub(crate) modern: String,
    /// A token of the fixture tenant, whose tools answer without doing anything.
    pub(crate) fixture: String,
    /// A session of the fixture tenant.
    pub(crate) fixture_session: String,
}

/// One measured request.
pub(crate) struct Operation {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// The bytes of the request.
    pub(crate) request: fn(&Tickets) -> Vec<u8>,
    /// What it is compared with; without an aim the ratio is only told.
    pub(crate) against: &'static [(FloorKind, Option<f64>)],
}

const FINISHED_BYTES: &[(FloorKind, Option<f64>)] = &[(FloorKind::Bare, Some(LIST))];
/// A session is a record in the store, so a list for a session cannot be had without asking for it.
const ONE_RECORD: &[(FloorKind, Option<f64>)] = &[(FloorKind::RoundTrip, Some(LIST)), (FloorKind::Bare, None)];
const LEDGER: &[(FloorKind, Option<f64>)] = &[(FloorKind::RoundTrip, Some(CALL))];
/// These do work of their own in the store, so the floor is only a yardstick.
const TOLD: &[(FloorKind, Option<f64>)] = &[(FloorKind::RoundTrip, None)];

/// The smallest real call.
pub(crate) const LOOK: Operation = Operation {
    name: "tools/call memory_list, modern",
    request: |tickets| modern(&tickets.token, "tools/call", memory_list()),
    against: TOLD,
};

/// The path of every call and nothing else.
pub(crate) const NO_OP: Operation = Operation {
    name: "tools/call no-op, modern",
    request: |tickets| modern(&tickets.fixture, "tools/call", no_op()),
    against: LEDGER,
};

/// Everything that is measured, in the order of the table.
pub(crate) const ALL: [Operation; 8] = [
    Operation {
        name: "tools/list, legacy, no session",
        request: |tickets| legacy(&tickets.token, None, &list()),
        against: FINISHED_BYTES,
    },
    Operation {
        name: "tools/list, modern",
        request: |tickets| modern(&tickets.token, "tools/list", json!({})),
        against: FINISHED_BYTES,
    },
    Operation {
        name: "tools/list, legacy, session",
        request: |tickets| legacy(&tickets.token, Some(&tickets.legacy), &list()),
        against: ONE_RECORD,
    },
    Operation {
        name: "tools/call no-op, legacy, no session",
        request: |tickets| legacy(&tickets.fixture, None, &call(no_op())),
        against: LEDGER,
    },
    Operation {
        name: "tools/call no-op, legacy, session",
        request: |tickets| legacy(&tickets.fixture, Some(&tickets.fixture_session), &call(no_op())),
        against: LEDGER,
    },
    NO_OP,
    LOOK,
    Operation {
        name: "tools/call load_toolset, modern, handle",
        request: |tickets| {
            let mut params = load_toolset();
            params["_meta"] = json!({ "quartermaster/session": tickets.modern });
            modern(&tickets.token, "tools/call", params)
        },
        against: TOLD,
    },
];

/// Lists the tools of a tenant.
pub(crate) fn list_tools(token: &str) -> Vec<u8> {
    modern(token, "tools/list", json!({}))
}

/// The smallest real call.
pub(crate) fn memory_list_of(token: &str) -> Vec<u8> {
    modern(token, "tools/call", memory_list())
}

/// Opens a legacy session.
pub(crate) fn initialize(token: &str) -> Vec<u8> {
    let client = json!({ "name": "loadtests", "version": "1" });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
    legacy(token, None, &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }))
}

/// Opens a session in the modern era, where loading is what gives a handle.
pub(crate) fn first_load(token: &str) -> Vec<u8> {
    modern(token, "tools/call", load_toolset())
}

/// Asks for the page of pods a cursor names, or for the first one.
pub(crate) fn pods(token: &str, cursor: Option<&str>) -> Vec<u8> {
    let mut arguments = json!({ "kind": "Pod" });
    if let Some(cursor) = cursor {
        arguments["cursor"] = json!(cursor);
    }
    modern(token, "tools/call", json!({ "name": "k8s_get", "arguments": arguments }))
}

/// Loads a toolset in the modern era.
pub(crate) fn load(token: &str, toolset: &str) -> Vec<u8> {
    modern(token, "tools/call", json!({ "name": "load_toolset", "arguments": { "toolset": toolset } }))
}

/// Loads a toolset with the tools that change something.
pub(crate) fn load_to_write(token: &str, handle: &str, toolset: &str) -> Vec<u8> {
    let arguments = json!({ "toolset": toolset, "include_write_tools": true });
    proxied(token, handle, "load_toolset", &arguments)
}

/// Lists the tools of a legacy session: the list of the modern era is the same for all sessions.
pub(crate) fn list_of(token: &str, session: &str) -> Vec<u8> {
    legacy(token, Some(session), &list())
}

/// Loads a toolset, with the tools that change something, into a legacy session.
pub(crate) fn legacy_load(token: &str, session: &str, toolset: &str) -> Vec<u8> {
    let arguments = json!({ "toolset": toolset, "include_write_tools": true });
    legacy(token, Some(session), &call(json!({ "name": "load_toolset", "arguments": arguments })))
}

/// Posts JSON to the REST API.
pub(crate) fn rest_post(path: &str, token: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Asks a server of the legacy era that knows no token, in its session.
pub(crate) fn legacy_direct(session: Option<&str>, method: &str, params: Value) -> Vec<u8> {
    legacy(NOBODY, session, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
}

/// The notification that ends the opening of a legacy session.
pub(crate) fn legacy_opened(session: Option<&str>) -> Vec<u8> {
    legacy(NOBODY, session, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
}

/// Calls a tool of an external server by way of the service, in the session it was loaded in.
pub(crate) fn proxied(token: &str, handle: &str, tool: &str, arguments: &Value) -> Vec<u8> {
    let meta = json!({ "quartermaster/session": handle });
    modern(token, "tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }))
}

/// Asks an external server itself. It knows no token of ours, and is shown none.
pub(crate) fn direct(method: &str, params: Value) -> Vec<u8> {
    modern(NOBODY, method, params)
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })
}

fn call(params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// A tool of the fixture tenant: its answer is fixed, and the whole path of a call leads to it.
fn no_op() -> Value {
    json!({ "name": "test_simple_text", "arguments": {} })
}

fn memory_list() -> Value {
    json!({ "name": "memory_list", "arguments": {} })
}

fn load_toolset() -> Value {
    json!({ "name": "load_toolset", "arguments": { "toolset": "memory" } })
}

fn legacy(token: &str, session: Option<&str>, body: &Value) -> Vec<u8> {
    let mut headers = vec![("MCP-Protocol-Version", LEGACY)];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    post(token, &headers, &body.to_string())
}

fn modern(token: &str, method: &str, mut params: Value) -> Vec<u8> {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "loadtests", "version": "1" });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let name = params["name"].as_str().map(str::to_owned);
    let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
    headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    post(token, &headers, &body.to_string())
}

fn post(token: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    // Some servers pass on whatever they are shown, so those that know no token are shown none.
    let authorization = match token {
        NOBODY => String::new(),
        token => format!("Authorization: Bearer {token}\r\n"),
    };
    format!(
        "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{more}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests() -> Vec<(&'static str, String, Value)> {
        let tickets = Tickets {
            token: "tok".into(),
            legacy: "ses_l".into(),
            modern: "ses_m".into(),
            fixture: "fix".into(),
            fixture_session: "ses_f".into(),
        };
        let read = |operation: &Operation| {
            let text = String::from_utf8((operation.request)(&tickets)).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("\r\nContent-Length: {}", body.len())), "{head}");
            (operation.name, head.to_owned(), serde_json::from_str(body).unwrap())
        };
        ALL.iter().map(read).collect()
    }

    #[test]
    fn every_request_carries_its_tenants_token_and_says_its_era() {
        for (name, head, body) in requests() {
            let token = if name.contains("no-op") { "fix" } else { "tok" };
            assert!(head.contains(&format!("\r\nAuthorization: Bearer {token}\r\n")), "{name}");
            let meta = &body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            let (version, told) = if name.contains("modern") { (MODERN, json!(MODERN)) } else { (LEGACY, Value::Null) };
            assert!(head.contains(&format!("\r\nMCP-Protocol-Version: {version}\r\n")), "{name}");
            assert_eq!(meta, &told, "{name}");
        }
    }

    #[test]
    fn a_modern_call_names_its_tool_in_the_head_as_in_the_body() {
        for (name, head, body) in requests() {
            let wanted = body["params"]["name"].as_str().map(|tool| format!("\r\nMcp-Name: {tool}\r\n"));
            let wanted = wanted.filter(|_| name.contains("modern"));
            assert_eq!(head.contains("Mcp-Name"), wanted.is_some(), "{name}");
            assert!(wanted.is_none_or(|line| head.contains(&line)), "{name}");
        }
    }

    #[test]
    fn sessions_travel_by_header_in_one_era_and_by_meta_in_the_other() {
        for (name, head, body) in requests() {
            let session = if name.contains("no-op") { "ses_f" } else { "ses_l" };
            assert_eq!(
                head.contains(&format!("\r\nMcp-Session-Id: {session}\r\n")),
                name.ends_with(", session"),
                "{name}"
            );
            assert_eq!(body["params"]["_meta"]["quartermaster/session"] == json!("ses_m"), name.ends_with("handle"));
        }
    }
}
