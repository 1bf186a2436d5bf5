//! Who is asked, and for what: the service, and each of the others by the words it understands.
//!
//! The service and FastMCP are asked in the modern era, without sessions of the protocol; kubernetes-mcp-server speaks the
//! legacy era only, in a session. A gated piece of work has a person who approves at once: that is this program.

use super::cluster::{NAMESPACE, RealCluster};
use crate::contender::{Contender, OwnRedis, token};
use crate::http::KeptConnection;
use crate::load::start_of;
use crate::operations;
use crate::process::{Process, free_port};
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

/// One piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    List,
    /// A list for a session that has loaded what the work below needs. Others list everything always.
    ListLoaded,
    NoOp,
    Pods,
    /// A change that a person approves; others just do it.
    Gated,
    /// An agent's turn: list, load, three reads, one change.
    Turn,
}

impl Work {
    pub(super) fn name(self) -> &'static str {
        match self {
            Work::List => "list",
            Work::ListLoaded => "list after loading",
            Work::NoOp => "no-op call",
            Work::Pods => "40 pods",
            Work::Gated => "gated change",
            Work::Turn => "turn of an agent",
        }
    }
}

/// The service on Redis.
pub(super) struct Ours {
    contender: Contender,
    approver: String,
    /// A session that has loaded memory with its writing tools, and k8s where there is a cluster.
    handle: String,
    numbers: Arc<AtomicU64>,
}

/// A server of others, or the API server itself.
pub(super) struct Peer {
    name: &'static str,
    address: SocketAddr,
    tls: Option<TlsConnector>,
    process: Option<Process>,
    kind: PeerKind,
    _folder: Option<TempDir>,
}

enum PeerKind {
    FastMcp,
    /// Each connection has a session of its own: ids of requests are told apart within one.
    Kubernetes {
        open: Vec<u8>,
    },
    Bare {
        list: Vec<u8>,
    },
}

/// One of the two sides.
#[derive(Clone, Copy)]
pub(super) enum Actor<'a> {
    Ours(&'a Ours),
    Peer(&'a Peer),
}

/// One connection that does one piece of work again and again.
pub(super) struct Worker {
    connection: KeptConnection,
    steps: Vec<Step>,
}

enum Step {
    /// A request whose answer has to be a good one.
    Send(Arc<[u8]>),
    /// A change, the approval of it, and what became of it.
    Change { token: String, approver: String, handle: String, numbers: Arc<AtomicU64> },
}

impl Ours {
    pub(super) async fn start(program: &Path, redis: &OwnRedis, cluster: Option<&RealCluster>) -> anyhow::Result<Ours> {
        let clusters = cluster.map_or_else(String::new, |_| {
            format!("clusters: [{{ name: main, kubeconfig: {{ secret: main }}, default_namespace: {NAMESPACE} }}]\n")
        });
        let tenant = format!(
            "tenant: dev\nmode: write\ndefault_toolsets: [memory]\n{clusters}\
             limits: {{ calls_in_flight: 10000, calls_per_minute: 1000000, result_bytes: 262144 }}\n\
             policy: {{ approval: {{ most_waiting: 1000 }} }}\n"
        );
        let secrets: Vec<(&str, String)> = match cluster {
            Some(cluster) => vec![("main", std::fs::read_to_string(&cluster.kubeconfig)?)],
            None => Vec::new(),
        };
        let contender = Contender::start_tenant(program, Some(&redis.url), &tenant, &secrets, &[]).await?;
        let approver = token(&contender.data.join("approver.token"))?;
        let (token, handle) = (&contender.tickets.token, contender.tickets.modern.clone());
        let mut connection = KeptConnection::open(contender.address).await?;
        for toolset in ["memory"].into_iter().chain(cluster.map(|_| "k8s")) {
            good(connection.send(&operations::load_to_write(token, &handle, toolset)).await?)?;
            let session = &contender.tickets.legacy;
            good(connection.send(&operations::legacy_load(token, session, toolset)).await?)?;
        }
        Ok(Ours { contender, approver, handle, numbers: Arc::default() })
    }

    fn steps(&self, work: Work) -> Vec<Step> {
        let (tickets, handle) = (&self.contender.tickets, &self.handle);
        let token = &tickets.token;
        let send = |request: Vec<u8>| Step::Send(request.into());
        let change = || Step::Change {
            token: token.clone(),
            approver: self.approver.clone(),
            handle: handle.clone(),
            numbers: Arc::clone(&self.numbers),
        };
        let list = || send(operations::list_of(token, &tickets.legacy));
        let read = || send(operations::proxied(token, handle, "memory_list", &json!({})));
        match work {
            Work::List => vec![send(operations::list_tools(token))],
            Work::ListLoaded => vec![list()],
            Work::NoOp => vec![send((operations::NO_OP.request)(tickets))],
            Work::Pods => {
                vec![send(operations::proxied(token, handle, "k8s_get", &json!({ "kind": "Pod" })))]
            }
            Work::Gated => vec![change()],
            Work::Turn => {
                let load = send(operations::load_to_write(token, handle, "memory"));
                vec![list(), load, read(), read(), read(), change()]
            }
        }
    }
}

impl Peer {
    /// The bare list of the API server.
    pub(super) fn bare(cluster: &RealCluster) -> Peer {
        Peer {
            name: "bare list of the API server",
            address: cluster.address,
            tls: Some(cluster.tls.clone()),
            process: None,
            kind: PeerKind::Bare { list: cluster.list() },
            _folder: None,
        }
    }

    /// A FastMCP server from this folder of packages.
    pub(super) async fn fastmcp(packages: &Path) -> anyhow::Result<Peer> {
        let (folder, address) = (tempfile::tempdir()?, free_port()?);
        let script = folder.path().join("fast.py");
        std::fs::write(&script, include_str!("../../peers/fast.py")).context("the script")?;
        let words = ["-u".to_owned(), script.display().to_string(), address.port().to_string()];
        let environment = [
            ("PYTHONPATH", packages.display().to_string()),
            ("PYTHONDONTWRITEBYTECODE", "1".to_owned()),
            ("HOME", folder.path().display().to_string()),
        ];
        let mut process = Process::start_in("fastmcp", Path::new("python3"), &words, folder.path(), &environment)?;
        let list = operations::direct("tools/list", json!({}));
        process.up(async || answers(address, &list).await).await?;
        let (process, folder) = (Some(process), Some(folder));
        Ok(Peer { name: "FastMCP", address, tls: None, process, kind: PeerKind::FastMcp, _folder: folder })
    }

    /// kubernetes-mcp-server on this cluster, as it ships or without the limit of its client.
    pub(super) async fn kubernetes(program: &Path, cluster: &RealCluster, lifted: bool) -> anyhow::Result<Peer> {
        let (folder, address) = (tempfile::tempdir()?, free_port()?);
        let port = address.port().to_string();
        let kubeconfig = cluster.kubeconfig.display().to_string();
        let words = ["--kubeconfig", &kubeconfig, "--bind-address", "127.0.0.1", "--port", &port].map(str::to_owned);
        let limits = [("KUBE_CLIENT_QPS", "100000".to_owned()), ("KUBE_CLIENT_BURST", "100000".to_owned())];
        let environment: &[_] = if lifted { &limits } else { &[] };
        let mut process = Process::start_in("kubernetes-mcp-server", program, &words, folder.path(), environment)?;
        let client = json!({ "name": "loadtests", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let open = operations::legacy_direct(None, "initialize", params);
        process.up(async || answers(address, &open).await).await?;
        let name = if lifted { "kubernetes-mcp-server, limit lifted" } else { "kubernetes-mcp-server" };
        let (process, folder, kind) = (Some(process), Some(folder), PeerKind::Kubernetes { open });
        Ok(Peer { name, address, tls: None, process, kind, _folder: folder })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Connects, with a session where the server needs one.
    async fn connect(&self) -> anyhow::Result<(KeptConnection, Option<String>)> {
        let mut connection = match &self.tls {
            Some(tls) => KeptConnection::open_tls(self.address, tls).await?,
            None => KeptConnection::open(self.address).await?,
        };
        let PeerKind::Kubernetes { open } = &self.kind else { return Ok((connection, None)) };
        let session = connection.send(open).await?.header("mcp-session-id").map(str::to_owned);
        connection.send(&operations::legacy_opened(session.as_deref())).await?;
        Ok((connection, session))
    }

    fn steps(&self, work: Work, session: Option<&str>) -> anyhow::Result<Vec<Step>> {
        let send = |request: Vec<u8>| Step::Send(request.into());
        let steps = match (&self.kind, work) {
            (PeerKind::Bare { list }, Work::Pods) => vec![send(list.clone())],
            (PeerKind::FastMcp, work) => {
                let list = || send(operations::direct("tools/list", json!({})));
                let call = |name: &str, arguments: Value| {
                    send(operations::direct("tools/call", json!({ "name": name, "arguments": arguments })))
                };
                let read = || call("read", json!({ "name": "a" }));
                let write = || call("write", json!({ "name": "a", "text": "some words" }));
                match work {
                    Work::List | Work::ListLoaded => vec![list()],
                    Work::NoOp => vec![call("noop", json!({}))],
                    Work::Gated => vec![write()],
                    Work::Turn => vec![list(), read(), read(), read(), write()],
                    Work::Pods => Vec::new(),
                }
            }
            (PeerKind::Kubernetes { .. }, work) => {
                let ask = |method: &str, params: Value| send(operations::legacy_direct(session, method, params));
                match work {
                    Work::List | Work::ListLoaded => vec![ask("tools/list", json!({}))],
                    Work::NoOp => {
                        let arguments = json!({ "minified": false });
                        vec![ask("tools/call", json!({ "name": "configuration_view", "arguments": arguments }))]
                    }
                    Work::Pods => {
                        let arguments = json!({ "namespace": NAMESPACE });
                        vec![ask("tools/call", json!({ "name": "pods_list_in_namespace", "arguments": arguments }))]
                    }
                    Work::Gated | Work::Turn => Vec::new(),
                }
            }
            (PeerKind::Bare { .. }, _) => Vec::new(),
        };
        ensure!(!steps.is_empty(), "{} has nothing like {}", self.name, work.name());
        Ok(steps)
    }
}

impl Actor<'_> {
    pub(super) async fn worker(self, work: Work) -> anyhow::Result<Worker> {
        let (connection, steps) = match self {
            Actor::Ours(ours) => (KeptConnection::open(ours.contender.address).await?, ours.steps(work)),
            Actor::Peer(peer) => {
                let (connection, session) = peer.connect().await?;
                (connection, peer.steps(work, session.as_deref())?)
            }
        };
        Ok(Worker { connection, steps })
    }

    /// Does the work once, and tells how many bytes came back and how many tokens a model reads of them.
    pub(super) async fn sample(self, work: Work) -> anyhow::Result<(usize, u64)> {
        let mut bodies = Vec::new();
        self.worker(work).await?.work(Some(&mut bodies)).await?;
        let tokens = bodies.iter().map(|body| domain::tokens::estimate(&read_by_a_model(body))).sum();
        Ok((bodies.iter().map(Vec::len).sum(), tokens))
    }

    pub(super) fn ticks(self) -> Option<u64> {
        match self {
            Actor::Ours(ours) => ours.contender.process.ticks(),
            Actor::Peer(peer) => peer.process.as_ref()?.ticks(),
        }
    }

    pub(super) fn tail(self) -> String {
        let process = match self {
            Actor::Ours(ours) => Some(&ours.contender.process),
            Actor::Peer(peer) => peer.process.as_ref(),
        };
        format!("it said last: {}", process.map(Process::tail).unwrap_or_default())
    }
}

impl Worker {
    pub(super) async fn once(&mut self) -> anyhow::Result<()> {
        self.work(None).await
    }

    async fn work(&mut self, mut kept: Option<&mut Vec<Vec<u8>>>) -> anyhow::Result<()> {
        let mut keep = |body: &[u8]| {
            if let Some(kept) = kept.as_deref_mut() {
                kept.push(body.to_vec());
            }
        };
        for step in &self.steps {
            match step {
                Step::Send(request) => keep(good(self.connection.send(request).await?)?),
                Step::Change { token, approver, handle, numbers } => {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let path = format!("tenant/runbooks/load-{number}");
                    let note = json!({ "path": path, "type": "note", "content": "some words", "evidence": "seen" });
                    let asked = operations::proxied(token, handle, "memory_remember", &note);
                    let body = good(self.connection.send(&asked).await?)?;
                    keep(body);
                    let run = run_of(body)?;
                    let approve = operations::rest_post(&format!("/v1/runs/{run}/approve"), approver, &json!({}));
                    let answer = self.connection.send(&approve).await?;
                    ensure!(answer.status == 200, "an approval: {} {}", answer.status, start_of(answer.body));
                    let waiting = json!({ "run_id": run, "wait_ms": 10_000 });
                    let waited = operations::proxied(token, handle, "await_run", &waiting);
                    let body = good(self.connection.send(&waited).await?)?;
                    ensure!(holds(body, b"succeeded"), "a run did not succeed: {}", start_of(body));
                    keep(body);
                }
            }
        }
        Ok(())
    }
}

/// The body of an answer that is no error of HTTP, of the protocol or of a tool.
fn good<'a>(answer: crate::http::HttpAnswer<'a>) -> anyhow::Result<&'a [u8]> {
    let (status, body) = (answer.status, answer.body);
    let refused = holds(body, br#""isError":true"#) || holds(body, br#""id":1,"error":{"#);
    ensure!(status == 200 && !refused, "answered with {status}: {}", start_of(body));
    Ok(body)
}

fn holds(body: &[u8], wanted: &[u8]) -> bool {
    body.windows(wanted.len()).any(|window| window == wanted)
}

/// Whether somebody answers a request well.
async fn answers(address: SocketAddr, request: &[u8]) -> bool {
    let Ok(mut connection) = KeptConnection::open(address).await else { return false };
    connection.send(request).await.is_ok_and(|answer| answer.status == 200)
}

/// The message in a body, which may be an event of a stream.
fn message(body: &[u8]) -> anyhow::Result<Value> {
    let text = std::str::from_utf8(body).context("an answer is not text")?;
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).next_back();
    serde_json::from_str(data.unwrap_or(text)).context("an answer is not JSON")
}

fn run_of(body: &[u8]) -> anyhow::Result<String> {
    let told = message(body)?;
    let run = told.pointer("/result/structuredContent/run/id").and_then(Value::as_str);
    Ok(run.with_context(|| format!("a change did not wait for anybody: {told}"))?.to_owned())
}

/// What of an answer reaches a model: the tools of a list, the texts of a result, or all of it.
fn read_by_a_model(body: &[u8]) -> String {
    let Ok(told) = message(body) else { return String::from_utf8_lossy(body).into_owned() };
    if let Some(tools) = told.pointer("/result/tools") {
        return tools.to_string();
    }
    let content = told.pointer("/result/content").and_then(Value::as_array);
    content.map_or_else(
        || told.to_string(),
        |blocks| blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_in_a_body_and_in_an_event() {
        let body = br#"{"result":{"content":[{"type":"text","text":"seven"}]}}"#;
        let event = [b"event: message\ndata: ".as_slice(), body, b"\n\n"].concat();
        assert_eq!(message(body).unwrap(), message(&event).unwrap());
        assert_eq!([read_by_a_model(body), read_by_a_model(&event)], ["seven", "seven"]);
    }

    #[test]
    fn a_model_reads_the_tools_of_a_list_and_no_frame_around_it() {
        assert_eq!(read_by_a_model(br#"{"result":{"tools":[1],"ttlMs":5}}"#), "[1]");
    }

    #[test]
    fn a_change_that_waits_for_nobody_is_no_gated_one() {
        assert_eq!(run_of(br#"{"result":{"structuredContent":{"run":{"id":"run_1"}}}}"#).unwrap(), "run_1");
        assert!(run_of(br#"{"result":{"structuredContent":{"done":true}}}"#).is_err());
    }
}
