//! What can go wrong on the way to a server and back, and the one sentence each of it becomes.
//!
//! A fault holds no address, no header and no text of the server but the message of an error it answered with, which
//! is masked when the sentence is made.

use crate::codes;
use domain::{Code, Effect, Failure};
use serde_json::json;
use std::time::Duration;

/// The longest pause a server can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Why an exchange gave nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkFault {
    /// The address may not be dialled, or nobody answers there. Which of it is nobody's business.
    Refused,
    /// It does not take our credentials.
    Credentials,
    /// It has too much to do; nothing was done.
    Busy(Option<Duration>),
    /// It failed, and says no more than that.
    Failed(Option<Duration>),
    /// The line broke before the answer was complete.
    Broken,
    /// It does not know our session any more, and therefore did nothing.
    Expired,
    /// What it said is not the protocol.
    NotMcp(&'static str),
    /// It said more than it may.
    TooLarge(&'static str),
    /// No answer in time.
    Late,
    /// It answered with an error of the protocol.
    Error { code: i64, message: String },
    /// There is no token for it, so nothing was sent.
    NoToken(TokenFault),
}

/// Why an authorization server gave no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenFault {
    /// Its address may not be dialled, or nobody answers there.
    Unreachable,
    /// It does not take our client's secret, or does not give what we ask for; perhaps with an error of the standard.
    Rejected(Option<&'static str>),
    /// It fails, or is silent.
    Failing(Option<Duration>),
    /// What it said is no token.
    NotAToken(&'static str),
}

impl From<TokenFault> for LinkFault {
    fn from(fault: TokenFault) -> LinkFault {
        LinkFault::NoToken(fault)
    }
}

impl TokenFault {
    /// What a caller is told it is.
    pub(crate) fn code(&self) -> Code {
        match self {
            TokenFault::Unreachable => codes::UPSTREAM_REFUSED,
            TokenFault::Rejected(_) => target::codes::CREDENTIALS_REFUSED,
            TokenFault::Failing(_) | TokenFault::NotAToken(_) => codes::UPSTREAM_UNAVAILABLE,
        }
    }

    fn failure(self) -> Failure {
        let failure = |what: &str| Failure::new(self.code(), format!("no token for the server: {what}"));
        match &self {
            TokenFault::Unreachable => failure("the authorization server cannot be reached at its address"),
            TokenFault::Rejected(error) => {
                let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
                failure(&format!("the authorization server does not take our client credentials{error}"))
                    .next("nothing was sent; ask an administrator of the tenant to look at the client and its secret")
            }
            TokenFault::Failing(pause) => {
                paused(failure("the authorization server does not answer").next("nothing was sent; try later"), *pause)
            }
            TokenFault::NotAToken(what) => {
                failure(&format!("the authorization server gives none that can be used: {what}"))
                    .next("nothing was sent; ask the operator of the authorization server")
            }
        }
    }
}

/// What is at stake when an exchange gives nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallStakes {
    /// What the call was to do.
    pub(crate) effect: Effect,
    /// Whether any of it may have left.
    pub(crate) sent: bool,
}

impl CallStakes {
    /// Nothing can have happened.
    pub(crate) const NONE: CallStakes = CallStakes { effect: Effect::Read, sent: false };

    /// Whether something may have happened of which nobody knows.
    fn open(self) -> bool {
        match self.effect {
            Effect::Read => false,
            Effect::Change | Effect::Disrupt => self.sent,
        }
    }
}

impl LinkFault {
    /// The sentence. Where a change may have happened and no answer says so, that is what it says.
    pub(crate) fn failure(self, stakes: CallStakes) -> Failure {
        match self {
            LinkFault::Refused => Failure::new(codes::UPSTREAM_REFUSED, "the server cannot be reached at its address"),
            LinkFault::Credentials => {
                Failure::new(target::codes::CREDENTIALS_REFUSED, "the server does not take our credentials")
                    .next("ask an administrator of the tenant to look at the secret of this server")
            }
            LinkFault::Busy(pause) => {
                paused(Failure::new(codes::UPSTREAM_UNAVAILABLE, "the server has too much to do"), pause)
            }
            // Whoever stands before a server also says 502 or 503 when the line behind it broke half-way.
            LinkFault::Failed(_) | LinkFault::Broken | LinkFault::Late if stakes.open() => unknown(),
            LinkFault::Failed(pause) => {
                paused(Failure::new(codes::UPSTREAM_UNAVAILABLE, "the server fails for now"), pause)
            }
            LinkFault::Broken => Failure::new(codes::UPSTREAM_UNAVAILABLE, "the connection to the server broke"),
            LinkFault::Expired => Failure::new(codes::UPSTREAM_UNAVAILABLE, "the server forgets its sessions at once"),
            LinkFault::Late => Failure::new(Code::Deadline, "the server did not answer in time"),
            LinkFault::NotMcp(what) => answered(
                Failure::new(codes::UPSTREAM_PROTOCOL, format!("the server does not speak MCP: {what}")),
                stakes,
            ),
            LinkFault::TooLarge(what) => {
                answered(Failure::new(Code::ResultTooLarge, format!("the server's answer has {what}")), stakes)
            }
            LinkFault::Error { code, message } => {
                let said = redact::message(&message);
                Failure::new(codes::UPSTREAM_ERROR, format!("the server answered with an error: {said}"))
                    .details(json!({ "code": code }))
            }
            LinkFault::NoToken(fault) => fault.failure(),
        }
    }
}

fn unknown() -> Failure {
    Failure::new(Code::OutcomeUnknown, "the call was sent to the server and no answer came back")
        .next("look at what it was to change before calling it again")
}

/// An answer came and cannot be used; of a change it is not known whether it happened.
fn answered(failure: Failure, stakes: CallStakes) -> Failure {
    if stakes.open() { failure.next("it may have done what was asked: look before calling it again") } else { failure }
}

fn paused(failure: Failure, pause: Option<Duration>) -> Failure {
    match pause {
        Some(pause) => failure.retry_after(pause.min(LONGEST_PAUSE)),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(fault: LinkFault, effect: Effect, sent: bool) -> Code {
        fault.failure(CallStakes { effect, sent }).code
    }

    #[test]
    fn what_may_have_happened_is_said_to_be_unknown() {
        for fault in [LinkFault::Failed(None), LinkFault::Broken, LinkFault::Late] {
            assert_eq!(code(fault.clone(), Effect::Change, true), Code::OutcomeUnknown, "{fault:?}");
            assert_eq!(code(fault.clone(), Effect::Disrupt, true), Code::OutcomeUnknown, "{fault:?}");
            assert_ne!(code(fault.clone(), Effect::Change, false), Code::OutcomeUnknown, "{fault:?}");
            assert_ne!(code(fault, Effect::Read, true), Code::OutcomeUnknown);
        }
        assert_eq!(code(LinkFault::Late, Effect::Read, true), Code::Deadline);
        assert_eq!(code(LinkFault::Busy(None), Effect::Change, true), codes::UPSTREAM_UNAVAILABLE);
        assert_eq!(code(LinkFault::Expired, Effect::Change, true), codes::UPSTREAM_UNAVAILABLE);
    }

    #[test]
    fn a_pause_is_passed_on_and_bounded() {
        let pause = |secs| LinkFault::Busy(Some(Duration::from_secs(secs))).failure(CallStakes::NONE).retry_after_ms;
        assert_eq!(pause(2), Some(2_000));
        assert_eq!(pause(1_000_000), Some(300_000));
    }

    #[test]
    fn the_message_of_a_server_is_masked_and_cut() {
        let message = format!("password = correcthorsebattery\n{}", "x".repeat(10_000));
        let failure = LinkFault::Error { code: -32000, message }.failure(CallStakes::NONE);
        assert!(!failure.message.contains("correcthorse"), "{}", failure.message);
        assert!(failure.message.len() < 1_000);
        assert_eq!(failure.details, Some(json!({ "code": -32000 })));
    }
}
