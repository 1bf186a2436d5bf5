//! The connection to one target of one tenant: the slot and the breaker that a request passes, its span, and what its
//! answer or its silence says about the target.
//!
//! What is sent, with which credential, and what a status means is the toolset's own.

use crate::load::{ConnectionLoad, ConnectionState};
use crate::{TargetSlot, TargetWords, codes};
use domain::{Code, Failure};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument, Span};

/// Silence shorter than this says nothing about the target: the caller was in a hurry.
const SILENCE: Duration = Duration::from_secs(2);

/// How many requests may be under way to one target, and whether it answered lately.
#[derive(Debug)]
pub struct Connection(Arc<ConnectionState>);

/// Why there is no answer. `C` says what is wrong with the credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer<C> {
    /// The credential cannot be used; nothing was sent.
    Credential(C),
    /// The address leads where it may not; nothing was sent.
    Refused,
    /// The way is closed after failures; nothing was sent.
    Closed(Duration),
    /// Too many requests are under way; nothing was sent.
    Crowded,
    /// There was no connection; nothing was sent.
    Unconnected,
    /// The connection broke while the answer was awaited.
    Broken,
    /// No answer in time.
    Late,
    /// The answer is larger than we take.
    TooLarge,
}

impl Connection {
    /// A connection with so many slots to a target of this kind, which is configured under this name.
    pub fn new(kind: &str, name: &str, slots: usize) -> Connection {
        Connection(ConnectionState::new(format!("{kind}/{name}"), slots))
    }

    /// How hard the target is pressed at the moment.
    pub fn load(&self) -> ConnectionLoad {
        self.0.load(Instant::now())
    }

    /// The next slot that is free.
    pub async fn slot<C>(&self, deadline: Instant) -> Result<TargetSlot, NoAnswer<C>> {
        self.0.slots.take(deadline).await.map_err(|_| NoAnswer::Crowded)
    }

    /// Sends once, unless the breaker is open, and tells the breaker what came of it.
    pub async fn send_once<T, C>(
        &self,
        deadline: Instant,
        sending: impl Future<Output = Result<T, NoAnswer<C>>>,
    ) -> Result<T, NoAnswer<C>> {
        let attempt = self.0.breaker.enter(Instant::now()).map_err(NoAnswer::Closed)?;
        let began = Instant::now();
        let answer = timeout_at(deadline, sending).await.unwrap_or(Err(NoAnswer::Late));
        match &answer {
            Ok(_) | Err(NoAnswer::TooLarge) => attempt.answered(Instant::now()),
            Err(NoAnswer::Late) if began.elapsed() < SILENCE => {}
            Err(NoAnswer::Unconnected | NoAnswer::Broken | NoAnswer::Late) => attempt.lost(Instant::now()),
            Err(NoAnswer::Credential(_) | NoAnswer::Refused | NoAnswer::Closed(_) | NoAnswer::Crowded) => {}
        }
        answer
    }
}

/// The span of one HTTP request to a target, for [`in_span`].
#[macro_export]
macro_rules! request_span {
    ($name:literal, $method:expr, $route:expr, $tenant:expr) => {
        ::tracing::info_span!(
            $name,
            otel.kind = "client",
            http.request.method = $method,
            http.route = $route,
            quartermaster.tenant = $tenant.as_str(),
            http.response.status_code = ::tracing::field::Empty,
            error.type = ::tracing::field::Empty,
        )
    };
}

/// Sends in a span made by [`request_span!`](crate::request_span), and notes there what came back.
pub async fn in_span<T, C>(
    span: Span,
    status: impl FnOnce(&T) -> u16,
    sending: impl Future<Output = Result<T, NoAnswer<C>>>,
) -> Result<T, NoAnswer<C>> {
    let answer = sending.instrument(span.clone()).await;
    match answer.as_ref().map(status) {
        Ok(status) => {
            span.record("http.response.status_code", status);
            if status >= 400 {
                span.record("error.type", status.to_string());
            }
        }
        Err(lost) => {
            span.record("error.type", lost.as_str());
        }
    }
    answer
}

impl<C> NoAnswer<C> {
    fn as_str(&self) -> &'static str {
        match self {
            NoAnswer::Credential(_) => "credential",
            NoAnswer::Refused => "address_refused",
            NoAnswer::Closed(_) => "breaker_open",
            NoAnswer::Crowded => "no_slot",
            NoAnswer::Unconnected => "no_connection",
            NoAnswer::Broken => "broken_connection",
            NoAnswer::Late => "deadline",
            NoAnswer::TooLarge => "too_large",
        }
    }
}

/// How failures speak of a kind of target that gave no answer.
#[derive(Debug, Clone, Copy)]
pub struct NoAnswerWords {
    /// How the target is called.
    pub target: TargetWords,
    /// What to do where an answer is too large.
    pub narrow: &'static str,
    /// What may have happened when a write's answer is lost.
    pub change: &'static str,
    /// Where to look for it.
    pub look: &'static str,
}

impl NoAnswerWords {
    /// The failure of a read without an answer.
    pub fn read<C: Display>(&self, lost: &NoAnswer<C>) -> Failure {
        match lost {
            NoAnswer::Late => Failure::new(Code::Deadline, self.late()).next("narrow the call, or try later"),
            NoAnswer::Broken => unreachable(self.broken()),
            NoAnswer::TooLarge => Failure::new(Code::ResultTooLarge, self.too_large()).next(self.narrow),
            NoAnswer::Credential(_)
            | NoAnswer::Refused
            | NoAnswer::Closed(_)
            | NoAnswer::Crowded
            | NoAnswer::Unconnected => self.not_sent(lost),
        }
    }

    /// The failure of a write without an answer. Unless it is certain that nothing was sent, nobody knows what came of it.
    pub fn write<C: Display>(&self, lost: &NoAnswer<C>) -> Failure {
        match lost {
            NoAnswer::Late => self.unknown(&self.late()),
            NoAnswer::Broken => self.unknown(&self.broken()),
            NoAnswer::TooLarge => self.unknown(&self.too_large()),
            NoAnswer::Credential(_)
            | NoAnswer::Refused
            | NoAnswer::Closed(_)
            | NoAnswer::Crowded
            | NoAnswer::Unconnected => self.not_sent(lost),
        }
    }

    /// A write was sent, and nobody knows what came of it.
    pub fn unknown(&self, message: &str) -> Failure {
        Failure::new(Code::OutcomeUnknown, format!("{message}; {} may have happened", self.change))
            .next(format!("do not call again; look at {}", self.look))
    }

    fn not_sent<C: Display>(&self, lost: &NoAnswer<C>) -> Failure {
        let TargetWords { one, argument, .. } = self.target;
        match lost {
            NoAnswer::Credential(bad) => {
                Failure::new(codes::TOOLSET_NOT_CONFIGURED, format!("the {one} cannot be used: {bad}"))
                    .next(format!("ask an admin of the tenant to correct the {argument}'s configuration"))
            }
            NoAnswer::Refused => {
                Failure::new(codes::HOST_DENIED, format!("the {one}'s address leads where it may not"))
                    .next(format!("ask an admin to check the {argument}'s address; do not retry"))
            }
            NoAnswer::Closed(left) => {
                unreachable(format!("the {one} could not be reached lately and is left alone for a moment"))
                    .retry_after(*left)
            }
            NoAnswer::Crowded => {
                Failure::new(codes::TARGET_BUSY, format!("too many calls to this {one} are under way"))
                    .next("wait, then call again")
                    .retry_after_ms(1000)
            }
            NoAnswer::Unconnected | NoAnswer::Broken | NoAnswer::Late | NoAnswer::TooLarge => {
                unreachable(format!("there is no connection to the {one}"))
            }
        }
    }

    fn late(&self) -> String {
        format!("the {} did not answer in time", self.target.one)
    }

    fn broken(&self) -> String {
        format!("the connection to the {} broke", self.target.one)
    }

    fn too_large(&self) -> String {
        format!("the {}'s answer is larger than is taken", self.target.one)
    }
}

fn unreachable(message: String) -> Failure {
    Failure::new(codes::TARGET_UNREACHABLE, message).next("wait, then call again").retry_after_ms(5000)
}

/// Whether the status of a write's answer leaves open what happened: every error of a server but the one that says it
/// did not begin.
pub fn is_ambiguous(status: u16) -> bool {
    (500..600).contains(&status) && status != 503
}

/// How often a read is repeated while its target is busy, and how long between.
#[derive(Debug)]
pub struct BusyRetries {
    wait: Duration,
    left: u32,
}

impl BusyRetries {
    const MOST: u32 = 2;
    const LONGEST_WAIT: Duration = Duration::from_secs(2);

    /// As often as a read may be repeated; the first wait is this long, each next one twice as long.
    pub fn new(first_wait: Duration) -> BusyRetries {
        BusyRetries { wait: first_wait, left: BusyRetries::MOST }
    }

    /// Never, for what is posted.
    pub fn none() -> BusyRetries {
        BusyRetries { wait: Duration::ZERO, left: 0 }
    }

    /// How long to wait before the next try: as long as the target asks, where it does. `None`: there is no next try.
    pub fn next_wait(&mut self, status: u16, asked: Option<Duration>, deadline: Instant) -> Option<Duration> {
        let wait = asked.unwrap_or(self.wait);
        if !matches!(status, 429 | 503 | 504) || self.left == 0 || Instant::now() + wait >= deadline {
            return None;
        }
        (self.wait, self.left) = ((self.wait * 2).min(BusyRetries::LONGEST_WAIT), self.left - 1);
        Some(wait)
    }
}

#[cfg(test)]
mod tests;
