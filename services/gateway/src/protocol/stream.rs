//! Event streams: bounded, kept alive, ended by whoever leaves first.
//!
//! A stream holds no meaning: it says when to look, and losing one costs the client a look. Wake-ups come from the
//! store (a session moved, on whichever replica) and from this process (a tenant's catalog changed).

use crate::app::Gateway;
use crate::protocol::exchange::{McpAnswer, McpExchange};
use crate::protocol::sink::{self, KEEP_ALIVE, Sink};
use domain::{Caller, Code, Failure, SessionId, Tenant, TokenScope};
use executor::{Handle, SlotGuard};
use mcp::{Era, Id};
use std::sync::Arc;
use std::time::Duration;
use store::{Topic, WakeUp};
use tokio::sync::broadcast;

/// A notice goes out a moment after the wake-up, so that it does not overtake the answer that caused it.
const AFTER_THE_ANSWER: Duration = Duration::from_millis(25);
/// How often the token of an open stream is verified again at least.
const VERIFY_EVERY: Duration = Duration::from_secs(60);
/// An open stream keeps its session alive; looked at this often.
const STILL_THERE: Duration = Duration::from_secs(300);

/// `subscriptions/listen`: notices about the tenant's catalog, in the modern era.
pub(super) fn listen(exchange: &McpExchange, id: Id, list_changed: bool) -> McpAnswer {
    let place = match exchange.gateway.executor.admit_stream(&exchange.caller) {
        Ok(place) => place,
        Err(failure) => return exchange.refuse(Era::Modern, Some(id), failure),
    };
    let (sink, frames) = sink::channel();
    let mut changes = exchange.gateway.tenants.changes();
    let (gateway, caller) = (Arc::clone(&exchange.gateway), Arc::clone(&exchange.caller));
    exchange.gateway.tasks.spawn("listen", async move {
        let (_place, _open) = (place, telemetry::metrics::STREAMS_OPEN.enter(["modern"]));
        let _awake = gateway.tenants.hold(&caller.tenant);
        let stopping = gateway.tasks.stopping().clone();
        sink.send(mcp::frames::acknowledged(&id, list_changed)).await;
        loop {
            tokio::select! {
                () = sink.gone() => return,
                () = stopping.cancelled() => break,
                () = expiry(&gateway, &caller) => break,
                () = tokio::time::sleep(KEEP_ALIVE) => sink.keep_alive().await,
                () = changed(&mut changes, &caller.tenant) => {
                    if list_changed && !sink.send(mcp::frames::list_changed(Some(&id))).await {
                        return;
                    }
                }
            }
        }
        sink.send(mcp::frames::listen_end(&id)).await;
    });
    McpAnswer::Streaming(frames)
}

/// Sends the notices of one legacy session. The newest stream of a session is the only one.
pub async fn follow_session(exchange: &McpExchange, session: String) -> McpAnswer {
    let McpExchange { gateway, caller, snapshot, .. } = exchange;
    if let Err(failure) = exchange.require(TokenScope::ToolsRead) {
        return exchange.refuse(Era::Modern, None, failure);
    }
    // Opening one is a request like any other; staying open takes a place among streams.
    let (_request, place) =
        match exchange.admit().and_then(|request| Ok((request, gateway.executor.admit_stream(caller)?))) {
            Ok(places) => places,
            Err(failure) => return exchange.refuse(Era::Modern, None, failure),
        };
    let id = match gateway.executor.session(snapshot, caller, &Handle::Transport(session)).await {
        Ok(versioned) => versioned.session.id,
        Err(failure) => return exchange.refuse(Era::Modern, None, failure),
    };
    let store = gateway.store.of(&caller.tenant);
    // Drawn here and never the client's word: two streams of one name would both believe they are the newest.
    let Ok(name) = store::random_bits() else {
        let failure = Failure::new(Code::Internal, "the system gave no randomness");
        return exchange.refuse(Era::Modern, None, failure);
    };
    let owner = format!("{}/{}", gateway.replica, domain::json::hex(&name));
    // Watched before the stream is taken, so that a later taker is heard.
    let watch = store.watch();
    if let Err(error) = store.sessions().take_stream(id, &owner, gateway.lives).await {
        tracing::warn!(%error, "a stream could not be taken");
        return exchange.refuse(Era::Modern, None, Failure::new(error.code(), "the state store did not answer"));
    }
    let follower = Follower { gateway: Arc::clone(gateway), caller: Arc::clone(caller), id, owner, _place: place };
    let (sink, frames) = sink::channel();
    gateway.tasks.spawn("session stream", follower.run(sink, watch));
    McpAnswer::Streaming(frames)
}

struct Follower {
    gateway: Arc<Gateway>,
    caller: Arc<Caller>,
    id: SessionId,
    owner: String,
    _place: SlotGuard,
}

impl Follower {
    async fn run(self, sink: Sink, mut watch: store::TenantWatch) {
        let _open = telemetry::metrics::STREAMS_OPEN.enter(["legacy"]);
        let _awake = self.gateway.tenants.hold(&self.caller.tenant);
        let mut changes = self.gateway.tenants.changes();
        let stopping = self.gateway.tasks.stopping().clone();
        let mut look = tokio::time::interval_at(tokio::time::Instant::now() + STILL_THERE, STILL_THERE);
        let mut fresh = true; // every watch begins with a resync, and at the beginning there is nothing to tell
        loop {
            let moved = tokio::select! {
                () = sink.gone() => return,
                () = stopping.cancelled() => return,
                () = expiry(&self.gateway, &self.caller) => return,
                () = tokio::time::sleep(KEEP_ALIVE) => { sink.keep_alive().await; false }
                _ = look.tick() => { if !self.alive().await { return } false }
                () = changed(&mut changes, &self.caller.tenant) => true,
                wake = watch.next() => match wake {
                    WakeUp::Topic(Topic::Session(id)) => id == self.id,
                    WakeUp::Topic(Topic::StreamOwner { session, owner }) if session == self.id && owner != self.owner => return,
                    WakeUp::Topic(Topic::Catalog) => true,
                    WakeUp::Topic(_) => false,
                    WakeUp::Resync => !std::mem::take(&mut fresh),
                },
            };
            if moved {
                tokio::time::sleep(AFTER_THE_ANSWER).await;
                if !self.alive().await || !sink.send(mcp::frames::list_changed(None)).await {
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
            Err(failure) => failure.code != Code::SessionNotFound,
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

/// Resolves when the caller's token has ended or its key was withdrawn: a stream must not outlive them.
async fn expiry(gateway: &Gateway, caller: &Caller) {
    loop {
        let now = gateway.clock.now();
        let left = caller.expires_at.since(now);
        if left.is_zero() || !gateway.verifier.still_vouches(caller, now).await {
            return;
        }
        tokio::time::sleep(left.min(VERIFY_EVERY)).await;
    }
}
