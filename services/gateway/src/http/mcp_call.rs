//! `tools/call`: JSON as a rule, an event stream only when there is something to tell before the answer.
//!
//! Until the first notification, or ten seconds without an answer, status and content type are open.
//! Then the stream is committed and the same work goes on behind it.

use crate::http::mcp::{Visit, finish, refuse};
use crate::http::streams::{self, Frames};
use actix_web::HttpResponse;
use catalog::{Found, Progress};
use domain::{Outcome, SessionId};
use executor::{CallRequest, Handle};
use mcp::{Era, Headers, Id, Meta};
use serde_json::{Map, Value};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use store::{Topic, Wake};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// How long a call may be silent before its connection is kept alive by a stream.
const SILENCE: Duration = Duration::from_secs(10);
/// Calls shorter than this never listen for a cancellation from another replica.
const SHORT: Duration = Duration::from_millis(250);

/// One `tools/call`.
pub(super) struct Asked {
    pub(super) era: Era,
    pub(super) id: Id,
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) meta: Meta,
}

type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub(super) async fn call(visit: &Visit<'_>, asked: Asked, headers: &Headers<'_>) -> HttpResponse {
    if asked.era == Era::Modern
        && let Some(refusal) = refused_by_tool(visit, &asked, headers)
    {
        return refuse(visit.gateway, visit.known, &refusal, None);
    }
    let (frames, mut told) = mpsc::channel(streams::QUEUE);
    let cancel = CancellationToken::new();
    let (era, id) = (asked.era, asked.id.clone());
    let registered = register(visit, &asked, &cancel);
    let mut work = work(visit, asked, frames, cancel);
    let first = tokio::select! {
        biased;
        outcome = &mut work => return answer(visit, era, &id, &outcome),
        Some(frame) = told.recv(), if visit.accepts.stream => Some(frame),
        () = tokio::time::sleep(SILENCE), if visit.accepts.stream => None,
    };
    streams::of_call(visit, Pending { era, id, work, told, _registered: registered }, first)
}

/// A call that is still under way when its stream is opened.
pub(super) struct Pending {
    era: Era,
    id: Id,
    work: Work,
    told: mpsc::Receiver<bytes::Bytes>,
    _registered: Option<Registered>,
}

/// The whole answer to a call that needed no stream.
fn answer(visit: &Visit<'_>, era: Era, id: &Id, outcome: &Outcome) -> HttpResponse {
    let failure = outcome.as_ref().err();
    if let (Era::Legacy(_), Some(domain::Code::Cancelled)) = (era, failure.map(|f| f.code)) {
        // The protocol wants no answer to a cancelled request.
        return HttpResponse::Accepted().finish();
    }
    let reply = mcp::encode::outcome(era, id, outcome, Some(&visit.known.trace_id));
    finish(visit.gateway, visit.known, reply, failure)
}

/// The two rungs of the modern ladder that need the tool itself.
fn refused_by_tool(visit: &Visit<'_>, asked: &Asked, headers: &Headers<'_>) -> Option<mcp::Refusal> {
    let Found::Tool(entry) = visit.known.snapshot.catalog.find(&asked.name) else { return None };
    let definition = entry.definition();
    if let Err(refusal) = mcp::ladder::check_param_headers(&asked.id, &definition.strict, &asked.arguments, headers) {
        return Some(refusal);
    }
    let needed = definition.needs_client?;
    let declared = asked.meta.client_capabilities.as_ref().is_some_and(|told| told.get(needed).is_some());
    (!declared).then(|| mcp::ladder::missing_capability(asked.id.clone(), needed))
}

/// The call itself, under the span that tells its story.
fn work(visit: &Visit<'_>, asked: Asked, frames: mpsc::Sender<bytes::Bytes>, cancel: CancellationToken) -> Work {
    let Asked { era, id, name, arguments, meta } = asked;
    let handle = match (visit.handle(era), meta.session) {
        (Handle::None, Some(told)) => Handle::Told(told),
        (handle, _) => handle,
    };
    let span = span(visit, era, &id, &name, &handle);
    if let Some(parent) = &meta.traceparent {
        telemetry::set_parent(&span, parent, meta.tracestate.as_deref());
    }
    let request = CallRequest {
        caller: Arc::clone(&visit.known.caller),
        tool: name,
        arguments,
        handle,
        selection: visit.selection.clone(),
        era: match era {
            Era::Legacy(_) => executor::Era::Legacy,
            Era::Modern => executor::Era::Modern,
        },
        progress: meta.progress_token.map_or_else(Progress::default, |token| progress(token, frames)),
        cancel,
        hold: meta.hold_ms.map(Duration::from_millis),
        idempotency_key: meta.idempotency_key,
        trace: Some(visit.known.trace_id.clone()),
    };
    let (executor, snapshot) = (visit.gateway.executor.clone(), Arc::clone(&visit.known.snapshot));
    let recorded = span.clone();
    let work = async move {
        let outcome = executor.call(&snapshot, request).await;
        let code = outcome.as_ref().map_or_else(|failure| failure.code.as_str(), |_| "ok");
        recorded.record("quartermaster.code", code);
        if outcome.is_err() {
            recorded.record("error.type", "tool_error");
        }
        outcome
    };
    Box::pin(work.instrument(span))
}

fn span(visit: &Visit<'_>, era: Era, id: &Id, name: &str, handle: &Handle) -> tracing::Span {
    let catalog = &visit.known.snapshot.catalog;
    // A name that is not in the catalog is the caller's own text and is not recorded.
    let known = !matches!(catalog.find(name), Found::Nothing);
    let title = if known { format!("tools/call {name}") } else { "tools/call".to_owned() };
    tracing::info_span!(
        "tools/call",
        otel.name = title,
        otel.kind = "server",
        mcp.method.name = "tools/call",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = known.then_some(name),
        jsonrpc.request.id = streams::short(id),
        quartermaster.tenant = %visit.known.caller.tenant,
        quartermaster.era = era.as_str(),
        quartermaster.entry = "mcp",
        quartermaster.session.id = match handle {
            Handle::None => None,
            Handle::Transport(text) | Handle::Told(text) => SessionId::parse(text).ok().map(|id| id.to_string()),
        },
        quartermaster.code = tracing::field::Empty,
        error.type = tracing::field::Empty,
    )
}

/// Progress as frames: strictly increasing, never waiting. A full queue loses progress, nothing else.
fn progress(token: mcp::ProgressToken, frames: mpsc::Sender<bytes::Bytes>) -> Progress {
    let last = AtomicU64::new(u64::MAX);
    Progress::to(move |done, total, message| {
        let before = last.load(Ordering::Relaxed);
        if before != u64::MAX && done <= before {
            return;
        }
        last.store(done, Ordering::Relaxed);
        let told = mcp::frames::Progress { done, total, message: message.map(str::to_owned) };
        frames.try_send(mcp::frames::progress(&token, &told)).ok();
    })
}

/// A legacy call of a session that can be cancelled by a message; taken out again when dropped.
pub(super) struct Registered {
    gateway: actix_web::web::Data<crate::app::Gateway>,
    key: (SessionId, Id),
    watching: tokio::task::JoinHandle<Option<()>>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.gateway.in_flight.remove(&self.key);
        self.watching.abort();
    }
}

fn register(visit: &Visit<'_>, asked: &Asked, cancel: &CancellationToken) -> Option<Registered> {
    let Handle::Transport(text) = visit.handle(asked.era) else { return None };
    let key = (SessionId::parse(&text).ok()?, asked.id.clone());
    visit.gateway.in_flight.insert(key.clone(), cancel.clone());
    let shelf = visit.gateway.store.of(&visit.known.caller.tenant);
    let (cancel, session, request) = (cancel.clone(), key.0, streams::text(&asked.id));
    // The message may reach another replica; only a call that takes a while is worth listening for it.
    let watching = visit.gateway.tasks.spawn("cancel watch", async move {
        tokio::time::sleep(SHORT).await;
        let mut watch = shelf.watch();
        loop {
            if let Wake::Topic(Topic::Cancel { session: whose, request: which }) = watch.next().await
                && whose == session
                && which == request
            {
                cancel.cancel();
                return;
            }
        }
    });
    Some(Registered { gateway: visit.gateway.clone(), key, watching })
}

/// `notifications/cancelled` of a legacy session: reaches only that session's own request, on whichever replica.
pub(super) async fn cancel(visit: &Visit<'_>, session: String, request: Id) {
    let handle = Handle::Transport(session);
    let Ok(held) = visit.gateway.executor.session(&visit.known.snapshot, &visit.known.caller, &handle).await else {
        return;
    };
    let id = held.session.id;
    if visit.gateway.in_flight.cancel(&(id, request.clone())) {
        return;
    }
    let topic = Topic::Cancel { session: id, request: streams::text(&request) };
    if let Err(error) = visit.gateway.store.of(&visit.known.caller.tenant).wake(&topic).await {
        // The call then runs to its deadline, as if the message had been lost on the way.
        tracing::debug!(%error, "a cancellation could not be passed on");
    }
}

impl Pending {
    /// The frames of a call that answers by a stream, the answer last.
    pub(super) async fn stream_out(self, out: Frames, trace_id: String) {
        let Pending { era, id, mut work, mut told, _registered } = self;
        let mut pace = Pace::new();
        loop {
            tokio::select! {
                biased;
                Some(frame) = told.recv() => {
                    if let Some(frame) = pace.take(frame)
                        && !out.send(&frame).await
                        && era == Era::Modern
                    {
                        return; // the client is gone, and with it the call
                    }
                }
                outcome = &mut work => {
                    while let Ok(frame) = told.try_recv() {
                        pace.held = Some(frame);
                    }
                    if let Some(frame) = pace.held {
                        out.send(&frame).await;
                    }
                    let cancelled = outcome.as_ref().is_err_and(|f| f.code == domain::Code::Cancelled);
                    if !(cancelled && matches!(era, Era::Legacy(_))) {
                        out.send(&mcp::encode::outcome(era, &id, &outcome, Some(&trace_id)).body).await;
                    }
                    return;
                }
                () = out.gone(), if era == Era::Modern => return,
                () = pace.next(), if pace.held.is_some() => {
                    if let Some(frame) = pace.release() {
                        out.send(&frame).await;
                    }
                }
                () = tokio::time::sleep(streams::KEEP_ALIVE) => out.keep_alive().await,
            }
        }
    }
}

/// Holds progress to ten frames a second after a burst of five. What is held back is replaced by what is newer, and
/// the last word always gets through.
struct Pace {
    left: u32,
    since: tokio::time::Instant,
    held: Option<bytes::Bytes>,
}

impl Pace {
    const BURST: u32 = 5;
    const EVERY: Duration = Duration::from_millis(100);

    fn new() -> Pace {
        // The frame that opened the stream was the first of the burst.
        Pace { left: Pace::BURST - 1, since: tokio::time::Instant::now(), held: None }
    }

    fn refill(&mut self) {
        while self.left < Pace::BURST && self.since.elapsed() >= Pace::EVERY {
            self.left += 1;
            self.since += Pace::EVERY;
        }
        if self.left == Pace::BURST {
            self.since = tokio::time::Instant::now();
        }
    }

    /// The frame, if it may go out now.
    fn take(&mut self, frame: bytes::Bytes) -> Option<bytes::Bytes> {
        self.held = Some(frame);
        self.release()
    }

    fn release(&mut self) -> Option<bytes::Bytes> {
        self.refill();
        self.left = self.left.checked_sub(1)?;
        self.held.take()
    }

    /// Resolves when a held frame may go out.
    async fn next(&self) {
        tokio::time::sleep_until(self.since + Pace::EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_comes_in_a_burst_and_then_ten_times_a_second() {
        let mut pace = Pace::new();
        let frame = |n: u8| bytes::Bytes::from(vec![n]);
        let sent = (0..100).filter(|n| pace.take(frame(*n)).is_some()).count();
        assert_eq!((sent, pace.held.clone()), (4, Some(frame(99))), "four are left of the burst, the newest is held");
        pace.next().await;
        assert_eq!(pace.release(), Some(frame(99)));
        assert_eq!(pace.release(), None);
        tokio::time::advance(Duration::from_secs(10)).await;
        let sent = (0..100).filter(|n| pace.take(frame(*n)).is_some()).count();
        assert_eq!(sent, 5, "a pause earns one burst, not ten");
    }
}
