//! Log lines about requests that were let in by nobody: a line per reason every ten seconds, with how often.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often a reason is logged at most.
const EVERY: Duration = Duration::from_secs(10);

/// When each reason was last logged, and how often it came since. Reasons are fixed words, so there are few.
#[derive(Debug, Default)]
pub struct RefusalLog(Mutex<HashMap<&'static str, ReasonCount>>);

#[derive(Debug)]
struct ReasonCount {
    logged: Instant,
    since: u64,
}

impl RefusalLog {
    /// Notes a refusal, and logs it unless the same reason was logged a moment ago.
    pub fn note(&self, reason: &'static str) {
        telemetry::metrics::AUTH_FAILURES.add([reason], 1);
        if let Some(times) = self.due(reason, Instant::now()) {
            tracing::info!(reason, times, "requests were refused before a call");
        }
    }

    /// How many refusals a line would stand for, if one is due.
    fn due(&self, reason: &'static str, now: Instant) -> Option<u64> {
        let mut reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(count) = reasons.get_mut(reason) else {
            reasons.insert(reason, ReasonCount { logged: now, since: 0 });
            return Some(1);
        };
        count.since += 1;
        if now.saturating_duration_since(count.logged) < EVERY {
            return None;
        }
        count.logged = now;
        Some(std::mem::take(&mut count.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_logged_once_and_then_with_how_often_it_came() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        assert_eq!(log.due("expired", now), Some(1));
        assert!((0..999).all(|_| log.due("expired", now).is_none()));
        assert_eq!(log.due("not_a_token", now), Some(1), "another reason is another line");
        assert_eq!(log.due("expired", now + EVERY), Some(1_000));
        assert_eq!(log.due("expired", now + EVERY), None);
    }
}
