//! The span of one MCP message: what is asked, by whom and over which transport, and how it was answered.
//!
//! A call goes on in the span of its message, also when its answer has begun before; the executor notes there what it
//! decides and does.

use crate::protocol::exchange::{McpAnswer, McpMessage, McpRequest};
use catalog::NameMatch;
use domain::{Outcome, SessionId};
use mcp::{Era, Id, Incoming, Meta, Notification, Request, RequestEnvelope};
use std::net::SocketAddr;
use telemetry::names;
use tracing::Span;

/// The longest id of a request that is told.
const LONGEST_ID: usize = 64;

/// How a client is connected.
#[derive(Debug, Clone, Copy)]
pub struct ClientConnection {
    /// Where it is; the port is zero behind a proxy.
    pub address: Option<SocketAddr>,
    /// The version of HTTP.
    pub http_version: &'static str,
}

/// The span of a message.
pub(super) fn of(request: &McpRequest<'_>, incoming: &Incoming) -> Span {
    let span = match incoming {
        Incoming::Request(envelope) => of_request(request, envelope),
        Incoming::Notification(notification) => {
            let method = match notification {
                Notification::Cancelled { .. } => "notifications/cancelled",
                // What it is called is the client's own text.
                Notification::Other => "notifications/other",
            };
            empty(request, method)
        }
        Incoming::Response(_) => empty(request, "response"),
    };
    note_transport(&span, request);
    span
}

fn empty(request: &McpRequest<'_>, method: &'static str) -> Span {
    tracing::info_span!(
        "mcp",
        otel.kind = "server",
        mcp.method.name = method,
        quartermaster.tenant = request.exchange.caller.tenant.as_str(),
        quartermaster.entry = request.entry().0,
    )
}

fn of_request(request: &McpRequest<'_>, envelope: &RequestEnvelope) -> Span {
    let RequestEnvelope { era, id, request: asked, meta } = envelope;
    let span = empty(request, method(asked));
    telemetry::note_on(&span, |attributes| {
        match id {
            Id::Text(text) => attributes.show(names::JSONRPC_REQUEST_ID, cut(text)),
            Id::Integer(number) => attributes.show(names::JSONRPC_REQUEST_ID, number),
        };
        attributes.set(names::MCP_PROTOCOL_VERSION, era.as_str()).set(names::ERA, era_word(*era));
        let transport = request.session.as_deref().filter(|_| matches!(era, Era::Legacy(_)));
        // A handle that is none is the caller's own text.
        if let Some(session) = transport.or(meta.session.as_deref())
            && SessionId::parse(session).is_ok()
        {
            attributes.set(names::SESSION_ID, session);
            if transport.is_some() {
                attributes.set(names::MCP_SESSION_ID, session);
            }
        }
        if let Request::ToolsCall { name, .. } = asked {
            attributes.set(names::GEN_AI_OPERATION_NAME, names::SPAN_EXECUTE_TOOL);
            // So is a name that is not in the catalog.
            if !matches!(request.exchange.snapshot.catalog.find(name), NameMatch::Nothing) {
                attributes.set(names::GEN_AI_TOOL_NAME, name.as_str());
            }
        }
    });
    join(&span, meta, request);
    span
}

/// The message has its own idea of the trace; the request that carried it is beside it.
fn join(span: &Span, meta: &Meta, request: &McpRequest<'_>) {
    let tenant = request.exchange.caller.tenant.as_str();
    if let Some(parent) = &meta.traceparent
        && telemetry::set_parent(span, parent, meta.tracestate.as_deref(), Some(tenant))
    {
        telemetry::link(span, &Span::current(), "transport");
    }
}

fn note_transport(span: &Span, request: &McpRequest<'_>) {
    telemetry::note_on(span, |attributes| {
        attributes.set(names::NETWORK_TRANSPORT, request.entry().1);
        let Some(connection) = &request.connection else { return };
        attributes.set(names::NETWORK_PROTOCOL_NAME, "http");
        attributes.set(names::NETWORK_PROTOCOL_VERSION, connection.http_version);
        if let Some(address) = connection.address {
            attributes.show(names::CLIENT_ADDRESS, address.ip());
            if address.port() != 0 {
                attributes.set(names::CLIENT_PORT, u64::from(address.port()));
            }
        }
    });
}

/// Notes how a message was answered. A call notes its own end.
pub(super) fn note_answer(span: &Span, answer: &McpAnswer) {
    let McpAnswer::Message(McpMessage { rpc_code, failure, session, .. }) = answer else { return };
    if rpc_code.is_none() && session.is_none() {
        return;
    }
    telemetry::note_on(span, |attributes| {
        if let Some(code) = rpc_code {
            attributes.show(names::ERROR_TYPE, code).show(names::RPC_RESPONSE_STATUS_CODE, code);
        }
        if let (Some(_), Some(failure)) = (rpc_code, failure) {
            attributes.set(names::CODE, failure.code.as_str());
        }
        if let Some(session) = session {
            attributes.show(names::SESSION_ID, session);
        }
    });
}

/// Notes how a call ended, on the span of this moment.
pub(super) fn note_outcome(outcome: &Outcome) {
    telemetry::note(|attributes| match outcome.failure() {
        Some(failure) => {
            attributes.set(names::CODE, failure.code.as_str()).set(names::ERROR_TYPE, "tool_error");
        }
        None => {
            attributes.set(names::CODE, "ok");
        }
    });
}

/// The method of a request, as the protocol spells it.
pub(super) fn method(request: &Request) -> &'static str {
    match request {
        Request::Initialize { .. } => "initialize",
        Request::Ping => "ping",
        Request::Discover => "server/discover",
        Request::ToolsList { .. } => "tools/list",
        Request::ToolsCall { .. } => "tools/call",
        Request::Listen { .. } => "subscriptions/listen",
    }
}

fn era_word(era: Era) -> &'static str {
    match era {
        Era::Legacy(_) => "legacy",
        Era::Modern => "modern",
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LONGEST_ID).map_or(text, |(end, _)| &text[..end])
}
