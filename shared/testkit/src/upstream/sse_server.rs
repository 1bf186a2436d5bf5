//! An MCP server of the older transport, HTTP with one stream of events: it records what arrives, and misbehaves on request.
//!
//! `GET /sse` opens a stream whose first event names where messages go; a message posted there is taken with 202, and its
//! answer comes over the stream.

use super::tools;
use super::wire::{Pen, Seen, Wire};
use crate::patience::until;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const EVENTS: (&str, &str) = ("Content-Type", "text/event-stream");
/// How much is written at once of what is long or endless.
const PIECE: usize = 64 * 1024;

/// One way to misbehave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SseHarm {
    /// The stream names this endpoint.
    Endpoint(String),
    /// The stream opens and never names an endpoint.
    NoEndpoint,
    /// The stream begins with a message.
    MessageFirst,
    /// Comments without end come instead of an endpoint.
    EndlessComments,
    /// The stream is no stream of events.
    NotEvents,
    /// The stream is opened elsewhere.
    Redirect(String),
    /// A call is taken and never answered.
    Silence,
    /// A call is answered by one event that never ends.
    EndlessEvent,
    /// A call is answered by notices without end.
    EndlessNotices,
    /// A call is answered by answers without end, none of them to it.
    EndlessAnswers,
    /// A call is answered by one event of this many bytes.
    Huge(usize),
    /// A call is answered with a list of this many values.
    Nodes(usize),
    /// A call is taken, and then the stream is cut.
    Cut,
    /// A call is answered twice, the second time with other words.
    Twice,
    /// A call is answered with this text.
    Text(String),
    /// A call is answered only with this status.
    Status(u16),
    /// The endpoint is named anew before a call is answered.
    AnotherEndpoint(String),
    /// Before a call is answered the server asks this often whether somebody is there.
    Asks(usize),
}

/// A server that runs until it is dropped.
pub struct SseServer {
    address: SocketAddr,
    stage: Arc<SseStage>,
    _serving: JoinSet<()>,
}

struct SseStage {
    state: Mutex<SseState>,
    sent: AtomicU64,
}

#[derive(Default)]
struct SseState {
    harm: Option<SseHarm>,
    seen: Vec<Seen>,
    required: Option<String>,
    opened: u64,
    streams: BTreeMap<u64, mpsc::Sender<StreamPart>>,
}

/// What a stream is to do next.
enum StreamPart {
    Bytes(Vec<u8>),
    /// The same bytes again and again, until the client leaves.
    Endless(Vec<u8>),
    Cut,
}

impl SseServer {
    /// A server with the stock tools (see [`tools::stock`]).
    pub async fn start() -> SseServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port should be free");
        let address = listener.local_addr().expect("a bound port is known");
        let stage = Arc::new(SseStage { state: Mutex::default(), sent: AtomicU64::new(0) });
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&stage)));
        SseServer { address, stage, _serving: serving }
    }

    /// Where it is reached: `http://127.0.0.1:PORT/sse`.
    pub fn url(&self) -> String {
        format!("http://{}/sse", self.address)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Misbehaves from now on.
    pub fn plant(&self, harm: SseHarm) {
        self.stage.state().harm = Some(harm);
    }

    /// Behaves again.
    pub fn cure(&self) {
        self.stage.state().harm = None;
    }

    /// Wants this value of `Authorization` on every request, and says 401 without it.
    pub fn require(&self, authorization: &str) {
        self.stage.state().required = Some(authorization.to_owned());
    }

    /// Ends every stream.
    pub fn cut_streams(&self) {
        for stream in std::mem::take(&mut self.stage.state().streams).into_values() {
            stream.try_send(StreamPart::Cut).ok();
        }
    }

    /// Tells every open stream that the list has changed, and gives how many there were.
    pub fn announce(&self) -> usize {
        let notice = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        let streams = self.stage.state().streams.values().cloned().collect::<Vec<_>>();
        streams.iter().filter(|stream| stream.try_send(event(&notice)).is_ok()).count()
    }

    /// Everything that arrived, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.stage.state().seen.clone()
    }

    /// How many messages of a JSON-RPC method arrived.
    pub fn count(&self, method: &str) -> usize {
        self.stage.state().seen.iter().filter(|seen| seen.rpc() == method).count()
    }

    /// How many streams were opened so far.
    pub fn opened(&self) -> u64 {
        self.stage.state().opened
    }

    /// Waits until that many messages of a method have arrived.
    pub async fn until_asked(&self, method: &str, times: usize) {
        until("messages to arrive", async || (self.count(method) >= times).then_some(())).await;
    }

    /// How many bytes were taken off its hands so far.
    pub fn sent(&self) -> u64 {
        self.stage.sent.load(Ordering::SeqCst)
    }
}

impl SseStage {
    fn state(&self) -> MutexGuard<'_, SseState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admits(&self, seen: &Seen) -> bool {
        self.state().required.as_ref().is_none_or(|wanted| seen.header("authorization") == Some(wanted))
    }
}

async fn accept(listener: TcpListener, stage: Arc<SseStage>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let stage = Arc::clone(&stage);
        connections.spawn(async move { converse(stream, &stage).await });
    }
}

async fn converse(stream: TcpStream, stage: &SseStage) {
    stream.set_nodelay(true).ok();
    let (reader, writer) = stream.into_split();
    let (mut wire, mut pen) = (Wire::new(reader), Pen::new(writer, &stage.sent));
    while let Some(seen) = wire.request().await {
        stage.state().seen.push(seen.clone());
        let done = match seen.method.as_str() {
            _ if !stage.admits(&seen) => pen.whole(401, &[], b"").await,
            "GET" => stream_to(stage, &mut wire, &mut pen).await,
            _ => posted(&seen, stage, &mut pen).await,
        };
        if done.is_err() {
            return;
        }
    }
}

/// The stream of one client, until either side ends it.
async fn stream_to(stage: &SseStage, wire: &mut Wire, pen: &mut Pen<'_>) -> io::Result<()> {
    let (sender, mut parts) = mpsc::channel(256);
    let (harm, number) = {
        let mut state = stage.state();
        state.opened += 1;
        let number = state.opened;
        state.streams.insert(number, sender);
        (state.harm.clone(), number)
    };
    match &harm {
        Some(SseHarm::NotEvents) => return pen.whole(200, &[("Content-Type", "application/json")], b"{}").await,
        Some(SseHarm::Redirect(to)) => return pen.whole(307, &[("Location", to)], b"").await,
        _ => pen.open(200, &[EVENTS]).await?,
    }
    let first = match &harm {
        Some(SseHarm::Endpoint(named)) => Some(format!("event: endpoint\ndata: {named}\n\n")),
        Some(SseHarm::NoEndpoint) => Some(": open\n\n".to_owned()),
        Some(SseHarm::MessageFirst) => Some("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n".to_owned()),
        Some(SseHarm::EndlessComments) => None,
        _ => Some(format!("event: endpoint\ndata: /messages?session={number}\n\n")),
    };
    let Some(first) = first else { return endless(pen, &[b":".repeat(PIECE), b"\n".to_vec()].concat()).await };
    pen.piece(first.as_bytes()).await?;
    loop {
        let part = tokio::select! {
            () = wire.left() => None,
            part = parts.recv() => part,
        };
        match part {
            Some(StreamPart::Bytes(bytes)) => pen.piece(&bytes).await?,
            Some(StreamPart::Endless(bytes)) => endless(pen, &bytes).await?,
            Some(StreamPart::Cut) | None => {
                stage.state().streams.remove(&number);
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
    }
}

async fn endless(pen: &mut Pen<'_>, bytes: &[u8]) -> io::Result<()> {
    loop {
        pen.piece(bytes).await?;
    }
}

/// Takes a message and answers it over the stream of its session.
async fn posted(seen: &Seen, stage: &SseStage, pen: &mut Pen<'_>) -> io::Result<()> {
    let number = seen.path.rsplit_once("session=").and_then(|(_, number)| number.parse().ok()).unwrap_or(0);
    let (stream, harm) = {
        let state = stage.state();
        (state.streams.get(&number).cloned(), state.harm.clone())
    };
    let Some(stream) = stream else { return pen.whole(404, &[], b"Could not find session").await };
    let message = seen.message();
    let harm = harm.filter(|_| message["method"] == "tools/call");
    if let Some(SseHarm::Status(status)) = harm {
        return pen.whole(status, &[], b"").await;
    }
    pen.whole(202, &[("Content-Type", "text/plain")], b"Accepted").await?;
    for part in parts(seen, &message, harm.as_ref()) {
        stream.send(part).await.ok();
    }
    Ok(())
}

fn parts(seen: &Seen, message: &Value, harm: Option<&SseHarm>) -> Vec<StreamPart> {
    let Some(answer) = answer(seen, message) else { return Vec::new() };
    let said = |text: &str| {
        let content = json!([{ "type": "text", "text": text }]);
        json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "content": content } })
    };
    let bytes = |text: String| StreamPart::Bytes(text.into_bytes());
    match harm {
        None => vec![event(&answer)],
        Some(SseHarm::Silence) => Vec::new(),
        Some(SseHarm::Cut) => vec![StreamPart::Cut],
        Some(SseHarm::EndlessEvent) => vec![bytes("data: ".to_owned()), StreamPart::Endless(vec![b'x'; PIECE])],
        Some(SseHarm::EndlessNotices) => {
            let params = json!({ "level": "info", "data": "x".repeat(PIECE) });
            let notice = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": params });
            vec![StreamPart::Endless(format!("data: {notice}\n\n").into_bytes())]
        }
        Some(SseHarm::EndlessAnswers) => {
            let other = json!({ "jsonrpc": "2.0", "id": 987_654, "result": { "text": "x".repeat(PIECE) } });
            vec![StreamPart::Endless(format!("data: {other}\n\n").into_bytes())]
        }
        Some(SseHarm::Huge(size)) => vec![event(&said(&"x".repeat(*size)))],
        Some(SseHarm::Nodes(count)) => {
            let list = json!({ "content": [], "structuredContent": { "inside": vec![0; *count] } });
            vec![event(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": list }))]
        }
        Some(SseHarm::Twice) => vec![event(&answer), event(&said("the second answer"))],
        Some(SseHarm::Text(text)) => vec![bytes(format!("data: {text}\n\n"))],
        Some(SseHarm::AnotherEndpoint(named)) => {
            vec![bytes(format!("event: endpoint\ndata: {named}\n\n")), event(&answer)]
        }
        Some(SseHarm::Asks(times)) => {
            let ask = |n: usize| json!({ "jsonrpc": "2.0", "id": format!("s{n}"), "method": "ping" });
            (0..*times).map(|n| event(&ask(n))).chain([event(&answer)]).collect()
        }
        Some(
            SseHarm::Endpoint(_)
            | SseHarm::NoEndpoint
            | SseHarm::MessageFirst
            | SseHarm::EndlessComments
            | SseHarm::NotEvents
            | SseHarm::Redirect(_)
            | SseHarm::Status(_),
        ) => vec![event(&answer)],
    }
}

fn event(message: &Value) -> StreamPart {
    StreamPart::Bytes(format!("event: message\ndata: {message}\n\n").into_bytes())
}

/// What a well-behaved server of the first revision says; nothing to what wants no answer.
fn answer(seen: &Seen, message: &Value) -> Option<Value> {
    let id = message.get("id").filter(|_| message.get("method").is_some())?;
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2024-11-05", "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "double", "version": "1" }
        }),
        "ping" => json!({}),
        "tools/list" => json!({ "tools": tools::stock() }),
        "tools/call" => {
            let headers: BTreeMap<&str, &str> = seen.headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let told = match message["params"]["name"].as_str() {
                Some("whoami") => json!({ "headers": headers }),
                _ => json!({ "arguments": message["params"]["arguments"] }),
            };
            json!({ "content": [{ "type": "text", "text": told.to_string() }], "structuredContent": told })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
