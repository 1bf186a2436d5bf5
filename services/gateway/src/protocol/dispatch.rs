//! MCP, method by method, in both eras. The `mcp` crate alone reads and writes bytes; this module decides who answers.

use crate::protocol::call::{self, ToolsCall};
use crate::protocol::exchange::{Instructions, McpAnswer, McpExchange, McpMessage, McpRequest};
use crate::protocol::operation::McpOperation;
use crate::protocol::selection::{self, NoSelection};
use crate::protocol::{cancel, list, method_span, stream};
use bytes::Bytes;
use catalog::ListAudience;
use domain::{Code, Failure, LoadedToolsets, TokenScope};
use executor::{Handle, OpenedSession, SlotGuard};
use futures_util::FutureExt;
use mcp::{Era, FinishedReply, Id, Incoming, Notification, ProtocolHeaders, Refusal, Request, RequestEnvelope};
use std::panic::AssertUnwindSafe;
use tracing::{Instrument, Span};

/// Answers one message, in a span of its own. A panic ends this message and nothing else: it becomes a JSON-RPC error.
pub async fn answer(request: McpRequest<'_>, message: &[u8]) -> McpAnswer {
    answer_decoded(request, |headers| match headers {
        Some(headers) => mcp::decode(headers, message),
        None => mcp::decode_line(message),
    })
    .await
}

/// The same, with the transport's own way to the message: one that has to look at it first decodes it only once.
pub async fn answer_decoded(
    request: McpRequest<'_>,
    decode: impl FnOnce(Option<&ProtocolHeaders<'_>>) -> Result<Incoming, Refusal> + Send,
) -> McpAnswer {
    let (mut operation, mut span) = (McpOperation::begin(request.headers.is_some()), Span::none());
    let work = async {
        match decode(request.headers.as_ref()) {
            Ok(incoming) => {
                span = method_span::of(&request, &incoming);
                request.dispatch(incoming, &mut operation).instrument(span.clone()).await
            }
            Err(refusal) => request.exchange.refuse_with(&refusal, None),
        }
    };
    let answered = AssertUnwindSafe(work).catch_unwind().await;
    let answer = answered.unwrap_or_else(|_| {
        let trace_id = &request.exchange.trace_id;
        tracing::error!(trace_id, "a handler panicked");
        let failure = Failure::new(Code::Internal, "the request failed inside the service");
        let refusal = Refusal::before_call(Era::Modern, None, &failure);
        let reply = FinishedReply { status: 200, body: refusal.body(Some(trace_id)) };
        McpAnswer::Message(McpMessage { rpc_code: Some(refusal.error.rpc_code()), reply, failure: None, session: None })
    });
    method_span::note_answer(&span, &answer);
    operation.end(&answer);
    answer
}

impl McpRequest<'_> {
    /// Checks what the message's address and its token allow, and lets the method's own function answer.
    async fn dispatch(&self, incoming: Incoming, operation: &mut McpOperation) -> McpAnswer {
        let exchange = &self.exchange;
        let (era, id) = match &incoming {
            Incoming::Request(envelope) => (envelope.era, Some(envelope.id.clone())),
            Incoming::Notification(_) | Incoming::Response(_) => (Era::Modern, None),
        };
        if let Err(failure) = exchange.require(TokenScope::ToolsRead) {
            return exchange.refuse(era, id, failure);
        }
        let select = |text| selection::read(&exchange.snapshot, &exchange.caller, text);
        let selection = match self.selection.map(select).transpose() {
            Ok(selection) => selection,
            Err(none) => {
                let refusal = none.refusal(era, id);
                let failure = match none {
                    NoSelection::Denied(failure) => Some(*failure),
                    NoSelection::Malformed(_) | NoSelection::Unknown(..) => None,
                };
                return exchange.refuse_with(&refusal, failure);
            }
        };
        let RequestEnvelope { era, id, request, meta } = match incoming {
            Incoming::Request(envelope) => *envelope,
            // In a box, as is everything that calls and lists do not do: each of them would carry its size along.
            Incoming::Notification(notification) => return Box::pin(self.notified(notification)).await,
            // The service never asks a client anything, so nobody waits for this.
            Incoming::Response(_) if self.session.is_some() => return McpAnswer::Accepted,
            Incoming::Response(_) => return exchange.refuse_with(&Refusal::unexpected_response(), None),
        };
        operation.is(&request, era);
        // The executor counts calls; everything else is counted here.
        let _place = match self.admit(&request) {
            Ok(place) => place,
            Err(failure) => return exchange.refuse(era, Some(id), failure),
        };
        let result = match request {
            Request::Ping => {
                Box::pin(self.check_session(era)).await.map(|()| Bytes::from_static(mcp::encode::empty_result()))
            }
            Request::Initialize { requested, client } => {
                let client = call::client_name(&client).or_else(|| exchange.client.clone());
                return Box::pin(self.initialize(id, &requested, selection, client)).await;
            }
            Request::Discover => Ok(mcp::encode::discover_result(self.instructions(true).as_deref()).into()),
            Request::ToolsList { cursor } => self.list(era, selection, cursor.as_deref()).await,
            Request::ToolsCall { name, arguments } => {
                return call::call(self, ToolsCall { era, id, name, arguments, meta, selection }, operation).await;
            }
            Request::Listen { tools_list_changed } => {
                return match self.takes_frames {
                    true => stream::listen(exchange, id, tools_list_changed),
                    false => McpAnswer::NeedsStream,
                };
            }
        };
        match result {
            Ok(result) => McpAnswer::result(&id, &result),
            Err(failure) => exchange.refuse(era, Some(id), failure),
        }
    }

    /// What a client is told about the service: what it is for, which toolsets are listed, and which can be loaded.
    fn instructions(&self, modern: bool) -> Option<String> {
        let catalog = &self.exchange.snapshot.catalog;
        let names = |default| catalog.toolsets().iter().filter(move |t| t.default == default).map(|t| t.name.as_str());
        let (listed, loadable): (Vec<&str>, Vec<&str>) = (names(true).collect(), names(false).collect());
        let toolsets = mcp::instructions::write(&listed, &loadable, modern);
        match &self.instructions {
            Instructions::Toolsets => Some(toolsets),
            Instructions::PurposeAndToolsets(purpose) => Some(format!("{purpose} {toolsets}")),
            Instructions::Nothing => None,
        }
    }

    fn admit(&self, request: &Request) -> Result<Option<SlotGuard>, Failure> {
        match request {
            Request::ToolsCall { .. } => Ok(None),
            Request::Ping
            | Request::Initialize { .. }
            | Request::Discover
            | Request::ToolsList { .. }
            | Request::Listen { .. } => self.exchange.admit().map(Some),
        }
    }

    /// Opens a session; later requests of the transport name it.
    async fn initialize(
        &self,
        id: Id,
        requested: &str,
        selection: Option<LoadedToolsets>,
        client: Option<String>,
    ) -> McpAnswer {
        let revision = mcp::LegacyRevision::negotiate(requested);
        let McpExchange { gateway, caller, snapshot, .. } = &self.exchange;
        let wanted = domain::SessionMode::Write; // the most the token and the tenant allow; loading is judged again
        let (client, door) = (client.map(Into::into), Some(domain::SessionDoor::Legacy));
        let origin = executor::SessionOrigin { client, door, ..Default::default() };
        match gateway.executor.open_session(snapshot, caller, wanted, selection, origin).await {
            Ok(opened) => {
                let parts = [self.instructions(false), carried_over(&opened)];
                let text = parts.into_iter().flatten().reduce(paragraphs);
                let result = mcp::encode::initialize_result(revision, text.as_deref());
                let reply = FinishedReply { status: 200, body: mcp::encode::result(&id, &result) };
                McpAnswer::Message(McpMessage {
                    reply,
                    failure: None,
                    session: Some(opened.session.id),
                    rpc_code: None,
                })
            }
            Err(failure) => self.exchange.refuse(Era::Legacy(revision), Some(id), failure),
        }
    }

    async fn list(&self, era: Era, selection: Option<LoadedToolsets>, cursor: Option<&str>) -> Result<Bytes, Failure> {
        let McpExchange { gateway, caller, snapshot, .. } = &self.exchange;
        let catalog = &snapshot.catalog;
        let (page, session) = match self.handle(era) {
            handle @ Handle::Transport(_) => {
                let session = Box::pin(gateway.executor.session(snapshot, caller, &handle)).await?.session;
                let view = ListAudience::Growing { grown: session.grown };
                (list::page(gateway, catalog, &session.loaded, view, era, cursor)?, Some(session.id))
            }
            Handle::None | Handle::Told(_) => {
                let loaded = selection.as_ref().unwrap_or(catalog.defaults());
                (list::page(gateway, catalog, loaded, ListAudience::Fixed, era, cursor)?, None)
            }
        };
        gateway.executor.usage().list(caller, session, catalog, page.tokens, cursor.is_none());
        Ok(page.bytes)
    }

    /// Checks that the session a request names is one of this caller's; without a name there is nothing to check.
    async fn check_session(&self, era: Era) -> Result<(), Failure> {
        let McpExchange { gateway, caller, snapshot, .. } = &self.exchange;
        match self.handle(era) {
            Handle::None => Ok(()),
            handle @ (Handle::Transport(_) | Handle::Told(_)) => {
                gateway.executor.session(snapshot, caller, &handle).await.map(|_| ())
            }
        }
    }

    async fn notified(&self, notification: Notification) -> McpAnswer {
        if let (Notification::Cancelled { request_id }, Some(session)) = (notification, &self.session)
            // One that is over the rate is lost, as any notification may be.
            && let Ok(_place) = self.exchange.admit()
        {
            cancel::cancel(&self.exchange, session.clone(), request_id).await;
        }
        McpAnswer::Accepted
    }
}

/// What the model is told of a session that begins with what an earlier one has left it.
fn carried_over(opened: &OpenedSession) -> Option<String> {
    let stopped = opened.stopped_by.map(|run| {
        let why = format!("A person rejected {run} of an earlier session, so changes are refused here too");
        format!("{why} until a person clears it. Reading is possible.")
    });
    let tainted = "An earlier session read text from outside, so this one counts as tainted.";
    let tainted = opened.session.tainted.then(|| tainted.to_owned());
    stopped.into_iter().chain(tainted).reduce(paragraphs)
}

fn paragraphs(all: String, next: String) -> String {
    format!("{all}\n\n{next}")
}
