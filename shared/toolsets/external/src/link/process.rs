//! A server as a child process: one message per line on its standard streams.
//!
//! It starts with the environment of its entry and nothing else, leads a process group of its own, and is ended with
//! that group when the line is dropped. What it writes to its standard error is thrown away.
//!
//! Not here: who may ask for a process (only an operator's entry can), and when it is started again.

use super::LinkLimits;
use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::frame;
use super::inbox::Inbox;
use super::wire::OpaqueError;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The longest a process may take to say whether it is of the modern era, its start included.
const PROBE: Duration = Duration::from_secs(3);
/// How long it may take to read a message that nobody waits for.
const ASIDE: Duration = Duration::from_secs(5);

/// A started process, as the client library wants to see it.
pub(crate) struct ProcessTransport {
    input: Arc<AsyncMutex<ChildStdin>>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    bytes: usize,
    params: BTreeMap<String, String>,
    inbox: Inbox,
    /// The question for the era, and until when it may be answered.
    probe: Option<(RequestId, Instant)>,
    /// A message was written in part only, so nothing that follows could be understood.
    ruined: CancellationToken,
    // In this order: as long as the leader was not waited for, its number belongs to nobody else.
    _group: ServerProcessGroup,
    _leader: Child,
}

/// The group of a process. Ends it when dropped.
struct ServerProcessGroup(Option<Pid>);

impl ProcessTransport {
    /// Starts the process. It must be one that an operator named.
    pub(crate) fn start(
        started: &ProcessCommand<'_>,
        limits: &LinkLimits,
        bell: Arc<Notify>,
    ) -> Result<ProcessTransport, LinkFault> {
        #[expect(clippy::disallowed_methods, reason = "the second door to processes: servers that an operator entered")]
        let mut command = Command::new(started.command);
        command.args(started.args).env_clear().envs(started.env).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut leader = command.spawn().map_err(|_| LinkFault::Refused)?;
        let group = ServerProcessGroup(leader.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)));
        let (Some(input), Some(output)) = (leader.stdin.take(), leader.stdout.take()) else {
            return Err(LinkFault::Broken);
        };
        Ok(ProcessTransport {
            input: Arc::new(AsyncMutex::new(input)),
            output: BufReader::new(output),
            line: Vec::new(),
            bytes: limits.bytes,
            params: started.params.clone(),
            inbox: Inbox::new(limits.caps(), bell),
            probe: None,
            ruined: CancellationToken::new(),
            _group: group,
            _leader: leader,
        })
    }

    /// Reads until a line is complete. What was read of it is kept if nobody waits for the rest just now.
    async fn next_line(&mut self) -> Result<Vec<u8>, LinkFault> {
        loop {
            let piece = self.output.fill_buf().await.map_err(|_| LinkFault::Broken)?;
            if piece.is_empty() {
                return Err(LinkFault::Broken);
            }
            let end = piece.iter().position(|&byte| byte == b'\n');
            let taken = end.unwrap_or(piece.len());
            if self.line.len() + taken > self.bytes {
                return Err(LinkFault::TooLarge("more bytes than it may"));
            }
            self.line.extend_from_slice(&piece[..taken]);
            self.output.consume(end.map_or(taken, |end| end + 1));
            if end.is_some() {
                return Ok(std::mem::take(&mut self.line));
            }
        }
    }
}

/// What to start.
pub(crate) struct ProcessCommand<'a> {
    pub(crate) command: &'a str,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) params: &'a BTreeMap<String, String>,
}

impl Transport<RoleClient> for ProcessTransport {
    type Error = OpaqueError;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), OpaqueError>> + Send + 'static {
        let frame = frame::outgoing(&item, &self.params);
        let mut deadline = Instant::now() + ASIDE;
        let exchange = LinkExchange::of(&item).cloned();
        if let ClientJsonRpcMessage::Request(request) = &item
            && matches!(&request.request, ClientRequest::DiscoverRequest(_))
        {
            self.probe = Some((request.id.clone(), Instant::now() + PROBE));
        }
        if let Some(exchange) = &exchange {
            deadline = exchange.limits().deadline;
        }
        if let (Ok(frame), ClientJsonRpcMessage::Request(request)) = (&frame, &item) {
            let token = frame.pointer("/params/_meta/progressToken").cloned().unwrap_or_default();
            self.inbox.await_answer(exchange.clone(), request.id.clone(), token);
        }
        let (input, ruined) = (Arc::clone(&self.input), self.ruined.clone());
        async move {
            let mut text = frame.map_err(|_| OpaqueError)?.to_string().into_bytes();
            text.push(b'\n');
            let Ok(mut input) = tokio::time::timeout_at(deadline, input.lock()).await else { return Err(OpaqueError) };
            if let Some(exchange) = &exchange {
                exchange.note_sent(true);
            }
            let writing = async {
                input.write_all(&text).await?;
                input.flush().await
            };
            // Cancelled or failed, the line is cut somewhere and the next message would continue it.
            let guard = ruined.drop_guard();
            match tokio::time::timeout_at(deadline, writing).await {
                Ok(Ok(())) => {
                    guard.disarm();
                    Ok(())
                }
                Ok(Err(_)) | Err(_) => Err(OpaqueError),
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let probe = self.probe.clone();
            let hopeless = async {
                match &probe {
                    Some((_, until)) => tokio::time::sleep_until(*until).await,
                    None => std::future::pending().await,
                }
            };
            let ruined = self.ruined.clone();
            let read = tokio::select! {
                biased;
                read = self.next_line() => read,
                () = ruined.cancelled() => Err(LinkFault::Broken),
                () = hopeless => {
                    // It is not of the modern era, or takes its time; the other question is put to it now.
                    let (id, _) = self.probe.take()?;
                    return Some(frame::unknown_method(&id));
                }
            };
            match read {
                Ok(line) => {
                    let probe = self.probe.as_ref().map(|(id, _)| id);
                    // A line that is no message is somebody's printing, which says nothing.
                    if let Ok(Some(message)) = self.inbox.take(&line, probe) {
                        let answers =
                            matches!(&message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_));
                        self.probe.take_if(|_| answers);
                        return Some(message);
                    }
                }
                Err(fault) => {
                    self.inbox.settle_all(&fault);
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), OpaqueError> {
        self.ruined.cancel();
        Ok(())
    }
}

impl Drop for ServerProcessGroup {
    fn drop(&mut self) {
        // No such group: they ended by themselves.
        if let Some(pid) = self.0
            && kill_process_group(pid, Signal::KILL).is_err()
        {
            tracing::debug!("a server process had ended already");
        }
    }
}
