//! The [`HttpLink`] as the client library wants to see it, and the streams on which a server tells of changes.
//!
//! A legacy server tells on a `GET` that stays open, a modern one on a `subscriptions/listen`. Of either only the notice
//! that the tools changed is taken. Such a stream ends when the line is dropped, after an hour, or after a mebibyte, and
//! is opened again with growing pauses, a limited number of times.

use super::fault::LinkFault;
use super::frame::{self, ServerMessage};
use super::measure::{AnswerCaps, Measure};
use super::sse::SseEvents;
use super::wire::{DECLINED, HttpLink, OpaqueError, StreamRequest};
use egress::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use egress::{StreamBounds, Streaming};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What one stream of notices may cost.
const NOTICES: StreamBounds = StreamBounds { within: Duration::from_secs(3600), bytes: 1024 * 1024 };
/// What one notice may hold: it is small, whatever the server.
const NOTICE: AnswerCaps = AnswerCaps { nodes: 1_000, depth: 16 };
/// Most bytes of one notice.
const NOTICE_BYTES: usize = 64 * 1024;
/// How often a stream is opened again, and after which pause at most.
const REOPENED: u32 = 100;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

type HttpLinkError = StreamableHttpError<OpaqueError>;
type ExtraHeaders = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for HttpLink {
    type Error = OpaqueError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: ExtraHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpLinkError> {
        let out = self.outgoing(&message, session_id.as_deref(), custom_headers).map_err(|fault| self.failed(fault))?;
        match message {
            ClientJsonRpcMessage::Request(request) => {
                if matches!(&request.request, ClientRequest::SubscriptionsListenRequest(_)) {
                    return self.listen(out.into()).await;
                }
                self.request(&request.id, &request.request, out).await
            }
            ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Error(_) => {
                self.aside(out).await.map_err(|fault| self.failed(fault))?;
                Ok(StreamableHttpPostResponse::Accepted)
            }
        }
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: ExtraHeaders,
    ) -> Result<(), HttpLinkError> {
        let headers = self.headers(Some(&session_id), custom_headers).map_err(|fault| self.failed(fault))?;
        self.end(headers).await;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        _last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: ExtraHeaders,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpLinkError> {
        if !self.0.announces.load(Ordering::Acquire) {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        let mut headers = self.headers(session_id.as_deref(), custom_headers).map_err(|fault| self.failed(fault))?;
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let wire = self.clone();
        // The library is given a stream of nothing: the bell is rung here.
        let hearing = stream::once(async move { wire.hear(headers).await });
        Ok(hearing.filter_map(|()| std::future::ready(None)).boxed())
    }
}

impl HttpLink {
    /// Listens to the notices of a legacy server, for as long as it offers any.
    async fn hear(&self, headers: HeaderMap) {
        for again in 0..REOPENED {
            let lasting = StreamRequest { headers: headers.clone(), body: None };
            let Ok(streaming) = self.lasting(lasting, NOTICES).await else { return };
            if again > 0 {
                // Whatever was said meanwhile was not heard.
                self.0.bell.notify_one();
            }
            self.hear_one(streaming, &headers).await;
            tokio::time::sleep(LONGEST_PAUSE.min(Duration::from_secs(1 << again.min(6)))).await;
        }
    }

    async fn hear_one(&self, streaming: Streaming, headers: &HeaderMap) {
        let (mut notices, mut declined) = (NoticeStream::of(streaming), 0);
        while let Some((_, heard)) = notices.next().await {
            match heard {
                ServerMessage::Notice { method, .. } if method == frame::LIST_CHANGED => self.0.bell.notify_one(),
                ServerMessage::Request { id, method } if declined < DECLINED => {
                    declined += 1;
                    self.tell(frame::declined(&id, &method), headers.clone()).await.ok();
                }
                ServerMessage::Request { .. } | ServerMessage::Notice { .. } | ServerMessage::Answer(_) => {}
            }
        }
    }

    /// A subscription at a modern server. The library keeps it and is handed what belongs to it, nothing else.
    async fn listen(&self, lasting: StreamRequest) -> Result<StreamableHttpPostResponse, HttpLinkError> {
        let streaming =
            self.lasting(lasting, NOTICES).await.map_err(|_: LinkFault| StreamableHttpError::Client(OpaqueError))?;
        let bell = Arc::clone(&self.0.bell);
        let passed = stream::unfold((NoticeStream::of(streaming), bell), |(mut notices, bell)| async move {
            loop {
                let (text, heard) = notices.next().await?;
                if matches!(&heard, ServerMessage::Notice { method, .. } if method == frame::LIST_CHANGED) {
                    bell.notify_one();
                }
                let wanted = match heard {
                    ServerMessage::Answer(_) => true,
                    ServerMessage::Notice { method, .. } => method == frame::LIST_CHANGED || method == ACKNOWLEDGED,
                    ServerMessage::Request { .. } => false,
                };
                if wanted {
                    return Some((Ok(Sse { event: None, data: Some(text), id: None, retry: None }), (notices, bell)));
                }
            }
        });
        Ok(StreamableHttpPostResponse::Sse(passed.boxed(), None))
    }
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// The messages of a stream of notices. It ends where one of them is not what it must be.
struct NoticeStream {
    streaming: Streaming,
    events: SseEvents,
}

impl NoticeStream {
    fn of(streaming: Streaming) -> NoticeStream {
        NoticeStream { streaming, events: SseEvents::of_at_most(NOTICE_BYTES) }
    }

    async fn next(&mut self) -> Option<(String, ServerMessage)> {
        loop {
            if let Some(text) = self.events.next() {
                Measure::whole(NOTICE, &text).ok()?;
                let heard = ServerMessage::read(&text).ok()?;
                return Some((String::from_utf8(text).ok()?, heard));
            }
            let piece = self.streaming.chunk().await.ok()??;
            self.events.take(&piece).ok()?;
        }
    }
}
