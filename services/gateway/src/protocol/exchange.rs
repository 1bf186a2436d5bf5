//! What a transport hands over with a request, and what it gets back.

use crate::app::Gateway;
use crate::protocol::method_span::ClientConnection;
use crate::protocol::sink::Frame;
use domain::{Caller, Code, Failure, SessionId, TokenScope};
use executor::{Handle, SlotGuard, Snapshot};
use mcp::{Era, FinishedReply, Id, ProtocolHeaders, Refusal};
use serde_json::json;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;

/// Who asks, and against what the request is judged.
#[derive(Clone)]
pub struct McpExchange {
    /// The service.
    pub gateway: Arc<Gateway>,
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The caller's tenant as it was when the request came; it stays so to the request's end.
    pub snapshot: Arc<Snapshot>,
    /// The request's trace id.
    pub trace_id: String,
    /// The program the caller uses, as it names itself.
    pub client: Option<String>,
}

impl McpExchange {
    /// Refuses a caller whose token lacks a scope.
    pub fn require(&self, scope: TokenScope) -> Result<(), Failure> {
        require(&self.caller, scope)
    }

    /// Counts a request that is no call.
    pub fn admit(&self) -> Result<SlotGuard, Failure> {
        self.gateway.executor.admit_request(&self.snapshot, &self.caller, false)
    }

    /// Ends a session of the caller, for every replica.
    pub async fn close_session(&self, session: String) -> Result<(), Failure> {
        self.gateway.executor.close_session(&self.caller, &Handle::Transport(session)).await
    }

    /// The answer that refuses a request before there was a call.
    pub fn refuse(&self, era: Era, id: Option<Id>, failure: Failure) -> McpAnswer {
        let refusal = Refusal::before_call(era, id, &failure);
        self.refuse_with(&refusal, Some(failure))
    }

    /// The answer around a refusal that is already written, with the failure behind it if there is one.
    pub fn refuse_with(&self, refusal: &Refusal, failure: Option<Failure>) -> McpAnswer {
        let mut answer = McpAnswer::message(refusal.reply(Some(&self.trace_id)), failure);
        if let McpAnswer::Message(message) = &mut answer {
            message.rpc_code = Some(refusal.error.rpc_code());
        }
        answer
    }
}

/// A trace id for a request that belongs to no trace.
pub fn fresh_trace_id() -> String {
    // Without randomness the id is all zeros: useless for finding a trace, harmless for everything else.
    domain::json::hex(&store::random_bits().unwrap_or_default())
}

/// Refuses a caller whose token lacks a scope.
pub fn require(caller: &Caller, scope: TokenScope) -> Result<(), Failure> {
    if caller.scopes.allow(scope) {
        return Ok(());
    }
    let failure = Failure::new(Code::InsufficientScope, format!("the token lacks the scope {scope}"));
    Err(failure.details(json!({ "scope": scope.as_str() })))
}

/// An MCP message as a transport received it, without its bytes.
pub struct McpRequest<'a> {
    /// Who asks.
    pub exchange: McpExchange,
    /// The protocol's headers, which must agree with the message. A transport without headers has `None`.
    pub headers: Option<ProtocolHeaders<'a>>,
    /// The session the transport names: by a header, or because its connection opened one. Only the legacy era has it.
    pub session: Option<String>,
    /// The toolsets that the address fixes, as they stand in it.
    pub selection: Option<&'a str>,
    /// Whether the client can take frames that come before an answer.
    pub takes_frames: bool,
    /// How the client is connected, if somebody collects spans and the transport knows.
    pub connection: Option<ClientConnection>,
    /// What the client is told about the service when it connects.
    pub instructions: Instructions,
}

/// What a client is told about the service when it connects.
#[derive(Debug, Clone)]
pub enum Instructions {
    /// Which toolsets there are, and how to load more.
    Toolsets,
    /// What the service is for at this place, and the same.
    PurposeAndToolsets(Arc<str>),
    /// Nothing: the service has nothing to offer at this place that a model should think of by itself.
    Nothing,
}

impl McpRequest<'_> {
    /// By which door the request came, and over which kind of connection; for spans. Whoever sends headers sends them
    /// over a network.
    pub(super) fn entry(&self) -> (&'static str, &'static str) {
        if self.headers.is_some() { ("mcp", "tcp") } else { ("stdio", "pipe") }
    }

    /// The transport's session. The modern era has none: one that is named nevertheless is ignored there.
    pub(super) fn handle(&self, era: Era) -> Handle {
        match (era, &self.session) {
            (Era::Legacy(_), Some(session)) => Handle::Transport(session.clone()),
            (Era::Legacy(_), None) | (Era::Modern, _) => Handle::None,
        }
    }
}

/// What becomes of an MCP message.
#[derive(Debug)]
pub enum McpAnswer {
    /// One message.
    Message(McpMessage),
    /// The answer and everything before it comes from this queue.
    Streaming(Receiver<Frame>),
    /// The message was accepted and wants no answer.
    Accepted,
    /// The client cancelled the request, and the legacy protocol wants no answer to it.
    Cancelled,
    /// The answer is a stream, and the client can take none.
    NeedsStream,
}

/// An answer in one message.
#[derive(Debug)]
pub struct McpMessage {
    /// The message, and the HTTP status that goes with it.
    pub reply: FinishedReply,
    /// Why it is a refusal, if it is one.
    pub failure: Option<Box<Failure>>,
    /// The session that this message opens.
    pub session: Option<SessionId>,
    /// The code of the error object, if the message is one.
    pub rpc_code: Option<i32>,
}

impl McpAnswer {
    /// An answer in one message.
    pub(super) fn message(reply: FinishedReply, failure: Option<Failure>) -> McpAnswer {
        McpAnswer::Message(McpMessage { reply, failure: failure.map(Box::new), session: None, rpc_code: None })
    }

    /// An answer around a finished result.
    pub(super) fn result(id: &Id, result: &[u8]) -> McpAnswer {
        McpAnswer::message(FinishedReply { status: 200, body: mcp::encode::result(id, result) }, None)
    }
}
