//! Reaching into pods: a command in a container, and an HTTP GET through the API server.
//!
//! Neither can be rehearsed, so a writer that only dry-runs refuses both. A command is a list of words, each sent as
//! one; there is no shell and no terminal.

use crate::client::connection::{ClientLane, NoClusterAnswer};
use crate::client::fault;
use crate::client::grammar;
use crate::client::place::ResourceRef;
use crate::client::request::{ClusterRequest, RequestSubject};
use crate::client::write::ClusterWriter;
use crate::codes;
use domain::{Code, Failure};
use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodCommand {
    /// The container; may be left out for a pod with one.
    pub container: Option<String>,
    /// The words, the first of them the program.
    pub command: Vec<String>,
    /// What it reads.
    pub stdin: Option<String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// What a command came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandResult {
    /// Its exit code; `None` if it was not seen to end.
    pub exit_code: Option<i32>,
    /// What it wrote, masked.
    pub stdout: String,
    /// What it complained about, masked.
    pub stderr: String,
    /// Whether it wrote more than is taken.
    pub truncated: bool,
    /// Whether the time was over first; the process may live on.
    pub timed_out: bool,
}

/// An HTTP GET to a pod or a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeRequest {
    /// The port.
    pub port: u16,
    /// The path, beginning with `/`.
    pub path: String,
    /// Whether the port speaks TLS.
    pub https: bool,
}

/// What came back. Text from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpProbeResult {
    /// The HTTP status.
    pub status: u16,
    /// What it says it is.
    pub content_type: Option<String>,
    /// The beginning of the body as text, masked.
    pub body: String,
    /// Whether there was more.
    pub truncated: bool,
    /// How long it took.
    pub latency: Duration,
}

/// How much output of a command is taken, for each of the two.
const OUTPUT_MAX: usize = 256 * 1024;
/// How much of a body is taken.
const BODY_MAX: usize = 16 * 1024;
/// How long a GET may take.
const PROBE_TIME: Duration = Duration::from_secs(10);
const PROXY: &str = "/api/{version}/namespaces/{namespace}/{resource}/{name}/proxy";

impl ClusterWriter<'_> {
    /// Runs a command in a container.
    pub async fn exec(&self, pod: &ResourceRef, exec: &PodCommand) -> Result<CommandResult, Failure> {
        self.acts()?;
        self.guard(pod.kind(), pod.namespace(), Some(pod.name()))?;
        if let Some(container) = &exec.container {
            grammar::container(container)?;
        }
        if exec.command.is_empty() {
            return Err(Failure::new(Code::InvalidArgument, "the command is empty").next("give at least the program"));
        }
        let deadline = self.cluster.deadline.min(Instant::now() + exec.timeout);
        let about = RequestSubject {
            verb: "create",
            resource: "pods/exec".into(),
            namespace: pod.namespace().map(str::to_owned),
            name: Some(pod.name().to_owned()),
        };
        let connection = &self.cluster.connection;
        let (client, _slot) = connection.stream_client(deadline).await.map_err(|lost| fault::of_write(&lost))?;
        let api: Api<Pod> = Api::namespaced(client, pod.namespace().unwrap_or_default());
        let params = AttachParams { container: exec.container.clone(), ..AttachParams::default() }
            .stdin(exec.stdin.is_some())
            .stdout(true)
            .stderr(true)
            .tty(false);
        const ROUTE: &str = "/api/{version}/namespaces/{namespace}/pods/{name}/exec";
        let span = target::request_span!("kubernetes", "GET", ROUTE, connection.tenant);
        let opened = timeout_at(deadline, api.exec(pod.name(), exec.command.clone(), &params).instrument(span)).await;
        match opened {
            Ok(Ok(process)) => self.follow(process, exec.stdin.as_deref(), deadline, &about).await,
            Ok(Err(kube::Error::Api(status))) => {
                let body = serde_json::to_vec(&*status).unwrap_or_default();
                let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                Err(explain(fault::of_status(self.cluster.masker(), &about, code, None, &body)))
            }
            Ok(Err(error)) if crate::client::connect::is_unconnected(&error) => {
                Err(fault::of_write(&NoClusterAnswer::Unconnected))
            }
            Ok(Err(_)) => Err(fault::of_write(&NoClusterAnswer::Broken)),
            Err(_) => Err(fault::of_write(&NoClusterAnswer::Late)),
        }
    }

    async fn follow(
        &self,
        mut process: AttachedProcess,
        stdin: Option<&str>,
        deadline: Instant,
        about: &RequestSubject,
    ) -> Result<CommandResult, Failure> {
        let input = process.stdin();
        let (stdout, stderr, status) = (process.stdout(), process.stderr(), process.take_status());
        let write = async {
            if let (Some(mut input), Some(text)) = (input, stdin) {
                // A command that does not read its input is no failure of ours.
                input.write_all(text.as_bytes()).await.ok();
                input.shutdown().await.ok();
            }
        };
        let end = async {
            match status {
                Some(status) => status.await,
                None => None,
            }
        };
        let (mut out, mut err, mut ended) = (TakenOutput::default(), TakenOutput::default(), None);
        let work = async {
            let ((), (), (), status) = tokio::join!(write, out.from(stdout), err.from(stderr), end);
            ended = status;
        };
        let timed_out = timeout_at(deadline, work).await.is_err();
        let status = ended.map(|status| serde_json::to_value(status).unwrap_or_default()).unwrap_or_default();
        let (exit_code, masker) = (exit_code(&status), self.cluster.masker());
        if exit_code.is_none() && is_no_command(status["message"].as_str().unwrap_or_default()) {
            // The container runtime says so only after the stream was opened; nothing ran.
            let body = status.to_string().into_bytes();
            return Err(explain(fault::of_status(masker, about, StatusCode::INTERNAL_SERVER_ERROR, None, &body)));
        }
        Ok(CommandResult {
            exit_code,
            stdout: masker.text(&String::from_utf8_lossy(&out.bytes)),
            stderr: masker.text(&String::from_utf8_lossy(&err.bytes)),
            truncated: out.cut || err.cut,
            timed_out,
        })
    }

    /// Asks a pod or a service by HTTP, through the API server. Whatever the application answers is a result.
    pub async fn probe(&self, target: &ResourceRef, probe: &ProbeRequest) -> Result<HttpProbeResult, Failure> {
        self.acts()?;
        self.guard(target.kind(), target.namespace(), Some(target.name()))?;
        onward(&probe.path)?;
        if !target.kind.is("", "Pod") && !target.kind.is("", "Service") {
            return Err(Failure::new(codes::UNSUPPORTED_KIND, "only pods and services can be asked"));
        }
        let scheme = if probe.https { "https:" } else { "" };
        let mut behind = target.clone();
        behind.name = format!("{scheme}{}:{}", target.name(), probe.port);
        let request =
            ClusterRequest::beneath(Method::GET, "get", &behind, ("proxy", PROXY)).onward(&probe.path).accept("*/*");
        let began = Instant::now();
        let deadline = self.cluster.deadline.min(began + PROBE_TIME);
        let connection = &self.cluster.connection;
        let mut answer =
            connection.send(ClientLane::Write, &request, deadline).await.map_err(|lost| fault::of_write(&lost))?;
        let latency = began.elapsed();
        let (status, content_type) = (answer.status, answer.content_type.take());
        let (bytes, truncated) = answer.beginning(BODY_MAX, deadline).await;
        if let Some(failure) = refusal(self, &request, status, &bytes) {
            return Err(failure);
        }
        let body = self.cluster.masker().text(&String::from_utf8_lossy(&bytes));
        Ok(HttpProbeResult { status: status.as_u16(), content_type, body, truncated, latency })
    }

    fn acts(&self) -> Result<(), Failure> {
        if !self.is_dry() {
            return Ok(());
        }
        Err(Failure::new(Code::NotPossible, "this cannot be rehearsed: it would already be the deed"))
    }
}

/// Output of a command, as far as it is taken. The rest is read and thrown away, so that the command can end.
#[derive(Default)]
struct TakenOutput {
    bytes: Vec<u8>,
    cut: bool,
}

impl TakenOutput {
    async fn from(&mut self, reader: Option<impl AsyncRead + Unpin>) {
        let Some(mut reader) = reader else { return };
        let mut chunk = [0; 4096];
        while let Ok(read @ 1..) = reader.read(&mut chunk).await {
            let room = OUTPUT_MAX - self.bytes.len();
            self.bytes.extend_from_slice(&chunk[..read.min(room)]);
            self.cut |= read > room;
        }
    }
}

/// The exit code in the last word of an execution.
fn exit_code(status: &Value) -> Option<i32> {
    if status["status"] == "Success" {
        return Some(0);
    }
    let causes = status["details"]["causes"].as_array()?;
    causes.iter().find(|cause| cause["reason"] == "ExitCode")?["message"].as_str()?.parse().ok()
}

/// Whether a container runtime says that there is no such program.
fn is_no_command(message: &str) -> bool {
    message.contains("executable file not found") || message.contains("no such file or directory")
}

/// A container runtime tells a missing command as an error of its own.
fn explain(failure: Failure) -> Failure {
    let message = failure.details.as_ref().and_then(|details| details["message"].as_str()).unwrap_or_default();
    let told = if is_no_command(message) {
        Failure::new(codes::COMMAND_NOT_FOUND, "the container has no such command").next("try another command")
    } else if message.contains("a container name must be specified") {
        Failure::new(codes::CONTAINER_REQUIRED, "the pod has several containers").next("name one of them")
    } else if message.contains("is not valid for pod") {
        Failure::new(codes::CONTAINER_NOT_FOUND, "the pod has no such container").next("look at the pod with k8s_get")
    } else {
        return failure;
    };
    Failure { details: failure.details, ..told }
}

/// Checks a path that goes through to an application.
fn onward(path: &str) -> Result<(), Failure> {
    let lower = path.to_ascii_lowercase();
    let fits = path.starts_with('/')
        && path.len() <= 1024
        && path.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'#' | b'\\' | b'"' | b'<' | b'>'))
        && !["..", "%2e", "%2f", "%5c", "%00"].iter().any(|trick| lower.contains(trick));
    if fits {
        return Ok(());
    }
    Err(Failure::new(Code::InvalidArgument, "the path is not one that can be asked for")
        .next("begin it with '/', without '..', blanks or encoded dots and slashes; at most 1024 bytes"))
}

/// The API server's own refusal, told apart from what the application answered.
fn refusal(writer: &ClusterWriter<'_>, request: &ClusterRequest, status: StatusCode, body: &[u8]) -> Option<Failure> {
    let said: Value = serde_json::from_slice(body).ok().filter(|said: &Value| said["kind"] == "Status")?;
    let message = said["message"].as_str().unwrap_or_default();
    let failure = fault::of_status(writer.cluster.masker(), &request.about, status, None, body);
    let told = if message.contains("no endpoints available") {
        Failure::new(codes::NO_ENDPOINTS, "nothing stands behind the service").next("look at its pods and selector")
    } else if message.contains("connection refused") {
        Failure::new(codes::CONNECTION_REFUSED, "nothing listens at that port").next("check the port")
    } else {
        return Some(failure);
    };
    Some(Failure { details: failure.details, ..told })
}
