//! How often a session that goes on reading text from outside says so again.
//!
//! The taint of a session is written once. What it means for new sessions of the same principal ends some time after, so
//! a session that still reads has to renew it: seldom, and behind the call that reads.

use domain::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many sessions are remembered before all are forgotten; then some renew once more than they need.
const MOST: usize = 10_000;

/// When sessions last said that they read text from outside, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct TaintRefresh(Mutex<HashMap<SessionId, Instant>>);

impl TaintRefresh {
    /// Notes that a session says so now.
    pub(crate) fn note(&self, session: SessionId, now: Instant) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MOST {
            sessions.clear();
        }
        sessions.insert(session, now);
    }

    /// Whether a session has to say it again: a quarter of the time that it counts for is over. If so, it is noted.
    pub(crate) fn due(&self, session: SessionId, counts_for: Duration, now: Instant) -> bool {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = sessions.get(&session).is_some_and(|last| now.saturating_duration_since(*last) < counts_for / 4);
        drop(sessions);
        let due = !counts_for.is_zero() && !recent;
        if due {
            self.note(session, now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_says_it_again_when_a_quarter_of_the_time_is_over() {
        let (sessions, now) = (TaintRefresh::default(), Instant::now());
        let (a, b) = (SessionId::from_random([1; 16]), SessionId::from_random([2; 16]));
        let hour = Duration::from_secs(3600);
        sessions.note(a, now);
        assert!(!sessions.due(a, hour, now + Duration::from_secs(899)));
        assert!(sessions.due(a, hour, now + Duration::from_secs(900)));
        assert!(!sessions.due(a, hour, now + Duration::from_secs(901)), "it has just said so");
        assert!(sessions.due(b, hour, now), "one that began tainted has not said anything yet");
        assert!(!sessions.due(b, Duration::ZERO, now + hour), "nothing is carried over");
    }
}
