//! One request and what became of it, carried past the client library.
//!
//! The library types what it is given and drops what it does not know, so the answer goes round it: a request carries
//! its [`LinkExchange`] in its extensions, which are never sent; the transport finds it there, with the bounds it must keep,
//! and leaves the answer in it as the server wrote it.

use super::LinkLimits;
use super::fault::{CallStakes, LinkFault};
use super::measure::AnswerCaps;
use catalog::Progress;
use domain::Effect;
use egress::header::HeaderMap;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _};
use serde_json::Value;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// Cheap to clone; clones are the same exchange.
#[derive(Clone)]
pub(crate) struct LinkExchange(Arc<ExchangeState>);

struct ExchangeState {
    limits: LinkLimits,
    progress: Progress,
    /// The trace of whoever asks: the client library sends from a task of its own, which knows no span.
    trace: HeaderMap,
    withdrawn: CancellationToken,
    settled: CancellationToken,
    sent: AtomicBool,
    outcome: Mutex<Option<Result<Value, LinkFault>>>,
}

impl LinkExchange {
    pub(crate) fn new(limits: &LinkLimits, progress: &Progress) -> LinkExchange {
        LinkExchange(Arc::new(ExchangeState {
            limits: limits.clone(),
            progress: progress.clone(),
            trace: egress::trace_headers(),
            withdrawn: CancellationToken::new(),
            settled: CancellationToken::new(),
            sent: AtomicBool::new(false),
            outcome: Mutex::new(None),
        }))
    }

    /// The exchange that a message belongs to, if it is one of ours.
    pub(crate) fn of(message: &ClientJsonRpcMessage) -> Option<&LinkExchange> {
        match message {
            ClientJsonRpcMessage::Request(request) => request.request.extensions().get::<LinkExchange>(),
            ClientJsonRpcMessage::Response(_)
            | ClientJsonRpcMessage::Notification(_)
            | ClientJsonRpcMessage::Error(_) => None,
        }
    }

    pub(crate) fn limits(&self) -> &LinkLimits {
        &self.0.limits
    }

    /// The headers by which the server can continue the trace.
    pub(crate) fn trace(&self) -> &HeaderMap {
        &self.0.trace
    }

    /// Cancelled when nobody waits for the answer any more.
    pub(crate) fn withdrawn(&self) -> &CancellationToken {
        &self.0.withdrawn
    }

    /// Cancelled when it is known what came of it.
    pub(crate) fn settled(&self) -> &CancellationToken {
        &self.0.settled
    }

    /// Notes whether any of the request may have left.
    pub(crate) fn note_sent(&self, sent: bool) {
        self.0.sent.store(sent, Ordering::Release);
    }

    /// Leaves what came of it. The first word counts: a second answer changes nothing.
    pub(crate) fn settle(&self, outcome: Result<Value, LinkFault>) {
        self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
        self.0.settled.cancel();
    }

    /// What came of it, if anything did.
    pub(crate) fn take_outcome(&self) -> Option<Result<Value, LinkFault>> {
        self.0.outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What is at stake if nothing comes of it.
    pub(crate) fn stakes(&self, effect: Effect) -> CallStakes {
        CallStakes { effect, sent: self.0.sent.load(Ordering::Acquire) }
    }

    /// Passes on the parameters of a progress notification.
    pub(crate) fn report(&self, params: &Value) {
        let whole = |name: &str| params.get(name).and_then(Value::as_f64).filter(|n| n.is_finite() && *n >= 0.0);
        let Some(done) = whole("progress") else { return };
        let words = params.get("message").and_then(Value::as_str).map(redact::message);
        self.0.progress.report(done as u64, whole("total").map(|total| total as u64), words.as_deref());
    }
}

impl LinkLimits {
    pub(crate) fn caps(&self) -> AnswerCaps {
        AnswerCaps { nodes: self.nodes, depth: self.depth }
    }
}

/// The library prints extensions; there is nothing in here for a log.
impl fmt::Debug for LinkExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange")
    }
}
