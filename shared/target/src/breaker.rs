//! A target that cannot be reached costs its own tenant a quick refusal, and nobody else anything.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many failures in a row close the way.
const FAILURES: u32 = 5;
/// How long the way is closed at first; it doubles with each failed try.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Closes the way after connection failures in a row, and lets one try through when the pause is over.
#[derive(Debug, Default)]
pub struct Breaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    failures: u32,
    pauses: u32,
    closed_until: Option<Instant>,
    trying: bool,
}

/// One go at the target. Without an ending it counts as neither good nor bad, but frees the try it held.
#[derive(Debug)]
#[must_use]
pub struct BreakerAttempt<'a> {
    breaker: &'a Breaker,
    is_try: bool,
}

impl Breaker {
    /// Whether a request may go out now; otherwise how long to wait.
    pub fn enter(&self, now: Instant) -> Result<BreakerAttempt<'_>, Duration> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match state.closed_until {
            None => Ok(BreakerAttempt { breaker: self, is_try: false }),
            Some(until) if now < until => Err(until - now),
            Some(_) if state.trying => Err(PAUSE),
            Some(_) => {
                state.trying = true;
                Ok(BreakerAttempt { breaker: self, is_try: true })
            }
        }
    }

    /// Whether the way is closed at this moment.
    pub fn is_closed(&self, now: Instant) -> bool {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.closed_until.is_some_and(|until| now < until)
    }

    fn ended(&self, answered: bool, now: Instant) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answered {
            *state = BreakerState::default();
            return;
        }
        // What was under way when the way closed says nothing new.
        if state.closed_until.is_some_and(|until| now < until) {
            return;
        }
        state.failures = state.failures.saturating_add(1);
        if state.failures >= FAILURES {
            let pause = PAUSE.saturating_mul(1 << state.pauses.min(6)).min(LONGEST);
            state.pauses = state.pauses.saturating_add(1);
            state.closed_until = Some(now + pause);
        }
    }
}

impl BreakerAttempt<'_> {
    /// The target answered, whatever it said.
    pub fn answered(self, now: Instant) {
        self.breaker.ended(true, now);
    }

    /// The target could not be reached, or kept silent.
    pub fn lost(self, now: Instant) {
        self.breaker.ended(false, now);
    }
}

impl Drop for BreakerAttempt<'_> {
    fn drop(&mut self) {
        if self.is_try {
            self.breaker.0.lock().unwrap_or_else(PoisonError::into_inner).trying = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lose(breaker: &Breaker, times: u32, now: Instant) {
        for _ in 0..times {
            breaker.enter(now).unwrap().lost(now);
        }
    }

    #[test]
    fn the_way_closes_after_failures_in_a_row_and_one_try_opens_it() {
        let (breaker, mut now) = (Breaker::default(), Instant::now());
        lose(&breaker, FAILURES - 1, now);
        breaker.enter(now).unwrap().answered(now);
        lose(&breaker, FAILURES, now);
        assert_eq!(breaker.enter(now).unwrap_err(), PAUSE);
        assert!(breaker.is_closed(now));

        now += PAUSE;
        assert!(!breaker.is_closed(now));
        let first = breaker.enter(now).unwrap();
        assert!(breaker.enter(now).is_err(), "one try at a time");
        first.lost(now);
        assert_eq!(breaker.enter(now).unwrap_err(), PAUSE * 2);

        now += PAUSE * 2;
        drop(breaker.enter(now).unwrap());
        breaker.enter(now).unwrap().answered(now);
        assert!(breaker.enter(now).is_ok());
    }

    #[test]
    fn what_was_under_way_when_the_way_closed_does_not_lengthen_the_pause() {
        let (breaker, now) = (Breaker::default(), Instant::now());
        let under_way: Vec<_> = (0..30).map(|_| breaker.enter(now).unwrap()).collect();
        under_way.into_iter().for_each(|go| go.lost(now));
        assert_eq!(breaker.enter(now).unwrap_err(), PAUSE);
    }
}
