//! A small MCP server of either era, for tests of the client side.
//!
//! How to use it elsewhere: it needs only hyper, hyper-util, http-body-util, futures-util, serde_json and tokio, and
//! nothing of this crate. [`Double::start`] takes the era and a closure that sees every request first: `None` lets the
//! double answer as a well-behaved server would, a [`Reply`] is sent instead, whatever it is. [`Double::asked`] is what
//! arrived, in order. [`Double::say`] puts an event on every open stream of notices, [`Double::forget_sessions`] makes
//! all session ids unknown. It listens on loopback and ends with its value.

use futures_util::{Stream, StreamExt as _, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::JoinSet;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaks {
    Legacy,
    Modern,
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) verb: Method,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) body: Value,
}

/// What is sent back.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: UnsyncBoxBody<Bytes, io::Error>,
    /// The connection is closed without a word instead.
    broken: bool,
}

pub(crate) struct Double {
    pub(crate) port: u16,
    inner: Arc<Inner>,
    _serving: JoinSet<()>,
}

struct Inner {
    speaks: Speaks,
    first: Box<First>,
    asked: Mutex<Vec<Asked>>,
    said: broadcast::Sender<String>,
    /// Which sessions are known: those opened since the last time they were forgotten.
    generation: AtomicUsize,
}

type First = dyn Fn(&Asked) -> Option<Reply> + Send + Sync;

impl Asked {
    pub(crate) fn method(&self) -> &str {
        self.body.get("method").and_then(Value::as_str).unwrap_or(self.verb.as_str())
    }

    pub(crate) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Reply {
    pub(crate) fn json(message: &Value) -> Reply {
        Reply::whole(200, "application/json", message.to_string())
    }

    /// The answer to a request, with this result.
    pub(crate) fn result(asked: &Asked, result: &Value) -> Reply {
        Reply::json(&json!({ "jsonrpc": "2.0", "id": asked.id(), "result": result }))
    }

    pub(crate) fn whole(status: u16, kind: &str, body: impl Into<Bytes>) -> Reply {
        let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
        Reply { status, headers: vec![("content-type", kind.to_owned())], body, broken: false }
    }

    /// Events, and then the end of the stream.
    pub(crate) fn events(messages: &[Value]) -> Reply {
        let text: String = messages.iter().map(|message| format!("event: message\ndata: {message}\n\n")).collect();
        Reply::whole(200, "text/event-stream", text)
    }

    /// A body that arrives piece by piece, and perhaps never ends.
    pub(crate) fn pieces(kind: &str, pieces: impl Stream<Item = Vec<u8>> + Send + 'static) -> Reply {
        let frames = pieces.map(|piece| Ok(Frame::data(Bytes::from(piece))));
        let body = StreamBody::new(frames).boxed_unsync();
        Reply { status: 200, headers: vec![("content-type", kind.to_owned())], body, broken: false }
    }

    /// A head, and nothing after it.
    pub(crate) fn hanging(kind: &str) -> Reply {
        Reply::pieces(kind, stream::pending())
    }

    pub(crate) fn broken() -> Reply {
        Reply { broken: true, ..Reply::whole(200, "text/plain", "") }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }
}

impl Double {
    pub(crate) async fn start(
        speaks: Speaks,
        first: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static,
    ) -> Double {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("a bound port").port();
        let (asked, generation) = (Mutex::default(), AtomicUsize::new(1));
        let said = broadcast::channel(64).0;
        let inner = Arc::new(Inner { speaks, first: Box::new(first), asked, said, generation });
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&inner)));
        Double { port, inner, _serving: serving }
    }

    /// One that behaves.
    pub(crate) async fn plain(speaks: Speaks) -> Double {
        Double::start(speaks, |_| None).await
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.inner.asked.lock().expect("no panic elsewhere").clone()
    }

    /// The methods of what arrived, in order.
    pub(crate) fn methods(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.method().to_owned()).collect()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|asked| *asked == method).count()
    }

    /// Streams of notices that are open now.
    pub(crate) fn listeners(&self) -> usize {
        self.inner.said.receiver_count()
    }

    pub(crate) fn say(&self, message: &Value) {
        self.inner.said.send(message.to_string()).ok();
    }

    pub(crate) fn forget_sessions(&self) {
        self.inner.generation.fetch_add(1, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let inner = Arc::clone(&inner);
        connections.spawn(async move {
            let service = hyper::service::service_fn(|request| respond(Arc::clone(&inner), request));
            let serving = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A client that leaves early ends its connection; that is its right.
            serving.await.ok();
        });
    }
}

async fn respond(
    inner: Arc<Inner>,
    request: Request<Incoming>,
) -> Result<Response<UnsyncBoxBody<Bytes, io::Error>>, io::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let asked = Asked { verb: head.method, headers: head.headers, body };
    inner.asked.lock().expect("no panic elsewhere").push(asked.clone());
    let reply = (inner.first)(&asked).unwrap_or_else(|| inner.behaved(&asked));
    if reply.broken {
        return Err(io::Error::other("closed on purpose"));
    }
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(reply.body).map_err(io::Error::other)
}

impl Inner {
    fn behaved(&self, asked: &Asked) -> Reply {
        match self.speaks {
            Speaks::Legacy => self.legacy(asked),
            Speaks::Modern => self.modern(asked),
        }
    }

    fn legacy(&self, asked: &Asked) -> Reply {
        let session = format!("ses-{}", self.generation.load(Ordering::SeqCst));
        let known = asked.header("mcp-session-id") == Some(&session);
        match asked.method() {
            "initialize" => Reply::result(
                asked,
                &json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "double", "version": "1" },
                }),
            )
            .with("mcp-session-id", session),
            _ if asked.header("mcp-session-id").is_none() => Reply::whole(400, "text/plain", "no session"),
            _ if !known => Reply::whole(404, "text/plain", "unknown session"),
            "GET" => self.notices(None),
            "DELETE" => Reply::whole(204, "text/plain", ""),
            method if method.starts_with("notifications/") => Reply::whole(202, "text/plain", ""),
            _ => self.served(asked, 200),
        }
    }

    fn modern(&self, asked: &Asked) -> Reply {
        let of_body = &asked.body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
        if asked.header("mcp-protocol-version") != Some("2026-07-28") || of_body != "2026-07-28" {
            return error(asked, 400, -32020, "version");
        }
        if asked.header("mcp-method") != Some(asked.method()) {
            return error(asked, 400, -32020, "method");
        }
        match asked.method() {
            "server/discover" => Reply::result(
                asked,
                &json!({
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": { "tools": { "listChanged": true } },
                    "ttlMs": 1000,
                    "cacheScope": "private",
                }),
            ),
            "subscriptions/listen" => self.notices(Some(asked.id())),
            "initialize" => error(asked, 404, -32601, "Method not found"),
            _ => self.served(asked, 404),
        }
    }

    fn served(&self, asked: &Asked, unknown: u16) -> Reply {
        match asked.method() {
            "tools/list" => {
                Reply::result(asked, &json!({ "resultType": "complete", "tools": [tool("echo"), tool("put")] }))
            }
            "tools/call" => {
                let said = asked.body["params"]["arguments"].to_string();
                let content = json!([{ "type": "text", "text": said, "x-unknown": 1 }]);
                Reply::result(
                    asked,
                    &json!({ "resultType": "complete", "content": content, "structuredContent": { "ok": true } }),
                )
            }
            _ => error(asked, unknown, -32601, "Method not found"),
        }
    }

    /// A stream that stays open and passes on what is said.
    fn notices(&self, subscription: Option<&Value>) -> Reply {
        let first = subscription.map(|id| {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
            json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params })
        });
        let first = first.map_or(": open\n\n".to_owned(), |message| format!("data: {message}\n\n"));
        let id = subscription.cloned();
        let said = stream::unfold(self.said.subscribe(), move |mut hearing| {
            let id = id.clone();
            async move {
                let mut message: Value = serde_json::from_str(&hearing.recv().await.ok()?).ok()?;
                if let Some(id) = id {
                    message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] = id;
                }
                Some((format!("data: {message}\n\n").into_bytes(), hearing))
            }
        });
        Reply::pieces("text/event-stream", stream::iter([first.into_bytes()]).chain(said))
    }
}

/// A tool with a field that no client library knows.
pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "says it again", "inputSchema": { "type": "object" }, "x-own": { "kept": true } })
}

fn error(asked: &Asked, status: u16, code: i64, message: &str) -> Reply {
    let body = json!({ "jsonrpc": "2.0", "id": asked.id(), "error": { "code": code, "message": message } });
    Reply::whole(status, "application/json", body.to_string())
}
