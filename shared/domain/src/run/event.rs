//! What can happen to a run.

use super::{Ending, RunState};
use crate::{Moment, Principal};
use serde::{Deserialize, Serialize};

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Yes.
    Approve,
    /// No.
    Reject,
}

/// One person's answer, with the claims used at that moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// Who.
    pub by: Principal,
    /// Yes or no.
    pub verdict: Verdict,
    /// Why, in their words.
    pub reason: Option<String>,
    /// When, by the store's clock.
    pub at: Moment,
    /// The span of the decision, as a `traceparent`, for links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
}

/// One thing that happened to a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum RunEvent {
    /// A person answered.
    Answered(Answer),
    /// The time for it ran out.
    Expired,
    /// The requester took it back.
    Cancelled {
        /// Who said so.
        by: Principal,
    },
    /// A replica took it, to act; or took it over from one that fell silent.
    Claimed {
        /// The replica.
        owner: String,
        /// Until when it may be silent.
        lease_until: Moment,
        /// The span in which it acts, as a `traceparent`, for links.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        span: Option<String>,
    },
    /// The owner still lives.
    Renewed {
        /// The replica.
        owner: String,
        /// The epoch it holds.
        epoch: u64,
        /// Until when it may now be silent.
        lease_until: Moment,
    },
    /// The owner knows how it ended.
    Finished {
        /// The replica.
        owner: String,
        /// The epoch it holds.
        epoch: u64,
        /// How.
        ending: Ending,
    },
    /// Nobody knows how it ended: the owner says so, or its lease is over.
    Lost {
        /// The replica and its epoch, if it is the owner who says so.
        by: Option<(String, u64)>,
        /// What is known.
        ending: Ending,
    },
    /// An unknown outcome was settled.
    Reconciled {
        /// Whether it was done.
        succeeded: bool,
        /// What the knowledge rests on.
        ending: Ending,
    },
    /// The requester was handed the ending.
    Delivered,
}

/// Why an event does not apply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAnEdge {
    /// The run is not where this could happen.
    #[error("a run that is {} cannot do that", .0.as_str())]
    State(RunState),
    /// The requester cannot answer its own request.
    #[error("a run cannot be answered by the one who asked for it")]
    OwnRequest,
    /// Somebody else has decided already.
    #[error("the run was already decided by {} at {}", .0.by.subject, .0.at)]
    AlreadyDecided(Box<Answer>),
    /// This person has answered already, in the same way: nothing to write.
    #[error("this person has answered already")]
    Repeated,
    /// Too late.
    #[error("the time for it is over")]
    Late,
    /// Too early: the time that would allow it has not come.
    #[error("it is not time for that yet")]
    Early,
    /// Another replica, or an older epoch of the same.
    #[error("the run is held by another epoch")]
    Fenced,
    /// The tool may not be sent again.
    #[error("a run that is not idempotent is never taken over")]
    NotIdempotent,
}
