//! Event streams: bounded, kept alive, ended by whoever leaves first.
//!
//! A stream holds no meaning: it says when to look, and losing one costs the client a look. Wake-ups come from the
//! store (a session moved, on whichever replica) and from this process (a tenant's catalog changed).

use crate::app::Gateway;
use crate::http::caller::Known;
use crate::http::mcp::{Visit, refuse};
use crate::http::mcp_call::Pending;
use crate::http::reply;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use bytes::Bytes;
use domain::{Caller, Moment, SessionId, Tenant};
use executor::Handle;
use futures_util::stream;
use mcp::{Era, Id, Refusal};
use std::sync::Arc;
use std::time::Duration;
use store::{Topic, Wake};
use tokio::sync::{broadcast, mpsc};

/// Frames a slow client may be behind.
pub(super) const QUEUE: usize = 64;
/// How often an idle stream says that it lives: often enough for every proxy.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// A notice goes out a moment after the wake-up, so that it does not overtake the answer that caused it.
const AFTER_THE_ANSWER: Duration = Duration::from_millis(25);
/// An open stream keeps its session alive; looked at this often.
const STILL_THERE: Duration = Duration::from_secs(300);

/// Where frames of one stream are written.
pub(super) struct Frames(mpsc::Sender<Bytes>);

impl Frames {
    /// One message; `false` when the client is gone or hopelessly behind.
    pub(super) async fn send(&self, json: &[u8]) -> bool {
        self.raw(mcp::sse::message(json)).await
    }

    pub(super) async fn keep_alive(&self) {
        self.raw(mcp::sse::KEEP_ALIVE).await;
    }

    /// Resolves when the client is gone.
    pub(super) async fn gone(&self) {
        self.0.closed().await;
    }

    async fn raw(&self, bytes: Bytes) -> bool {
        self.0.send_timeout(bytes, KEEP_ALIVE).await.is_ok()
    }
}

fn open(trace_id: &str, first: Option<Bytes>) -> (Frames, HttpResponse) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    if let Some(first) = first {
        sender.try_send(first).ok();
    }
    let body = stream::unfold(receiver, |mut receiver| async {
        let bytes = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), receiver))
    });
    let response = reply::start(StatusCode::OK, trace_id)
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body);
    (Frames(sender), response)
}

/// A call whose answer needs a stream.
pub(super) fn of_call(visit: &Visit<'_>, pending: Pending, first: Option<Bytes>) -> HttpResponse {
    let (frames, response) = open(&visit.known.trace_id, first.map(|frame| mcp::sse::message(&frame)));
    visit.gateway.tasks.spawn("call stream", pending.stream_out(frames, visit.known.trace_id.clone()));
    response
}

/// `subscriptions/listen`: notices about the tenant's catalog, in the modern era.
pub(super) fn listen(visit: &Visit<'_>, id: Id, wanted: bool) -> HttpResponse {
    let ack = mcp::sse::message(&mcp::frames::acknowledged(&id, wanted));
    let (frames, response) = open(&visit.known.trace_id, Some(ack));
    let changes = visit.gateway.tenants.changes();
    let (gateway, caller) = (visit.gateway.clone(), Arc::clone(&visit.known.caller));
    visit.gateway.tasks.spawn("listen", async move {
        let mut changes = changes;
        let stopping = gateway.tasks.stopping().clone();
        loop {
            tokio::select! {
                () = frames.gone() => return,
                () = stopping.cancelled() => break,
                () = expiry(&gateway, &caller) => break,
                () = tokio::time::sleep(KEEP_ALIVE) => frames.keep_alive().await,
                () = changed(&mut changes, &caller.tenant) => {
                    if wanted && !frames.send(&mcp::frames::list_changed(Some(&id))).await {
                        return;
                    }
                }
            }
        }
        frames.send(&mcp::frames::listen_end(&id)).await;
    });
    response
}

/// `GET /mcp`: notices of one legacy session. The newest stream of a session is the only one.
pub(super) async fn session(gateway: &Data<Gateway>, known: &Known, text: String) -> HttpResponse {
    let handle = Handle::Transport(text);
    let held = match gateway.executor.session(&known.snapshot, &known.caller, &handle).await {
        Ok(held) => held,
        Err(failure) => {
            let refusal = Refusal::before_call(Era::Modern, None, &failure);
            return refuse(gateway, known, &refusal, Some(&failure));
        }
    };
    let shelf = gateway.store.of(&known.caller.tenant);
    let owner = format!("{}/{}", gateway.replica, known.trace_id);
    let id = held.session.id;
    // Watched before the stream is taken, so that a later taker is heard.
    let watch = shelf.watch();
    if let Err(error) = shelf.sessions().take_stream(id, &owner, gateway.lives).await {
        tracing::warn!(%error, "a stream could not be taken");
        let failure = domain::Failure::new(error.code(), "the state store did not answer");
        let refusal = Refusal::before_call(Era::Modern, None, &failure);
        return refuse(gateway, known, &refusal, Some(&failure));
    }
    let (frames, response) = open(&known.trace_id, Some(mcp::sse::RETRY));
    let follower = Follower { gateway: gateway.clone(), caller: Arc::clone(&known.caller), id, owner };
    gateway.tasks.spawn("session stream", follower.run(frames, watch));
    response
}

struct Follower {
    gateway: Data<Gateway>,
    caller: Arc<Caller>,
    id: SessionId,
    owner: String,
}

impl Follower {
    async fn run(self, frames: Frames, mut watch: store::Watch) {
        let mut changes = self.gateway.tenants.changes();
        let stopping = self.gateway.tasks.stopping().clone();
        let mut look = tokio::time::interval_at(tokio::time::Instant::now() + STILL_THERE, STILL_THERE);
        let mut fresh = true; // every watch begins with a resync, and at the beginning there is nothing to tell
        loop {
            let moved = tokio::select! {
                () = frames.gone() => return,
                () = stopping.cancelled() => return,
                () = expiry(&self.gateway, &self.caller) => return,
                () = tokio::time::sleep(KEEP_ALIVE) => { frames.keep_alive().await; false }
                _ = look.tick() => { if !self.alive().await { return } false }
                () = changed(&mut changes, &self.caller.tenant) => true,
                wake = watch.next() => match wake {
                    Wake::Topic(Topic::Session(id)) => id == self.id,
                    Wake::Topic(Topic::StreamOwner { session, owner }) if session == self.id && owner != self.owner => return,
                    Wake::Topic(Topic::Catalog) => true,
                    Wake::Topic(_) => false,
                    Wake::Resync => !std::mem::take(&mut fresh),
                },
            };
            if moved {
                tokio::time::sleep(AFTER_THE_ANSWER).await;
                if !self.alive().await || !frames.send(&mcp::frames::list_changed(None)).await {
                    return;
                }
            }
        }
    }

    /// Whether the session is still there; asking keeps it so. A store that does not answer proves nothing.
    async fn alive(&self) -> bool {
        let Some(snapshot) = self.gateway.tenants.find(&self.caller.tenant) else { return false };
        let handle = Handle::Transport(self.id.to_string());
        match self.gateway.executor.session(&snapshot, &self.caller, &handle).await {
            Ok(_) => true,
            Err(failure) => failure.code != domain::Code::SessionNotFound,
        }
    }
}

/// Resolves when this tenant's catalog changed, or may have.
async fn changed(changes: &mut broadcast::Receiver<Tenant>, tenant: &Tenant) {
    loop {
        match changes.recv().await {
            Ok(whose) if whose == *tenant => return,
            Ok(_) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Resolves when the caller's token has ended: a stream must not outlive it.
async fn expiry(gateway: &Gateway, caller: &Caller) {
    let left = |now: Moment| caller.expires_at.since(now);
    loop {
        let left = left(gateway.clock.now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(Duration::from_secs(60))).await;
    }
}

/// A request's id as text, for wake-ups.
pub(super) fn text(id: &Id) -> String {
    match id {
        Id::Text(text) => format!("t{text}"),
        Id::Integer(number) => format!("n{number}"),
    }
}

/// A request's id for a span, cut.
pub(super) fn short(id: &Id) -> String {
    match id {
        Id::Text(text) => text.chars().take(64).collect(),
        Id::Integer(number) => number.to_string(),
    }
}
