//! Which sessions called through this process lately, for one gauge.

use domain::SessionId;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long after a call its session counts as active.
const LATELY: Duration = Duration::from_secs(5 * 60);
/// How many sessions are remembered; the gauge says no more than this.
const MOST: usize = 50_000;

/// When each session last called.
#[derive(Debug, Default)]
pub(crate) struct ActiveSessions(Mutex<HashMap<SessionId, Instant>>);

impl ActiveSessions {
    /// Notes that a session calls.
    pub(crate) fn note(&self, session: SessionId, now: Instant) {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() < MOST || sessions.contains_key(&session) {
            sessions.insert(session, now);
        }
    }

    /// How many there are; those that are silent for long are forgotten.
    pub(crate) fn count(&self, now: Instant) -> usize {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, last| now.saturating_duration_since(*last) < LATELY);
        sessions.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_counts_for_five_minutes_after_its_last_call() {
        let (sessions, now) = (ActiveSessions::default(), Instant::now());
        sessions.note(SessionId::from_random([1; 16]), now);
        sessions.note(SessionId::from_random([2; 16]), now);
        sessions.note(SessionId::from_random([1; 16]), now + LATELY / 2);
        assert_eq!(sessions.count(now + LATELY / 2), 2);
        assert_eq!(sessions.count(now + LATELY), 1);
        assert_eq!(sessions.count(now + LATELY * 2), 0);
    }
}
