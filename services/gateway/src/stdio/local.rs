//! The tools of this process on standard input and output: lines become exchanges of the protocol.
//!
//! The caller is the local user, by a token that the data folder's own key signs: it may call tools, and it may not
//! decide runs. The one legacy session of a connection opens with `initialize` and ends with the input.

use crate::app::Gateway;
use crate::protocol::{self, Frame, Instructions, McpAnswer, McpExchange, McpMessage, McpRequest, stream};
use crate::stdio::connection::Connection;
use crate::stdio::lines::LineWriter;
use domain::{Caller, Code, Failure, Moment};
use mcp::{Era, Id, Incoming, Notification, Refusal, Request};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncBufRead;
use tokio::sync::mpsc::Receiver;
use tracing::Instrument;

/// A token is replaced when it is this old.
const RENEWED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How long ending the session may take after the client has left.
const LAST_CLOSE: Duration = Duration::from_millis(150);

/// Signs a token for the local user.
pub type MintToken = Box<dyn Fn() -> String + Send + Sync>;

/// What one local user is served with.
pub struct LocalService {
    gateway: Arc<Gateway>,
    mint: MintToken,
    token: Mutex<(Moment, String)>,
    welcome: Welcome,
}

/// What a client finds at its beginning.
pub struct Welcome {
    /// What it is told about the service.
    pub instructions: Instructions,
    /// The toolsets that are loaded, as an address would name them; `None`: the tenant's default ones.
    pub selection: Option<String>,
}

impl LocalService {
    /// Serves the user whose tokens `mint` signs.
    pub fn new(gateway: Arc<Gateway>, mint: MintToken, welcome: Welcome) -> LocalService {
        let token = Mutex::new((gateway.clock.now(), mint()));
        LocalService { gateway, mint, token, welcome }
    }

    /// Answers until the connection is over. `over` is called once, before what is under way gets its last moment.
    pub async fn serve<R: AsyncBufRead + Unpin>(self, mut connection: Connection<R>, over: impl FnOnce()) {
        let mut client = LocalClient { service: Arc::new(self), session: None, name: None };
        while let Some(line) = connection.next().await {
            client.take(&connection, &line).await;
        }
        over();
        connection.close().await;
        // What waits for a person in a session that is over is taken back: nobody is there to hear of it.
        if tokio::time::timeout(LAST_CLOSE, client.end_session()).await.is_err() {
            tracing::debug!("the session was not closed in time");
        }
    }

    /// Who asks. The token is a real one and verified like any other, so there is no second way to become a caller.
    async fn caller(&self) -> Result<Arc<Caller>, Failure> {
        let now = self.gateway.clock.now();
        let token = {
            let mut held = self.token.lock().unwrap_or_else(PoisonError::into_inner);
            if now.since(held.0) > RENEWED_AFTER {
                *held = (now, (self.mint)());
            }
            held.1.clone()
        };
        let verified = self.gateway.verifier.caller(&token, now).await;
        verified.map_err(|refused| Failure::new(Code::Unauthenticated, refused.to_string()))
    }

    async fn exchange(&self, client: Option<String>) -> Result<McpExchange, Failure> {
        let (gateway, caller) = (Arc::clone(&self.gateway), self.caller().await?);
        let snapshot = gateway.tenants.get_when_read(&caller.tenant).await?;
        gateway.upstreams.touch(&caller.tenant);
        let trace_id = telemetry::current_trace_id().unwrap_or_else(protocol::exchange::fresh_trace_id);
        Ok(McpExchange { gateway, caller, snapshot, trace_id, client })
    }
}

/// The client at the other end.
struct LocalClient {
    service: Arc<LocalService>,
    /// Its legacy session, once it has opened one.
    session: Option<String>,
    /// The program, as it named itself at `initialize`.
    name: Option<String>,
}

/// One line that is being answered, apart from the client it came from.
struct LocalMessage {
    service: Arc<LocalService>,
    session: Option<String>,
    client: Option<String>,
    decoded: Result<Incoming, Refusal>,
    writer: LineWriter,
}

impl LocalClient {
    /// Takes one line. Requests are answered beside others; `initialize` is not, because later lines need its session.
    async fn take<R: AsyncBufRead + Unpin>(&mut self, connection: &Connection<R>, line: &[u8]) {
        let decoded = mcp::decode_line(line);
        let (writer, service) = (connection.writer().clone(), Arc::clone(&self.service));
        let (session, client) = (self.session.clone(), self.name.clone());
        let request = match &decoded {
            Ok(Incoming::Request(request)) => {
                let opening = match &request.request {
                    Request::Initialize { client, .. } => Some(client.clone()),
                    Request::Ping
                    | Request::Discover
                    | Request::ToolsList { .. }
                    | Request::ToolsCall { .. }
                    | Request::Listen { .. } => None,
                };
                Some((request.id.clone(), request.era, opening))
            }
            // In the modern era the protocol knows no such message: there the transport ends the request.
            Ok(Incoming::Notification(Notification::Cancelled { request_id })) if connection.cancel(request_id) => {
                return;
            }
            Ok(Incoming::Notification(_) | Incoming::Response(_)) | Err(_) => None,
        };
        let mut message = LocalMessage { service, session, client, decoded, writer };
        match request {
            Some((_, _, Some(client))) => {
                self.end_session().await;
                self.name = protocol::call::client_name(&client);
                (message.session, message.client) = (None, self.name.clone());
                self.session = in_span(message.initialize()).await;
            }
            Some((id, era, None)) => {
                let cancellable = era == Era::Modern || message.session.is_none();
                connection.answer(id, cancellable, Box::pin(in_span(message.answer()))).await;
            }
            None => Box::pin(in_span(message.answer())).await,
        }
    }

    async fn end_session(&mut self) {
        let Some(session) = self.session.take() else { return };
        let ended = match self.service.exchange(None).await {
            Ok(exchange) => exchange.close_session(session).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ended {
            tracing::debug!(code = failure.code.as_str(), "the session was not closed");
        }
    }
}

impl LocalMessage {
    /// The id of a request, and the era of the answer.
    fn addressee(&self) -> (Era, Option<Id>) {
        match &self.decoded {
            Ok(Incoming::Request(request)) => (request.era, Some(request.id.clone())),
            Ok(Incoming::Notification(_) | Incoming::Response(_)) | Err(_) => (Era::Modern, None),
        }
    }

    /// The exchange, or nothing where the client was told why there is none.
    async fn exchange(&self) -> Option<McpExchange> {
        match self.service.exchange(self.client.clone()).await {
            Ok(exchange) => Some(exchange),
            Err(failure) => {
                let (era, id) = self.addressee();
                if id.is_some() {
                    self.writer.send(Refusal::before_call(era, id, &failure).body(None)).await;
                }
                None
            }
        }
    }

    async fn answer(self) {
        let Some(exchange) = self.exchange().await else { return };
        let LocalMessage { service, session, decoded, writer, .. } = self;
        let (selection, instructions) = (service.welcome.selection.as_deref(), service.welcome.instructions.clone());
        let (headers, connection, takes_frames) = (None, None, true);
        let request = McpRequest { exchange, headers, session, selection, takes_frames, connection, instructions };
        match protocol::answer_decoded(request, |_| decoded).await {
            McpAnswer::Message(McpMessage { reply, .. }) => {
                writer.send(reply.body).await;
            }
            McpAnswer::Streaming(frames) => forward(frames, &writer).await,
            McpAnswer::Accepted | McpAnswer::Cancelled | McpAnswer::NeedsStream => {}
        }
    }

    /// Opens the session, and lets its notices come to the client; returns the session.
    async fn initialize(self) -> Option<String> {
        let exchange = self.exchange().await?;
        let LocalMessage { service, decoded, writer, .. } = self;
        let (gateway, instructions) = (Arc::clone(&exchange.gateway), service.welcome.instructions.clone());
        let opening = McpRequest {
            exchange: exchange.clone(),
            headers: None,
            session: None,
            selection: service.welcome.selection.as_deref(),
            takes_frames: false,
            connection: None,
            instructions,
        };
        let McpAnswer::Message(McpMessage { reply, session, .. }) =
            protocol::answer_decoded(opening, |_| decoded).await
        else {
            return None;
        };
        writer.send(reply.body).await;
        let session = session?.to_string();
        match stream::follow_session(&exchange, session.clone()).await {
            McpAnswer::Streaming(frames) => {
                gateway.tasks.spawn("stdio notices", async move { forward(frames, &writer).await });
            }
            McpAnswer::Message(_) | McpAnswer::Accepted | McpAnswer::Cancelled | McpAnswer::NeedsStream => {
                tracing::warn!("the client is not told when its list of tools changes");
            }
        }
        Some(session)
    }
}

/// Writes frames as lines, until the protocol has no more or the client is gone. A pipe needs nothing to stay open.
async fn forward(mut frames: Receiver<Frame>, writer: &LineWriter) {
    while let Some(frame) = frames.recv().await {
        match frame {
            Frame::Message(message) => {
                if !writer.send(message).await {
                    return;
                }
            }
            Frame::KeepAlive => {}
        }
    }
}

/// Everything that is done for a line is below one span, as it is for a request over HTTP.
fn in_span<F: Future>(work: F) -> tracing::instrument::Instrumented<F> {
    // A debug span, which only a collector asks for.
    let span = tracing::debug_span!(
        "stdio message",
        otel.kind = "server",
        network.transport = "pipe",
        quartermaster.entry = "stdio",
    );
    work.instrument(span)
}
