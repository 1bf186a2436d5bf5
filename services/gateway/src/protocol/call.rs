//! `tools/call`: one message as a rule, frames only when there is something to report before the answer.
//!
//! Until the first progress, or ten seconds without an answer, the form of the answer is open. Then the call goes on
//! behind a queue of frames, and its answer is the last frame.

use crate::protocol::cancel::{self, CancelRegistration};
use crate::protocol::exchange::{McpAnswer, McpExchange, McpMessage, McpRequest};
use crate::protocol::method_span;
use crate::protocol::operation::McpOperation;
use crate::protocol::pace::ProgressPace;
use crate::protocol::sink::{self, Sink};
use bytes::Bytes;
use catalog::{NameMatch, Progress};
use domain::{Code, LoadedToolsets, Outcome};
use executor::{CallRequest, Handle};
use mcp::{Era, Id, Meta};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// How long a call may be silent before its connection is kept alive by frames.
const SILENCE: Duration = Duration::from_secs(10);

/// One `tools/call`.
pub(super) struct ToolsCall {
    pub(super) era: Era,
    pub(super) id: Id,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) meta: Meta,
    /// What the address has loaded.
    pub(super) selection: Option<LoadedToolsets>,
}

type OutcomeFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// Carries out a call, and answers it in one message or by frames.
pub(super) async fn call(request: &McpRequest<'_>, call: ToolsCall, operation: &mut McpOperation) -> McpAnswer {
    let found = request.exchange.snapshot.catalog.find(&call.name);
    if call.era == Era::Modern
        && let Some(refusal) = refused_by_tool(request, &call, &found)
    {
        return request.exchange.refuse_with(&refusal, None);
    }
    // The work may go on when this answer has begun, so it notes its own end.
    let call_operation = operation.of_call();
    // Nobody reports progress to a client that did not ask for it.
    let (frames, progress) = call.meta.progress_token.is_some().then(|| mpsc::channel(sink::QUEUE)).unzip();
    let cancel = CancellationToken::new();
    let registered = cancel::register(request, call.era, &call.id, &cancel);
    let (era, id, trace_id) = (call.era, call.id.clone(), request.exchange.trace_id.clone());
    let work = work(request, call, &found, WorkParts { frames, cancel, operation: call_operation });
    let mut pending = PendingCall { era, id, trace_id, work, progress, _registered: registered };
    if !request.takes_frames {
        let outcome = pending.work.await;
        return answer(era, &pending.id, outcome, &pending.trace_id);
    }
    let first = tokio::select! {
        biased;
        outcome = &mut pending.work => return answer(era, &pending.id, outcome, &pending.trace_id),
        Some(frame) = next_of(&mut pending.progress) => Some(frame),
        () = tokio::time::sleep(SILENCE) => None,
    };
    let (sink, frames) = sink::channel();
    request.exchange.gateway.tasks.spawn("call stream", pending.send_to(sink, first).in_current_span());
    McpAnswer::Streaming(frames)
}

/// The next report of a call, if any is to come.
async fn next_of(progress: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
    progress.as_mut()?.recv().await
}

/// What a client of MCP is answered when a call has ended.
fn answer(era: Era, id: &Id, outcome: Outcome, trace_id: &str) -> McpAnswer {
    let reply = mcp::encode::outcome(era, id, &outcome, Some(trace_id));
    match (era, outcome) {
        (Era::Legacy(_), Outcome::Failed(failure)) if failure.code == Code::Cancelled => McpAnswer::Cancelled,
        (Era::Legacy(_) | Era::Modern, Outcome::Failed(failure)) => McpAnswer::message(reply, Some(failure)),
        (Era::Legacy(_) | Era::Modern, Outcome::Done(_) | Outcome::Waiting(_)) => McpAnswer::message(reply, None),
    }
}

/// The two rungs of the modern ladder that need the tool itself.
fn refused_by_tool(request: &McpRequest<'_>, call: &ToolsCall, found: &NameMatch<'_>) -> Option<mcp::Refusal> {
    let NameMatch::Tool(entry) = found else { return None };
    let definition = entry.definition();
    if let Some(headers) = &request.headers
        && let Err(refusal) = mcp::ladder::check_param_headers(&call.id, &definition.strict, &call.arguments, headers)
    {
        return Some(refusal);
    }
    let needed = definition.needs_client?;
    let declared = call.meta.client_capabilities.as_ref().is_some_and(|declared| declared.get(needed).is_some());
    (!declared).then(|| mcp::ladder::missing_capability(call.id.clone(), needed))
}

/// What goes with a call into the background.
struct WorkParts {
    frames: Option<mpsc::Sender<Bytes>>,
    cancel: CancellationToken,
    operation: McpOperation,
}

/// The call itself.
fn work(request: &McpRequest<'_>, call: ToolsCall, found: &NameMatch<'_>, parts: WorkParts) -> OutcomeFuture {
    let WorkParts { frames, cancel, operation } = parts;
    let ToolsCall { era, name, arguments, meta, selection, .. } = call;
    let McpExchange { gateway, caller, snapshot, trace_id, client } = &request.exchange;
    let handle = match (request.handle(era), meta.session) {
        (Handle::None, Some(session)) => Handle::Told(session),
        (handle, _) => handle,
    };
    // A name that is not in the catalog is the caller's own text and is not recorded.
    let named = if matches!(found, NameMatch::Nothing) { String::new() } else { name.clone() };
    let request = CallRequest {
        caller: Arc::clone(caller),
        tool: name,
        arguments,
        handle,
        selection,
        era: match era {
            Era::Legacy(_) => executor::ClientEra::Legacy,
            Era::Modern => executor::ClientEra::Modern,
        },
        progress: meta
            .progress_token
            .zip(frames)
            .map_or_else(Progress::default, |(token, frames)| progress(token, frames)),
        cancel,
        hold: meta.hold_ms.map(Duration::from_millis),
        idempotency_key: meta.idempotency_key,
        trace: Some(trace_id.clone()),
        // The message's own word for the program comes before that of the HTTP library beneath it.
        client: meta.client.as_ref().and_then(client_name).or_else(|| client.clone()),
    };
    let (executor, snapshot) = (gateway.executor.clone(), Arc::clone(snapshot));
    Box::pin(async move {
        let outcome = executor.call(&snapshot, request).await;
        operation.end_call(&named, if outcome.failure().is_some() { "tool_error" } else { "" });
        method_span::note_outcome(&outcome);
        outcome
    })
}

/// A program as the audit log names it: printable, because it is anybody's text.
pub fn client_name(client: &mcp::meta::ClientInfo) -> Option<String> {
    let printable = |text: &str| text.chars().filter(|c| (' '..='~').contains(c)).collect::<String>();
    let (name, version) = (printable(&client.name), printable(&client.version));
    (!name.trim().is_empty()).then(|| format!("{name}/{version}"))
}

/// Progress as frames: strictly increasing, never waiting. A full queue loses progress, nothing else.
fn progress(token: mcp::ProgressToken, frames: mpsc::Sender<Bytes>) -> Progress {
    let last = AtomicU64::new(u64::MAX);
    Progress::to(move |done, total, message| {
        let before = last.load(Ordering::Relaxed);
        if before != u64::MAX && done <= before {
            return;
        }
        last.store(done, Ordering::Relaxed);
        let progress = mcp::frames::ProgressFrame { done, total, message: message.map(str::to_owned) };
        frames.try_send(mcp::frames::progress(&token, &progress)).ok();
    })
}

/// A call that is under way.
struct PendingCall {
    era: Era,
    id: Id,
    trace_id: String,
    work: OutcomeFuture,
    /// What it reports meanwhile, if the client wants to know.
    progress: Option<mpsc::Receiver<Bytes>>,
    _registered: Option<CancelRegistration>,
}

impl PendingCall {
    /// Sends the frames of a call that answers by frames, the answer last.
    async fn send_to(mut self, sink: Sink, first: Option<Bytes>) {
        let mut pace = ProgressPace::new();
        if let Some(first) = first {
            sink.send(first).await;
        }
        loop {
            tokio::select! {
                biased;
                Some(frame) = next_of(&mut self.progress) => {
                    if let Some(frame) = pace.take(frame)
                        && !sink.send(frame).await
                        && self.era == Era::Modern
                    {
                        return; // the client is gone, and with it the call
                    }
                }
                outcome = &mut self.work => {
                    let mut last = pace.last();
                    while let Some(Ok(frame)) = self.progress.as_mut().map(mpsc::Receiver::try_recv) {
                        last = Some(frame);
                    }
                    if let Some(frame) = last {
                        sink.send(frame).await;
                    }
                    if let McpAnswer::Message(McpMessage { reply, .. }) = answer(self.era, &self.id, outcome, &self.trace_id) {
                        sink.send(reply.body).await;
                    }
                    return;
                }
                () = sink.gone(), if self.era == Era::Modern => return,
                () = pace.next() => {
                    if let Some(frame) = pace.release() {
                        sink.send(frame).await;
                    }
                }
                () = tokio::time::sleep(sink::KEEP_ALIVE) => sink.keep_alive().await,
            }
        }
    }
}
