//! What arrives from a server that answers all requests over one stream, and whom each of it is for.
//!
//! A process writes to its standard output, an older HTTP server to one stream of events; either way an answer finds
//! its request by its id. It goes to whoever waits, as the server wrote it, and the client library hears that the request
//! is over. A second answer finds nobody.

use super::exchange::LinkExchange;
use super::fault::LinkFault;
use super::frame::{self, ServerMessage};
use super::measure::{AnswerCaps, Measure};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The messages of one stream, each within its bounds.
pub(crate) struct Inbox {
    caps: AnswerCaps,
    waiting: Waiters,
    bell: Arc<Notify>,
}

/// Who waits for an answer, by the id of the request.
#[derive(Default)]
struct Waiters(Mutex<HashMap<String, Waiter>>);

struct Waiter {
    /// `None`: a request of the client library itself, such as the one that opens the line.
    exchange: Option<LinkExchange>,
    id: RequestId,
    token: Value,
}

impl Inbox {
    /// Nobody waits yet. The bell is rung when the server says that its tools changed.
    pub(crate) fn new(caps: AnswerCaps, bell: Arc<Notify>) -> Inbox {
        Inbox { caps, waiting: Waiters::default(), bell }
    }

    /// Somebody waits for the answer to this request from now on: the exchange, or the client library itself.
    pub(crate) fn await_answer(&self, exchange: Option<LinkExchange>, id: RequestId, token: Value) {
        self.waiting.add(Waiter { exchange, id, token });
    }

    /// What came of everything that is waited for.
    pub(crate) fn settle_all(&self, fault: &LinkFault) {
        self.waiting.settle_all(fault);
    }

    /// What the client library is to hear of a message, if anything. `probe` is the question for the era, if it is open.
    pub(crate) fn take(
        &self,
        text: &[u8],
        probe: Option<&RequestId>,
    ) -> Result<Option<ServerJsonRpcMessage>, LinkFault> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(None);
        }
        if Measure::whole(self.caps, text).is_err() {
            let too_much = LinkFault::TooLarge("more values, or deeper ones, than it may");
            let waiter = id_alone(text).and_then(|id| self.waiting.remove(&id));
            return Ok(waiter.and_then(|waiter| waiter.settle(Err(too_much))));
        }
        Ok(match ServerMessage::read(text)? {
            ServerMessage::Answer(answer) => {
                let Some(waiter) = answer.id().and_then(|id| self.waiting.remove(id)) else { return Ok(None) };
                if probe == Some(&waiter.id) && !answer.speaks_modern() {
                    return Ok(Some(frame::unknown_method(&waiter.id)));
                }
                match waiter.exchange {
                    Some(_) => waiter.settle(answer.into_outcome()),
                    None => answer.typed(&waiter.id).ok(),
                }
            }
            // Declined by the library, which offers nothing.
            ServerMessage::Request { .. } => serde_json::from_slice(text).ok(),
            ServerMessage::Notice { method, params } => {
                match method.as_str() {
                    frame::LIST_CHANGED => self.bell.notify_one(),
                    frame::PROGRESS => self.waiting.report(&params),
                    _ => {}
                }
                None
            }
        })
    }
}

impl Waiters {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Waiter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, waiter: Waiter) {
        let mut waiting = self.lock();
        // Those who gave up would stay for ever if the server never answers them.
        let wanted = |exchange: &LinkExchange| !exchange.withdrawn().is_cancelled();
        waiting.retain(|_, waiter| waiter.exchange.as_ref().is_none_or(wanted));
        waiting.insert(waiter.id.to_string(), waiter);
    }

    fn remove(&self, id: &Value) -> Option<Waiter> {
        self.lock().remove(&key(id))
    }

    fn settle_all(&self, fault: &LinkFault) {
        for (_, waiter) in self.lock().drain() {
            drop(waiter.settle(Err(fault.clone())));
        }
    }

    fn report(&self, params: &Value) {
        let Some(token) = params.get("progressToken") else { return };
        let found = self.lock().values().find(|waiter| &waiter.token == token).and_then(|w| w.exchange.clone());
        if let Some(exchange) = found {
            exchange.report(params);
        }
    }
}

impl Waiter {
    /// Leaves the outcome with whoever waits, and gives what the client library is to hear.
    fn settle(self, outcome: Result<Value, LinkFault>) -> Option<ServerJsonRpcMessage> {
        self.exchange?.settle(outcome);
        Some(frame::over(&self.id))
    }
}

/// An id as a key; some servers write numbers as texts.
fn key(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}

/// The id of a message that is too large to be read whole. Nothing else of it is kept.
fn id_alone(line: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct MessageWithId {
        id: RequestId,
    }
    serde_json::from_slice(line).ok().map(|MessageWithId { id }| id.into_json_value())
}
