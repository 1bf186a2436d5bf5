//! `params._meta`: what a client sends along with any request.
//!
//! Names and versions of clients are for display only, never for a decision. Trace context that cannot be read is
//! dropped, since telemetry must not fail a call; a handle or key that cannot be read is refused, since a call that
//! quietly goes on without it is another call.

use crate::codes::MessageFault;
use crate::era::Era;
use crate::id::{Id, ProgressToken};
use crate::refusal::WireError;
use serde_json::{Map, Value};

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SESSION: &str = "quartermaster/session";
const HOLD: &str = "quartermaster/hold_ms";
const KEY: &str = "quartermaster/idempotency_key";

const LOG_LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// Some clients give up after 60 s, so no answer is held back longer than this.
const LONGEST_HOLD_MS: u64 = 55_000;
const LONGEST_KEY: usize = 255;

/// What a client calls itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientInfo {
    /// Its name, cut at 128 characters.
    pub name: String,
    /// Its version, cut at 128 characters.
    pub version: String,
}

impl ClientInfo {
    pub(crate) fn read(told: &Map<String, Value>) -> ClientInfo {
        let part = |key| told.get(key).and_then(Value::as_str).unwrap_or_default().chars().take(128).collect();
        ClientInfo { name: part("name"), version: part("version") }
    }
}

/// What came along with a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Meta {
    /// Progress is wanted, marked with this.
    pub progress_token: Option<ProgressToken>,
    /// The handle of the session the call is made in, as given; not yet looked at.
    pub session: Option<String>,
    /// How long the answer of a gated call may be held back for the decision.
    pub hold_ms: Option<u64>,
    /// The caller's own name for this call, so that a repetition finds the first.
    pub idempotency_key: Option<String>,
    /// W3C trace context: the parent span.
    pub traceparent: Option<String>,
    /// W3C trace context: the vendors' part.
    pub tracestate: Option<String>,
    /// W3C baggage.
    pub baggage: Option<String>,
    /// What the client can do; modern only.
    pub client_capabilities: Option<Value>,
    /// Who the client says it is; modern only.
    pub client: Option<ClientInfo>,
}

/// A member of `params._meta`.
pub(crate) fn in_meta<'a>(params: Option<&'a Value>, key: &str) -> Option<&'a Value> {
    params?.get("_meta")?.get(key)
}

/// Whether `_meta` names a protocol version, which alone makes a request a modern one.
pub(crate) fn names_a_version(params: Option<&Value>) -> bool {
    in_meta(params, VERSION).is_some()
}

impl Meta {
    /// Takes `_meta` out of the parameters. In the modern era this is also rung 9.
    pub(crate) fn take(era: Era, params: &mut Map<String, Value>) -> Result<Meta, WireError> {
        let mut told = match params.remove("_meta") {
            Some(Value::Object(told)) => told,
            None | Some(Value::Null) => return Ok(Meta::default()),
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                return Err(WireError::new(MessageFault::InvalidParams, "params._meta must be an object"));
            }
        };
        let mut meta = Meta {
            progress_token: told.remove("progressToken").and_then(Id::read).map(ProgressToken),
            session: checked(&mut told, SESSION, "a string", |value| value.as_str().map(str::to_owned))?,
            hold_ms: checked(&mut told, HOLD, "an integer from 0 to 55000", |value| {
                value.as_u64().filter(|millis| *millis <= LONGEST_HOLD_MS)
            })?,
            idempotency_key: checked(&mut told, KEY, "a string of 1 to 255 characters", |value| {
                value.as_str().filter(|key| (1..=LONGEST_KEY).contains(&key.chars().count())).map(str::to_owned)
            })?,
            traceparent: text(&mut told, "traceparent"),
            tracestate: text(&mut told, "tracestate"),
            baggage: text(&mut told, "baggage"),
            ..Meta::default()
        };
        if era == Era::Modern {
            log_level(told.get(LOG_LEVEL))?;
            meta.client = told.get(CLIENT).and_then(Value::as_object).map(ClientInfo::read);
            meta.client_capabilities = told.remove(CAPABILITIES);
        }
        Ok(meta)
    }
}

fn text(told: &mut Map<String, Value>, key: &str) -> Option<String> {
    match told.remove(key) {
        Some(Value::String(text)) => Some(text),
        None | Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => None,
    }
}

fn checked<T>(
    told: &mut Map<String, Value>,
    key: &str,
    shape: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, WireError> {
    match told.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(&value) {
            Some(value) => Ok(Some(value)),
            None => Err(WireError::new(MessageFault::InvalidParams, format!("_meta {key} must be {shape}"))),
        },
    }
}

/// Rung 9. We send no log messages; a level nobody can mean is refused all the same.
fn log_level(told: Option<&Value>) -> Result<(), WireError> {
    match told {
        Some(level) if !level.as_str().is_some_and(|level| LOG_LEVELS.contains(&level)) => {
            let message = format!("{LOG_LEVEL} must be one of {}", LOG_LEVELS.join(", "));
            Err(WireError::new(MessageFault::InvalidEnvelope, message))
        }
        Some(_) | None => Ok(()),
    }
}
