//! Streamable HTTP over the guarded client: one POST per message, its answer as JSON or as events.
//!
//! The client library negotiates, numbers and fills in headers; the bytes pass here. An answer in events is read to its
//! end in this module, so the library sees one answer per request, whatever the server wrote. Nothing is sent twice,
//! no redirect is followed, nothing is unpacked, no authorization server is looked for: only one that is configured is asked.

use super::LinkLimits;
use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::frame::{self, AnswerFrame, ServerMessage};
use super::head::{BodyKind, body_of, broken, is_modern, judged, session_of};
use super::measure::Measure;
use super::sender::HttpSender;
use super::sse::SseEvents;
use super::target::LinkTarget;
use super::trouble::LinkTrouble;
use egress::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use egress::{GuardedRequest, Method, StreamBounds, Streaming, Url};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId};
use rmcp::transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// For what wants no answer of substance: notifications, refusals, the end of a session.
const ASIDE: StreamBounds = StreamBounds { within: Duration::from_secs(5), bytes: 64 * 1024 };
/// The longest a server may take to say whether it is of the modern era. One that hangs is taken for a legacy one.
const PROBE: Duration = Duration::from_secs(2);
/// Most requests of a server to us that are answered, per stream. The rest is ignored.
pub(super) const DECLINED: usize = 8;

/// What the client library is told when something failed. The fault itself goes round it, since it prints errors.
#[derive(Debug, thiserror::Error)]
#[error("the exchange failed")]
pub(crate) struct OpaqueError;

/// One server over HTTP. Cheap to clone; clones are the same line.
#[derive(Clone)]
pub(crate) struct HttpLink(pub(super) Arc<HttpLinkState>);

pub(super) struct HttpLinkState {
    sender: HttpSender,
    url: Url,
    params: BTreeMap<String, String>,
    /// What opening the line may cost.
    opening: LinkLimits,
    trouble: Arc<LinkTrouble>,
    /// Rung when the server says that its tools changed.
    pub(super) bell: Arc<Notify>,
    /// Whether it said at the opening that it would tell.
    pub(super) announces: AtomicBool,
}

/// A message on its way, with what the library knows about it.
pub(super) struct Outgoing {
    pub(super) method: String,
    id: Value,
    token: Value,
    body: Vec<u8>,
    pub(super) headers: HeaderMap,
    exchange: Option<LinkExchange>,
}

/// An answer, and the session it opens if it opens one.
struct OpenedAnswer {
    answer: AnswerFrame,
    session: Option<String>,
}

impl HttpLink {
    pub(super) fn new(
        sender: HttpSender,
        url: Url,
        target: &LinkTarget,
        opening: &LinkLimits,
        bell: Arc<Notify>,
    ) -> HttpLink {
        HttpLink(Arc::new(HttpLinkState {
            sender,
            url,
            params: target.params.clone(),
            opening: opening.clone(),
            trouble: Arc::default(),
            bell,
            announces: AtomicBool::new(false),
        }))
    }

    /// What is wrong with the line. It is retired when the server turned our session down.
    pub(crate) fn trouble(&self) -> Arc<LinkTrouble> {
        Arc::clone(&self.0.trouble)
    }

    /// Puts a message together with its headers. Those of the protocol win over those of the configuration.
    pub(super) fn outgoing(
        &self,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        of_library: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Outgoing, LinkFault> {
        let frame = frame::outgoing(message, &self.0.params)?;
        let body = serde_json::to_vec(&frame).map_err(|_| LinkFault::NotMcp("the request cannot be written"))?;
        let exchange = LinkExchange::of(message).cloned();
        let mut headers = self.headers(session, of_library)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.extend(exchange.iter().flat_map(|exchange| exchange.trace().clone()));
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Outgoing {
            method: text(frame.get("method")),
            id: frame.get("id").cloned().unwrap_or_default(),
            token: frame.pointer("/params/_meta/progressToken").cloned().unwrap_or_default(),
            body,
            headers,
            exchange,
        })
    }

    pub(super) fn headers(
        &self,
        session: Option<&str>,
        of_library: HashMap<HeaderName, HeaderValue>,
    ) -> Result<HeaderMap, LinkFault> {
        let mut headers = self.0.sender.headers();
        headers.extend(of_library);
        if let Some(session) = session {
            let value = HeaderValue::from_str(session).map_err(|_| LinkFault::NotMcp("a session id is no header"))?;
            headers.insert(SESSION, value);
        }
        Ok(headers)
    }

    /// Sends a request and waits for its answer, no longer than it may take and no longer than somebody wants it.
    pub(super) async fn request(
        &self,
        id: &RequestId,
        kind: &ClientRequest,
        out: Outgoing,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<OpaqueError>> {
        let limits = self.limits(&out);
        let withdrawn = out.exchange.as_ref().map(|exchange| exchange.withdrawn().clone()).unwrap_or_default();
        let answered = tokio::select! {
            biased; // an answer that is there wins a tie against its own deadline
            answered = self.ask(&out, &limits) => answered,
            () = tokio::time::sleep_until(limits.deadline) => Err(LinkFault::Late),
            () = withdrawn.cancelled() => Err(LinkFault::Late),
        };
        match (kind, &out.exchange) {
            (ClientRequest::DiscoverRequest(_), _) => self.probed(id, answered),
            (ClientRequest::ListToolsRequest(_), Some(exchange)) => {
                // The library reads from a list which arguments a tool wants repeated in headers.
                let answered = self.settled(exchange, answered, &out).await?;
                let message = answered.answer.typed(id).unwrap_or_else(|_| frame::over(id));
                Ok(StreamableHttpPostResponse::Json(message, None))
            }
            (_, Some(exchange)) => {
                self.settled(exchange, answered, &out).await?;
                Ok(StreamableHttpPostResponse::Json(frame::over(id), None))
            }
            (_, None) => self.opened(id, answered),
        }
    }

    fn limits(&self, out: &Outgoing) -> LinkLimits {
        match &out.exchange {
            Some(exchange) => exchange.limits().clone(),
            None if out.method == "server/discover" => {
                let (now, end) = (Instant::now(), self.0.opening.deadline);
                // Half of the time is left for the other era.
                let probe = PROBE.min(end.saturating_duration_since(now) / 2);
                LinkLimits { deadline: now + probe, ..self.0.opening.clone() }
            }
            None => self.0.opening.clone(),
        }
    }

    /// Leaves the outcome in the exchange. A legacy server is told when nobody waits any more; for a modern one the end
    /// of the connection says it.
    async fn settled(
        &self,
        exchange: &LinkExchange,
        answered: Result<OpenedAnswer, LinkFault>,
        out: &Outgoing,
    ) -> Result<OpenedAnswer, StreamableHttpError<OpaqueError>> {
        match answered {
            Ok(answered) => {
                exchange.settle(answered.answer.outcome().cloned());
                Ok(answered)
            }
            Err(fault) => {
                let late = fault == LinkFault::Late;
                exchange.settle(Err(fault));
                if late && !is_modern(&out.headers) {
                    let within = Duration::from_secs(1);
                    let telling = self.tell(frame::cancelled(&out.id), out.headers.clone());
                    tokio::time::timeout(within, telling).await.ok();
                }
                Err(StreamableHttpError::Client(OpaqueError))
            }
        }
    }

    /// The answer to an opening request.
    fn opened(
        &self,
        id: &RequestId,
        answered: Result<OpenedAnswer, LinkFault>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<OpaqueError>> {
        let opened = answered.and_then(|OpenedAnswer { answer, session }| {
            let tells = |result: &Value| result.pointer("/capabilities/tools/listChanged") == Some(&Value::Bool(true));
            self.0.announces.store(answer.outcome().is_ok_and(tells), Ordering::Release);
            Ok(StreamableHttpPostResponse::Json(answer.typed(id)?, session))
        });
        opened.map_err(|fault| self.failed(fault))
    }

    /// The answer to the question whether a server is of the modern era. Most of what a legacy server may say to it
    /// means that it is not; whether it is there at all shows with the next request.
    fn probed(
        &self,
        id: &RequestId,
        answered: Result<OpenedAnswer, LinkFault>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<OpaqueError>> {
        let legacy = match &answered {
            Ok(OpenedAnswer { answer, .. }) => !answer.speaks_modern(),
            Err(
                LinkFault::Refused
                | LinkFault::Credentials
                | LinkFault::Busy(_)
                | LinkFault::TooLarge(_)
                | LinkFault::NoToken(_),
            ) => false,
            Err(
                LinkFault::Failed(_) | LinkFault::Broken | LinkFault::Expired | LinkFault::NotMcp(_) | LinkFault::Late,
            ) => true,
            Err(LinkFault::Error { .. }) => true,
        };
        if legacy {
            return Ok(StreamableHttpPostResponse::Json(frame::unknown_method(id), None));
        }
        self.opened(id, answered)
    }

    /// Keeps the fault for whoever opens the line.
    pub(super) fn failed(&self, fault: LinkFault) -> StreamableHttpError<OpaqueError> {
        self.0.trouble.keep(fault);
        StreamableHttpError::Client(OpaqueError)
    }

    /// One request, one answer.
    async fn ask(&self, out: &Outgoing, limits: &LinkLimits) -> Result<OpenedAnswer, LinkFault> {
        let within = limits.deadline.saturating_duration_since(Instant::now());
        if within.is_zero() {
            return Err(LinkFault::Late);
        }
        let mut request = GuardedRequest::new(Method::POST, &self.0.url);
        request.headers = out.headers.clone();
        request.body = Some(out.body.clone());
        // Whoever waits keeps the deadline; the client's own is only there to end what is forgotten.
        let bounds = StreamBounds { within: within + Duration::from_secs(1), bytes: limits.bytes };
        let mut streaming = self.0.sender.open(request, bounds, out.exchange.as_ref()).await?;
        let session = session_of(&streaming.headers)?;
        let answer = match body_of(&streaming, &out.headers)? {
            BodyKind::Json => self.whole(&mut streaming, out, limits).await?,
            BodyKind::Events => self.among_events(&mut streaming, out, limits).await?,
            BodyKind::Complaint => {
                self.note_stale(&out.headers);
                let wrong = LinkFault::NotMcp("it turned a request down");
                self.whole(&mut streaming, out, limits).await.map_err(|_| wrong)?
            }
            BodyKind::Nothing => return Err(LinkFault::NotMcp("a request was taken and not answered")),
        };
        Ok(OpenedAnswer { answer, session })
    }

    /// Some servers say 400 instead of 404 to a session they do not know. The request is not repeated for it, but the
    /// next one opens a session of its own.
    fn note_stale(&self, headers: &HeaderMap) {
        if headers.contains_key(SESSION) {
            self.0.trouble.retire();
        }
    }

    async fn whole(
        &self,
        streaming: &mut Streaming,
        out: &Outgoing,
        limits: &LinkLimits,
    ) -> Result<AnswerFrame, LinkFault> {
        let (mut text, mut measure) = (Vec::new(), Measure::new(limits.caps()));
        while let Some(piece) = streaming.chunk().await.map_err(broken)? {
            measure.take(&piece).map_err(|_| TOO_MUCH)?;
            text.extend_from_slice(&piece);
        }
        match ServerMessage::read(&text)? {
            ServerMessage::Answer(answer) if answer.is_to(&out.id) || answer.is_nameless_error() => Ok(answer),
            ServerMessage::Answer(_) => Err(LinkFault::NotMcp("it answered a request that nobody made")),
            ServerMessage::Request { .. } | ServerMessage::Notice { .. } => {
                Err(LinkFault::NotMcp("a request was not answered"))
            }
        }
    }

    /// The answer in a stream of events. What else is in it is passed on, declined or ignored.
    async fn among_events(
        &self,
        streaming: &mut Streaming,
        out: &Outgoing,
        limits: &LinkLimits,
    ) -> Result<AnswerFrame, LinkFault> {
        let mut events = SseEvents::of_at_most(limits.bytes);
        let mut declined = 0;
        while let Some(piece) = streaming.chunk().await.map_err(broken)? {
            events.take(&piece).map_err(|_| LinkFault::TooLarge("an event that is longer than it may be"))?;
            while let Some(text) = events.next() {
                Measure::whole(limits.caps(), &text).map_err(|_| TOO_MUCH)?;
                match ServerMessage::read(&text)? {
                    ServerMessage::Answer(answer) if answer.is_to(&out.id) => return Ok(answer),
                    // To somebody else's request, or to none.
                    ServerMessage::Answer(_) => {}
                    ServerMessage::Request { id, method } if declined < DECLINED && !is_modern(&out.headers) => {
                        declined += 1;
                        self.tell(frame::declined(&id, &method), out.headers.clone()).await.ok();
                    }
                    ServerMessage::Request { .. } => {}
                    ServerMessage::Notice { method, params } => self.notice(&method, &params, out),
                }
            }
        }
        Err(LinkFault::Broken)
    }

    fn notice(&self, method: &str, params: &Value, out: &Outgoing) {
        match (method, &out.exchange) {
            (frame::LIST_CHANGED, _) => self.0.bell.notify_one(),
            (frame::PROGRESS, Some(exchange)) if params.get("progressToken") == Some(&out.token) => {
                exchange.report(params);
            }
            (_, _) => {}
        }
    }

    /// Sends what wants no answer.
    pub(super) async fn tell(&self, frame: Value, headers: HeaderMap) -> Result<(), LinkFault> {
        let mut request = GuardedRequest::new(Method::POST, &self.0.url);
        request.headers = headers;
        request.body = Some(frame.to_string().into_bytes());
        let streaming = self.0.sender.open(request, ASIDE, None).await?;
        judged(&streaming, &HeaderMap::new())
    }

    /// Sends a notification, or an answer to a request of the server.
    pub(super) async fn aside(&self, out: Outgoing) -> Result<(), LinkFault> {
        let mut request = GuardedRequest::new(Method::POST, &self.0.url);
        request.headers = out.headers;
        request.body = Some(out.body);
        let streaming = self.0.sender.open(request, ASIDE, None).await?;
        judged(&streaming, &HeaderMap::new())
    }

    /// Opens a stream that lasts: a `GET`, or a `POST` whose answer goes on.
    pub(super) async fn lasting(&self, out: StreamRequest, bounds: StreamBounds) -> Result<Streaming, LinkFault> {
        let mut request = GuardedRequest::new(if out.body.is_some() { Method::POST } else { Method::GET }, &self.0.url);
        request.headers = out.headers.clone();
        request.body = out.body;
        let opening = self.0.sender.open(request, bounds, None);
        let streaming = tokio::time::timeout(ASIDE.within, opening).await.map_err(|_| LinkFault::Late)??;
        match body_of(&streaming, &out.headers)? {
            BodyKind::Events => Ok(streaming),
            BodyKind::Json | BodyKind::Complaint | BodyKind::Nothing => Err(LinkFault::NotMcp("it offers no stream")),
        }
    }

    /// Ends a session. Whether the server minds is its own affair.
    pub(super) async fn end(&self, headers: HeaderMap) {
        let mut request = GuardedRequest::new(Method::DELETE, &self.0.url);
        request.headers = headers;
        self.0.sender.open(request, ASIDE, None).await.ok();
    }
}

/// What is sent to open a stream that lasts.
pub(super) struct StreamRequest {
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl From<Outgoing> for StreamRequest {
    fn from(out: Outgoing) -> StreamRequest {
        StreamRequest { headers: out.headers, body: Some(out.body) }
    }
}

const TOO_MUCH: LinkFault = LinkFault::TooLarge("more values, or deeper ones, than it may");
