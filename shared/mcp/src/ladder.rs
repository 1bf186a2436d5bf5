//! The modern ladder: headers and `_meta` compared rung by rung; the first that fails answers.
//!
//! `climb` is rungs 2 to 5; rung 6 (method) and 9 (log level) follow in [`decode`](crate::decode()). Rungs 7 and 8
//! need the called tool: [`check_param_headers`] and [`missing_capability`].
//! On stdio there are no headers, and rungs 2, 4 and 7 fall away.

use crate::codes::MessageFault;
use crate::era::{Era, MODERN};
use crate::headers::{ProtocolHeaders, plain};
use crate::id::Id;
use crate::meta::{CAPABILITIES, VERSION, in_meta};
use crate::refusal::{Refusal, WireError};
use serde_json::{Value, json};

mod params;
pub use params::check_param_headers;

/// Rungs 2 to 5.
pub(crate) fn climb(
    headers: Option<&ProtocolHeaders<'_>>,
    method: &str,
    params: Option<&Value>,
) -> Result<(), WireError> {
    if let Some(headers) = headers {
        once(headers)?;
    }
    let version = complete(params)?;
    if let Some(headers) = headers {
        agree(headers, version, method, params)?;
    }
    match version {
        Value::String(version) if version == MODERN => Ok(()),
        Value::String(version) => Err(unsupported(version)),
        // Only seen on stdio: no header equals something that is not a string.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(WireError::new(MessageFault::InvalidEnvelope, format!("{VERSION} must be a string")))
        }
    }
}

/// Rung 2: nobody can say which of two equal headers counts.
fn once(headers: &ProtocolHeaders<'_>) -> Result<(), WireError> {
    let all =
        [("MCP-Protocol-Version", &headers.version), ("Mcp-Method", &headers.method), ("Mcp-Name", &headers.name)];
    match all.into_iter().find(|(_, values)| values.len() > 1) {
        Some((name, _)) => Err(sent_twice(name)),
        None => Ok(()),
    }
}

pub(crate) fn sent_twice(name: &str) -> WireError {
    mismatch(format!("{name} header was sent more than once"))
}

/// Rung 3: `_meta` names a version and the client's capabilities. Gives the version back.
fn complete(params: Option<&Value>) -> Result<&Value, WireError> {
    let version = in_meta(params, VERSION);
    let capabilities = in_meta(params, CAPABILITIES);
    match (version, capabilities) {
        (Some(version), Some(Value::Object(_))) => Ok(version),
        (Some(_), Some(_)) => {
            Err(WireError::new(MessageFault::InvalidEnvelope, format!("{CAPABILITIES} must be an object")))
        }
        (version, capabilities) => {
            let missing: Vec<&str> = [(VERSION, version), (CAPABILITIES, capabilities)]
                .into_iter()
                .filter_map(|(key, value)| value.is_none().then_some(key))
                .collect();
            let message = format!(
                "params._meta lacks {}; served versions: {MODERN}, or 2025-03-26, 2025-06-18, 2025-11-25 by initialize",
                missing.join(" and "),
            );
            let error = WireError::new(MessageFault::InvalidEnvelope, message);
            Err(error.with("missing", missing).with("supported", json!([MODERN])))
        }
    }
}

/// Rung 4: the headers say what the body says. Before rung 5, so that a client that contradicts itself is told so.
fn agree(
    headers: &ProtocolHeaders<'_>,
    version: &Value,
    method: &str,
    params: Option<&Value>,
) -> Result<(), WireError> {
    match headers.version.first() {
        None => return Err(mismatch("MCP-Protocol-Version header is missing")),
        Some(sent) if version.as_str() != Some(*sent) => {
            return Err(mismatch("MCP-Protocol-Version header does not match the version in params._meta"));
        }
        Some(_) => {}
    }
    match headers.method.first() {
        None => return Err(mismatch("Mcp-Method header is missing")),
        Some(sent) if *sent != method => return Err(mismatch("Mcp-Method header does not match method")),
        Some(_) => {}
    }
    let Some(key) = named_by(method) else { return Ok(()) };
    let named = params.and_then(|params| params.get(key)).and_then(Value::as_str);
    match headers.name.first().map(|sent| plain(sent)) {
        None => Err(mismatch("Mcp-Name header is missing")),
        Some(Some(sent)) if named == Some(&*sent) => Ok(()),
        Some(_) => Err(mismatch(format!("Mcp-Name header does not match params.{key}"))),
    }
}

/// Which parameter `Mcp-Name` mirrors, for the methods that have one.
pub(crate) fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ if method.starts_with("tasks/") => Some("taskId"),
        _ => None,
    }
}

fn mismatch(message: impl Into<String>) -> WireError {
    WireError::new(MessageFault::HeaderMismatch, message)
}

pub(crate) fn unsupported(version: &str) -> WireError {
    WireError::new(MessageFault::UnsupportedVersion, "Unsupported protocol version")
        .with("supported", json!([MODERN]))
        .with("requested", version)
}

/// Rung 8: the refusal of a call that needs a capability the client did not declare.
pub fn missing_capability(id: Id, capability: &str) -> Refusal {
    let message = format!("The client did not declare the capability {capability}");
    let error = WireError::new(MessageFault::MissingClientCapability, message);
    Refusal::new(Era::Modern, Some(id), error.with("requiredCapabilities", json!({ capability: {} })))
}
