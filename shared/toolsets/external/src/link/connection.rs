//! One open line to one server: how it is opened, what is asked over it, and who hears of its changes.

use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::process::{ProcessCommand, ProcessTransport};
use super::sender::HttpSender;
use super::sse_transport::SseTransport;
use super::target::{LinkTarget, TargetReach};
use super::token::TokenSource;
use super::trouble::LinkTrouble;
use super::wire::HttpLink;
use super::{LinkKey, LinkLimits, LinksConfig, ServerEra};
use crate::server::HttpTransport;
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest, Implementation,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, ServerNotification, ServerResult, SubscriptionFilter,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, Peer, PeerRequestOptions};
use rmcp::service::{RoleClient, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{IntoTransport, StreamableHttpClientTransport, common::client_side_sse::NeverRetry};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinSet;

/// Most requests on their way over one line; how many there should be is decided above.
const IN_FLIGHT: usize = 256;
/// What one exchange may be late by before it is given up from outside: it ends itself at its deadline.
const GRACE: Duration = Duration::from_millis(250);
/// At most one notice of a change goes out per this long; the last one always does.
const BETWEEN_CHANGES: Duration = Duration::from_secs(1);
/// Pauses before a subscription is opened again.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// An open line. Dropping it closes the session, the streams and the process.
pub(crate) struct ServerConnection {
    running: RunningService<RoleClient, PassiveClient>,
    /// What its transport knows of it; a process has nothing to say.
    trouble: Option<Arc<LinkTrouble>>,
    era: ServerEra,
    version: &'static str,
    opened: Instant,
    _hearing: JoinSet<()>,
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        // Only the legacy era has sessions.
        if self.era == ServerEra::Legacy {
            let error = if self.is_open() { "" } else { "broken_connection" };
            telemetry::metrics::MCP_CLIENT_SESSION.observe_since([self.version, error], self.opened);
        }
    }
}

/// A version of the protocol, unless the server made one up: that is its own text.
fn known_version(version: &str) -> &'static str {
    const KNOWN: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
    KNOWN.into_iter().find(|known| *known == version).unwrap_or_default()
}

/// What the line is opened with.
pub(crate) struct ConnectionSetup<'a> {
    pub(crate) config: &'a LinksConfig,
    pub(crate) key: &'a LinkKey,
    pub(crate) target: &'a LinkTarget,
    pub(crate) limits: &'a LinkLimits,
    /// Where its tokens come from, if it wants any.
    pub(crate) tokens: Option<&'a Arc<TokenSource>>,
    /// The era it was of the last time.
    pub(crate) known: Option<ServerEra>,
    pub(crate) changes: &'a broadcast::Sender<LinkKey>,
}

/// The client's side of the protocol: it offers nothing, so a server can ask for nothing.
struct PassiveClient;

impl ClientHandler for PassiveClient {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("quartermaster", env!("CARGO_PKG_VERSION"));
        let mut info = ClientConfig::new(ClientCapabilities::default(), own);
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }
}

impl ServerConnection {
    /// Opens a line within the limits' deadline.
    pub(crate) async fn open(opening: ConnectionSetup<'_>) -> Result<ServerConnection, LinkFault> {
        let bell = Arc::new(Notify::new());
        let (running, trouble) = match &opening.target.reach {
            TargetReach::Http { url, transport: HttpTransport::Streamable } => {
                let wire =
                    HttpLink::new(sender(&opening)?, url.clone(), opening.target, opening.limits, Arc::clone(&bell));
                let mut config = StreamableHttpClientTransportConfig::with_uri("over the wire")
                    .max_concurrent_requests(IN_FLIGHT)
                    // A session that ended is opened anew by us, who know what may be sent again.
                    .reinit_on_expired_session(false);
                config.retry_config = Arc::new(NeverRetry::default());
                let transport = StreamableHttpClientTransport::with_client(wire.clone(), config);
                (negotiated(transport, &opening, opening.known).await, Some(wire.trouble()))
            }
            TargetReach::Http { url, transport: HttpTransport::Sse } => {
                let sender = sender(&opening)?;
                let stream = SseTransport::open(sender, url, opening.target, opening.limits, Arc::clone(&bell)).await?;
                let trouble = stream.trouble();
                // No server of the modern era has this transport.
                (negotiated(stream, &opening, Some(ServerEra::Legacy)).await, Some(trouble))
            }
            TargetReach::Process { command, args, env } => {
                let started = ProcessCommand { command, args, env, params: &opening.target.params };
                let lines = ProcessTransport::start(&started, opening.limits, Arc::clone(&bell))?;
                (negotiated(lines, &opening, opening.known).await, None)
            }
        };
        let known = || trouble.as_ref().and_then(|trouble| trouble.take());
        let running = running.map_err(|fault| known().unwrap_or(fault))?;
        let info = running.peer().peer_info().ok_or(LinkFault::NotMcp("it says nothing about itself"))?;
        let era = if info.protocol_version.has_initialize() { ServerEra::Legacy } else { ServerEra::Modern };
        let tells = info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true));
        let mut hearing = JoinSet::new();
        hearing.spawn(pass_on(Arc::clone(&bell), opening.key.clone(), opening.changes.clone()));
        if era == ServerEra::Modern && tells {
            hearing.spawn(subscribe(running.peer().clone(), bell));
        }
        let (version, opened) = (known_version(&info.protocol_version.to_string()), Instant::now());
        Ok(ServerConnection { running, trouble, era, version, opened, _hearing: hearing })
    }

    pub(crate) fn era(&self) -> ServerEra {
        self.era
    }

    /// Whether another request can be sent over it.
    pub(crate) fn is_open(&self) -> bool {
        !self.running.is_closed()
            && !self.running.peer().is_transport_closed()
            && !self.trouble.as_ref().is_some_and(|trouble| trouble.is_retired())
    }

    /// Asks for one page of tools, as the server wrote them.
    pub(crate) async fn list(&self, cursor: Option<String>, exchange: &LinkExchange) -> Result<ToolsPage, LinkFault> {
        let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let mut request = ListToolsRequest { params, ..ListToolsRequest::default() };
        request.extensions.insert(exchange.clone());
        let (mut result, typed) = self.ask(ClientRequest::ListToolsRequest(request), exchange).await?;
        let Some(Value::Array(mut tools)) = result.get_mut("tools").map(Value::take) else {
            return Err(LinkFault::NotMcp("a list holds no tools"));
        };
        if !tools.iter().all(Value::is_object) {
            return Err(LinkFault::NotMcp("a tool is no object"));
        }
        // The library leaves out what no client may call: tools with header annotations against the rules.
        if let ServerResult::ListToolsResult(kept) = typed {
            tools.retain(|tool| {
                kept.tools.iter().any(|kept| tool.get("name").and_then(Value::as_str) == Some(&kept.name))
            });
        }
        let next = match result.get("nextCursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(cursor)) => Some(cursor.clone()),
            Some(_) => return Err(LinkFault::NotMcp("a cursor is no text")),
        };
        Ok(ToolsPage { tools, next })
    }

    /// Calls one tool and gives the result as the server wrote it.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        exchange: &LinkExchange,
    ) -> Result<Value, LinkFault> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(exchange.clone());
        self.ask(ClientRequest::CallToolRequest(request), exchange).await.map(|(result, _)| result)
    }

    /// Sends a request and waits for what comes of it, and no longer than it may take. Whoever stops waiting takes the
    /// request back.
    async fn ask(&self, request: ClientRequest, exchange: &LinkExchange) -> Result<(Value, ServerResult), LinkFault> {
        let _withdraw = exchange.withdrawn().clone().drop_guard();
        let asking = async {
            let options = PeerRequestOptions::no_options();
            self.running.peer().send_request_with_option(request, options).await?.await_response().await
        };
        let asked = tokio::time::timeout_at(exchange.limits().deadline + GRACE, asking).await;
        match (exchange.take_outcome(), asked) {
            (Some(Ok(result)), Ok(Ok(typed))) => Ok((result, typed)),
            // The library could not make sense of it; whoever asked may.
            (Some(Ok(result)), Ok(Err(_)) | Err(_)) => Ok((result, ServerResult::empty(()))),
            (Some(Err(fault)), _) => Err(fault),
            (None, Ok(_)) => Err(LinkFault::Broken),
            (None, Err(_)) => Err(LinkFault::Late),
        }
    }
}

/// One page of a list.
pub(crate) struct ToolsPage {
    pub(crate) tools: Vec<Value>,
    pub(crate) next: Option<String>,
}

fn sender(opening: &ConnectionSetup<'_>) -> Result<HttpSender, LinkFault> {
    let client = opening.config.client(&opening.target.guard)?;
    Ok(HttpSender::new(client, opening.target, opening.tokens.cloned()))
}

/// Finds out which era the server is of, or takes it at the word it gave before.
async fn negotiated<T, E, A>(
    transport: T,
    opening: &ConnectionSetup<'_>,
    known: Option<ServerEra>,
) -> Result<RunningService<RoleClient, PassiveClient>, LinkFault>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let mode = match known {
        Some(ServerEra::Legacy) => ClientLifecycleMode::Initialize,
        Some(ServerEra::Modern) | None => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let serving = Box::pin(PassiveClient.serve_with_lifecycle(transport, mode));
    match tokio::time::timeout_at(opening.limits.deadline, serving).await {
        Ok(Ok(running)) => Ok(running),
        Ok(Err(error)) => Err(unopened(&error)),
        Err(_) => Err(LinkFault::Late),
    }
}

/// What the library says of a line that did not open. What the transport knows is more exact and goes first.
#[expect(clippy::wildcard_enum_match_arm, reason = "the library's own enum, which may grow")]
fn unopened(error: &ClientInitializeError) -> LinkFault {
    match error {
        ClientInitializeError::JsonRpcError(said) => {
            LinkFault::Error { code: i64::from(said.code.0), message: said.message.to_string() }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => unopened(fallback),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => LinkFault::Broken,
        _ => LinkFault::NotMcp("no version of the protocol is spoken by both"),
    }
}

/// Passes changes on, one at a time.
async fn pass_on(bell: Arc<Notify>, key: LinkKey, changes: broadcast::Sender<LinkKey>) {
    loop {
        bell.notified().await;
        // Nobody may be listening.
        changes.send(key.clone()).ok();
        tokio::time::sleep(BETWEEN_CHANGES).await;
    }
}

/// Keeps a subscription at a modern server open.
async fn subscribe(peer: Peer<RoleClient>, bell: Arc<Notify>) {
    let mut pause = FIRST_PAUSE;
    let mut again = false;
    loop {
        if let Ok(mut subscription) = peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
            if std::mem::replace(&mut again, true) {
                // Whatever was said meanwhile was not heard.
                bell.notify_one();
            }
            while let Ok(Some(notice)) = subscription.next().await {
                if matches!(notice, ServerNotification::ToolListChangedNotification(_)) {
                    // The transport has rung already: the library loses what comes right behind the acknowledgement.
                    pause = FIRST_PAUSE;
                }
            }
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}
