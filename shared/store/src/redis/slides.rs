//! Which slides are worth sending: moving the end of a record that this process moved a moment ago gains next to nothing.
//!
//! Redis writes every moved end to its append-only file, so a busy session would cost a write for each look at it.
//! Up to a sixteenth of the span (a minute at most) is left on the table, as in the embedded store: a session may end
//! that much early, never late. What is forgotten here is only sent once more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many records are remembered before all are forgotten.
const MOST: usize = 10_000;

#[derive(Default)]
pub(super) struct TtlRefresh(Mutex<HashMap<String, TtlExtension>>);

struct TtlExtension {
    span: Duration,
    at: Instant,
}

impl TtlRefresh {
    /// Whether the end of this record has to be moved now.
    pub(super) fn due(&self, key: &str, span: Duration, now: Instant) -> bool {
        let slides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let slack = (span / 16).min(Duration::from_secs(60));
        slides.get(key).is_none_or(|last| last.span != span || now.saturating_duration_since(last.at) >= slack)
    }

    /// The end of this record was moved, by a command sent not before `at`.
    pub(super) fn moved(&self, key: &str, span: Duration, at: Instant) {
        let mut slides = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slides.len() >= MOST {
            slides.clear();
        }
        slides.insert(key.to_owned(), TtlExtension { span, at });
    }

    /// The record was written, and with it another end.
    pub(super) fn forget(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_slide_is_due_at_first_and_again_when_it_moves_the_end_noticeably() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        assert!(slides.due("a", HOUR, now));
        slides.moved("a", HOUR, now);
        assert!(!slides.due("a", HOUR, now + Duration::from_secs(59)));
        assert!(slides.due("a", HOUR, now + Duration::from_secs(60)));
        assert!(slides.due("a", HOUR * 2, now), "another span is another end");
        assert!(slides.due("b", HOUR, now));
        slides.moved("b", Duration::from_millis(160), now);
        assert!(!slides.due("b", Duration::from_millis(160), now + Duration::from_millis(9)));
        assert!(slides.due("b", Duration::from_millis(160), now + Duration::from_millis(10)));
    }

    #[test]
    fn a_record_that_was_written_slides_anew() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        slides.moved("a", HOUR, now);
        slides.forget("a");
        assert!(slides.due("a", HOUR, now));
    }

    #[test]
    fn no_more_than_so_many_are_remembered() {
        let (slides, now) = (TtlRefresh::default(), Instant::now());
        (0..=MOST).for_each(|n| slides.moved(&n.to_string(), HOUR, now));
        assert_eq!(slides.0.lock().unwrap().len(), 1);
    }
}
