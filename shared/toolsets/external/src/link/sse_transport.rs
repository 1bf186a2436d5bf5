//! The older HTTP transport, of `2024-11-05`: one stream of events carries all answers, and every message is a POST.
//!
//! The first event names where messages go. It is taken once, and only within the origin that is configured: a stream
//! cannot send credentials elsewhere. A lost stream ends every call on it as what it is, the line with it, and the next
//! exchange opens another. Nothing is sent twice: a server that turns a message down is not asked again.

use super::LinkLimits;
use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::frame;
use super::head::{BodyKind, body_of, broken, judged};
use super::inbox::Inbox;
use super::sender::HttpSender;
use super::sse::{SseEventKind, SseEvents};
use super::target::LinkTarget;
use super::trouble::LinkTrouble;
use super::wire::OpaqueError;
use egress::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use egress::{GuardedRequest, Method, StreamBounds, Streaming, Url};
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a stream is used for new exchanges.
const LIFE: Duration = Duration::from_secs(3600);
/// What one stream may cost: longer than it is used by the longest call. Its bytes are counted between two answers.
const STREAM: StreamBounds = StreamBounds { within: Duration::from_secs(3600 + 15 * 60), bytes: usize::MAX };
/// Most bytes before the event that names the endpoint.
const BEFORE_ENDPOINT: usize = 64 * 1024;
/// The longest address of an endpoint.
const ENDPOINT_BYTES: usize = 2_048;
/// For a message that wants no answer, and for what a server says to a POST.
const ASIDE: StreamBounds = StreamBounds { within: Duration::from_secs(5), bytes: 64 * 1024 };
/// Most requests of a server to us that are answered within [`REPLIES_PER`]. The rest is ignored.
const REPLIES: u32 = 8;
const REPLIES_PER: Duration = Duration::from_secs(10);

/// An open stream, as the client library wants to see it.
pub(crate) struct SseTransport {
    post: MessagePost,
    stream: Streaming,
    events: SseEvents,
    inbox: Inbox,
    /// Bytes since the last answer that somebody waited for, and the most there may be.
    unanswered: usize,
    most: usize,
    replies: ReplyBudget,
    opened: Instant,
    /// Until when the line must be open.
    deadline: Instant,
}

/// How messages leave.
#[derive(Clone)]
struct MessagePost {
    sender: HttpSender,
    endpoint: Arc<Url>,
    params: Arc<BTreeMap<String, String>>,
    trouble: Arc<LinkTrouble>,
}

/// How many requests of the server are still answered.
struct ReplyBudget {
    since: Instant,
    left: u32,
}

impl SseTransport {
    /// Opens the stream and waits until it has named its endpoint.
    pub(super) async fn open(
        sender: HttpSender,
        url: &Url,
        target: &LinkTarget,
        limits: &LinkLimits,
        bell: Arc<Notify>,
    ) -> Result<SseTransport, LinkFault> {
        let opening = async {
            let mut request = GuardedRequest::get(url);
            request.headers = sender.headers();
            request.headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            let mut stream = sender.open(request, STREAM, None).await?;
            match body_of(&stream, &HeaderMap::new())? {
                BodyKind::Events => {}
                BodyKind::Json | BodyKind::Complaint | BodyKind::Nothing => {
                    return Err(LinkFault::NotMcp("it offers no stream of events"));
                }
            }
            let mut events = SseEvents::of_at_most(limits.bytes);
            let endpoint = first_endpoint(&mut stream, &mut events, url).await?;
            Ok((stream, events, endpoint))
        };
        let opened = tokio::time::timeout_at(limits.deadline, opening).await;
        let (stream, events, endpoint) = opened.map_err(|_| LinkFault::Late)??;
        let params = Arc::new(target.params.clone());
        Ok(SseTransport {
            post: MessagePost { sender, endpoint: Arc::new(endpoint), params, trouble: Arc::default() },
            stream,
            events,
            inbox: Inbox::new(limits.caps(), bell),
            unanswered: 0,
            most: limits.bytes.saturating_mul(2),
            replies: ReplyBudget { since: Instant::now(), left: REPLIES },
            opened: Instant::now(),
            deadline: limits.deadline,
        })
    }

    /// What is wrong with the line. It is retired when the stream is old or the server turned a message down.
    pub(super) fn trouble(&self) -> Arc<LinkTrouble> {
        Arc::clone(&self.post.trouble)
    }

    /// The next message that the client library is to hear, or why there is none.
    async fn next(&mut self) -> Result<ServerJsonRpcMessage, LinkFault> {
        loop {
            // The endpoint was named, and is not named anew.
            while let Some((kind, text)) = self.events.next_of_any_kind() {
                if kind == SseEventKind::Message
                    && let Some(message) = self.heard(&text)?
                {
                    return Ok(message);
                }
            }
            let piece = self.stream.chunk().await.map_err(broken)?.ok_or(LinkFault::Broken)?;
            self.unanswered = self.unanswered.saturating_add(piece.len());
            if self.unanswered > self.most {
                return Err(LinkFault::TooLarge("more bytes than it may"));
            }
            self.events.take(&piece).map_err(|_| LinkFault::TooLarge("an event that is longer than it may be"))?;
        }
    }

    fn heard(&mut self, text: &[u8]) -> Result<Option<ServerJsonRpcMessage>, LinkFault> {
        let Some(message) = self.inbox.take(text, None)? else { return Ok(None) };
        match &message {
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => self.unanswered = 0,
            ServerJsonRpcMessage::Request(_) if !self.replies.spend() => return Ok(None),
            ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => {}
        }
        Ok(Some(message))
    }
}

impl Transport<RoleClient> for SseTransport {
    type Error = OpaqueError;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), OpaqueError>> + Send + 'static {
        let frame = frame::outgoing(&item, &self.post.params);
        let exchange = LinkExchange::of(&item).cloned();
        let mut within = ASIDE.within;
        if let (ClientJsonRpcMessage::Request(request), Ok(frame)) = (&item, &frame) {
            within = self.deadline.saturating_duration_since(Instant::now());
            let token = frame.pointer("/params/_meta/progressToken").cloned().unwrap_or_default();
            self.inbox.await_answer(exchange.clone(), request.id.clone(), token);
        }
        if self.opened.elapsed() >= LIFE {
            self.post.trouble.retire();
        }
        let post = self.post.clone();
        async move {
            let sent = match (frame, &exchange) {
                (Ok(frame), Some(exchange)) => post.exchange(&frame, exchange).await,
                (Ok(frame), None) => post.deliver(&frame, within, None).await,
                (Err(fault), _) => Err(fault),
            };
            sent.map_err(|fault| {
                post.trouble.keep(fault);
                OpaqueError
            })
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        match self.next().await {
            Ok(message) => Some(message),
            Err(fault) => {
                self.inbox.settle_all(&fault);
                self.post.trouble.keep(fault);
                None
            }
        }
    }

    async fn close(&mut self) -> Result<(), OpaqueError> {
        // The stream ends with this value.
        Ok(())
    }
}

impl MessagePost {
    /// Sends a request and waits until it is settled, no longer than it may take and no longer than somebody wants it.
    async fn exchange(&self, frame: &Value, exchange: &LinkExchange) -> Result<(), LinkFault> {
        let deadline = exchange.limits().deadline;
        // Whoever waits keeps the deadline; the client's own is only there to end what is forgotten.
        let within = deadline.saturating_duration_since(Instant::now()) + Duration::from_secs(1);
        let working = async {
            if let Err(fault) = self.deliver(frame, within, Some(exchange)).await {
                exchange.settle(Err(fault.clone()));
                return Err(fault);
            }
            exchange.settled().cancelled().await;
            Ok(())
        };
        tokio::select! {
            biased; // an answer that is there wins a tie against its own deadline
            worked = working => return worked,
            () = tokio::time::sleep_until(deadline) => {}
            () = exchange.withdrawn().cancelled() => {}
        }
        if exchange.settled().is_cancelled() {
            // The answer was quicker than the word that the request was taken.
            return Ok(());
        }
        exchange.settle(Err(LinkFault::Late));
        let id = frame.get("id").cloned().unwrap_or_default();
        self.deliver(&frame::cancelled(&id), Duration::from_secs(1), None).await.ok();
        Err(LinkFault::Late)
    }

    /// Posts one message. What the server says to that is no answer, only whether it was taken.
    async fn deliver(&self, frame: &Value, within: Duration, exchange: Option<&LinkExchange>) -> Result<(), LinkFault> {
        let mut request = GuardedRequest::new(Method::POST, &self.endpoint);
        request.headers = self.sender.headers();
        request.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.headers.extend(exchange.into_iter().flat_map(|exchange| exchange.trace().clone()));
        request.body = Some(frame.to_string().into_bytes());
        let bounds = StreamBounds { within, bytes: ASIDE.bytes };
        let mut answer = self.sender.open(request, bounds, exchange).await?;
        judged(&answer, &HeaderMap::new())?;
        if answer.status >= 400 {
            self.trouble.retire();
            return Err(LinkFault::NotMcp("it turned a request down"));
        }
        // Read to its end, so that the connection can be used again.
        while let Ok(Some(_)) = answer.chunk().await {}
        Ok(())
    }
}

impl ReplyBudget {
    fn spend(&mut self) -> bool {
        if self.since.elapsed() >= REPLIES_PER {
            (self.since, self.left) = (Instant::now(), REPLIES);
        }
        let left = self.left.checked_sub(1);
        self.left = left.unwrap_or(0);
        left.is_some()
    }
}

/// Reads a stream until its first event, which names the endpoint.
async fn first_endpoint(stream: &mut Streaming, events: &mut SseEvents, configured: &Url) -> Result<Url, LinkFault> {
    let mut bytes = 0;
    loop {
        match events.next_of_any_kind() {
            Some((SseEventKind::Endpoint, data)) => return endpoint_in(configured, &data),
            Some((SseEventKind::Message, _)) => {
                return Err(LinkFault::NotMcp("its stream does not begin with an endpoint"));
            }
            None if bytes > BEFORE_ENDPOINT => return Err(LinkFault::TooLarge("more bytes than it may")),
            None => {}
        }
        let piece = stream.chunk().await.map_err(broken)?.ok_or(LinkFault::Broken)?;
        bytes += piece.len();
        events.take(&piece).map_err(|_| LinkFault::TooLarge("an event that is longer than it may be"))?;
    }
}

/// The address that a server names for messages, which must be of the origin that is configured.
pub(super) fn endpoint_in(configured: &Url, data: &[u8]) -> Result<Url, LinkFault> {
    let text = std::str::from_utf8(data).ok().filter(|text| text.len() <= ENDPOINT_BYTES);
    let text = text.filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()));
    let mut endpoint = text
        .and_then(|text| configured.join(text).ok())
        .ok_or(LinkFault::NotMcp("the endpoint that it names is no address"))?;
    endpoint.set_fragment(None);
    let bare = endpoint.username().is_empty() && endpoint.password().is_none();
    if endpoint.origin() != configured.origin() || !bare {
        return Err(LinkFault::NotMcp("the endpoint that it names is elsewhere, which is not followed"));
    }
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_taken_within_its_origin_and_nowhere_else() {
        let configured = Url::parse("https://tools.example/a/sse?key=1").unwrap();
        let read = |text: &str| endpoint_in(&configured, text.as_bytes()).map(|url| url.to_string());
        for (named, meant) in [
            ("/messages/?session_id=7", "https://tools.example/messages/?session_id=7"),
            ("messages?id=7", "https://tools.example/a/messages?id=7"),
            ("?id=7", "https://tools.example/a/sse?id=7"),
            ("https://tools.example/m#part", "https://tools.example/m"),
            ("https://TOOLS.example:443/m", "https://tools.example/m"),
        ] {
            assert_eq!(read(named).as_deref(), Ok(meant), "{named}");
        }
        let long = format!("/{}", "x".repeat(ENDPOINT_BYTES));
        for bad in [
            "https://elsewhere.example/m",
            "//elsewhere.example/m",
            "/\\elsewhere.example/m",
            "\\\\elsewhere.example/m",
            "http://tools.example/m",
            "https://tools.example:8443/m",
            "https://tools.example.elsewhere.example/m",
            "https://tools.example@elsewhere.example/m",
            "https://name:word@tools.example/m",
            "file:///etc/passwd",
            "data:text/plain,x",
            "https://",
            "/m\u{202e}",
            "/a b",
            "/a\r\nX: y",
            &long,
        ] {
            assert!(matches!(read(bad), Err(LinkFault::NotMcp(_))), "{bad}: {:?}", read(bad));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_requests_is_not_answered_and_a_few_are() {
        let mut replies = ReplyBudget { since: Instant::now(), left: REPLIES };
        assert_eq!((0..100).filter(|_| replies.spend()).count(), REPLIES as usize);
        tokio::time::advance(REPLIES_PER).await;
        assert!(replies.spend());
    }
}
