//! An MCP server at the HTTP border, in either era or both: it counts and records what arrives, and misbehaves on request.
//!
//! A well-behaved answer comes from `script`, a harmful one from [`harm`]; [`tools`] holds what it offers, bombs included.
//! Requests are read and answers written by hand in `wire`, because a library would not send what is wrong here.
//! A harm is planted on a JSON-RPC method, or on one tool, and lasts until it is cured. What arrived is kept whole, so a
//! test asks the server what it saw instead of asking the client what it sent.
//!
//! [`sse_server`] is the same for the older transport, and [`token_server`] gives the tokens that a server may want.
//!
//! Not here: real servers (see `deploy/testbed upstreams`).

pub mod harm;
mod script;
pub mod sse_server;
pub mod token_server;
pub mod tools;
mod wire;

pub use harm::Harm;
pub use sse_server::{SseHarm, SseServer};
pub use token_server::{TokenHarm, TokenServer};
pub use wire::Seen;

use crate::patience::until;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio::task::JoinSet;
use wire::{Pen, Wire};

/// Which revisions of the protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize`, a session in a header, a stream by `GET`.
    Legacy,
    /// Each request carries its version; no session.
    Modern,
    /// Legacy, but `server/discover` is answered with the revisions of that era; one server in the wild does so.
    LegacyDiscovered,
    /// Both, told apart by each request.
    Both,
}

impl Era {
    fn is_legacy(self) -> bool {
        match self {
            Era::Legacy | Era::LegacyDiscovered | Era::Both => true,
            Era::Modern => false,
        }
    }

    fn is_modern(self) -> bool {
        match self {
            Era::Modern | Era::Both => true,
            Era::Legacy | Era::LegacyDiscovered => false,
        }
    }
}

/// A server that runs until it is dropped.
pub struct McpServer {
    address: SocketAddr,
    stage: Arc<Stage>,
    /// Ends with the server, and every connection with it.
    _serving: JoinSet<()>,
}

/// What every connection shares.
struct Stage {
    era: Era,
    state: Mutex<State>,
    /// Counts the releases; whoever hangs waits for the next one.
    releases: watch::Sender<u64>,
    news: broadcast::Sender<()>,
    /// Counts the cuts; a connection lives through none.
    cuts: watch::Sender<u64>,
    sent: AtomicU64,
    connections: AtomicUsize,
    hanging: AtomicUsize,
    streams: AtomicUsize,
}

#[derive(Default)]
struct State {
    tools: Vec<Value>,
    page: Option<usize>,
    results: BTreeMap<String, Value>,
    harms: BTreeMap<String, Harm>,
    seen: Vec<Seen>,
    sessions: BTreeSet<String>,
    opened: u64,
    required: Option<(String, String)>,
    in_streams: bool,
}

impl McpServer {
    /// A server with the stock tools (see [`tools::stock`]).
    pub async fn start(era: Era) -> McpServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port should be free");
        let address = listener.local_addr().expect("a bound port is known");
        let stage = Arc::new(Stage {
            era,
            state: Mutex::new(State { tools: tools::stock(), ..State::default() }),
            releases: watch::Sender::new(0),
            news: broadcast::Sender::new(16),
            cuts: watch::Sender::new(0),
            sent: AtomicU64::new(0),
            connections: AtomicUsize::new(0),
            hanging: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
        });
        let mut serving = JoinSet::new();
        serving.spawn(accept(listener, Arc::clone(&stage)));
        McpServer { address, stage, _serving: serving }
    }

    /// Where it is reached: `http://127.0.0.1:PORT/mcp`.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Offers these tools from the next list on. Nobody is told; see [`McpServer::announce`].
    pub fn offer(&self, tools: Vec<Value>) {
        self.stage.state().tools = tools;
    }

    /// Puts at most that many tools on a page of the list.
    pub fn page(&self, tools: usize) {
        self.stage.state().page = Some(tools);
    }

    /// Answers every call of a tool with this result.
    pub fn result_of(&self, tool: &str, result: Value) {
        self.stage.state().results.insert(tool.to_owned(), result);
    }

    /// Answers in event streams instead of plain JSON.
    pub fn answer_in_streams(&self) {
        self.stage.state().in_streams = true;
    }

    /// Wants this header on every request, and says 401 without it.
    pub fn require(&self, header: &str, value: &str) {
        self.stage.state().required = Some((header.to_lowercase(), value.to_owned()));
    }

    /// Harms every answer to `on`: a method (`tools/list`), a call of one tool (`tools/call echo`), or `GET`.
    pub fn plant(&self, on: &str, harm: Harm) {
        self.stage.state().harms.insert(on.to_owned(), harm);
    }

    /// Behaves again from the next request on. What hangs goes on hanging; see [`McpServer::release`].
    pub fn cure(&self) {
        self.stage.state().harms.clear();
    }

    /// Lets every request that hangs now end without an answer.
    pub fn release(&self) {
        self.stage.releases.send_modify(|releases| *releases += 1);
    }

    /// Ends every connection there is, whatever it is used for.
    pub fn hang_up(&self) {
        self.stage.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Forgets every session of the legacy era, as a restart does.
    pub fn forget_sessions(&self) {
        self.stage.state().sessions.clear();
    }

    /// Tells every open stream that the list has changed, and gives how many there were.
    pub fn announce(&self) -> usize {
        self.stage.news.send(()).unwrap_or(0)
    }

    /// Everything that arrived, oldest first.
    pub fn requests(&self) -> Vec<Seen> {
        self.stage.state().seen.clone()
    }

    /// Forgets what arrived so far.
    pub fn forget_requests(&self) {
        self.stage.state().seen.clear();
    }

    /// How many requests of a JSON-RPC method arrived.
    pub fn count(&self, method: &str) -> usize {
        self.stage.state().seen.iter().filter(|seen| seen.rpc() == method).count()
    }

    /// The arguments of every call of a tool, oldest first.
    pub fn calls(&self, tool: &str) -> Vec<Value> {
        let state = self.stage.state();
        let calls = state.seen.iter().map(Seen::message).filter(|message| message["method"] == "tools/call");
        calls.filter(|call| call["params"]["name"] == tool).map(|call| call["params"]["arguments"].clone()).collect()
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> usize {
        self.stage.connections.load(Ordering::SeqCst)
    }

    /// How many requests hang now.
    pub fn hanging(&self) -> usize {
        self.stage.hanging.load(Ordering::SeqCst)
    }

    /// Waits until that many requests hang.
    pub async fn until_hanging(&self, requests: usize) {
        until("requests to hang", async || (self.hanging() >= requests).then_some(())).await;
    }

    /// How many streams of notices are open now.
    pub fn streams(&self) -> usize {
        self.stage.streams.load(Ordering::SeqCst)
    }

    /// How many bytes of answers were taken off its hands so far.
    pub fn sent(&self) -> u64 {
        self.stage.sent.load(Ordering::SeqCst)
    }
}

impl Stage {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The harm planted on a request: on the tool first, then on its method, then on the way it came.
    fn harm(&self, seen: &Seen) -> Option<Harm> {
        let message = seen.message();
        let method = message["method"].as_str().unwrap_or(&seen.method);
        let tool = format!("{method} {}", message["params"]["name"].as_str().unwrap_or_default());
        let state = self.state();
        [tool.as_str(), method].into_iter().find_map(|on| state.harms.get(on)).cloned()
    }

    /// Whether a request shows the credential it has to.
    fn admits(&self, seen: &Seen) -> bool {
        let state = self.state();
        state.required.as_ref().is_none_or(|(name, value)| seen.header(name) == Some(value.as_str()))
    }
}

/// Counts somebody for as long as this value lives.
struct Counted<'a>(&'a AtomicUsize);

impl Counted<'_> {
    fn among(count: &AtomicUsize) -> Counted<'_> {
        count.fetch_add(1, Ordering::SeqCst);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn accept(listener: TcpListener, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        // What has ended is taken out, or a long test would keep every connection it ever made.
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { return };
        stage.connections.fetch_add(1, Ordering::SeqCst);
        let (stage, mut cuts) = (Arc::clone(&stage), stage.cuts.subscribe());
        connections.spawn(async move {
            tokio::select! {
                () = converse(stream, &stage) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

/// One connection: request by request, until an answer ends it or the other side leaves.
async fn converse(stream: TcpStream, stage: &Stage) {
    // Answers are small and come one by one: waiting to fill a packet would only make them late.
    stream.set_nodelay(true).ok();
    let (reader, writer) = stream.into_split();
    let (mut wire, mut pen) = (Wire::new(reader), Pen::new(writer, &stage.sent));
    while let Some(seen) = wire.request().await {
        stage.state().seen.push(seen.clone());
        let done = match stage.harm(&seen) {
            Some(harm) => harm::carry_out(&harm, &seen, stage, &mut wire, &mut pen).await,
            None => script::answer(&seen, stage, &mut wire, &mut pen).await,
        };
        if done.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
