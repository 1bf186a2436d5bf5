//! One HTTP request to the hosted service, and its answer as lines.

use super::{Bridge, HostedSession};
use crate::stdio::lines::LineWriter;
use bytes::Bytes;
use egress::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use egress::{GuardedRequest, Method, SendError, StreamBounds, Streaming};
use mcp::forward::RequestHead;
use mcp::sse::EventReader;
use mcp::{Era, Id, MessageFault, Refusal, WireError};
use serde_json::{Value, json};
use std::time::Duration;

/// The most that one answer of the service may have.
const ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// The most that all events of one stream may have.
const STREAM_BYTES: usize = 1 << 30;
/// A service shows every fifteen seconds that it is there; one that is silent for longer than this is not.
const SILENCE: Duration = Duration::from_secs(60);
/// How long one exchange may last at most.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// What became of a message.
pub(super) enum HostedAnswer {
    /// The client has its answer, or the message wants none.
    Written,
    /// The same, and a session is open.
    Opened(HostedSession),
    /// The service has forgotten the session; the client has no answer yet, and this is the service's.
    Forgotten(Bytes),
}

/// Why there is no answer of the service.
enum NoAnswer {
    /// It was not asked, or did not answer.
    Unreachable(SendError),
    /// It fell silent.
    Silent,
    /// What came is nothing an MCP service answers.
    Nonsense(String),
    /// There is no token to ask with.
    NoToken(String),
}

impl Bridge {
    /// Sends one message and writes what comes back. `request` is the head of a message that wants an answer.
    pub(super) async fn post(
        &self,
        line: &[u8],
        request: Option<&RequestHead>,
        session: Option<&HostedSession>,
        writer: &LineWriter,
    ) -> HostedAnswer {
        match self.exchange(line, request, session, writer).await {
            Ok(answer) => answer,
            Err(no_answer) => {
                // A notification wants no answer, and so no error either.
                if let Some(request) = request {
                    let refusal = Refusal::new(Era::Modern, Some(request.id.clone()), self.explain(no_answer));
                    writer.send(refusal.body(None)).await;
                }
                HostedAnswer::Written
            }
        }
    }

    async fn exchange(
        &self,
        line: &[u8],
        request: Option<&RequestHead>,
        session: Option<&HostedSession>,
        writer: &LineWriter,
    ) -> Result<HostedAnswer, NoAnswer> {
        let mut headers = self.headers(session)?;
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in request.map(RequestHead::headers).unwrap_or_default() {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let mut answer = self.send(Method::POST, headers, Some(line.to_vec())).await?;
        let Some(request) = request else { return Ok(HostedAnswer::Written) };
        if is_stream(&answer) {
            forward(answer, &request.id, writer).await?;
            return Ok(HostedAnswer::Written);
        }
        let body = whole(&mut answer).await?;
        // The legacy era answers a request that the client has cancelled with nothing.
        if answer.status == 202 && body.is_empty() {
            return Ok(HostedAnswer::Written);
        }
        let message: Value = serde_json::from_slice(&body)
            .ok()
            .filter(|message: &Value| message["jsonrpc"] == "2.0")
            .ok_or_else(|| NoAnswer::Nonsense(format!("status {} and no message", answer.status)))?;
        if answer.status == 404 && session.is_some() && message["error"]["data"]["code"] == "session_not_found" {
            return Ok(HostedAnswer::Forgotten(addressed(message, &request.id)));
        }
        let opened = (request.method == "initialize" && message["error"].is_null()).then(|| HostedSession {
            id: answer.headers.get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned),
            revision: message["result"]["protocolVersion"].as_str().unwrap_or_default().to_owned(),
        });
        let body = match answer.status {
            200 => body.into(),
            401 => addressed(self.refused_token(message), &request.id),
            _ => addressed(message, &request.id),
        };
        writer.send(body).await;
        Ok(opened.map_or(HostedAnswer::Written, HostedAnswer::Opened))
    }

    /// Opens a session with what the client opened its first one with. The client is not told of it.
    pub(super) async fn open_again(&self, opening: &[u8]) -> Option<HostedSession> {
        let Ok(mcp::forward::MessageHead::Request(request)) = mcp::forward::head(opening) else { return None };
        let tasks = executor::Tasks::default();
        let (unheard, _) = LineWriter::to(tokio::io::sink(), &tasks);
        match self.exchange(opening, Some(&request), None, &unheard).await {
            Ok(HostedAnswer::Opened(session)) => Some(session),
            Ok(HostedAnswer::Written | HostedAnswer::Forgotten(_)) | Err(_) => None,
        }
    }

    /// Ends a session at the service.
    pub(super) async fn close_session(&self, session: &HostedSession) {
        if session.id.is_some()
            && let Ok(headers) = self.headers(Some(session))
            && self.send(Method::DELETE, headers, None).await.is_err()
        {
            tracing::debug!("the session was not closed");
        }
    }

    /// Opens the stream of a session's notices; `None` if the service has none for it.
    pub(super) async fn open_notices(&self, session: &HostedSession) -> Option<Streaming> {
        let mut headers = self.headers(Some(session)).ok()?;
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        self.send(Method::GET, headers, None).await.ok().filter(is_stream)
    }

    async fn send(&self, method: Method, headers: HeaderMap, body: Option<Vec<u8>>) -> Result<Streaming, NoAnswer> {
        let request = GuardedRequest { method, url: &self.url, headers, body };
        let bounds = StreamBounds { within: LONGEST, bytes: STREAM_BYTES };
        let answer = tokio::time::timeout(SILENCE, self.http.open(request, bounds)).await;
        answer.map_err(|_| NoAnswer::Silent)?.map_err(NoAnswer::Unreachable)
    }

    /// The headers of every request. The token is read each time, because somebody may renew it.
    fn headers(&self, session: Option<&HostedSession>) -> Result<HeaderMap, NoAnswer> {
        let token = std::fs::read_to_string(&self.token_file)
            .map_err(|error| NoAnswer::NoToken(format!("cannot be read: {error}")))?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
            .map_err(|_| NoAnswer::NoToken("does not hold a token".to_owned()))?;
        bearer.set_sensitive(true);
        let mut headers = HeaderMap::from_iter([(AUTHORIZATION, bearer)]);
        if let Some(HostedSession { id, revision }) = session {
            let value = |text: &String| HeaderValue::from_str(text).ok();
            headers.extend(id.as_ref().and_then(value).map(|id| (SESSION, id)));
            headers.extend(value(revision).map(|revision| (VERSION, revision)));
        }
        Ok(headers)
    }

    fn explain(&self, no_answer: NoAnswer) -> WireError {
        match no_answer {
            NoAnswer::Unreachable(error) => self.unreachable(&error),
            NoAnswer::Silent => {
                let message = format!("the service at {} was silent for {} s", self.url, SILENCE.as_secs());
                WireError::new(MessageFault::ServiceUnreachable, message)
            }
            NoAnswer::Nonsense(what) => {
                let message = format!("{} answered what no MCP service answers: {what}", self.url);
                WireError::new(MessageFault::BadServiceAnswer, message)
            }
            NoAnswer::NoToken(why) => {
                let message = format!("the token file {} {why}", self.token_file.display());
                WireError::new(MessageFault::ServiceUnreachable, message).with("next", "write a token into the file")
            }
        }
    }

    /// The service's refusal of the token, with the place where a person finds the token.
    fn refused_token(&self, mut message: Value) -> Value {
        let why = message["error"]["message"].as_str().unwrap_or("no reason was given").to_owned();
        let file = self.token_file.display();
        message["error"]["message"] = json!(format!("the service refused the token in {file}: {why}"));
        message
    }
}

fn is_stream(answer: &Streaming) -> bool {
    let kind = answer.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    (200..300).contains(&answer.status) && kind.starts_with("text/event-stream")
}

/// The whole body of an answer that is no stream.
async fn whole(answer: &mut Streaming) -> Result<Vec<u8>, NoAnswer> {
    let mut body = Vec::new();
    while let Some(piece) = piece(answer).await? {
        if body.len() + piece.len() > ANSWER_BYTES {
            return Err(NoAnswer::Nonsense(format!("more than {ANSWER_BYTES} bytes")));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

async fn piece(answer: &mut Streaming) -> Result<Option<Bytes>, NoAnswer> {
    let piece = tokio::time::timeout(SILENCE, answer.chunk()).await;
    piece.map_err(|_| NoAnswer::Silent)?.map_err(NoAnswer::Unreachable)
}

/// Writes the events of a request's stream; its answer is the last.
async fn forward(mut answer: Streaming, id: &Id, writer: &LineWriter) -> Result<(), NoAnswer> {
    let mut answered = false;
    let mut events = EventReader::new(ANSWER_BYTES);
    while let Some(piece) = piece(&mut answer).await? {
        let pushed = events.push(&piece).map_err(|error| NoAnswer::Nonsense(error.to_string()))?;
        for event in pushed {
            let message: Value = serde_json::from_slice(&event)
                .map_err(|_| NoAnswer::Nonsense("an event that is no message".to_owned()))?;
            answered |= message.get("method").is_none() && Id::read(message["id"].clone()).as_ref() == Some(id);
            if !writer.send(event.into()).await {
                return Ok(());
            }
        }
    }
    match answered {
        true => Ok(()),
        false => Err(NoAnswer::Nonsense("a stream that ended before the answer".to_owned())),
    }
}

/// Writes the events of a session's notices, until the stream ends.
pub(super) async fn forward_notices(mut stream: Streaming, writer: &LineWriter) {
    let mut events = EventReader::new(ANSWER_BYTES);
    while let Ok(Some(piece)) = piece(&mut stream).await {
        let Ok(pushed) = events.push(&piece) else { return };
        for event in pushed {
            if serde_json::from_slice::<Value>(&event).is_ok() && !writer.send(event.into()).await {
                return;
            }
        }
    }
}

/// An error of the service as an answer to this request: what is refused before it is read has no id there.
fn addressed(mut message: Value, id: &Id) -> Bytes {
    message["id"] = match id {
        Id::Text(text) => json!(text),
        Id::Integer(number) => json!(number),
    };
    message.to_string().into()
}
