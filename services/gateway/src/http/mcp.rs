//! `/mcp` and `/mcp/x/SELECTION`: MCP over HTTP, both protocol eras on one endpoint.
//!
//! An adapter: headers and body in; a status with one message, or an event stream, out. What is answered is decided in
//! [`protocol`].

use crate::app::Gateway;
use crate::http::caller::AuthedRequest;
use crate::http::{body, reply};
use crate::protocol::{self, ClientConnection, Frame, Instructions, McpAnswer, McpMessage, McpRequest, stream};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{StatusCode, Version};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use futures_util::{StreamExt, stream as streams};
use mcp::{Era, ProtocolHeaders};
use tokio::sync::mpsc::Receiver;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// `POST /mcp` and `POST /mcp/x/SELECTION`.
pub async fn post(
    authed: AuthedRequest,
    request: HttpRequest,
    payload: Payload,
    selection: Option<Path<String>>,
    gateway: Data<Gateway>,
) -> HttpResponse {
    if !body::is_json(request.headers()) {
        return empty(StatusCode::UNSUPPORTED_MEDIA_TYPE, &authed);
    }
    let accepts = body::accepts(request.headers());
    if !accepts.json && !accepts.stream {
        return empty(StatusCode::NOT_ACCEPTABLE, &authed);
    }
    let body = match body::read(&request, payload, gateway.settings.listen.body_bytes).await {
        Ok(body) => body,
        Err(status) => return empty(status, &authed),
    };
    let (headers, session) = (Some(headers(&request)), session(&request));
    let selection = selection.as_ref().map(|path| path.as_str());
    let connection = telemetry::collects_spans().then(|| connection(&gateway, &request));
    let (exchange, instructions) = (authed.exchange(&gateway), Instructions::Toolsets);
    let takes_frames = accepts.stream;
    let message = McpRequest { exchange, headers, session, selection, takes_frames, connection, instructions };
    respond(&gateway, &authed, protocol::answer(message, &body).await, None)
}

/// `DELETE /mcp`: the session ends, for every replica.
pub async fn delete(authed: AuthedRequest, request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    if mcp::era::of_stream(&headers(&request)).is_none() {
        return method_not_allowed(&authed);
    }
    let Some(session) = session(&request) else { return empty(StatusCode::BAD_REQUEST, &authed) };
    let exchange = authed.exchange(&gateway);
    let closed = async {
        let _place = exchange.admit()?;
        exchange.close_session(session).await
    };
    match closed.await {
        Ok(()) => empty(StatusCode::NO_CONTENT, &authed),
        Err(failure) => respond(&gateway, &authed, exchange.refuse(Era::Modern, None, failure), None),
    }
}

/// `GET /mcp`: the stream of a legacy session.
pub async fn get(authed: AuthedRequest, request: HttpRequest, gateway: Data<Gateway>) -> HttpResponse {
    let (Some(_), Some(session)) = (mcp::era::of_stream(&headers(&request)), session(&request)) else {
        return method_not_allowed(&authed);
    };
    if !body::accepts(request.headers()).stream {
        return empty(StatusCode::NOT_ACCEPTABLE, &authed);
    }
    let answer = stream::follow_session(&authed.exchange(&gateway), session).await;
    respond(&gateway, &authed, answer, Some(mcp::sse::RETRY))
}

/// Any other method on the endpoint.
pub async fn other_method(authed: AuthedRequest) -> HttpResponse {
    method_not_allowed(&authed)
}

/// How the client is connected, for its span.
fn connection(gateway: &Gateway, request: &HttpRequest) -> ClientConnection {
    let http_version = match request.version() {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    };
    ClientConnection { address: gateway.addresses.client_of(request), http_version }
}

fn headers(request: &HttpRequest) -> ProtocolHeaders<'_> {
    ProtocolHeaders::read(request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())))
}

fn session(request: &HttpRequest) -> Option<String> {
    let value = request.headers().get(SESSION)?;
    Some(value.to_str().unwrap_or_default().to_owned())
}

fn empty(status: StatusCode, authed: &AuthedRequest) -> HttpResponse {
    reply::start(status, &authed.trace_id).finish()
}

fn method_not_allowed(authed: &AuthedRequest) -> HttpResponse {
    reply::start(StatusCode::METHOD_NOT_ALLOWED, &authed.trace_id).insert_header(("Allow", "POST")).finish()
}

/// An answer of the protocol as an HTTP response; a stream begins with `first`.
fn respond(gateway: &Gateway, authed: &AuthedRequest, answer: McpAnswer, first: Option<Bytes>) -> HttpResponse {
    match answer {
        McpAnswer::Message(McpMessage { reply, failure, session, .. }) => {
            let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::OK);
            let mut response = reply::start(status, &authed.trace_id).content_type("application/json").body(reply.body);
            if let Some(value) = session.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
                response.headers_mut().insert(SESSION, value);
            }
            if let Some(failure) = failure {
                reply::dress(gateway, &mut response, &failure);
            }
            response
        }
        McpAnswer::Streaming(frames) => event_stream(authed, frames, first),
        McpAnswer::Accepted => empty(StatusCode::ACCEPTED, authed),
        McpAnswer::Cancelled => HttpResponse::Accepted().finish(),
        McpAnswer::NeedsStream => empty(StatusCode::NOT_ACCEPTABLE, authed),
    }
}

/// Frames as server-sent events, until the last holder of the sink lets it go.
fn event_stream(authed: &AuthedRequest, frames: Receiver<Frame>, first: Option<Bytes>) -> HttpResponse {
    let events = streams::unfold(frames, |mut frames| async {
        let event = match frames.recv().await? {
            Frame::Message(message) => mcp::sse::message(&message),
            Frame::KeepAlive => mcp::sse::KEEP_ALIVE,
        };
        Some((event, frames))
    });
    let body = streams::iter(first).chain(events).map(Ok::<_, std::convert::Infallible>);
    reply::start(StatusCode::OK, &authed.trace_id)
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body)
}
