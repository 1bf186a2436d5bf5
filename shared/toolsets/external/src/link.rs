//! The lines to external servers: everything of this crate that touches the network or a process.
//!
//! One long-lived connection per tenant, server and [`LinkTarget`]; equal targets share it, different ones never do. Both
//! eras of the protocol are spoken, whichever the server understands. What a server says is measured as text, before
//! any of it becomes a value, and nothing that may have changed the world is sent a second time.
//!
//! Not here: when to list, what is pinned, who may call, breakers and queues (see the rest of the crate).

mod connection;
mod exchange;
mod fault;
mod frame;
#[cfg(feature = "fuzz")]
pub mod fuzz;
mod head;
mod http;
mod inbox;
mod measure;
mod pool;
mod process;
mod sender;
mod sse;
mod sse_transport;
mod target;
mod token;
mod trouble;
mod wire;

pub use target::{ClientCredentials, LinkTarget, TargetReach};

use catalog::Progress;
use connection::ServerConnection;
use domain::{Code, Failure, Tenant};
use egress::AddressGuard;
use exchange::LinkExchange;
use fault::{CallStakes, LinkFault};
use policy::{Permit, PermitMode};
use pool::{Pool, PoolSlot};
use redact::SecretText;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

/// Most pages of one list.
const PAGES: usize = 20;
/// Most tools of one server.
const TOOLS: usize = 200;
/// A request whose headers and body differ.
const HEADER_MISMATCH: i64 = -32020;
/// Notices of changes that a slow listener may be behind.
const CHANGES: usize = 256;

/// How connections are kept. The defaults are what production uses.
#[derive(Clone)]
pub(crate) struct LinksConfig {
    /// How names are resolved; `None`: by the system. What comes back is vetted by the target's guard either way.
    pub(crate) lookup: Option<egress::Lookup>,
    /// How long a connection nobody uses is kept.
    pub(crate) idle: Duration,
    /// Most connections to one server of one tenant: overrides of sessions make several.
    pub(crate) per_server: usize,
    /// How long dialling may take, within the deadline of the call.
    pub(crate) connect_within: Duration,
}

/// Whose server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LinkKey {
    pub(crate) tenant: Tenant,
    pub(crate) server: String,
}

/// What one exchange may cost.
#[derive(Debug, Clone)]
pub(crate) struct LinkLimits {
    /// When it must be over.
    pub(crate) deadline: Instant,
    /// Most bytes of one answer, of one event and of all events of one answer.
    pub(crate) bytes: usize,
    /// Most values in one answer.
    pub(crate) nodes: usize,
    /// How deep an answer may nest.
    pub(crate) depth: usize,
}

/// Which protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerEra {
    /// `2024-11-05` to `2025-11-25`, opened by `initialize`.
    Legacy,
    /// `2026-07-28`, where each request stands alone.
    Modern,
}

/// The tools of a server, each as it wrote it.
#[derive(Debug)]
pub(crate) struct ServerToolList {
    pub(crate) tools: Vec<Value>,
    pub(crate) era: ServerEra,
}

/// What a tool of a server gave back.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) structured: Option<Value>,
    pub(crate) content: Vec<Value>,
    pub(crate) is_error: bool,
}

/// What to call, with what, and who hears how far it is.
#[derive(Clone, Copy)]
pub(crate) struct ToolCall<'a> {
    /// The server's own name of the tool.
    pub(crate) tool: &'a str,
    /// Its arguments.
    pub(crate) arguments: &'a Map<String, Value>,
    /// Who hears of progress.
    pub(crate) progress: &'a Progress,
}

/// All connections of this process. Cheap to clone; clones share them.
#[derive(Clone)]
pub(crate) struct ServerLinks {
    pool: Arc<Pool>,
    changes: broadcast::Sender<LinkKey>,
}

impl ServerLinks {
    /// No connections yet.
    pub(crate) fn new(config: LinksConfig) -> ServerLinks {
        let changes = broadcast::channel(CHANGES).0;
        ServerLinks { pool: Pool::new(config, changes.clone()), changes }
    }

    /// Every tool of a server, page by page.
    pub(crate) async fn list(
        &self,
        key: &LinkKey,
        target: &LinkTarget,
        limits: &LinkLimits,
    ) -> Result<ServerToolList, Failure> {
        let (span, began) = (span(key, target, "tools/list", None), Instant::now());
        let listing = async {
            let slot = self.pool.slot(key, target);
            let mut attempt = Attempt::First;
            loop {
                let line =
                    self.pool.line(&slot, target, limits).await.map_err(|fault| fault.failure(CallStakes::NONE))?;
                let listed = all_pages(&line, limits).await;
                slot.touch();
                match listed {
                    Ok(tools) => return Ok(ServerToolList { tools, era: line.era() }),
                    // Listing changes nothing, so whatever happened to the old line, it may be tried on a new one.
                    Err(fault) if attempt.again(&slot, &line, &fault, true) => {}
                    Err(fault) => return Err(fault.failure(CallStakes::NONE)),
                }
            }
        };
        let listed = told(listing.instrument(span.clone()).await, &span);
        measured(key, target, ("tools/list", ""), began, listed.as_ref().err());
        listed
    }

    /// Calls one tool. What may have been processed is not sent again: a second time only if it is certain that nothing
    /// left, or if the server refused the first for what the protocol makes it look at before anything else, its session
    /// (404) or its headers (-32020). To either, it says, nothing was done.
    pub(crate) async fn call(
        &self,
        permit: &Permit,
        key: &LinkKey,
        target: &LinkTarget,
        call: ToolCall<'_>,
        limits: &LinkLimits,
    ) -> Result<CallResult, Failure> {
        let tool = permit.call().tool.as_str();
        let (span, began) = (span(key, target, "tools/call", Some(tool)), Instant::now());
        let calling = async {
            match permit.extent() {
                PermitMode::Act if *permit.tenant() == key.tenant => {}
                PermitMode::Act => return Err(Failure::new(Code::PolicyDenied, "the permit is another tenant's")),
                PermitMode::Rehearse => {
                    return Err(Failure::new(Code::PolicyDenied, "a rehearsal sends nothing to a server"));
                }
            }
            let slot = self.pool.slot(key, target);
            let mut attempt = Attempt::First;
            loop {
                let line =
                    self.pool.line(&slot, target, limits).await.map_err(|fault| fault.failure(CallStakes::NONE))?;
                let exchange = LinkExchange::new(limits, call.progress);
                let called = line.call(call.tool, call.arguments, &exchange).await;
                slot.touch();
                let stakes = exchange.stakes(permit.effect());
                match called.and_then(read_result) {
                    Ok(called) => return Ok(called),
                    Err(fault) if attempt.wants_headers(&line, &fault) => {
                        // Which arguments it wants repeated in headers, the list says; the library reads it there.
                        all_pages(&line, limits).await.map_err(|fault| fault.failure(CallStakes::NONE))?;
                    }
                    Err(fault) if attempt.again(&slot, &line, &fault, !stakes.sent) => {}
                    Err(fault) => return Err(fault.failure(stakes)),
                }
            }
        };
        let called = told(calling.instrument(span.clone()).await, &span);
        measured(key, target, ("tools/call", tool), began, called.as_ref().err());
        called
    }

    /// The tokens that were given for a tenant's servers lately, to be taken out of what a server says.
    pub(crate) fn tokens_of(&self, tenant: &Tenant) -> Vec<SecretText> {
        self.pool.tokens_of(tenant)
    }

    /// Who said that its tools changed. A listener that falls behind misses some and should look at all.
    pub(crate) fn changes(&self) -> broadcast::Receiver<LinkKey> {
        self.changes.subscribe()
    }

    /// Ends the connections of a tenant, or of one of its servers.
    pub(crate) fn drop_links(&self, tenant: &Tenant, server: Option<&str>) {
        self.pool.forget(tenant, server);
    }
}

/// One exchange with a server. The tool is named as we name it: what the server calls it is somebody else's text.
fn span(key: &LinkKey, target: &LinkTarget, method: &'static str, tool: Option<&str>) -> Span {
    tracing::info_span!(
        "external server",
        otel.kind = "client",
        mcp.method.name = method,
        gen_ai.tool.name = tool,
        server.address = key.server.as_str(),
        network.transport = transport(target),
        quartermaster.tenant = key.tenant.as_str(),
        error.type = Empty,
    )
}

/// Counts an exchange. The server goes by the name it is configured under: its address may be a tenant's own affair.
fn measured(
    key: &LinkKey,
    target: &LinkTarget,
    (method, tool): (&str, &str),
    began: Instant,
    failed: Option<&Failure>,
) {
    let (transport, error) = (transport(target), failed.map_or("", |failure| failure.code.as_str()));
    let seconds = began.elapsed().as_secs_f64();
    telemetry::metrics::MCP_CLIENT_OPERATION.observe([method, tool, error, "", transport, &key.server], seconds);
}

fn transport(target: &LinkTarget) -> &'static str {
    match &target.reach {
        TargetReach::Http { .. } => "tcp",
        TargetReach::Process { .. } => "pipe",
    }
}

/// Notes how the exchange ended.
fn told<T>(outcome: Result<T, Failure>, span: &Span) -> Result<T, Failure> {
    if let Err(failure) = &outcome {
        span.record("error.type", failure.code.as_str());
    }
    outcome
}

/// How often it was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    First,
    Second,
}

impl Attempt {
    /// Whether to try once more on a new line, the old one being of no use. `harmless`: nothing can happen twice.
    fn again(&mut self, slot: &PoolSlot, line: &Arc<ServerConnection>, fault: &LinkFault, harmless: bool) -> bool {
        let (useless, once_more) = match fault {
            LinkFault::Expired => (true, true),
            LinkFault::Broken => (true, harmless && !line.is_open()),
            LinkFault::Credentials => (true, false),
            LinkFault::Refused
            | LinkFault::NotMcp(_)
            | LinkFault::Busy(_)
            | LinkFault::Failed(_)
            | LinkFault::TooLarge(_)
            | LinkFault::Late
            | LinkFault::NoToken(_)
            | LinkFault::Error { .. } => (false, false),
        };
        if useless {
            slot.discard(line);
        }
        once_more && self.is_first()
    }

    /// Whether a modern server refused a call because its headers do not repeat what they should.
    fn wants_headers(&mut self, line: &ServerConnection, fault: &LinkFault) -> bool {
        let refused = matches!(fault, LinkFault::Error { code: HEADER_MISMATCH, .. });
        refused && line.era() == ServerEra::Modern && self.is_first()
    }

    fn is_first(&mut self) -> bool {
        std::mem::replace(self, Attempt::Second) == Attempt::First
    }
}

/// Follows the cursors of a list.
async fn all_pages(line: &ServerConnection, limits: &LinkLimits) -> Result<Vec<Value>, LinkFault> {
    let (mut tools, mut seen, mut cursor) = (Vec::new(), HashSet::new(), None::<String>);
    for _ in 0..PAGES {
        let page = line.list(cursor, &LinkExchange::new(limits, &Progress::default())).await?;
        tools.extend(page.tools);
        if tools.len() > TOOLS {
            return Err(LinkFault::TooLarge("more tools than it may"));
        }
        let Some(next) = page.next else { return Ok(tools) };
        if !seen.insert(next.clone()) {
            return Err(LinkFault::NotMcp("a list comes back to where it was"));
        }
        cursor = Some(next);
    }
    Err(LinkFault::TooLarge("more pages of tools than it may"))
}

/// The result of a call, its parts as the server wrote them.
fn read_result(mut result: Value) -> Result<CallResult, LinkFault> {
    let Some(parts) = result.as_object_mut() else { return Err(LinkFault::NotMcp("a result is no object")) };
    match parts.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => {}
        // Nothing was offered that would allow it to ask back.
        Some(_) => return Err(LinkFault::NotMcp("a call is answered with a question")),
    }
    let content = match parts.remove("content") {
        Some(Value::Array(blocks)) if blocks.iter().all(Value::is_object) => blocks,
        None if parts.contains_key("structuredContent") => Vec::new(),
        Some(_) | None => return Err(LinkFault::NotMcp("a result has no content")),
    };
    let is_error = parts.get("isError").and_then(Value::as_bool).unwrap_or(false);
    Ok(CallResult { structured: parts.remove("structuredContent"), content, is_error })
}

impl LinksConfig {
    /// A client that reaches what a guard lets it reach.
    fn client(&self, guard: &AddressGuard) -> Result<egress::Guarded, LinkFault> {
        let config = egress::Config { connect_within: self.connect_within, ..egress::Config::default() };
        let built = match &self.lookup {
            Some(lookup) => guard.client_resolving(&config, Arc::clone(lookup)),
            None => guard.client(&config),
        };
        built.map_err(|_| LinkFault::Refused)
    }
}

impl Default for LinksConfig {
    fn default() -> LinksConfig {
        LinksConfig {
            lookup: None,
            idle: Duration::from_secs(300),
            per_server: 4,
            connect_within: Duration::from_secs(5),
        }
    }
}

#[cfg(test)]
mod tests;
